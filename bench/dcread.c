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
#include <getopt.h>

#define PROGRAM "dcread"
#include "common.h"

/*
 * Distance between two looks at the page cache.  Not a power of two, so that
 * they fall on different places of folios and readahead windows.
 */
#define SAMPLE_STEP	(1021 * KIB)

static const char header[] =
	"buffer\tmode\tmib_s\tamp\trequests\tres_pages\tpeak_pages\t"
	"bytes\tdevice_bytes\tcalls\tseconds\tuser_ms\tsys_ms";

struct stopwatch {
	double wall;
	double user;
	double sys;
};

/* Add the time until now to *watch, or, with sign -1, take it off. */
static void punch(struct stopwatch *watch, int sign)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	watch->wall += sign * now();
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

	if (!only_file)
		drop_all_caches();
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	left = cached_pages(fd);
	if (left)
		die(EX_FAILED, "%s: %lu pages stay in the cache, somebody else uses it",
		    path, left);
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

	disk_since(&after, &before);
	printf("%zu\t%s\t%.1f\t%.2f\t%llu\t%lu\t%lu\t%llu\t%llu\t%lu\t%.6f\t%.1f\t%.1f\n",
	       buffer, mode_name[mode], offset / watch.wall / MIB,
	       (double)after.read_bytes / offset, after.reads,
	       pages, peak, (unsigned long long)offset, after.read_bytes,
	       calls, watch.wall, watch.user * 1e3, watch.sys * 1e3);
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
			mode = parse_mode(optarg);
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
