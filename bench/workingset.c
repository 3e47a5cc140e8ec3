// SPDX-License-Identifier: GPL-2.0-only
/*
 * workingset - what is left of a working set after a large file was streamed.
 *
 *	workingset [-b BUFFER] [-m MODE] [-c COPY] WORKINGSET STREAM
 *	workingset --header
 *
 *	-b BUFFER	bytes of each read and write (default 64k)
 *	-m MODE		plain | dontcache | dontcache-rw | fadvise | direct
 *			(default plain)
 *	-c COPY		write what is read to this file
 *
 * With all caches dropped, WORKINGSET is mapped and each of its pages looked
 * at, twice, each time in a mapping of its own as if the program had been
 * started again: the first time is "cold", the second "warm".  Then STREAM
 * is read from start to end, and the scan repeated: "rescan".
 *
 * dontcache reads with RWF_DONTCACHE, and copies with plain writes;
 * dontcache-rw writes with the flag, too.  fadvise and direct do what they do
 * on both sides of a copy.  The time of a copy includes its fsync(2).
 *
 * Both files are made by dcread --create.  The result is one line of
 * tab-separated values, see header[].
 *
 * Exit codes: those of dcread.
 */
#define _GNU_SOURCE
#include <getopt.h>

#define PROGRAM "workingset"
#include "common.h"

static const char header[] =
	"op\tmode\tbuffer\tmib_s\tcold_ms\twarm_ms\trescan_ms\t"
	"warm_majflt\trescan_majflt\trescan_device_bytes\t"
	"kept_pages\tset_pages\tstream_left_pages\tcopy_left_pages\t"
	"stream_read_bytes\tstream_written_bytes\tstream_bytes\t"
	"pgscan\tpgsteal\tseconds";

struct scan {
	double ms;
	long majflt;
	unsigned long long device_bytes;
};

static struct scan scan(int fd, const struct stat *st)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct disk_count before, after;
	struct rusage usage;
	struct scan result;
	const char *map;
	double start;

	before = disk_count(st->st_dev);
	getrusage(RUSAGE_SELF, &usage);
	result.majflt = usage.ru_majflt;
	start = now();
	map = mmap(NULL, st->st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die(EX_FAILED, "mmap: %s", strerror(errno));
	for (off_t at = 0; at < st->st_size; at += page)
		check((const uint64_t *)(map + at), 8, at);
	munmap((void *)map, st->st_size);
	result.ms = (now() - start) * 1e3;
	getrusage(RUSAGE_SELF, &usage);
	result.majflt = usage.ru_majflt - result.majflt;
	after = disk_count(st->st_dev);
	disk_since(&after, &before);
	result.device_bytes = after.read_bytes;
	return result;
}

/* Sum of all counters of /proc/vmstat with this prefix and kswapd|direct... */
static unsigned long long vmstat(const char *prefix)
{
	unsigned long long value, sum = 0;
	char name[64];
	FILE *f = fopen("/proc/vmstat", "r");

	if (!f)
		die(EX_FAILED, "/proc/vmstat: %s", strerror(errno));
	while (fscanf(f, "%63s %llu", name, &value) == 2) {
		/* pgscan_anon and pgscan_file count the same pages again. */
		if (!strncmp(name, prefix, strlen(prefix)) &&
		    (strstr(name, "_kswapd") || strstr(name, "_direct")) &&
		    !strstr(name, "throttle"))
			sum += value;
	}
	fclose(f);
	return sum;
}

static int open_file(const char *path, int flags, int direct)
{
	int fd = open(path, flags | (direct ? O_DIRECT : 0), 0644);

	if (fd < 0)
		die(direct && errno == EINVAL ? EX_UNSUPPORTED : EX_FAILED,
		    "%s: %s", path, strerror(errno));
	return fd;
}

static void unsupported(const char *path, const char *what, ssize_t done)
{
	die(done < 0 && errno == EOPNOTSUPP ? EX_UNSUPPORTED : EX_FAILED,
	    "%s: %s: %s", path, what,
	    done < 0 ? strerror(errno) : "it was cut short");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "header", no_argument, NULL, 'H' },
		{ NULL },
	};
	const char *copy = NULL, *name = "plain", *set, *stream;
	size_t buffer = 64 * KIB;
	enum mode mode;
	int opt, rw;

	while ((opt = getopt_long(argc, argv, "b:m:c:", options,
				  NULL)) != -1) {
		switch (opt) {
		case 'H':
			puts(header);
			return 0;
		case 'b':
			buffer = parse_size(optarg);
			break;
		case 'm':
			name = optarg;
			break;
		case 'c':
			copy = optarg;
			break;
		default:
			return EX_WRONG_USAGE;
		}
	}
	if (optind != argc - 2)
		die(EX_WRONG_USAGE, "name two files");
	set = argv[optind];
	stream = argv[optind + 1];
	rw = !strcmp(name, "dontcache-rw");
	mode = rw ? DONTCACHE : parse_mode(name);
	if (rw && !copy)
		die(EX_WRONG_USAGE, "%s: name a copy", name);

	struct stat set_st, st;
	int set_fd = open_file(set, O_RDONLY, 0);
	int in = open_file(stream, O_RDONLY, mode == DIRECT), out = -1;

	if (fstat(set_fd, &set_st) || fstat(in, &st))
		die(EX_FAILED, "fstat: %s", strerror(errno));
	if (copy)
		out = open_file(copy, O_RDWR | O_CREAT | O_TRUNC,
				mode == DIRECT);

	const int read_flag = mode == DONTCACHE ? RWF_DONTCACHE : 0;
	const int write_flag = rw ? RWF_DONTCACHE : 0;
	unsigned long long pgscan, pgsteal;
	struct disk_count before, after;
	struct scan cold, warm, rescan;
	unsigned long kept, left, copied = 0;
	off_t offset = 0, advised = 0;
	char *data = memory(buffer);
	double seconds;

	sync();
	drop_all_caches();
	cold = scan(set_fd, &set_st);
	warm = scan(set_fd, &set_st);

	pgscan = vmstat("pgscan_");
	pgsteal = vmstat("pgsteal_");
	before = disk_count(st.st_dev);
	seconds = now();
	while (offset < st.st_size) {
		struct iovec iov = { .iov_base = data, .iov_len = buffer };
		ssize_t got = preadv2(in, &iov, 1, offset, read_flag);

		if (got <= 0)
			unsupported(stream, "read", got);
		/* Some of it, so that wrong data shows; it costs little. */
		check((uint64_t *)data, 8, offset);
		if (copy) {
			iov.iov_len = got;
			ssize_t put = pwritev2(out, &iov, 1, offset,
					       write_flag);
			if (put != got)
				unsupported(copy, "write", put);
		}
		offset += got;
		if (mode == FADVISE && (offset - advised >=
					(off_t)FADVISE_STEP ||
					offset == st.st_size)) {
			posix_fadvise(in, 0, offset, POSIX_FADV_DONTNEED);
			if (copy)
				posix_fadvise(out, 0, offset,
					      POSIX_FADV_DONTNEED);
			advised = offset;
		}
	}
	if (copy && fsync(out))
		die(EX_FAILED, "%s: fsync: %s", copy, strerror(errno));
	seconds = now() - seconds;
	/* All of it is clean now. */
	if (copy && mode == FADVISE)
		posix_fadvise(out, 0, 0, POSIX_FADV_DONTNEED);
	after = disk_count(st.st_dev);
	disk_since(&after, &before);
	pgscan = vmstat("pgscan_") - pgscan;
	pgsteal = vmstat("pgsteal_") - pgsteal;
	left = cached_pages(in);
	if (copy)
		copied = cached_pages(out);
	kept = cached_pages(set_fd);

	rescan = scan(set_fd, &set_st);

	printf("%s\t%s\t%zu\t%.1f\t%.1f\t%.1f\t%.1f\t%ld\t%ld\t%llu\t",
	       copy ? "copy" : "read", name, buffer,
	       st.st_size / seconds / MIB, cold.ms, warm.ms, rescan.ms,
	       warm.majflt, rescan.majflt, rescan.device_bytes);
	printf("%lu\t%llu\t%lu\t%lu\t%llu\t%llu\t%llu\t%llu\t%llu\t%.6f\n",
	       kept, (unsigned long long)set_st.st_size / 4096, left, copied,
	       after.read_bytes, after.written_bytes,
	       (unsigned long long)st.st_size, pgscan, pgsteal, seconds);
	return 0;
}
