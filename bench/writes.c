// SPDX-License-Identifier: GPL-2.0-only
/*
 * writes - write a file in pieces, with and without RWF_DONTCACHE, and print
 * what reached the disk.
 *
 *	writes [-b PIECE] [-m plain|dontcache|direct] [-s SIZE] [-o] FILE
 *	writes --header
 *
 *	-b PIECE	bytes of each write (default 4k)
 *	-s SIZE		bytes in all (default 64m)
 *	-o		overwrite the file, which is there and cold; else it
 *			is empty at first and grows
 *
 * The time includes the fsync(2) at the end.  Afterwards the file is read back
 * and checked.  The result is one line of tab-separated values, see header[]:
 *
 *	write_amp	bytes written to the device / bytes of the file
 *	read_amp	bytes read from it / bytes of the file
 *	left_pages	pages of the file in the page cache after fsync(2)
 *
 * Exit codes: those of dcread.
 */
#define _GNU_SOURCE
#include <getopt.h>

#define PROGRAM "writes"
#include "common.h"

static const char header[] =
	"how\tmode\tpiece\tmib_s\twrite_amp\tread_amp\twrite_requests\t"
	"read_requests\tleft_pages\tbytes\twritten_bytes\tread_bytes\tseconds";

static void read_back(const char *path, size_t size)
{
	int fd = open(path, O_RDONLY);
	char *data = memory(MIB);

	if (fd < 0)
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	for (size_t offset = 0; offset < size;) {
		ssize_t got = pread(fd, data, MIB, offset);

		if (got <= 0)
			die(EX_FAILED, "%s: read: %s", path,
			    got ? strerror(errno) : "end of file");
		check((uint64_t *)data, got, offset);
		offset += got;
	}
	close(fd);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "header", no_argument, NULL, 'H' },
		{ NULL },
	};
	size_t piece = 4 * KIB, size = 64 * MIB;
	enum mode mode = PLAIN;
	int opt, over = 0;

	while ((opt = getopt_long(argc, argv, "b:m:s:o", options,
				  NULL)) != -1) {
		switch (opt) {
		case 'H':
			puts(header);
			return 0;
		case 'b':
			piece = parse_size(optarg);
			break;
		case 'm':
			mode = parse_mode(optarg);
			break;
		case 's':
			size = parse_size(optarg);
			break;
		case 'o':
			over = 1;
			break;
		default:
			return EX_WRONG_USAGE;
		}
	}
	if (optind != argc - 1)
		die(EX_WRONG_USAGE, "name one file");

	const char *path = argv[optind];
	struct disk_count before, after;
	uint64_t *data = memory(piece);
	unsigned long left;
	double seconds;
	struct stat st;
	int fd;

	if (over)
		create(path, size);
	fd = open(path, O_RDWR | O_CREAT | (over ? 0 : O_TRUNC) |
		  (mode == DIRECT ? O_DIRECT : 0), 0644);
	if (fd < 0)
		die(mode == DIRECT && errno == EINVAL ? EX_UNSUPPORTED :
		    EX_FAILED, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		die(EX_FAILED, "%s: fstat: %s", path, strerror(errno));
	sync();
	drop_all_caches();

	before = disk_count(st.st_dev);
	seconds = now();
	for (size_t offset = 0; offset < size; offset += piece) {
		struct iovec iov = { .iov_base = data, .iov_len = piece };
		ssize_t put;

		if (piece > size - offset)
			iov.iov_len = size - offset;
		fill(data, iov.iov_len, offset);
		put = pwritev2(fd, &iov, 1, offset,
			       mode == DONTCACHE ? RWF_DONTCACHE : 0);
		if (put < 0 && errno == EOPNOTSUPP)
			die(EX_UNSUPPORTED, "%s: %s", path, strerror(errno));
		if (put != (ssize_t)iov.iov_len)
			die(EX_FAILED, "%s: write of %zu at %zu: %s", path,
			    iov.iov_len, offset, put < 0 ? strerror(errno) :
			    "it was cut short");
	}
	if (fsync(fd))
		die(EX_FAILED, "%s: fsync: %s", path, strerror(errno));
	seconds = now() - seconds;
	after = disk_count(st.st_dev);
	disk_since(&after, &before);
	left = cached_pages(fd);
	close(fd);
	read_back(path, size);

	printf("%s\t%s\t%zu\t%.1f\t%.2f\t%.2f\t%llu\t%llu\t%lu\t%zu\t%llu\t%llu\t%.6f\n",
	       over ? "overwrite" : "append", mode_name[mode], piece,
	       size / seconds / MIB, (double)after.written_bytes / size,
	       (double)after.read_bytes / size, after.writes, after.reads,
	       left, size, after.written_bytes, after.read_bytes, seconds);
	return 0;
}
