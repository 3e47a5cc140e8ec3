// SPDX-License-Identifier: GPL-2.0-only
/*
 * bound - how much page cache a user can leave behind with RWF_DONTCACHE.
 *
 *	bound CGROUP DESCRIPTORS FILE
 *
 * FILE is made, 1 GiB without data.  In several ways, each with and without the
 * flag, on a cold file, DESCRIPTORS open files (or one) are read a little and
 * then kept open.  Printed for each: pages of the file in the page cache, pages
 * that memory.stat of CGROUP, which this process must be in, is charged for,
 * and pages that are left when the cgroup was asked to reclaim.
 *
 * Wrong is: more pages with the flag than without, pages that are not charged,
 * pages that reclaim does not get.  A descriptor can leave one window of
 * readahead and the folio it is in; what all of a user's can leave is that
 * times the limit of descriptors, and charged to him.
 *
 * The last line is "done N operations, 0 faults".  Exit codes: 0 right, 1 not,
 * 2 usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common.h"

#define FILE_SIZE	(1024 * MIB)

/* Pages that may have been counted and not been put together yet. */
#define SLACK		64

enum way { HALFWAY, WINDOW, AFTER_END, RANDOM_ONE, THREADS, NR_WAYS };

static const char * const way_name[NR_WAYS] = {
	"one byte each", "a window each", "over a folio's end", "random, one fd",
	"random, 8 threads, one fd",
};

static const char *cgroup, *path;
static int *fds, nr_fds;
static unsigned long operations;
static bool bad;

/* Pages that the cgroup was charged for before we read: of other files. */
static long others;

static void die(const char *what)
{
	fprintf(stderr, "bound: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long cached(void)
{
	long pages = cached_pages(fds[0]);

	if (pages < 0)
		die("cachestat");
	return pages;
}

/* Pages of files that the cgroup is charged for, as far as it knows. */
static long charged_now(void)
{
	char name[256], key[64];
	long value, pages = -1;
	FILE *f;

	snprintf(name, sizeof(name), "%s/memory.stat", cgroup);
	f = fopen(name, "r");
	if (!f)
		die(name);
	while (fscanf(f, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, "file"))
			pages = value / PAGE;
	fclose(f);
	return pages;
}

/*
 * The same when it has come to lie between low and high.  What processors counted
 * is put together now and then, at the latest every two seconds.
 */
static long charged(long low, long high)
{
	long pages = charged_now();

	for (int i = 0; i < 50 && (pages < low || pages > high); i++) {
		usleep(100 * 1000);
		pages = charged_now();
	}
	return pages;
}

static void reclaim(void)
{
	char name[256], text[32];
	int fd;

	snprintf(name, sizeof(name), "%s/memory.reclaim", cgroup);
	fd = open(name, O_WRONLY);
	if (fd < 0)
		die(name);
	/* EAGAIN says that there was less. */
	for (int i = 0; i < 20 && cached(); i++) {
		snprintf(text, sizeof(text), "%ld swappiness=0",
			 (cached() + 16) * PAGE);
		if (write(fd, text, strlen(text)) < 0 && errno != EAGAIN)
			die(name);
	}
	close(fd);
}

static void read_at(int fd, long off, long len, int flags)
{
	static __thread unsigned char buf[128 * KIB];

	if (pread_flags(fd, buf, len, off, flags) != len)
		die("read");
	__atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED);
}

struct thread_arg {
	int nr, flags;
};

static void *random_reads(void *p)
{
	struct thread_arg *arg = p;
	uint64_t rng = arg->nr;

	for (int i = 0; i < nr_fds; i++) {
		rng = mix(rng);
		read_at(fds[0], rng % (FILE_SIZE - 4 * KIB), 1 * KIB,
			arg->flags);
	}
	return NULL;
}

static void do_way(enum way way, int flags)
{
	struct thread_arg arg[8];
	pthread_t thread[8];
	long step = FILE_SIZE / nr_fds & -64 * KIB;

	switch (way) {
	case HALFWAY:
		for (int i = 0; i < nr_fds; i++)
			read_at(fds[i], i * step + 1000, 1, flags);
		break;
	case WINDOW:
		/* from the start of a window, until the second is there */
		for (int i = 0; i < nr_fds; i++)
			for (int k = 0; k < 12; k++)
				read_at(fds[i], i * step + k * 4 * KIB, 4 * KIB,
					flags);
		break;
	case AFTER_END:
		for (int i = 0; i < nr_fds; i++)
			read_at(fds[i], i * step, 66 * KIB, flags);
		break;
	case RANDOM_ONE:
		arg[0] = (struct thread_arg){ 0, flags };
		random_reads(&arg[0]);
		break;
	default:
		for (int i = 0; i < 8; i++) {
			arg[i] = (struct thread_arg){ i, flags };
			if (pthread_create(&thread[i], NULL, random_reads,
					   &arg[i]))
				die("pthread_create");
		}
		for (int i = 0; i < 8; i++)
			pthread_join(thread[i], NULL);
	}
}

struct result {
	long pages, charged, left;
};

static struct result one(enum way way, int flags)
{
	struct result r;
	long before;

	for (int i = 0; i < nr_fds; i++) {
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0)
			die(path);
	}
	posix_fadvise(fds[0], 0, 0, POSIX_FADV_DONTNEED);
	if (cached())
		die("the file does not leave the page cache");
	before = charged(0, others + SLACK);
	do_way(way, flags);
	r.pages = cached();
	r.charged = charged(before + r.pages - SLACK, LONG_MAX) - before;
	reclaim();
	r.left = cached();
	for (int i = 0; i < nr_fds; i++)
		close(fds[i]);
	return r;
}

static void wrong(enum way way, const char *what, long n)
{
	fprintf(stderr, "bound: %s: %s: %ld\n", way_name[way], what, n);
	bad = true;
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	int fd;

	if (argc != 4 || atoi(argv[2]) < 1) {
		fprintf(stderr, "usage: bound CGROUP DESCRIPTORS FILE\n");
		return 2;
	}
	cgroup = argv[1];
	nr_fds = atoi(argv[2]);
	path = argv[3];
	fds = calloc(nr_fds, sizeof(*fds));
	if (!fds)
		die("no memory");
	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("getrlimit");
	if ((long)limit.rlim_cur < nr_fds + 10) {
		struct rlimit more = { nr_fds + 10, limit.rlim_max };

		if (more.rlim_max < more.rlim_cur)
			more.rlim_max = more.rlim_cur;
		if (setrlimit(RLIMIT_NOFILE, &more))
			die("setrlimit");
	}
	fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (fd < 0 || ftruncate(fd, FILE_SIZE))
		die(path);
	printf("bound\tway\tdescriptors\tplain pages\tpages\tcharged\tafter reclaim\tKiB a descriptor\tMiB at %ld descriptors\n",
	       (long)limit.rlim_max);
	/* Of those who were in the cgroup before us, too. */
	sleep(3);
	others = charged_now();
	for (enum way way = 0; way < NR_WAYS; way++) {
		struct result plain = one(way, 0);
		struct result dc = one(way, RWF_DONTCACHE);
		int n = way >= RANDOM_ONE ? 1 : nr_fds;
		long kib = (dc.pages * 4 + n - 1) / n;

		printf("bound\t%s\t%d\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\n",
		       way_name[way], n, plain.pages, dc.pages, dc.charged,
		       dc.left, kib, kib * (long)limit.rlim_max / 1024);
		fflush(stdout);
		if (dc.pages > plain.pages)
			wrong(way, "more pages than without the flag",
			      dc.pages - plain.pages);
		if (dc.pages - dc.charged > SLACK)
			wrong(way, "pages are not charged",
			      dc.pages - dc.charged);
		if (dc.left)
			wrong(way, "pages that reclaim does not get", dc.left);
	}
	close(fd);
	unlink(path);
	if (bad)
		return 1;
	printf("done %lu operations, 0 faults\n", operations);
	return 0;
}
