// SPDX-License-Identifier: GPL-2.0-only
/*
 * dcread - read a file from start to end with preadv2(2), in one of four
 * modes, and print what it cost.
 *
 *	dcread --create SIZE FILE
 *	dcread [-b BUFFER] [-m MODE] [-s SLICE] [-c] FILE
 *	dcread --header
 *
 *	-b BUFFER	bytes asked for by each read (default 4k)
 *	-m MODE		plain | dontcache | fadvise | direct (default plain)
 *	-s SLICE	bytes read between two checks of the data (default 64m)
 *	-c		drop only this file from the cache, not all caches
 *
 * SIZE, BUFFER and SLICE are multiples of 8 and take k, m or g.  FILE is one
 * that --create has made: each 64-bit word is a function of its offset.
 *
 * The result is one line of tab-separated values, see header[].
 *
 *	mib_s		bytes of the file / time in the reading calls
 *	amp		bytes read from the device / bytes of the file
 *	requests	read requests that the device completed
 *	res_pages	pages of the file in the page cache after the last read
 *	peak_pages	the most pages seen in the page cache meanwhile
 *
 * What is timed: the loop of preadv2(2) (and posix_fadvise(2)) calls.  The
 * data goes to memory that was touched before, and is checked, each byte of
 * it, with the clock stopped, once per slice.  Were each read checked at once,
 * readahead would go on meanwhile, for nothing in the modes that have any, and
 * under emulation checking costs as much as reading.  Between two slices at
 * most one readahead window is gained.
 *
 * Exit codes: 0 read and right, 1 failed or wrong data, 2 usage, 3 the
 * mode is not supported on this file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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

/*
 * Distance between two looks at the page cache.  Not a power of two, so that
 * they fall on different places of folios and readahead windows.
 */
#define SAMPLE_STEP	(1021 * KIB)

enum { EX_FAILED = 1, EX_WRONG_USAGE = 2, EX_UNSUPPORTED = 3 };

enum mode { PLAIN, DONTCACHE, FADVISE, DIRECT, NR_MODES };

static const char * const mode_name[NR_MODES] = {
	"plain", "dontcache", "fadvise", "direct",
};

static const char header[] =
	"buffer\tmode\tmib_s\tamp\trequests\tres_pages\tpeak_pages\t"
	"bytes\tdevice_bytes\tcalls\tseconds\tuser_ms\tsys_ms";

struct disk_count {
	unsigned long long requests;
	unsigned long long bytes;
};

struct stopwatch {
	double wall;
	double user;
	double sys;
};

static __attribute__((noreturn, format(printf, 2, 3)))
void die(int code, const char *fmt, ...)
{
	va_list ap;

	fputs("dcread: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static size_t parse_size(const char *text)
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

/* The word of the file at offset; neighbours and pages all differ. */
static uint64_t word_at(uint64_t offset)
{
	return (offset / 8 + 1) * 0x9e3779b97f4a7c15ULL;
}

static void fill(uint64_t *buf, size_t bytes, uint64_t offset)
{
	const uint64_t step = word_at(8) - word_at(0);
	uint64_t word = word_at(offset);

	for (size_t i = 0; i < bytes / 8; i++, word += step)
		buf[i] = word;
}

static void check(const uint64_t *buf, size_t bytes, uint64_t offset)
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

static void *memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die(EX_FAILED, "cannot map %zu MiB: %s", bytes / MIB,
		    strerror(errno));
	return p;
}

static unsigned long cached_pages(int fd)
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

/* What the disk (or partition) that holds the file has read until now. */
static struct disk_count disk_count(dev_t dev)
{
	struct disk_count count;
	unsigned long long merges, sectors;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(dev),
		 minor(dev));
	f = fopen(path, "r");
	if (!f)
		die(EX_FAILED, "%s: %s (the file is on no single disk)", path,
		    strerror(errno));
	if (fscanf(f, "%llu %llu %llu", &count.requests, &merges,
		   &sectors) != 3)
		die(EX_FAILED, "%s: cannot read it", path);
	fclose(f);
	count.bytes = sectors * 512;
	return count;
}

/* Add the time until now to *watch, or, with sign -1, take it off. */
static void punch(struct stopwatch *watch, int sign)
{
	struct timespec now;
	struct rusage usage;

	clock_gettime(CLOCK_MONOTONIC, &now);
	getrusage(RUSAGE_SELF, &usage);
	watch->wall += sign * (now.tv_sec + now.tv_nsec / 1e9);
	watch->user += sign * (usage.ru_utime.tv_sec +
			       usage.ru_utime.tv_usec / 1e6);
	watch->sys += sign * (usage.ru_stime.tv_sec +
			      usage.ru_stime.tv_usec / 1e6);
}

static void start(struct stopwatch *watch)
{
	punch(watch, -1);
}

static void stop(struct stopwatch *watch)
{
	punch(watch, 1);
}

static void drop_caches(int fd, const char *path, int only_file)
{
	unsigned long left;
	int drop;

	if (!only_file) {
		drop = open("/proc/sys/vm/drop_caches", O_WRONLY);
		if (drop < 0 || write(drop, "3", 1) != 1)
			die(EX_FAILED, "drop_caches: %s (be root, or use -c)",
			    strerror(errno));
		close(drop);
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	left = cached_pages(fd);
	if (left)
		die(EX_FAILED, "%s: %lu pages stay in the cache, somebody else uses it",
		    path, left);
}

static void create(const char *path, size_t size)
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
}

static void read_file(const char *path, enum mode mode, size_t buffer,
		      size_t slice, int only_file)
{
	const int rwf = mode == DONTCACHE ? RWF_DONTCACHE : 0;
	struct stopwatch watch = { 0 };
	struct disk_count before, after;
	uint64_t offset = 0, begin = 0, advised = 0, sampled = 0;
	unsigned long calls = 0, pages, peak = 0;
	struct stat st;
	char *data;
	int fd;

	fd = open(path, O_RDONLY | (mode == DIRECT ? O_DIRECT : 0));
	if (fd < 0)
		die(mode == DIRECT && errno == EINVAL ? EX_UNSUPPORTED :
		    EX_FAILED, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size ||
	    st.st_size % 8)
		die(EX_FAILED, "%s: not a file made by --create", path);
	if (slice > (size_t)st.st_size)
		slice = st.st_size;
	/* The last read of a slice may begin in it and end behind it. */
	data = memory(slice + buffer);

	drop_caches(fd, path, only_file);
	before = disk_count(st.st_dev);
	start(&watch);
	while (offset < (uint64_t)st.st_size) {
		struct iovec iov = {
			.iov_base = data + (offset - begin),
			.iov_len = buffer,
		};
		ssize_t got = preadv2(fd, &iov, 1, offset, rwf);

		calls++;
		if (got <= 0)
			die(got < 0 && errno == EOPNOTSUPP ? EX_UNSUPPORTED :
			    EX_FAILED, "%s: %s read of %zu at %llu: %s", path,
			    mode_name[mode], buffer,
			    (unsigned long long)offset,
			    got ? strerror(errno) : "end of file");
		offset += got;

		/*
		 * From the start each time: a folio that reaches past this
		 * call's end stays, and goes with the next.
		 */
		if (mode == FADVISE && (offset - advised >= FADVISE_STEP ||
					offset == (uint64_t)st.st_size)) {
			posix_fadvise(fd, 0, offset, POSIX_FADV_DONTNEED);
			advised = offset;
		}

		if (offset - sampled >= SAMPLE_STEP) {
			stop(&watch);
			pages = cached_pages(fd);
			if (pages > peak)
				peak = pages;
			sampled = offset;
			start(&watch);
		}
		if (offset - begin >= slice) {
			stop(&watch);
			check((uint64_t *)data, offset - begin, begin);
			begin = offset;
			start(&watch);
		}
	}
	stop(&watch);
	pages = cached_pages(fd);
	if (pages > peak)
		peak = pages;
	after = disk_count(st.st_dev);
	check((uint64_t *)data, offset - begin, begin);

	after.bytes -= before.bytes;
	printf("%zu\t%s\t%.1f\t%.2f\t%llu\t%lu\t%lu\t%llu\t%llu\t%lu\t%.6f\t%.1f\t%.1f\n",
	       buffer, mode_name[mode], offset / watch.wall / MIB,
	       (double)after.bytes / offset, after.requests - before.requests,
	       pages, peak, (unsigned long long)offset, after.bytes, calls,
	       watch.wall, watch.user * 1e3, watch.sys * 1e3);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "create", required_argument, NULL, 'C' },
		{ "header", no_argument, NULL, 'H' },
		{ NULL },
	};
	size_t create_size = 0, buffer = 4 * KIB, slice = 64 * MIB;
	int opt, mode = PLAIN, only_file = 0;

	while ((opt = getopt_long(argc, argv, "b:m:s:c", options,
				  NULL)) != -1) {
		switch (opt) {
		case 'C':
			create_size = parse_size(optarg);
			break;
		case 'H':
			puts(header);
			return 0;
		case 'b':
			buffer = parse_size(optarg);
			break;
		case 'm':
			for (mode = 0; mode < NR_MODES; mode++)
				if (!strcmp(optarg, mode_name[mode]))
					break;
			if (mode == NR_MODES)
				die(EX_WRONG_USAGE, "%s: no such mode",
				    optarg);
			break;
		case 's':
			slice = parse_size(optarg);
			break;
		case 'c':
			only_file = 1;
			break;
		default:
			return EX_WRONG_USAGE;
		}
	}
	if (optind != argc - 1)
		die(EX_WRONG_USAGE, "name one file");
	if (create_size)
		create(argv[optind], create_size);
	else
		read_file(argv[optind], mode, buffer, slice, only_file);
	return 0;
}
