/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs of tests/stress share. */
#ifndef STRESS_COMMON_H
#define STRESS_COMMON_H

#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Not in the headers of older distributions. */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT	0x00000008
#endif
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE	0x00000080
#endif
#ifndef __NR_cachestat
#define __NR_cachestat	451
#endif

#define KIB		1024L
#define MIB		(1024 * KIB)
#define PAGE		4096L
#define SECTOR		512L

/* The finalizer of splitmix64; RANDOM_STEP is what its state grows by. */
#define RANDOM_STEP	0x9e3779b97f4a7c15

static inline uint64_t mix(uint64_t x)
{
	x += RANDOM_STEP;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static inline ssize_t pread_flags(int fd, void *p, size_t len, off_t off,
				  int flags)
{
	struct iovec iov = { p, len };

	return preadv2(fd, &iov, 1, off, flags);
}

/* Pages of the file in the page cache; -1 and errno. */
static inline long cached_pages(int fd)
{
	struct { uint64_t off, len; } range = { 0, 0 };
	struct { uint64_t cache, dirty, writeback, evicted, recently; } cs;

	if (syscall(__NR_cachestat, fd, &range, &cs, 0))
		return -1;
	return cs.cache;
}

#endif
