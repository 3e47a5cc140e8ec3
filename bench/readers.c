// SPDX-License-Identifier: GPL-2.0-only
/*
 * readers - read files with several threads at once, and print what it cost
 * all of the machine.
 *
 *	readers [-t THREADS] [-b BUFFER] [-m MODE] [-i MS -o SAMPLES] [-k] FILE...
 *	readers --header | --sample-header
 *
 *	-t THREADS	default 1
 *	-b BUFFER	bytes asked for by each read (default 64k)
 *	-m MODE		plain | dontcache | direct (default plain)
 *	-i MS		take a sample every MS milliseconds (default 100)
 *	-o SAMPLES	append the samples to this file
 *	-k		tell QEMU when reading begins and ends (see lockcount.c)
 *
 * With several files each thread reads files of its own from start to end, one
 * after the other: thread i the files i, i + THREADS, and so on.  With one
 * file each thread reads its own part of it.  All open their files themselves.
 * The files are made by dcread --create; of each read the first word is
 * checked, which costs little.
 *
 * The result is one line of tab-separated values, see header[].  cpu_* is
 * processor time per GiB: of the threads, of kswapd, and of everything that was
 * not idle.  low_pct is the slowest sample (the first and the last left out)
 * in percent of the median one.
 *
 * Exit codes: those of dcread.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define PROGRAM "readers"
#include "common.h"

#define MAX_SAMPLES	65536

static const char header[] =
	"threads\tmode\tbuffer\tmib_s\tamp\trequests\t"
	"cpu_ms_gib\tcpu_kswapd_ms_gib\tcpu_busy_ms_gib\t"
	"pgscan_kswapd\tpgscan_direct\tpgsteal\tallocstall\trefault\t"
	"peak_cached_kib\tend_cached_kib\tlow_pct\tsamples\t"
	"bytes\tdevice_bytes\tseconds";

static const char sample_header[] =
	"threads\tmode\tbuffer\tseconds\tmib_s\tcached_kib";

struct reader {
	pthread_t thread;
	char *data;
	_Atomic uint64_t done;
	double cpu;
};

struct sample {
	double at;
	uint64_t bytes;
	unsigned long long cached;
};

static int nr_threads = 1, nr_files;
static char **files;
static size_t buffer = 64 * KIB;
static enum mode mode = PLAIN;
static pthread_barrier_t barrier;
static struct reader *readers;
static struct sample samples[MAX_SAMPLES];
static int nr_samples;
static unsigned int interval_ms = 100;
/* Written to when all is read. */
static int finished[2];

/* A NOP with a number in it, for lockcount.c. */
static void mark(void)
{
#ifdef __x86_64__
	asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .long 0x6b636f6c");
#endif
}

static double cpu_of(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6 +
	       usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6;
}

/* Read [from, to) of the file; to 0 is its end. */
static void read_part(struct reader *reader, const char *path, uint64_t from,
		      uint64_t to)
{
	int fd = open(path, O_RDONLY | (mode == DIRECT ? O_DIRECT : 0));
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		die(mode == DIRECT && errno == EINVAL ? EX_UNSUPPORTED :
		    EX_FAILED, "%s: %s", path, strerror(errno));
	if (!to)
		to = st.st_size;
	while (from < to) {
		struct iovec iov = { .iov_base = reader->data };
		ssize_t got;

		iov.iov_len = buffer < to - from ? buffer : to - from;
		got = preadv2(fd, &iov, 1, from,
			      mode == DONTCACHE ? RWF_DONTCACHE : 0);
		if (got <= 0)
			die(got < 0 && errno == EOPNOTSUPP ? EX_UNSUPPORTED :
			    EX_FAILED, "%s: read: %s", path,
			    got ? strerror(errno) : "end of file");
		check((uint64_t *)reader->data, 8, from);
		from += got;
		atomic_fetch_add_explicit(&reader->done, got,
					  memory_order_relaxed);
	}
	close(fd);
}

static void *read_all(void *arg)
{
	struct reader *reader = arg;
	const int me = reader - readers;
	struct stat st;
	uint64_t part;

	pthread_barrier_wait(&barrier);
	if (nr_files > 1) {
		for (int i = me; i < nr_files; i += nr_threads)
			read_part(reader, files[i], 0, 0);
	} else {
		if (stat(files[0], &st))
			die(EX_FAILED, "%s: %s", files[0], strerror(errno));
		part = st.st_size / nr_threads / MIB * MIB;
		read_part(reader, files[0], me * part,
			  me == nr_threads - 1 ? 0 : (me + 1) * part);
	}
	reader->cpu = cpu_of(RUSAGE_THREAD);
	return NULL;
}

/* One value of a file of lines "name value" or "name: value unit". */
static unsigned long long value_of(const char *path, const char *name)
{
	unsigned long long value = 0;
	char line[256];
	FILE *f = fopen(path, "r");

	if (!f)
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		size_t n = strcspn(line, ": ");

		if (n == strlen(name) && !strncmp(line, name, n)) {
			value = strtoull(line + n + 1, NULL, 10);
			break;
		}
	}
	fclose(f);
	return value;
}

/* The sum of a counter over all zones: allocstall_normal and so on. */
static unsigned long long vmstat_sum(const char *prefix)
{
	unsigned long long value, sum = 0;
	char name[64];
	FILE *f = fopen("/proc/vmstat", "r");

	if (!f)
		die(EX_FAILED, "/proc/vmstat: %s", strerror(errno));
	while (fscanf(f, "%63s %llu", name, &value) == 2)
		if (!strncmp(name, prefix, strlen(prefix)))
			sum += value;
	fclose(f);
	return sum;
}

static unsigned long long vmstat(const char *name)
{
	return value_of("/proc/vmstat", name);
}

/* Seconds that all threads of kswapd have run. */
static double kswapd_seconds(void)
{
	unsigned long utime, stime, ticks = 0;
	char path[300], comm[64];
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	FILE *f;

	if (!proc)
		die(EX_FAILED, "/proc: %s", strerror(errno));
	while ((entry = readdir(proc))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%*d (%63[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			   comm, &utime, &stime) == 3 &&
		    !strncmp(comm, "kswapd", 6))
			ticks += utime + stime;
		fclose(f);
	}
	closedir(proc);
	return (double)ticks / sysconf(_SC_CLK_TCK);
}

/* Seconds that the processors were not idle, nor waiting for a disk. */
static double busy_seconds(void)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user,
			 &nice, &system, &idle, &iowait, &irq, &softirq) != 7)
		die(EX_FAILED, "/proc/stat: cannot read it");
	fclose(f);
	return (double)(user + nice + system + irq + softirq) /
	       sysconf(_SC_CLK_TCK);
}

static uint64_t bytes_done(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < nr_threads; i++)
		bytes += atomic_load_explicit(&readers[i].done,
					      memory_order_relaxed);
	return bytes;
}

/* KiB in the page cache, without tmpfs: all of our guest's root is there. */
static unsigned long long cached_kib(void)
{
	unsigned long long cached = value_of("/proc/meminfo", "Cached");
	unsigned long long shmem = value_of("/proc/meminfo", "Shmem");

	/* Two counters that are not read at the same moment. */
	return cached > shmem ? cached - shmem : 0;
}

static void take_sample(double start)
{
	struct sample *s = &samples[nr_samples];

	if (nr_samples == MAX_SAMPLES)
		return;
	s->at = now() - start;
	s->bytes = bytes_done();
	s->cached = cached_kib();
	nr_samples++;
}

static void *sampler(void *arg)
{
	struct pollfd end = { .fd = finished[0] };
	double *start = arg;

	pthread_barrier_wait(&barrier);
	*start = now();
	take_sample(*start);
	while (!poll(&end, 1, interval_ms))
		take_sample(*start);
	take_sample(*start);
	return NULL;
}

static double speed(int i)
{
	return (samples[i].bytes - samples[i - 1].bytes) /
	       (samples[i].at - samples[i - 1].at) / MIB;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The slowest sample between the first and the last, by the median one. */
static double low_pct(void)
{
	static double speeds[MAX_SAMPLES];
	int n = 0;

	for (int i = 2; i < nr_samples - 1; i++)
		speeds[n++] = speed(i);
	if (!n)
		return 0;
	qsort(speeds, n, sizeof(*speeds), compare);
	return speeds[n / 2] ? 100 * speeds[0] / speeds[n / 2] : 0;
}

static void write_samples(const char *path)
{
	FILE *f = fopen(path, "a");

	if (!f)
		die(EX_FAILED, "%s: %s", path, strerror(errno));
	for (int i = 1; i < nr_samples; i++)
		fprintf(f, "%d\t%s\t%zu\t%.3f\t%.1f\t%llu\n", nr_threads,
			mode_name[mode], buffer, samples[i].at, speed(i),
			samples[i].cached);
	if (fclose(f))
		die(EX_FAILED, "%s: %s", path, strerror(errno));
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "header", no_argument, NULL, 'H' },
		{ "sample-header", no_argument, NULL, 'S' },
		{ NULL },
	};
	const char *sample_file = NULL;
	int opt, marks = 0;

	while ((opt = getopt_long(argc, argv, "t:b:m:i:o:k", options,
				  NULL)) != -1) {
		switch (opt) {
		case 'H':
			puts(header);
			return 0;
		case 'S':
			puts(sample_header);
			return 0;
		case 't':
			nr_threads = atoi(optarg);
			break;
		case 'b':
			buffer = parse_size(optarg);
			break;
		case 'm':
			mode = parse_mode(optarg);
			break;
		case 'i':
			interval_ms = atoi(optarg);
			break;
		case 'o':
			sample_file = optarg;
			break;
		case 'k':
			marks = 1;
			break;
		default:
			return EX_WRONG_USAGE;
		}
	}
	files = argv + optind;
	nr_files = argc - optind;
	if (nr_files < 1)
		die(EX_WRONG_USAGE, "name one file, or one for each thread");
	if (nr_threads < 1 || (nr_files > 1 && nr_threads > nr_files))
		die(EX_WRONG_USAGE, "%d threads, %d files", nr_threads,
		    nr_files);
	if (mode == FADVISE || interval_ms < 1)
		die(EX_WRONG_USAGE, "no such mode or interval");

	unsigned long long scan_kswapd, scan_direct, steal, stall, refault;
	unsigned long long peak = 0, left;
	struct disk_count before = { 0 }, after = { 0 }, one;
	double cpu = 0, kswapd, busy, start, seconds, gib;
	dev_t *devs = calloc(nr_files, sizeof(*devs));
	int nr_devs = 0;
	pthread_t sample_thread;
	uint64_t bytes;

	/* The disks of the files, each of them once. */
	for (int i = 0; i < nr_files; i++) {
		struct stat st;
		int j = 0;

		if (stat(files[i], &st))
			die(EX_FAILED, "%s: %s", files[i], strerror(errno));
		while (j < nr_devs && devs[j] != st.st_dev)
			j++;
		if (j == nr_devs)
			devs[nr_devs++] = st.st_dev;
	}

	if (pipe(finished))
		die(EX_FAILED, "pipe: %s", strerror(errno));
	readers = calloc(nr_threads, sizeof(*readers));
	pthread_barrier_init(&barrier, NULL, nr_threads + 2);
	for (int i = 0; i < nr_threads; i++) {
		readers[i].data = memory(buffer);
		if (pthread_create(&readers[i].thread, NULL, read_all,
				   &readers[i]))
			die(EX_FAILED, "cannot make %d threads", nr_threads);
	}
	if (pthread_create(&sample_thread, NULL, sampler, &start))
		die(EX_FAILED, "cannot make a thread");

	sync();
	drop_all_caches();
	scan_kswapd = vmstat("pgscan_kswapd");
	scan_direct = vmstat("pgscan_direct");
	steal = vmstat("pgsteal_kswapd") + vmstat("pgsteal_direct");
	stall = vmstat_sum("allocstall_");
	refault = vmstat("workingset_refault_file");
	for (int i = 0; i < nr_devs; i++) {
		one = disk_count(devs[i]);
		before.reads += one.reads;
		before.read_bytes += one.read_bytes;
	}
	kswapd = kswapd_seconds();
	busy = busy_seconds();
	if (marks)
		mark();
	seconds = now();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < nr_threads; i++) {
		pthread_join(readers[i].thread, NULL);
		cpu += readers[i].cpu;
	}
	seconds = now() - seconds;
	if (marks)
		mark();
	busy = busy_seconds() - busy;
	close(finished[1]);
	pthread_join(sample_thread, NULL);
	kswapd = kswapd_seconds() - kswapd;
	for (int i = 0; i < nr_devs; i++) {
		one = disk_count(devs[i]);
		after.reads += one.reads;
		after.read_bytes += one.read_bytes;
	}
	scan_kswapd = vmstat("pgscan_kswapd") - scan_kswapd;
	scan_direct = vmstat("pgscan_direct") - scan_direct;
	steal = vmstat("pgsteal_kswapd") + vmstat("pgsteal_direct") - steal;
	stall = vmstat_sum("allocstall_") - stall;
	refault = vmstat("workingset_refault_file") - refault;
	left = cached_kib();
	for (int i = 0; i < nr_samples; i++)
		if (samples[i].cached > peak)
			peak = samples[i].cached;

	disk_since(&after, &before);
	bytes = bytes_done();
	gib = bytes / (1024.0 * MIB);
	printf("%d\t%s\t%zu\t%.1f\t%.2f\t%llu\t%.0f\t%.0f\t%.0f\t",
	       nr_threads, mode_name[mode], buffer, bytes / seconds / MIB,
	       (double)after.read_bytes / bytes, after.reads, cpu * 1e3 / gib,
	       kswapd * 1e3 / gib, busy * 1e3 / gib);
	printf("%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%.0f\t%d\t%llu\t%llu\t%.6f\n",
	       scan_kswapd, scan_direct, steal, stall, refault, peak, left,
	       low_pct(), nr_samples - 1, (unsigned long long)bytes,
	       after.read_bytes, seconds);
	if (sample_file)
		write_samples(sample_file);
	return 0;
}
