// SPDX-License-Identifier: GPL-2.0-only
/*
 * faults - reads with RWF_DONTCACHE when something goes wrong below them.
 *
 *	faults create MIB FILE
 *	faults clone FROM TO
 *	faults hold PAGES FILE
 *	faults window BADBLOCKS FILE
 *	faults alloc OPS FILE
 *	faults request OPS FILE
 *	faults kill ROUNDS FILE
 *	faults gone FILE
 *
 * create writes the file that the others read: each 64-bit word is a function
 * of its offset.  clone copies a disk, but not the parts that are zero.  hold
 * keeps some of FILE's pages, but not FILE, until it is killed: a leak for the
 * control.
 *
 * window: BADBLOCKS is the attribute of a null_blk disk, FILE is on that disk.
 *	Blocks in the middle of a readahead window, and elsewhere, become
 *	unreadable.  What fails must be what fails without the flag, and be
 *	in the folio of the bad block; the rest must be read; once the block is
 *	good again, so must what failed.
 * alloc: the first, second, third ... allocation that a read makes fails
 *	(/proc/self/fail-nth).  Never wrong bytes; a retry works.
 * request: requests fail at random (fail_make_request, for tasks that ask).
 * kill: processes that read are killed at random points.  Prints how much
 *	memory there is less after ROUNDS of that, in KiB.
 * gone: readers of all kinds, until each of them has got an error.
 *
 * The last line is "done N operations, F faults".  Exit codes: 0 right, 1 not,
 * 2 usage, 4 the kernel lacks what is needed (one line says what).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define MAX_LEN		MIB

enum { EX_FAILED = 1, EX_WRONG_USAGE = 2, EX_UNSUPPORTED = 4 };

static uint64_t rng = 1;
static unsigned char *buf;
static long file_size;
static unsigned long operations, nr_faults;

static __attribute__((noreturn, format(printf, 2, 3)))
void die(int code, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("faults: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static unsigned long below(unsigned long n)
{
	rng += RANDOM_STEP;
	return mix(rng) % n;
}

static uint64_t word_at(long off)
{
	return (off / 8 + 1) * 0x9e3779b97f4a7c15;
}

static unsigned char byte_at(long off)
{
	return word_at(off & -8) >> (off & 7) * 8;
}

static void check(const unsigned char *p, long off, long len, const char *what)
{
	for (long i = 0; i < len;) {
		if ((off + i) % 8 == 0 && i + 8 <= len) {
			uint64_t word;

			memcpy(&word, p + i, 8);
			if (word == word_at(off + i)) {
				i += 8;
				continue;
			}
		}
		if (p[i] != byte_at(off + i))
			die(EX_FAILED, "%s: wrong byte at %ld: %02x, not %02x",
			    what, off + i, p[i], byte_at(off + i));
		i++;
	}
}

static long pick_len(void)
{
	unsigned long r = below(100);
	int bits = below(r < 60 ? 14 : r < 90 ? 17 : 20);

	return (1L << bits) + below(1L << bits);
}

static int open_file(const char *path, int flags)
{
	struct stat st;
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	file_size = st.st_size;
	return fd;
}

static void make_cold(int fd)
{
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static long cached(int fd)
{
	long pages = cached_pages(fd);

	if (pages < 0)
		die(EX_FAILED, "cachestat: %s", strerror(errno));
	return pages;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	close(fd);
}

static int create(long mib, const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	if (fd < 0)
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	for (long off = 0; off < mib * MIB; off += 64 * KIB) {
		for (long i = 0; i < 64 * KIB; i += 8) {
			uint64_t word = word_at(off + i);

			memcpy(buf + i, &word, 8);
		}
		if (pwrite(fd, buf, 64 * KIB, off) != 64 * KIB)
			die(EX_FAILED, "%s: %s", path, strerror(errno));
	}
	if (fsync(fd))
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	return 0;
}

static int clone_disk(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_DIRECT), out = open(to, O_WRONLY);
	long off = 0;
	ssize_t n;

	if (in < 0 || out < 0)
		die(EX_FAILED, "%s, %s: %s", from, to, strerror(errno));
	for (; (n = pread(in, buf, MIB, off)) > 0; off += n) {
		for (long i = 0; i < n; i += 64 * KIB) {
			long len = n - i < 64 * KIB ? n - i : 64 * KIB;

			if (!buf[i] && !memcmp(buf + i, buf + i + 1, len - 1))
				continue;
			if (pwrite(out, buf + i, len, off + i) != len)
				die(EX_FAILED, "%s: %s", to, strerror(errno));
		}
	}
	if (n < 0 || fsync(out))
		die(EX_FAILED, "%s, %s: %s", from, to, strerror(errno));
	return 0;
}

static int hold(long pages, const char *path)
{
	int fd = open_file(path, O_RDONLY), p[2];
	loff_t off = 0;

	if (pipe(p))
		die(EX_FAILED, "pipe: %s", strerror(errno));
	while (off < pages * PAGE)
		if (splice(fd, &off, p[1], NULL, pages * PAGE - off, 0) <= 0)
			die(EX_FAILED, "%s: %s", path, strerror(errno));
	close(fd);
	printf("holding\n");
	fflush(stdout);
	for (;;)
		pause();
}

/* Where a byte of the file is on the disk. */
static long physical(int fd, long off)
{
	struct {
		struct fiemap map;
		struct fiemap_extent extent;
	} f = { .map = { .fm_start = off, .fm_length = 1, .fm_extent_count = 1,
			 .fm_flags = FIEMAP_FLAG_SYNC } };

	if (ioctl(fd, FS_IOC_FIEMAP, &f) || f.map.fm_mapped_extents != 1)
		die(EX_FAILED, "FIEMAP: %s", strerror(errno));
	return f.extent.fe_physical + (off - f.extent.fe_logical);
}

static void set_bad(const char *attribute, char sign, long physical, long len)
{
	char text[64];

	snprintf(text, sizeof(text), "%c%ld-%ld", sign, physical / SECTOR,
		 (physical + len) / SECTOR - 1);
	write_file(attribute, text);
}

static const char *window_path;

/*
 * Read all of the file in pieces of @chunk, go around what cannot be read, and
 * mark it in @failed, a byte for each page.  Each time a file newly opened, as
 * readahead depends on what was read before.
 */
static void scan(int flags, long chunk, int advice, unsigned char *failed,
		 const char *what)
{
	int fd = open_file(window_path, O_RDONLY);
	long pos = 0, next;

	posix_fadvise(fd, 0, 0, advice);

	memset(failed, 0, file_size / PAGE);
	while (pos < file_size) {
		ssize_t n = pread_flags(fd, buf, chunk, pos, flags);

		operations++;
		if (n > 0) {
			check(buf, pos, n, what);
			pos += n;
			continue;
		}
		if (n == 0)
			die(EX_FAILED, "%s: end of file at %ld of %ld", what,
			    pos, file_size);
		if (errno != EIO)
			die(EX_FAILED, "%s: %s at %ld", what, strerror(errno),
			    pos);
		nr_faults++;
		/* The same once more. */
		if (pread_flags(fd, buf, chunk, pos, flags) >= 0)
			die(EX_FAILED, "%s: %ld was unreadable, and is not now",
			    what, pos);
		failed[pos / PAGE] = 1;
		next = (pos & -PAGE) + PAGE;
		pos = next;
	}
	close(fd);
}

static void one_window(const char *attribute, int fd, long bad, long len,
		       long chunk, int advice, long granularity)
{
	static unsigned char plain[4096], dontcache[4096], none[4096];
	long where = physical(fd, bad), first = -1, last = -1;
	char what[128];

	snprintf(what, sizeof(what), "bad %ld-%ld, pieces of %ld, %s", bad,
		 bad + len, chunk, advice == POSIX_FADV_RANDOM ?
		 "no readahead" : "readahead");
	set_bad(attribute, '+', where, len);
	make_cold(fd);
	scan(0, chunk, advice, plain, what);
	make_cold(fd);
	if (cached(fd))
		die(EX_FAILED, "%s: %ld pages stay when the file is to go",
		    what, cached(fd));
	scan(RWF_DONTCACHE, chunk, advice, dontcache, what);

	for (long i = 0; i < file_size / PAGE; i++) {
		if (plain[i] != dontcache[i])
			die(EX_FAILED, "%s: page %ld: %s, but %s without the flag",
			    what, i, dontcache[i] ? "EIO" : "read",
			    plain[i] ? "EIO" : "read");
		if (!dontcache[i])
			continue;
		if (first < 0)
			first = i;
		last = i;
	}
	for (long i = bad / PAGE; i < (bad + len) / PAGE; i++)
		if (!dontcache[i])
			die(EX_FAILED, "%s: page %ld is bad, but was read", what,
			    i);
	/* One folio, or one for each end of the bad range. */
	if (advice == POSIX_FADV_RANDOM &&
	    (first < bad / granularity * granularity / PAGE ||
	     last >= (bad + len + granularity - 1) / granularity *
		     granularity / PAGE))
		die(EX_FAILED, "%s: pages %ld to %ld fail", what, first, last);
	if ((last - first + 1) * PAGE > 2 * MIB)
		die(EX_FAILED, "%s: pages %ld to %ld fail", what, first, last);

	/* What failed can be read once the disk can, and goes then. */
	set_bad(attribute, '-', where, len);
	for (int i = 0; i < 2; i++) {
		scan(RWF_DONTCACHE, chunk, advice, dontcache, what);
		if (memcmp(dontcache, none, sizeof(none)))
			die(EX_FAILED, "%s: EIO from a good disk", what);
	}
	if (advice != POSIX_FADV_RANDOM && cached(fd))
		die(EX_FAILED, "%s: %ld pages are left", what, cached(fd));
}

static int window(const char *attribute, const char *path)
{
	static const long chunks[] = { 4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB };
	int fd = open_file(window_path = path, O_RDONLY);
	struct statfs fs;
	long bad[] = {
		0, 44 * KIB, 128 * KIB, file_size / 2 + 12 * KIB,
		file_size / 2 + 124 * KIB, file_size - PAGE,
	};

	if (file_size > 4096 * PAGE)
		die(EX_WRONG_USAGE, "%s: larger than 16 MiB", path);
	if (fstatfs(fd, &fs))
		die(EX_FAILED, "statfs: %s", strerror(errno));
	if (fs.f_bsize < PAGE)
		fs.f_bsize = PAGE;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		for (unsigned int k = 0; k < sizeof(chunks) / sizeof(*chunks); k++)
			one_window(attribute, fd, bad[i], PAGE, chunks[k],
				   POSIX_FADV_NORMAL, fs.f_bsize);
		one_window(attribute, fd, bad[i], PAGE, 4 * KIB,
			   POSIX_FADV_RANDOM, fs.f_bsize);
	}
	/* More than a folio, and not on its boundaries. */
	one_window(attribute, fd, MIB + 20 * KIB, 300 * KIB, 16 * KIB,
		   POSIX_FADV_NORMAL, fs.f_bsize);
	return 0;
}

struct shape {
	const char *name;
	int flags;
	long off, len;
	bool after_others;	/* so that there is readahead already */
};

/* The n-th allocation of one read fails, for n = 1, 2, 3 ... */
static void alloc_one(int fd, int nth_fd, const struct shape *s)
{
	char text[32];
	ssize_t n;
	int error;

	for (int nth = 1; ; nth++) {
		make_cold(fd);
		if (s->after_others)
			for (long i = 4; i; i--)
				pread_flags(fd, buf, 16 * KIB,
					    s->off - i * 16 * KIB, s->flags);
		snprintf(text, sizeof(text), "%d", nth);
		if (pwrite(nth_fd, text, strlen(text), 0) < 0)
			die(EX_FAILED, "fail-nth: %s", strerror(errno));
		n = pread_flags(fd, buf, s->len, s->off, s->flags);
		error = errno;
		if (pread(nth_fd, text, sizeof(text), 0) < 1)
			die(EX_FAILED, "fail-nth: %s", strerror(errno));
		if (pwrite(nth_fd, "0", 1, 0) < 0)
			die(EX_FAILED, "fail-nth: %s", strerror(errno));
		operations++;
		if (n > 0)
			check(buf, s->off, n, s->name);
		else if (n == 0)
			die(EX_FAILED, "%s: end of file, allocation %d failed",
			    s->name, nth);
		else if (error != ENOMEM && error != EIO &&
			 !(error == EAGAIN && (s->flags & RWF_NOWAIT)))
			die(EX_FAILED, "%s: %s, allocation %d failed", s->name,
			    strerror(error), nth);
		/* Once more, all of it. */
		for (long off = 0; off < s->len; off += n) {
			n = pread_flags(fd, buf, s->len - off, s->off + off,
					s->flags & ~RWF_NOWAIT);
			if (n <= 0)
				die(EX_FAILED, "%s: retry: %s", s->name,
				    n ? strerror(errno) : "end of file");
			check(buf, s->off + off, n, s->name);
		}
		if (text[0] != '0')
			return;		/* there are no more than nth - 1 */
		nr_faults++;
		if (nth > 10000)
			die(EX_FAILED, "%s: no end of allocations", s->name);
	}
}

static int alloc(unsigned long ops, const char *path)
{
	static const struct shape shapes[] = {
		{ "1K", RWF_DONTCACHE, 0, KIB, false },
		{ "16K", RWF_DONTCACHE, 0, 16 * KIB, false },
		{ "1M", RWF_DONTCACHE, 0, MIB, false },
		{ "lone 4K", RWF_DONTCACHE, MIB + 3000, 4 * KIB, false },
		{ "stream 16K", RWF_DONTCACHE, MIB, 16 * KIB, true },
		{ "nowait 16K", RWF_DONTCACHE | RWF_NOWAIT, 0, 16 * KIB, false },
		{ "nowait stream", RWF_DONTCACHE | RWF_NOWAIT, MIB, 64 * KIB,
		  true },
		{ "plain 16K", 0, 0, 16 * KIB, false },
	};
	int fd, nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);

	if (nth_fd < 0)
		die(EX_UNSUPPORTED, "no FAULT_INJECTION");
	fd = open_file(path, O_RDONLY);
	for (unsigned int i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		alloc_one(fd, nth_fd, &shapes[i]);
	while (operations < ops) {
		struct shape s = { .name = "random", .flags = RWF_DONTCACHE };

		s.len = pick_len();
		s.off = 64 * KIB + below(file_size - s.len - 64 * KIB);
		s.after_others = below(2);
		if (below(4) == 0)
			s.flags |= RWF_NOWAIT;
		alloc_one(fd, nth_fd, &s);
	}
	return 0;
}

/* A reader that meets errors, and reads all the same once there are none. */
static int request(unsigned long ops, const char *path)
{
	int fd = open_file(path, O_RDONLY);
	int fail = open("/proc/self/make-it-fail", O_WRONLY | O_CLOEXEC);
	long pos = 0, len, stream = 0;

	if (fail < 0)
		die(EX_UNSUPPORTED, "no FAULT_INJECTION");
	/* Metadata is not what is tested here. */
	physical(fd, 0);
	make_cold(fd);
	if (write(fail, "1", 1) != 1)
		die(EX_FAILED, "make-it-fail: %s", strerror(errno));
	while (operations < ops) {
		ssize_t n;

		if (below(64) == 0) {
			stream = below(2) ? pick_len() : 0;
			pos = 0;
		}
		if (below(200) == 0)
			make_cold(fd);
		len = stream ? stream : pick_len();
		if (!stream || pos >= file_size)
			pos = below(file_size);
		n = pread_flags(fd, buf, len, pos,
				below(8) ? RWF_DONTCACHE : 0);
		operations++;
		if (n > 0) {
			check(buf, pos, n, "request");
			pos += n;
		} else if (n == 0) {
			die(EX_FAILED, "request: end of file at %ld", pos);
		} else if (errno == EIO) {
			nr_faults++;
			pos += PAGE;
		} else {
			die(EX_FAILED, "request: %s at %ld", strerror(errno), pos);
		}
	}
	pwrite(fail, "0", 1, 0);
	for (pos = 0; pos < file_size; pos += len) {
		len = pread_flags(fd, buf, 64 * KIB, pos, RWF_DONTCACHE);
		if (len <= 0)
			die(EX_FAILED, "request: afterwards: %s at %ld",
			    strerror(errno), pos);
		check(buf, pos, len, "request, afterwards");
	}
	if (ops && !nr_faults)
		die(EX_FAILED, "request: no request failed");
	return 0;
}

enum reader { SEQUENTIAL, RANDOM, PLAIN, MAPPED, SPLICED, NR_READERS };

static const char * const reader_name[NR_READERS] = {
	"sequential", "random", "plain", "mapped", "spliced",
};

/* Read until an error comes; its number. */
static int reader(enum reader kind, const char *path)
{
	int fd = open_file(path, O_RDONLY), p[2];
	long pos = 0, len = pick_len();
	const unsigned char *map;
	ssize_t n;

	if (pipe(p))
		return errno;
	map = mmap(NULL, file_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return errno;
	for (;;) {
		loff_t off;

		if (pos >= file_size) {
			pos = 0;
			len = pick_len();
			if (kind == MAPPED)
				madvise((void *)map, file_size, MADV_DONTNEED);
			if (kind >= PLAIN || below(4) == 0)
				make_cold(fd);
		}
		if (len > file_size - pos)
			len = file_size - pos;
		switch (kind) {
		case SEQUENTIAL:
			n = pread_flags(fd, buf, len, pos, RWF_DONTCACHE);
			break;
		case RANDOM:
			pos = below(file_size);
			n = pread_flags(fd, buf, pick_len(), pos, RWF_DONTCACHE);
			break;
		case PLAIN:
			n = pread_flags(fd, buf, len, pos, 0);
			break;
		case MAPPED:
			memcpy(buf, map + pos, len);
			n = len;
			break;
		default:
			off = pos;
			n = splice(fd, &off, p[1], NULL,
				   len < 64 * KIB ? len : 64 * KIB,
				   SPLICE_F_NONBLOCK);
			if (n > 0 && read(p[0], buf, n) != n)
				return EPIPE;
			break;
		}
		if (n <= 0)
			return n ? errno : ENODATA;
		check(buf, pos, n, reader_name[kind]);
		pos += n;
	}
}

static pid_t start_reader(enum reader kind, const char *path)
{
	pid_t pid = fork();

	if (pid < 0)
		die(EX_FAILED, "fork: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rng = mix(rng + getpid());
		_exit(reader(kind, path));
	}
	return pid;
}

static int gone(const char *path)
{
	pid_t pid[NR_READERS * 2];
	int status;

	for (int i = 0; i < NR_READERS * 2; i++)
		pid[i] = start_reader(i % NR_READERS, path);
	printf("reading\n");
	fflush(stdout);
	for (int i = 0; i < NR_READERS * 2; i++) {
		const char *name = reader_name[i % NR_READERS];

		if (waitpid(pid[i], &status, 0) != pid[i])
			die(EX_FAILED, "waitpid: %s", strerror(errno));
		operations++;
		nr_faults++;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS &&
		    i % NR_READERS == MAPPED)
			continue;
		if (!WIFEXITED(status))
			die(EX_FAILED, "%s: ended with signal %d", name,
			    WTERMSIG(status));
		switch (WEXITSTATUS(status)) {
		case EIO:
		case ENXIO:
		case ENODEV:
			continue;
		case EX_FAILED:		/* wrong bytes: it has said so */
			return EX_FAILED;
		}
		/* A shut down file system has its own. */
		printf("%s: %s\n", name, strerror(WEXITSTATUS(status)));
		if (WEXITSTATUS(status) == ENODATA)
			die(EX_FAILED, "%s: end of file", name);
	}
	return 0;
}

/* The slab allocator keeps some, and so does KASAN. */
static void shrink_slabs(void)
{
	glob_t g;

	if (glob("/sys/kernel/slab/*/shrink", 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		write_file(g.gl_pathv[i], "1");
	globfree(&g);
}

static long mem_free(void)
{
	char line[128];
	long kib = -1;
	FILE *f;

	sync();
	shrink_slabs();
	for (int i = 0; i < 3; i++) {
		write_file("/proc/sys/vm/drop_caches", "3");
		usleep(100000);
	}
	shrink_slabs();
	f = fopen("/proc/meminfo", "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "MemFree: %ld", &kib);
	if (kib < 0)
		die(EX_FAILED, "no MemFree in /proc/meminfo");
	fclose(f);
	return kib;
}

static void kill_round(const char *path)
{
	pid_t pid[3];
	int status;

	for (int i = 0; i < 3; i++)
		pid[i] = start_reader(below(NR_READERS), path);
	for (int i = 0; i < 3; i++) {
		if (below(8))
			usleep(below(6000));
		kill(pid[i], SIGKILL);
	}
	for (int i = 0; i < 3; i++) {
		if (waitpid(pid[i], &status, 0) != pid[i])
			die(EX_FAILED, "waitpid: %s", strerror(errno));
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			die(EX_FAILED, "a reader ended with status %x", status);
	}
	operations += 3;
}

static int kill_readers(unsigned long rounds, const char *path)
{
	int fd = open_file(path, O_RDONLY);
	long before, after, lost;

	for (int i = 0; i < 50; i++)
		kill_round(path);
	operations = 0;
	make_cold(fd);
	before = mem_free();
	/*
	 * Free pages on the lists of processors do not count as free, and these
	 * grow once.  What leaks is lost each time.
	 */
	for (int try = 0; try < 3; try++) {
		for (unsigned long i = 0; i < rounds; i++) {
			kill_round(path);
			nr_faults += 3;
			if (i % 200 == 199) {
				printf("%lu of %lu rounds\n", i + 1, rounds);
				fflush(stdout);
			}
		}
		make_cold(fd);
		if (cached(fd))
			die(EX_FAILED, "%ld pages of the file cannot be dropped",
			    cached(fd));
		after = mem_free();
		lost = before - after;
		/* A page in each second process would be more. */
		if (rounds < 100 || lost <= (long)rounds * 3 * 4 / 2)
			break;
		before = after;
	}
	printf("lost %ld KiB\n", lost);
	if (rounds >= 100 && lost > (long)rounds * 3 * 4 / 2)
		die(EX_FAILED, "%ld KiB are lost after %lu rounds, three times",
		    lost, rounds);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc == 4 || argc == 3 ? argv[1] : "";
	int rc;

	if (getenv("SEED"))
		rng = strtoull(getenv("SEED"), NULL, 0);
	buf = mmap(NULL, 2 * MAX_LEN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		die(EX_FAILED, "no memory");
	if (!strcmp(what, "gone") && argc == 3)
		rc = gone(argv[2]);
	else if (argc != 4)
		die(EX_WRONG_USAGE, "see the head of faults.c");
	else if (!strcmp(what, "create"))
		return create(atol(argv[2]), argv[3]);
	else if (!strcmp(what, "clone"))
		return clone_disk(argv[2], argv[3]);
	else if (!strcmp(what, "hold"))
		return hold(atol(argv[2]), argv[3]);
	else if (!strcmp(what, "window"))
		rc = window(argv[2], argv[3]);
	else if (!strcmp(what, "alloc"))
		rc = alloc(strtoul(argv[2], NULL, 0), argv[3]);
	else if (!strcmp(what, "request"))
		rc = request(strtoul(argv[2], NULL, 0), argv[3]);
	else if (!strcmp(what, "kill"))
		rc = kill_readers(strtoul(argv[2], NULL, 0), argv[3]);
	else
		die(EX_WRONG_USAGE, "see the head of faults.c");
	if (rc == 0)
		printf("done %lu operations, %lu faults\n", operations,
		       nr_faults);
	return rc;
}
