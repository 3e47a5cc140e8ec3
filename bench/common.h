/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs of the benchmark share: messages, sizes, files whose every
 * word is known, counters of the disk and of the page cache.
 *
 * The including file defines PROGRAM, its name in messages, first, and
 * _GNU_SOURCE.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Not in the headers of older distributions. */
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE	0x00000080
#endif
#ifndef __NR_cachestat
#define __NR_cachestat	451
#endif

#define KIB		1024UL
#define MIB		(1024 * KIB)

/* fadvise mode: the least distance between two calls. */
#define FADVISE_STEP	(128 * KIB)

/* Exit codes */
enum { EX_FAILED = 1, EX_WRONG_USAGE = 2, EX_UNSUPPORTED = 3 };

enum mode { PLAIN, DONTCACHE, FADVISE, DIRECT, NR_MODES };

static const char * const mode_name[NR_MODES] = {
	"plain", "dontcache", "fadvise", "direct",
};

struct disk_count {
	unsigned long long reads;
	unsigned long long read_bytes;
	unsigned long long writes;
	unsigned long long written_bytes;
};

static __attribute__((noreturn, format(printf, 2, 3)))
void die(int code, const char *fmt, ...)
{
	va_list ap;

	fputs(PROGRAM ": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static inline size_t parse_size(const char *text)
{
	char *end;
	unsigned long long size;

	errno = 0;
	size = strtoull(text, &end, 0);
	switch (*end) {
	case 'g':
	case 'G':
		size *= 1024;
		/* fallthrough */
	case 'm':
	case 'M':
		size *= 1024;
		/* fallthrough */
	case 'k':
	case 'K':
		size *= 1024;
		end++;
	}
	if (errno || end == text || *end || !size || size % 8)
		die(EX_WRONG_USAGE, "%s: not a size, or no multiple of 8",
		    text);
	return size;
}

static inline enum mode parse_mode(const char *text)
{
	for (int mode = 0; mode < NR_MODES; mode++)
		if (!strcmp(text, mode_name[mode]))
			return mode;
	die(EX_WRONG_USAGE, "%s: no such mode", text);
}

/* The word of the file at offset; neighbours and pages all differ. */
static inline uint64_t word_at(uint64_t offset)
{
	return (offset / 8 + 1) * 0x9e3779b97f4a7c15ULL;
}

static inline void fill(uint64_t *buf, size_t bytes, uint64_t offset)
{
	const uint64_t step = word_at(8) - word_at(0);
	uint64_t word = word_at(offset);

	for (size_t i = 0; i < bytes / 8; i++, word += step)
		buf[i] = word;
}

static inline void check(const uint64_t *buf, size_t bytes, uint64_t offset)
{
	const uint64_t step = word_at(8) - word_at(0);
	uint64_t word = word_at(offset);

	for (size_t i = 0; i < bytes / 8; i++, word += step) {
		if (buf[i] != word)
			die(EX_FAILED, "WRONG DATA at offset %llu: %016llx, should be %016llx",
			    (unsigned long long)(offset + i * 8),
			    (unsigned long long)buf[i],
			    (unsigned long long)word);
	}
}

static inline void *memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die(EX_FAILED, "cannot map %zu MiB: %s", bytes / MIB,
		    strerror(errno));
	return p;
}

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static inline unsigned long cached_pages(int fd)
{
	/* A length of 0 is the whole file. */
	uint64_t range[2] = { 0, 0 };
	struct {
		uint64_t cache, dirty, writeback, evicted, recently_evicted;
	} stat;

	if (syscall(__NR_cachestat, fd, range, &stat, 0))
		die(EX_FAILED, "cachestat: %s (it needs Linux 6.5)",
		    strerror(errno));
	return stat.cache;
}

/* What the disk (or partition) that holds the file has done until now. */
static inline struct disk_count disk_count(dev_t dev)
{
	struct disk_count count;
	unsigned long long merges, sectors, ms, wmerges, wsectors;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(dev),
		 minor(dev));
	f = fopen(path, "r");
	if (!f)
		die(EX_FAILED, "%s: %s (the file is on no single disk)", path,
		    strerror(errno));
	if (fscanf(f, "%llu %llu %llu %llu %llu %llu %llu", &count.reads,
		   &merges, &sectors, &ms, &count.writes, &wmerges,
		   &wsectors) != 7)
		die(EX_FAILED, "%s: cannot read it", path);
	fclose(f);
	count.read_bytes = sectors * 512;
	count.written_bytes = wsectors * 512;
	return count;
}

static inline void disk_since(struct disk_count *after,
			      const struct disk_count *before)
{
	after->reads -= before->reads;
	after->read_bytes -= before->read_bytes;
	after->writes -= before->writes;
	after->written_bytes -= before->written_bytes;
}

static inline void drop_all_caches(void)
{
	int drop = open("/proc/sys/vm/drop_caches", O_WRONLY);

	if (drop < 0 || write(drop, "3", 1) != 1)
		die(EX_FAILED, "drop_caches: %s (be root; dcread has -c)", strerror(errno));
	close(drop);
}

static inline void create(const char *path, size_t size)
{
	size_t chunk = size < MIB ? size : MIB;
	uint64_t *buf = memory(chunk);
	uint64_t offset;
	int fd;

	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	for (offset = 0; offset < size; offset += chunk) {
		if (chunk > size - offset)
			chunk = size - offset;
		fill(buf, chunk, offset);
		errno = ENOSPC;
		if (pwrite(fd, buf, chunk, offset) != (ssize_t)chunk)
			die(EX_FAILED, "%s: cannot write: %s", path,
			    strerror(errno));
	}
	if (fsync(fd))
		die(EX_FAILED, "%s: fsync: %s", path, strerror(errno));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	munmap(buf, size < MIB ? size : MIB);
}

#endif
