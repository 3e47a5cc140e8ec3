// SPDX-License-Identifier: GPL-2.0-only
/*
 * badinput - preadv2(2) with RWF_DONTCACHE and arguments that make no sense.
 *
 *	badinput [-bq] DIR [BDEV]
 *
 * All combinations of the other flags of preadv2, of offsets, of iovecs and of
 * descriptors: each call is made without RWF_DONTCACHE and with it, and both
 * must do the same: the same result or errno, the same bytes in the buffers,
 * the same file offset afterwards.  What does not take the flag may fail with
 * EOPNOTSUPP instead of anything, and must not have done anything then.
 * After an error no byte of the buffers may have changed, nor the file offset.
 *
 *	-b	BDEV need not take the flag
 *	-q	at most two of the other flags at a time
 *	DIR	a directory on a file system that takes the flag
 *	BDEV	a block device, only read from
 *
 * Environment: OVERLAY, SQUASHFS, TMPFS name a file on such a file system.
 *
 * The last line is "done N operations, 0 faults", a line before it for each
 * descriptor.  Exit codes: 0 right, 1 not, 2 usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"

/* Neither a multiple of the page nor of the sector. */
#define FILE_SIZE	(5 * PAGE + 123)
#define POISON		0xa5

/* HIPRI DSYNC SYNC NOWAIT APPEND NOAPPEND ATOMIC NOSIGNAL, one nobody defined */
static const int flag_bits[] = {
	0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x100, INT_MIN,
};
#define NR_FLAGS	(sizeof(flag_bits) / sizeof(*flag_bits))

static unsigned char *buf;		/* three pages, the last is not there */
static unsigned long operations, bad;
static bool quick;

struct iovs {
	const char *name;
	const struct iovec *iov;
	unsigned long n;
};

static struct iovec many[1025], one[1], empty[1], empties[8], middle[3],
	first_bad[2], null_iov[1], last_bad[2], huge[2], negative[1], mixed[5],
	kernel[1];
static struct iovs iovs[] = {
	{ "none", many, 0 },
	{ "one", one, 1 },
	{ "one-empty", empty, 1 },
	{ "eight-empty", empties, 8 },
	{ "empty-between", mixed, 5 },
	{ "1024", many, 1024 },
	{ "1025", many, 1025 },
	{ "bad-middle", middle, 3 },
	{ "bad-first", first_bad, 2 },
	{ "bad-last", last_bad, 2 },
	{ "null-base", null_iov, 1 },
	{ "kernel-base", kernel, 1 },
	{ "too-long", huge, 2 },
	{ "negative", negative, 1 },
	{ "no-array", NULL, 1 },
	{ "bad-array", NULL, 2 },
};
#define NR_IOVS		(sizeof(iovs) / sizeof(*iovs))

static const long offsets[] = {
	0, 1, PAGE, 2 * PAGE - 1, FILE_SIZE - 1, FILE_SIZE, FILE_SIZE + 1,
	FILE_SIZE + (1L << 30), -1, -2, LONG_MIN,
	LONG_MAX, LONG_MAX - 1, LONG_MAX & -PAGE, (LONG_MAX & -PAGE) - 1,
	/* s_maxbytes of ext4 with blocks of 4K, and around it */
	(1L << 44) - PAGE, (1L << 44) - PAGE - 1, (1L << 44) - PAGE + 1,
	1L << 44,
};
#define NR_OFFSETS	(sizeof(offsets) / sizeof(*offsets))

struct descriptor {
	const char *name;
	int fd;
	bool takes;		/* must not say EOPNOTSUPP */
	bool absent;
};

static void die(const char *what)
{
	fprintf(stderr, "badinput: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void make_iovs(void)
{
	unsigned char *gone = buf + 2 * PAGE;

	for (int i = 0; i < 1025; i++)
		many[i] = (struct iovec){ buf + i * 7, 1 + i % 7 };
	one[0] = (struct iovec){ buf, PAGE };
	empty[0] = (struct iovec){ buf, 0 };
	for (int i = 0; i < 8; i++)
		empties[i] = (struct iovec){ i % 2 ? buf : gone, 0 };
	mixed[0] = (struct iovec){ buf, 100 };
	mixed[1] = (struct iovec){ gone, 0 };
	mixed[2] = (struct iovec){ buf + 100, 1 };
	mixed[3] = (struct iovec){ NULL, 0 };
	mixed[4] = (struct iovec){ buf + 101, 4000 };
	middle[0] = (struct iovec){ buf, 100 };
	middle[1] = (struct iovec){ gone, 100 };
	middle[2] = (struct iovec){ buf + 200, 100 };
	first_bad[0] = (struct iovec){ gone, 100 };
	first_bad[1] = (struct iovec){ buf, 100 };
	/* The bad one begins in the middle of a good page. */
	last_bad[0] = (struct iovec){ buf, 100 };
	last_bad[1] = (struct iovec){ gone - 50, 100 };
	null_iov[0] = (struct iovec){ NULL, 100 };
	kernel[0] = (struct iovec){ (void *)0xffff888000000000UL, 100 };
	huge[0] = (struct iovec){ buf, LONG_MAX };
	huge[1] = (struct iovec){ buf, LONG_MAX };
	negative[0] = (struct iovec){ buf, -1UL };
	for (unsigned int i = 0; i < NR_IOVS; i++)
		if (!strcmp(iovs[i].name, "bad-array"))
			iovs[i].iov = (void *)gone;
}

struct result {
	long ret;
	int error;
	long start, offset;	/* of the descriptor */
	uint64_t sum;
	bool touched;
};

static long start_offset;

/* All of what was read; of the rest a part, as there are so many calls. */
static uint64_t sum_buf(long n, bool *touched)
{
	uint64_t sum = 0, word, poison;

	memset(&poison, POISON, sizeof(poison));
	*touched = false;
	n = n < 0 ? 512 : n + 512;
	for (long i = 0; i < 2 * PAGE; i += i < n ? 8 : 64) {
		memcpy(&word, buf + i, 8);
		if (word != poison)
			*touched = true;
		sum = (sum ^ word) * 0x9e3779b97f4a7c15 + (sum >> 29);
	}
	return sum;
}

static struct result call(int fd, const struct iovs *v, long offset, int flags)
{
	static bool dirty = true;
	struct result r;

	if (dirty)
		memset(buf, POISON, 2 * PAGE);
	r.start = lseek(fd, start_offset, SEEK_SET);
	r.ret = syscall(__NR_preadv2, (long)fd, v->iov, v->n, offset, 0L,
			(long)flags);
	r.error = r.ret < 0 ? errno : 0;
	r.offset = lseek(fd, 0, SEEK_CUR);
	r.sum = sum_buf(r.ret, &r.touched);
	dirty = r.touched || r.ret > 0;
	operations++;
	return r;
}

static bool same(const struct result *a, const struct result *b)
{
	return a->ret == b->ret && a->error == b->error &&
	       a->offset == b->offset && a->sum == b->sum;
}

static void tell(const struct descriptor *d, const struct iovs *v, long offset,
		 int flags, const struct result *plain, const struct result *dc,
		 const char *why)
{
	if (bad++ >= 20)
		return;
	fprintf(stderr, "badinput: %s, iov %s, offset %ld, flags %x: %s: without the flag %ld (%s) offset %ld, with it %ld (%s) offset %ld\n",
		d->name, v->name, offset, flags, why, plain->ret,
		strerror(plain->error), plain->offset, dc->ret,
		strerror(dc->error), dc->offset);
}

static void pair(const struct descriptor *d, const struct iovs *v, long offset,
		 int flags)
{
	struct result plain = call(d->fd, v, offset, flags);
	struct result dc = call(d->fd, v, offset, flags | RWF_DONTCACHE);

	if (dc.ret < 0 && (dc.touched || dc.offset != dc.start))
		tell(d, v, offset, flags, &plain, &dc,
		     "an error, but something was read");
	else if (same(&plain, &dc))
		return;
	else if (dc.error == EOPNOTSUPP && !d->takes)
		return;
	/* What is in the cache may have changed between the two calls. */
	if ((flags & RWF_NOWAIT) && (plain.error == EAGAIN || dc.error == EAGAIN))
		return;
	tell(d, v, offset, flags, &plain, &dc, "not the same");
}

static int bits(unsigned int x)
{
	return __builtin_popcount(x);
}

static void all_of(const struct descriptor *d)
{
	unsigned long before = operations, before_bad = bad;

	for (unsigned int set = 0; set < 1U << NR_FLAGS; set++) {
		int flags = 0;

		if (quick && bits(set) > 2)
			continue;
		for (unsigned int i = 0; i < NR_FLAGS; i++)
			if (set & 1U << i)
				flags |= flag_bits[i];
		for (unsigned int o = 0; o < NR_OFFSETS; o++)
			for (unsigned int v = 0; v < NR_IOVS; v++) {
				start_offset = o * 100;
				pair(d, &iovs[v], offsets[o], flags);
			}
	}
	printf("%s: %lu operations, %lu differ\n", d->name, operations - before,
	       bad - before_bad);
	fflush(stdout);
}

/* Cold, partly cold: what was read before an error must count. */
static void cold(const struct descriptor *d)
{
	unsigned long before = operations, before_bad = bad;

	for (unsigned int o = 0; o < NR_OFFSETS; o++)
		for (unsigned int v = 0; v < NR_IOVS; v++) {
			struct result plain, dc;

			start_offset = 77;
			posix_fadvise(d->fd, 0, 0, POSIX_FADV_DONTNEED);
			plain = call(d->fd, &iovs[v], offsets[o], 0);
			posix_fadvise(d->fd, 0, 0, POSIX_FADV_DONTNEED);
			dc = call(d->fd, &iovs[v], offsets[o], RWF_DONTCACHE);
			if (!same(&plain, &dc) &&
			    !(dc.error == EOPNOTSUPP && !d->takes))
				tell(d, &iovs[v], offsets[o], 0, &plain, &dc,
				     "cold: not the same");
			/* and again: only what was copied may have gone */
			dc = call(d->fd, &iovs[v], offsets[o], RWF_DONTCACHE);
			if (!same(&plain, &dc) &&
			    !(dc.error == EOPNOTSUPP && !d->takes))
				tell(d, &iovs[v], offsets[o], 0, &plain, &dc,
				     "again: not the same");
		}
	printf("%s, cold: %lu operations, %lu differ\n", d->name,
	       operations - before, bad - before_bad);
	fflush(stdout);
}

static int from_env(const char *name)
{
	const char *path = getenv(name);
	int fd;

	if (!path || !*path)
		return -1;
	fd = open(path, O_RDONLY);
	if (fd < 0)
		die(path);
	return fd;
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	int pipes[2], empty_pipe[2], sockets[2], opt, fd;
	bool bdev_takes = true;
	static unsigned char data[FILE_SIZE];

	while ((opt = getopt(argc, argv, "bq")) != -1) {
		if (opt == 'b')
			bdev_takes = false;
		else if (opt == 'q')
			quick = true;
		else
			return 2;
	}
	if (argc - optind < 1 || argc - optind > 2) {
		fprintf(stderr, "usage: badinput [-bq] DIR [BDEV]\n");
		return 2;
	}
	buf = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED || munmap(buf + 2 * PAGE, PAGE))
		die("no memory");
	make_iovs();
	for (long i = 0; i < FILE_SIZE; i++)
		data[i] = i * 7 + i / 251;
	snprintf(path, sizeof(path), "%s/badinput", argv[optind]);
	fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (fd < 0 || write(fd, data, FILE_SIZE) != FILE_SIZE || fsync(fd))
		die(path);

	if (pipe2(pipes, O_NONBLOCK) || pipe2(empty_pipe, O_NONBLOCK) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets))
		die("pipe, socketpair");
	close(pipes[1]);
	int memfd = memfd_create("badinput", 0);

	if (memfd >= 0 && write(memfd, data, FILE_SIZE) != FILE_SIZE)
		die("memfd");
	const char *bdev = argc - optind == 2 ? argv[optind + 1] : NULL;
	struct descriptor list[] = {
		{ "file", open(path, O_RDONLY), .takes = true },
		{ "read-write", open(path, O_RDWR | O_APPEND), .takes = true },
		{ "block-device", bdev ? open(bdev, O_RDONLY) : -1,
		  .takes = bdev_takes, .absent = !bdev },
		{ "direct", open(path, O_RDONLY | O_DIRECT), .takes = false },
		{ "write-only", open(path, O_WRONLY), .takes = false },
		{ "path", open(path, O_PATH), .takes = false },
		{ "directory", open(argv[optind], O_RDONLY | O_DIRECTORY), .takes = false },
		{ "pipe, no writer", pipes[0], .takes = false },
		{ "pipe, empty", empty_pipe[0], .takes = false },
		{ "pipe, write end", empty_pipe[1], .takes = false },
		{ "socket", sockets[0], .takes = false },
		{ "memfd", memfd, .takes = false },
		{ "proc", open("/proc/self/stat", O_RDONLY), .takes = false },
		{ "zero", open("/dev/zero", O_RDONLY), .takes = false },
		{ "closed", 1000, .takes = false },
		{ "tmpfs", from_env("TMPFS"), .takes = false },
		{ "overlay", from_env("OVERLAY"), .takes = false },
		{ "squashfs", from_env("SQUASHFS"), .takes = false },
	};

	for (unsigned int i = 0; i < sizeof(list) / sizeof(*list); i++) {
		struct descriptor *d = &list[i];

		if (d->fd < 0) {
			printf("skipped: %s: not here\n", d->name);
			continue;
		}
		all_of(d);
		if (!strcmp(d->name, "file") || !strcmp(d->name, "read-write") ||
		    !strcmp(d->name, "overlay") || !strcmp(d->name, "squashfs"))
			cold(d);
	}
	unlink(path);
	if (bad) {
		fprintf(stderr, "badinput: %lu of %lu operations differ\n", bad,
			operations);
		return 1;
	}
	printf("done %lu operations, 0 faults\n", operations);
	return 0;
}
