// SPDX-License-Identifier: GPL-2.0-only
/*
 * fioprobe - see which flag a fio passes for uncached=1, and that it works.
 *
 *	fioprobe FIO DIR	check FIO with a file of one page in DIR
 *	fioprobe --cached FILE	print how many pages of FILE are cached
 *	fioprobe --flag DIR	see whether reads there take RWF_DONTCACHE
 *
 * A number of a version says nothing about the flag: fio before 3.41 passes
 * 0x40, which is RWF_ATOMIC.  So fio is run on one page and looked at:
 *
 *	pvsync2		traced, and the flags of its preadv2(2) must be 0x80;
 *			then the page must be gone
 *	io_uring	its flags are in memory shared with the kernel, out of
 *			reach of a tracer; but that the page is gone, without
 *			an error, only RWF_DONTCACHE does
 *	each without	the page must stay, or that it is gone says nothing
 *	the flag
 *
 * Prints a line for each engine: "ENGINE 0x80" or, for io_uring, "ENGINE
 * absent" where the kernel has none or forbids it.
 *
 * Exit codes: 0 the flag is right, 1 it is not, or fio failed, 2 usage, 3 the
 * kernel or the file system does not take RWF_DONTCACHE.
 */
#define _GNU_SOURCE
#define PROGRAM "fioprobe"
#include "common.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static char path[4096];

static void remove_file(void)
{
	unlink(path);
}

static unsigned long cached(const char *name)
{
	int fd = open(name, O_RDONLY);
	unsigned long pages;

	if (fd < 0)
		die(EX_FAILED, "%s: %s", name, strerror(errno));
	pages = cached_pages(fd);
	close(fd);
	return pages;
}

/* One page on the disk, none in the cache; read once with the flag. */
static void make_file(const char *dir)
{
	const long page = sysconf(_SC_PAGESIZE);
	char *data = calloc(1, page);
	struct iovec iov = { data, page };
	int fd;

	snprintf(path, sizeof(path), "%s/fioprobe.%d", dir, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	atexit(remove_file);
	memset(data, 'd', page);
	if (pwrite(fd, data, page, 0) != page || fsync(fd))
		die(EX_FAILED, "%s: cannot write: %s", path, strerror(errno));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (preadv2(fd, &iov, 1, 0, RWF_DONTCACHE) != page)
		die(errno == EOPNOTSUPP ? EX_UNSUPPORTED : EX_FAILED,
		    "%s: read with RWF_DONTCACHE: %s", path, strerror(errno));
	close(fd);
	free(data);
}

static pid_t start_fio(const char *fio, const char *engine, int uncached)
{
	char filename[sizeof(path) + 16], ioengine[32], bs[32], size[32];
	const long page = sysconf(_SC_PAGESIZE);
	pid_t pid;
	int null;

	snprintf(filename, sizeof(filename), "--filename=%s", path);
	snprintf(ioengine, sizeof(ioengine), "--ioengine=%s", engine);
	snprintf(bs, sizeof(bs), "--bs=%ld", page);
	snprintf(size, sizeof(size), "--size=%ld", page);
	pid = fork();
	if (pid < 0)
		die(EX_FAILED, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	/* Results are of no interest, errors go to stderr. */
	null = open("/dev/null", O_WRONLY);
	dup2(null, 1);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		die(EX_FAILED, "ptrace: %s", strerror(errno));
	execl(fio, fio, "--name=probe", "--rw=read", filename, bs, size,
	      ioengine, "--fadvise_hint=0", "--eta=never",
	      uncached ? "--uncached=1" : NULL, NULL);
	die(EX_FAILED, "%s: %s", fio, strerror(errno));
}

/* What a traced fio did. */
struct run {
	unsigned long calls;		/* of preadv2(2) */
	unsigned long long flags;	/* of the last of them */
	int status;			/* as of waitpid(2) */
};

/* Run fio to its end, with all its processes traced. */
static struct run run_fio(const char *fio, const char *engine, int uncached)
{
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD |
			     PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	struct __ptrace_syscall_info call;
	pid_t first = start_fio(fio, engine, uncached), pid;
	int status, sig, options_set = 0;
	struct run run = { 0 };

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (pid == first)
				run.status = status;
			continue;
		}
		sig = WSTOPSIG(status);
		if (!options_set) {
			/* The stop after execve(2); forks inherit it. */
			if (ptrace(PTRACE_SETOPTIONS, pid, NULL, options))
				die(EX_FAILED, "ptrace: %s", strerror(errno));
			options_set = 1;
			sig = 0;
		} else if (sig == (SIGTRAP | 0x80)) {
			sig = 0;
			if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(call),
				   &call) > 0 &&
			    call.op == PTRACE_SYSCALL_INFO_ENTRY &&
			    call.entry.nr == __NR_preadv2) {
				run.calls++;
				run.flags = call.entry.args[5];
			}
		} else if (sig == SIGTRAP || sig == SIGSTOP) {
			/* An event, or the first stop of what was forked. */
			sig = 0;
		}
		ptrace(PTRACE_SYSCALL, pid, NULL, (long)sig);
	}
	return run;
}

static void check_run(const char *fio, const char *engine, int uncached)
{
	const unsigned long long want = uncached ? RWF_DONTCACHE : 0;
	const unsigned long left = uncached ? 0 : 1;
	struct run run = run_fio(fio, engine, uncached);

	/* First, as a wrong flag also makes fio fail. */
	if (run.calls && run.flags != want)
		die(EX_FAILED, "%s passes 0x%llx for uncached=%d, not 0x%llx; take fio 3.41 or newer",
		    fio, run.flags, uncached, want);
	if (run.status)
		die(EX_FAILED, "%s failed with %s %d (ioengine=%s, uncached=%d)",
		    fio, WIFEXITED(run.status) ? "code" : "signal",
		    WIFEXITED(run.status) ? WEXITSTATUS(run.status) :
		    WTERMSIG(run.status), engine, uncached);
	if (!run.calls && !strcmp(engine, "pvsync2"))
		die(EX_FAILED, "%s calls no preadv2 with ioengine=pvsync2",
		    fio);
	if (cached(path) != left)
		die(EX_FAILED, "%s: %lu pages are cached after ioengine=%s, uncached=%d, not %lu",
		    path, cached(path), engine, uncached, left);
}

static void check_engine(const char *fio, const char *engine)
{
	check_run(fio, engine, 0);
	/* fio drops the page itself before it reads (invalidate=1). */
	check_run(fio, engine, 1);
	printf("%s 0x%x\n", engine, RWF_DONTCACHE);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		die(EX_WRONG_USAGE, "usage: fioprobe FIO|--flag DIR, or fioprobe --cached FILE");
	if (!strcmp(argv[1], "--cached")) {
		printf("%lu\n", cached(argv[2]));
		return 0;
	}
	make_file(argv[2]);
	if (!strcmp(argv[1], "--flag"))
		return 0;
	check_engine(argv[1], "pvsync2");
	/* A call without arguments: EFAULT where there is io_uring. */
	if (syscall(__NR_io_uring_setup, 1, NULL) < 0 && errno != EFAULT)
		puts("io_uring absent");
	else
		check_engine(argv[1], "io_uring");
	return 0;
}
