// SPDX-License-Identifier: GPL-2.0-only
/*
 * What RWF_DONTCACHE reads fetch from the disk, and what they leave in the
 * page cache.  See Documentation/mm/dontcache.rst.
 *
 * usage: dontcache_read [harness options] [-- DIRECTORY|BLOCKDEVICE ...]
 *
 * Without arguments the places are those of DONTCACHE_DIRS (separated by
 * spaces or colons), else the working directory, else a loop device that
 * is made for the test.  A block device is only read, and only if named.
 *
 * Nothing here looks at a clock: the figures are bytes read from the device
 * (/proc/self/io), requests (/sys/dev/block), and pages in the cache
 * (cachestat(2)), each beside those of a plain reader of the same file that
 * reads in the same way.  The content of a file is a function of the offset,
 * and every byte read is compared.
 *
 * Files have no name: they go with their last descriptor, however we end.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__ /* __u64 is what %llu prints */
#include "kselftest_harness.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <linux/loop.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x8
#endif
#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif
#ifndef BLKRASET
#define BLKRASET _IO(0x12, 98)
#endif
#ifndef BLKBSZGET
#define BLKBSZGET _IOR(0x12, 112, size_t)
#endif
#ifndef BLKGETSIZE64
#define BLKGETSIZE64 _IOR(0x12, 114, size_t)
#endif
#ifndef __NR_pidfd_open
#define __NR_pidfd_open 434
#endif
#ifndef __NR_fsopen
#define __NR_fsopen 430
#define __NR_fsconfig 431
#define __NR_fsmount 432
#endif
#ifndef __NR_cachestat
#define __NR_cachestat 451
#endif

/* The enum and flags of <linux/mount.h>, which older headers lack. */
#define CFG_SET_STRING 1
#define CFG_CMD_CREATE 6

#define KB(n) ((size_t)(n) << 10)
#define MB(n) ((size_t)(n) << 20)

/* Of most files, and of the longest: small enough for an emulator. */
#define SIZE MB(8)
#define MAX_SIZE MB(32)
#define TIMEOUT 300

#define AGAIN "a folio is dropped after its first piece and read again: " \
	"this kernel lacks the fix, see Documentation/mm/dontcache.rst"
#define RESTARTS "readahead begins anew where it should go on: see " \
	"\"readahead\" in Documentation/mm/dontcache.rst"
#define STAYS "folios that were passed or left stay behind: see \"what stays " \
	"behind\" in Documentation/mm/dontcache.rst"

/* Where the files are. */
static struct {
	char path[PATH_MAX];
	bool bdev;
	size_t unit;		/* no folio is smaller: a page, or a block */
	size_t window;		/* of readahead, in bytes */
} at;

static size_t page;
static pid_t main_pid;
static unsigned char *want;	/* what files must hold */

struct file {
	int fd;
	dev_t dev;
	off_t base;		/* where our part of a block device begins */
	size_t size;

	/* of the run in progress */
	__u64 asked;		/* bytes copied */
	__u64 spans;		/* bytes of all units that each read touched */
	size_t every, since;	/* sample residency each so many bytes */
	__u64 peak;
	bool (*right)(const unsigned char *got, off_t pos, size_t len);
	char err[128];
};

struct figures {
	__u64 asked, spans;
	__u64 bytes;
	__u64 reqs;
	bool quiet;		/* nobody else used the device: reqs are ours */
	__u64 left, peak;		/* pages */
};

/* One line of a file under /proc or /sys, or of more; NULL if not there. */
static char *slurp(const char *name, char *buf, size_t len)
{
	int fd = open(name, O_RDONLY);
	size_t n = 0;
	ssize_t r;

	if (fd < 0)
		return NULL;
	while (n < len - 1 && (r = read(fd, buf + n, len - 1 - n)) > 0)
		n += r;
	close(fd);
	buf[n] = 0;
	return buf;
}

static bool spit(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_TRUNC);
	ssize_t len = strlen(text);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, len) == len;
	close(fd);
	return ok;
}

/* The number behind a key, as in /proc/self/io or memory.events. */
static bool field(const char *name, const char *key, __u64 *val)
{
	char buf[4096], *s;

	if (!slurp(name, buf, sizeof(buf)))
		return false;
	for (s = buf; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (!strncmp(s, key, strlen(key)) &&
		    (s[strlen(key)] == ' ' || s[strlen(key)] == ':'))
			return sscanf(s + strlen(key) + 1, "%llu", val) == 1;
	}
	return false;
}

static __u64 io_field(const char *key)
{
	__u64 val = 0;

	field("/proc/self/io", key, &val);
	return val;
}

static bool kernel_before(int major, int minor)
{
	struct utsname u;
	int a, b;

	return !uname(&u) && sscanf(u.release, "%d.%d", &a, &b) == 2 &&
	       (a < major || (a == major && b < minor));
}

/* The first thing that went wrong is the one to tell. */
static __printf(2, 3) void wrong(struct file *f, const char *fmt, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	va_list ap;

	pthread_mutex_lock(&lock);
	if (!f->err[0]) {
		va_start(ap, fmt);
		vsnprintf(f->err, sizeof(f->err), fmt, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&lock);
}

struct cached {
	__u64 cache, dirty, writeback, evicted, recently_evicted;
};

static int cachestat(int fd, off_t off, size_t len, struct cached *c)
{
	struct {
		__u64 off, len;
	} range = { off, len };

	return syscall(__NR_cachestat, fd, &range, c, 0);
}

/* Pages of a part of the file that are in the cache. */
static __u64 cached_in(struct file *f, off_t pos, size_t len)
{
	struct cached c;

	if (cachestat(f->fd, f->base + pos, len, &c)) {
		wrong(f, "cachestat: %s", strerror(errno));
		return 0;
	}
	return c.cache;
}

static __u64 cached(struct file *f)
{
	return cached_in(f, 0, f->size);
}

/* Out of the cache, without the privilege to drop what belongs to others. */
static bool make_cold(struct file *f)
{
	struct cached c;
	int i;

	for (i = 0; i < 50; i++) {
		if (!cachestat(f->fd, 0, f->size, &c) &&
		    (c.dirty || c.writeback) && !at.bdev)
			fsync(f->fd);
		posix_fadvise(f->fd, f->base, at.bdev ? (off_t)f->size : 0,
			      POSIX_FADV_DONTNEED);
		if (!cached(f))
			return true;
		usleep(2000);
	}
	wrong(f, "%llu pages do not leave the cache", cached(f));
	return false;
}

/* Another open file, with its own readahead state. */
static int reopen(struct file *f)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", f->fd);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		wrong(f, "open %s: %s", name, strerror(errno));
	return fd;
}

static int open_unnamed(const char *dir)
{
	char name[PATH_MAX + 32];
	int fd;

	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR &&
			errno != ENOENT))
		return fd;
	snprintf(name, sizeof(name), "%s/dontcache_read.XXXXXX", dir);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

static bool fill(struct file *f, off_t pos, size_t len, int rwf)
{
	while (len) {
		struct iovec iov = { want + pos, len < MB(1) ? len : MB(1) };
		ssize_t r = pwritev2(f->fd, &iov, 1, pos, rwf);

		if (r <= 0) {
			wrong(f, "write: %s", strerror(errno));
			return false;
		}
		pos += r;
		len -= r;
	}
	return true;
}

static void open_file(struct file *f, size_t size)
{
	struct stat st;
	__u64 bytes;

	memset(f, 0, sizeof(*f));
	f->size = size;
	f->fd = at.bdev ? open(at.path, O_RDONLY | O_CLOEXEC) :
			  open_unnamed(at.path);
	if (f->fd < 0 || fstat(f->fd, &st)) {
		wrong(f, "%s: %s", at.path, strerror(errno));
		return;
	}
	f->dev = st.st_dev;
	if (at.bdev) {
		/* The end of it, so that the end of the file is one of ours. */
		f->dev = st.st_rdev;
		if (ioctl(f->fd, BLKGETSIZE64, &bytes) || bytes < MAX_SIZE) {
			wrong(f, "%s: smaller than %zu bytes", at.path,
			      MAX_SIZE);
			return;
		}
		f->base = bytes - size;
	}
}

/* What a file of which tests want several windows can be. */
static size_t usual_size(void)
{
	return at.window > SIZE / 4 ? MAX_SIZE : SIZE;
}

/* With size 0: the usual one. */
static void make_file(struct file *f, size_t size)
{
	if (!size)
		size = usual_size();
	open_file(f, size);
	if (!f->err[0] && (at.bdev || fill(f, 0, size, 0)))
		make_cold(f);
}

static bool right_want(const unsigned char *got, off_t pos, size_t len)
{
	return !memcmp(got, want + pos, len);
}

/* For parts that are truncated or punched meanwhile. */
static bool right_or_zero(const unsigned char *got, off_t pos, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (got[i] && got[i] != want[pos + i])
			return false;
	return true;
}

/* Account for what a read returned, and compare it. */
static void took(struct file *f, const unsigned char *got, off_t pos,
		 size_t len)
{
	off_t first = (f->base + pos) / at.unit;
	off_t last = (f->base + pos + len - 1) / at.unit;
	size_t since;
	__u64 now;

	/* Of a block device, want holds the end. */
	if (!(f->right ?: right_want)(got, pos + (at.bdev ?
				      MAX_SIZE - f->size : 0), len))
		wrong(f, "wrong data in the %zu bytes from %llu", len,
		      (__u64)pos);
	__atomic_add_fetch(&f->asked, len, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->spans, (last - first + 1) * at.unit,
			   __ATOMIC_RELAXED);
	since = __atomic_add_fetch(&f->since, len, __ATOMIC_RELAXED);
	if (f->every && since >= f->every) {
		__atomic_store_n(&f->since, 0, __ATOMIC_RELAXED);
		now = cached(f);
		if (now > f->peak)
			f->peak = now;
	}
}

/* One read.  What it returns has been compared. */
static ssize_t get_iov(struct file *f, int fd, off_t pos, struct iovec *iov,
		       int n, int rwf)
{
	ssize_t r = preadv2(fd, iov, n, f->base + pos, rwf);
	ssize_t left = r;
	off_t p = pos;
	int i;

	for (i = 0; i < n && left > 0; i++) {
		size_t len = left < (ssize_t)iov[i].iov_len ?
			     (size_t)left : iov[i].iov_len;

		took(f, iov[i].iov_base, p, len);
		left -= len;
		p += len;
	}
	return r;
}

/* An aligned buffer of each thread. */
static unsigned char *buffer(void)
{
	static __thread unsigned char *buf;

	if (!buf && posix_memalign((void **)&buf, KB(64), MB(2)))
		abort();
	return buf;
}

static size_t get(struct file *f, int fd, off_t pos, size_t len, int rwf)
{
	struct iovec iov = { buffer(), len };
	ssize_t r = get_iov(f, fd, pos, &iov, 1, rwf);

	if (r < 0)
		wrong(f, "read of %zu bytes at %llu: %s", len, (__u64)pos,
		      strerror(errno));
	return r < 0 ? 0 : r;
}

/*
 * From pos to end, and not further: no read that returns 0.  Returns where
 * it stopped.
 */
static off_t get_range(struct file *f, int fd, off_t pos, off_t end,
		       size_t buf, int rwf)
{
	size_t r;

	while (pos < end) {
		r = end - pos < (off_t)buf ? end - pos : (off_t)buf;
		r = get(f, fd, pos, r, rwf);
		if (!r) {
			wrong(f, "end of file at %llu", (__u64)pos);
			break;
		}
		pos += r;
	}
	return pos;
}

/*
 * Patterns
 */
struct pattern {
	void (*run)(struct file *f, const struct pattern *p, int rwf);
	size_t size;		/* of the file; 0: several windows */
	size_t buf;
	size_t start;		/* offset, or distance */
	int n;			/* streams, threads, depth, or count */
	bool own;		/* open file of each thread */
	bool async;

	/*
	 * Bounds.  Per cent, 0: none.  In bytes read, slack counts windows
	 * that readahead may have fetched in vain.
	 */
	int amp;		/* bytes, of the bytes asked for */
	int spans;		/* bytes, of the units touched by each read */
	int plain;		/* bytes, of those of the plain reader */
	int slack;
	bool again;		/* and a unit may be read again per window */
	int reqs;		/* requests, of those of the plain reader */
	int left;		/* windows left in the cache at the end */
	int left_kb;		/* and so much more, or */
	int left_units;		/* so many units if that is more, or */
	int left_plain;		/* per cent of what a plain reader leaves */
	int peak;		/* windows in the cache at any time */
	bool each;		/* two windows more of left per stream */
};

static void run_seq(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f);

	get_range(f, fd, p->start, f->size, p->buf, rwf);
	close(fd);
}

/*
 * Streams that take turns on one open file.  Readahead gets two windows past a
 * stream at most: they stop where it would run into the part of the next one,
 * which a plain reader finds in the cache.
 */
static void run_interleaved(struct file *f, const struct pattern *p, int rwf)
{
	size_t part = (f->size - p->start) / p->n;
	int fd = reopen(f);
	size_t pos;
	int i;

	for (pos = 0; pos < part - 2 * at.window - p->buf; pos += p->buf)
		for (i = 0; i < p->n; i++)
			get_range(f, fd, p->start + i * part + pos,
				  p->start + i * part + pos + p->buf, p->buf,
				  rwf);
	close(fd);
}

/* Other random reads: DONTCACHE_SEED=n. */
static unsigned int first_seed(void)
{
	const char *seed = getenv("DONTCACHE_SEED");

	return seed ? strtoul(seed, NULL, 0) : 1;
}

static unsigned int any(unsigned int *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

struct thread {
	pthread_t id;
	struct file *f;
	const struct pattern *p;
	int rwf, fd, nr;
	off_t *next;
	pthread_barrier_t *begin;
};

/* Threads that pull the next piece of one file. */
static void *pull(void *arg)
{
	struct thread *t = arg;
	off_t pos;

	pthread_barrier_wait(t->begin);
	for (;;) {
		pos = __atomic_fetch_add(t->next, t->p->buf, __ATOMIC_RELAXED);
		if (pos >= (off_t)t->f->size)
			return NULL;
		get_range(t->f, t->fd, pos, pos + t->p->buf, t->p->buf, t->rwf);
	}
}

/* Threads that each read their own part. */
static void *pull_part(void *arg)
{
	struct thread *t = arg;
	size_t part = t->f->size / t->p->n;

	pthread_barrier_wait(t->begin);
	get_range(t->f, t->fd, t->nr * part, (t->nr + 1) * part, t->p->buf,
		  t->rwf);
	return NULL;
}

static void run_threads(struct file *f, const struct pattern *p, int rwf,
			void *(*fn)(void *))
{
	int fd = reopen(f), i, n = 0;
	struct thread t[16];
	pthread_barrier_t begin;
	off_t next = 0;

	pthread_barrier_init(&begin, NULL, p->n);
	for (i = 0; i < p->n; i++) {
		t[i] = (struct thread) {
			.f = f, .p = p, .rwf = rwf, .nr = i, .next = &next,
			.begin = &begin, .fd = p->own ? reopen(f) : fd,
		};
		if (pthread_create(&t[i].id, NULL, fn, &t[i]))
			abort();
		n++;
	}
	for (i = 0; i < n; i++) {
		pthread_join(t[i].id, NULL);
		if (p->own)
			close(t[i].fd);
	}
	pthread_barrier_destroy(&begin);
	close(fd);
}

/*
 * What such threads ask for, but the same each time: each has a piece to read,
 * and which of them comes next is drawn.  None waits for more than 2 * n others.
 */
static void run_overtaken(struct file *f, const struct pattern *p, int rwf)
{
	struct {
		off_t pos;
		int fd, waits;
	} t[16];
	int fd = reopen(f), i, j, flying = p->n;
	unsigned int seed = first_seed();
	off_t next = 0, end;

	for (i = 0; i < p->n; i++) {
		t[i].fd = p->own ? reopen(f) : fd;
		t[i].pos = next;
		t[i].waits = 0;
		next += p->buf;
	}
	while (flying) {
		i = any(&seed) % flying;
		for (j = 0; j < flying; j++)
			if (t[j].waits >= 2 * p->n)
				i = j;
		end = t[i].pos + p->buf;
		get_range(f, t[i].fd, t[i].pos, end < (off_t)f->size ? end :
			  (off_t)f->size, p->buf, rwf);
		for (j = 0; j < flying; j++)
			t[j].waits++;
		t[i].waits = 0;
		t[i].pos = next;
		next += p->buf;
		if (t[i].pos < (off_t)f->size)
			continue;
		if (p->own)
			close(t[i].fd);
		t[i] = t[--flying];
	}
	close(fd);
}

static void get_nth(struct file *f, const struct pattern *p, int fd, int nth,
		    int rwf)
{
	off_t pos = nth * (off_t)p->buf;

	get_range(f, fd, pos, pos + p->buf, p->buf, rwf);
}

/*
 * A thread that comes to a new window starts readahead, and others overtake it:
 * the first piece of each window is read after the rest of it, and some of them
 * a good deal later, when the row of reads that is to come into the last window
 * begins, for one.
 */
static void run_late(struct file *f, const struct pattern *p, int rwf)
{
	int nr = f->size / p->buf, soon = KB(128) / p->buf, late = 6 * soon;
	int fd = reopen(f), i, first;

	for (i = 0; i < nr + late; i++) {
		if (i % soon) {
			if (i < nr)
				get_nth(f, p, fd, i, rwf);
			continue;
		}
		for (first = i - soon; first >= i - late; first -= late - soon) {
			bool due = (nr - soon - late - first) % (4 * soon) ?
				   first == i - soon : first == i - late;

			if (due && first >= 0 && first < nr)
				get_nth(f, p, fd, first, rwf);
		}
	}
	close(fd);
}

static void run_pull(struct file *f, const struct pattern *p, int rwf)
{
	run_threads(f, p, rwf, pull);
}

static void run_parts(struct file *f, const struct pattern *p, int rwf)
{
	run_threads(f, p, rwf, pull_part);
}

static void run_backward(struct file *f, const struct pattern *p, int rwf)
{
	off_t low = p->start ? f->size - p->start : 0;
	int fd = reopen(f);
	off_t pos, end;

	for (end = f->size; end > low; end = pos) {
		pos = end - (off_t)p->buf;
		if (pos < low)
			pos = low;
		get_range(f, fd, pos, end, p->buf, rwf);
	}
	close(fd);
}

/* As archives and column stores are read: trailer, footer, head, all. */
static void run_footer(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f);

	get_range(f, fd, f->size - 8, f->size, 8, rwf);
	get_range(f, fd, f->size - KB(20), f->size, p->buf, rwf);
	get_range(f, fd, 0, 512, 512, rwf);
	get_range(f, fd, 0, f->size, p->buf, rwf);
	close(fd);
}

/*
 * A second reader that follows the first at a distance, from the beginning of
 * the file or, with n 1, already when the first begins there.
 */
static void run_lag(struct file *f, const struct pattern *p, int rwf)
{
	int a = reopen(f), b = p->own ? reopen(f) : a;
	off_t pos = p->n ? p->start : 0, lag;

	for (; pos < (off_t)(f->size + p->start); pos += p->buf) {
		if (pos < (off_t)f->size)
			get_range(f, a, pos, pos + p->buf, p->buf, rwf);
		lag = pos - p->start;
		if (lag >= 0)
			get_range(f, b, lag, lag + p->buf, p->buf, rwf);
	}
	close(a);
	if (p->own)
		close(b);
}

/* One reader that goes back two windows after each eight. */
static void run_back(struct file *f, const struct pattern *p, int rwf)
{
	size_t row = 8 * at.window, pos;
	int fd = reopen(f);

	for (pos = 0; pos + row <= f->size; pos += row - 2 * at.window)
		get_range(f, fd, pos, pos + row, p->buf, rwf);
	close(fd);
}

static void run_strided(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f);
	off_t pos;

	for (pos = 0; pos + p->buf <= f->size; pos += p->start)
		get_range(f, fd, pos, pos + p->buf, p->buf, rwf);
	close(fd);
}

/* A stream, and now and then two short reads of what is read ahead of it. */
static void run_peek(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f), i = 0, j;
	unsigned int seed = first_seed();
	off_t pos, ahead;

	for (pos = 0; pos < (off_t)f->size; pos += p->buf) {
		get_range(f, fd, pos, pos + p->buf, p->buf, rwf);
		if (++i % p->n)
			continue;
		for (j = 0; j < 2; j++) {
			ahead = pos + p->buf + any(&seed) % (2 * at.window);
			if (ahead + KB(1) <= f->size)
				get_range(f, fd, ahead, ahead + KB(1), KB(1),
					  rwf);
		}
	}
	close(fd);
}

/* Streams that begin close to another read and look far back now and again. */
static void run_look_back(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f), i;
	unsigned int seed = first_seed();
	off_t start, pos, back;

	for (i = 0; i < p->n; i++) {
		start = p->start + i * KB(256);
		get_range(f, fd, start, start + KB(4), KB(4), rwf);
		start += KB(64);
		for (pos = start; pos < start + (off_t)KB(64); pos += p->buf) {
			get_range(f, fd, pos, pos + p->buf, p->buf, rwf);
			back = any(&seed) % (p->start - MB(2));
			get_range(f, fd, back, back + p->buf, p->buf, rwf);
		}
	}
	close(fd);
}

/* A few reads near each other, in no order, then a few far away. */
static void run_clusters(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f), i, j;
	unsigned int seed = first_seed();
	off_t base, pos;

	for (i = 0; i < p->n; i++) {
		base = any(&seed) % (f->size - KB(64) - p->buf);
		for (j = 0; j < 4; j++) {
			pos = base + any(&seed) % KB(64);
			get_range(f, fd, pos, pos + p->buf, p->buf, rwf);
		}
	}
	close(fd);
}

/*
 * With buf 0: of any length up to 5000 bytes, at any place.  With async: not at
 * the first try, as io_uring does it.
 */
static void run_random(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f), i, tries;
	unsigned int seed = first_seed();
	size_t len, pos;

	for (i = 0; i < p->n; i++) {
		if (p->buf) {
			len = p->buf;
			pos = any(&seed) % (f->size / len) * len;
		} else {
			len = any(&seed) % 5000 + 1;
			pos = any(&seed) % (f->size - len);
		}
		for (tries = p->async ? 2 : 0; tries; tries--) {
			struct iovec iov = { buffer(), len };

			if (preadv2(fd, &iov, 1, f->base + pos,
				    rwf | RWF_NOWAIT) != -1)
				break;
		}
		get_range(f, fd, pos, pos + len, len, rwf);
	}
	close(fd);
}

/* Opens, reads a piece of a folio, and closes. */
static void run_abandon(struct file *f, const struct pattern *p, int rwf)
{
	int fd, i;

	for (i = 0; i < p->n; i++) {
		fd = reopen(f);
		get_range(f, fd, i * (f->size / p->n),
			  i * (f->size / p->n) + p->buf, p->buf, rwf);
		close(fd);
	}
}

/* Each read begins a little before the end of the last. */
static void run_overlap(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f);
	off_t pos = 0;

	while (pos < (off_t)f->size) {
		if (pos)
			pos -= p->start;
		pos = get_range(f, fd, pos, pos + p->buf < f->size ?
				pos + p->buf : f->size, p->buf, rwf);
	}
	close(fd);
}

/* The buffer has a hole: the read is short, and tried again. */
static void run_efault(struct file *f, const struct pattern *p, int rwf)
{
	unsigned char *bad = mmap(NULL, p->buf, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t good = p->buf / 4, pos;
	int fd = reopen(f);
	ssize_t r;

	for (pos = 0; pos < f->size; pos += p->buf) {
		struct iovec iov[] = {
			{ buffer(), good }, { bad, p->buf - good }
		};

		r = preadv2(fd, iov + 1, 1, f->base + pos, rwf);
		if (r != -1 || errno != EFAULT)
			wrong(f, "bad buffer: read returned %zd", r);
		r = get_iov(f, fd, pos, iov, 2, rwf);
		if (r < 0 && errno == EFAULT)
			r = 0;
		else if (r != (ssize_t)good)
			wrong(f, "half bad buffer: read returned %zd", r);
		get_range(f, fd, pos + r, pos + p->buf, p->buf, rwf);
	}
	munmap(bad, p->buf);
	close(fd);
}

/* Takes what is there without waiting, and waits for a little of the rest. */
static void run_nowait(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f);
	off_t pos = 0;
	ssize_t r;

	while (pos < (off_t)f->size) {
		struct iovec iov = { buffer(), p->buf };

		if (pos + p->buf > f->size)
			iov.iov_len = f->size - pos;
		r = get_iov(f, fd, pos, &iov, 1, rwf | RWF_NOWAIT);
		if (r < 0 && errno == EAGAIN)
			r = get_range(f, fd, pos, pos + KB(1), KB(1), rwf) -
			    pos;
		if (r <= 0) {
			wrong(f, "RWF_NOWAIT: %s", strerror(errno));
			break;
		}
		pos += r;
	}
	close(fd);
}

/* Never waits: tries again until readahead has brought what it asks for. */
static void run_nowait_only(struct file *f, const struct pattern *p, int rwf)
{
	int fd = reopen(f), tries = 0;
	off_t pos = 0;
	ssize_t r;

	while (pos < (off_t)f->size) {
		struct iovec iov = { buffer(), p->buf };

		r = get_iov(f, fd, pos, &iov, 1, rwf | RWF_NOWAIT);
		if (r < 0 && errno == EAGAIN && tries++ < 5000) {
			usleep(1000);
			continue;
		}
		if (r <= 0) {
			wrong(f, "RWF_NOWAIT at %llu: %s", (__u64)pos,
			      strerror(errno));
			break;
		}
		tries = 0;
		pos += r;
	}
	close(fd);
}

static void on_signal(int nr)
{
	(void)nr;
}

/* Signals come all the time: a read may be short, and is tried again. */
static void run_signals(struct file *f, const struct pattern *p, int rwf)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, off = {};
	struct sigaction act = { .sa_handler = on_signal }, old;
	int fd = reopen(f);
	off_t pos = 0;
	ssize_t r;

	sigaction(SIGPROF, &act, &old);
	setitimer(ITIMER_PROF, &often, NULL);
	while (pos < (off_t)f->size) {
		struct iovec iov = { buffer(), p->buf };

		r = get_iov(f, fd, pos, &iov, 1, rwf);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			wrong(f, "read at %llu: %s", (__u64)pos,
			      strerror(errno));
			break;
		}
		pos += r;
	}
	setitimer(ITIMER_PROF, &off, NULL);
	sigaction(SIGPROF, &old, NULL);
	close(fd);
}

/* Many small iovecs of odd lengths, or of some that end about a page's end. */
static void run_iovecs(struct file *f, const struct pattern *p, int rwf)
{
	const size_t odd[] = { 1000, 24, 3, 61, 8 };
	const size_t pages[] = { page - 1, 1, page, 1, page - 1 };
	const size_t *lens = p->start ? pages : odd;
	struct iovec iov[64];
	int fd = reopen(f), i;
	off_t pos = 0;
	ssize_t r;

	while (pos < (off_t)f->size) {
		unsigned char *b = buffer();
		off_t end = pos;

		for (i = 0; i < p->n && end < (off_t)f->size; i++) {
			iov[i].iov_base = b;
			iov[i].iov_len = lens[i % ARRAY_SIZE(odd)];
			if (end + iov[i].iov_len > f->size)
				iov[i].iov_len = f->size - end;
			b += iov[i].iov_len;
			end += iov[i].iov_len;
		}
		r = get_iov(f, fd, pos, iov, i, rwf);
		if (r <= 0) {
			wrong(f, "iovecs: %s", strerror(errno));
			break;
		}
		pos += r;
	}
	close(fd);
}

/* Queued reads.  As little of io_uring as that takes. */
struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static bool ring_open(struct ring *r, unsigned int depth)
{
	struct io_uring_params par = {};
	char *sq, *cq;

	r->fd = syscall(__NR_io_uring_setup, depth, &par);
	if (r->fd < 0)
		return false;
	sq = mmap(NULL, par.sq_off.array + par.sq_entries * sizeof(int),
		  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, par.cq_off.cqes + par.cq_entries * sizeof(*r->cqes),
		  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
		  IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, par.sq_entries * sizeof(*r->sqes),
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
		       IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || r->sqes == MAP_FAILED) {
		close(r->fd);
		return false;
	}
	r->sq_tail = (void *)(sq + par.sq_off.tail);
	r->sq_mask = (void *)(sq + par.sq_off.ring_mask);
	r->sq_array = (void *)(sq + par.sq_off.array);
	r->cq_head = (void *)(cq + par.cq_off.head);
	r->cq_tail = (void *)(cq + par.cq_off.tail);
	r->cq_mask = (void *)(cq + par.cq_off.ring_mask);
	r->cqes = (void *)(cq + par.cq_off.cqes);
	return true;
}

static void ring_queue(struct ring *r, int fd, void *buf, size_t len,
		       off_t pos, int rwf, int flags, int slot)
{
	unsigned int tail = *r->sq_tail, i = tail & *r->sq_mask;

	r->sqes[i] = (struct io_uring_sqe) {
		.opcode = IORING_OP_READ, .flags = flags, .fd = fd,
		.off = pos, .addr = (unsigned long)buf, .len = len,
		.rw_flags = rwf, .user_data = slot,
	};
	r->sq_array[i] = i;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void run_uring(struct file *f, const struct pattern *p, int rwf)
{
	int flags = p->async ? IOSQE_ASYNC : 0;
	int fd = reopen(f), flying = 0, queued = 0, i;
	struct {
		off_t pos, end;
	} slot[64];
	struct ring r;
	off_t next = 0;

	if (!ring_open(&r, p->n)) {
		wrong(f, "io_uring_setup: %s", strerror(errno));
		close(fd);
		return;
	}
	memset(slot, 0, sizeof(slot));
	do {
		for (i = 0; i < p->n && next < (off_t)f->size; i++) {
			if (slot[i].pos != slot[i].end)
				continue;
			slot[i].pos = next;
			slot[i].end = next += p->buf;
			ring_queue(&r, fd, buffer() + i * p->buf, p->buf,
				   f->base + slot[i].pos, rwf, flags, i);
			flying++;
			queued++;
		}
		if (syscall(__NR_io_uring_enter, r.fd, queued, 1,
			    IORING_ENTER_GETEVENTS, NULL, 0) < 0) {
			wrong(f, "io_uring_enter: %s", strerror(errno));
			break;
		}
		queued = 0;
		while (*r.cq_head !=
		       __atomic_load_n(r.cq_tail, __ATOMIC_ACQUIRE)) {
			struct io_uring_cqe *c =
				&r.cqes[*r.cq_head & *r.cq_mask];

			i = c->user_data;
			if (c->res <= 0) {
				wrong(f, "io_uring read at %llu: %s",
				      (__u64)slot[i].pos, strerror(-c->res));
				slot[i].pos = slot[i].end;
				next = f->size;
			} else {
				took(f, buffer() + i * p->buf, slot[i].pos,
				     c->res);
				slot[i].pos += c->res;
			}
			__atomic_store_n(r.cq_head, *r.cq_head + 1,
					 __ATOMIC_RELEASE);
			flying--;
			if (slot[i].pos == slot[i].end)
				continue;
			/* A short read: the rest. */
			ring_queue(&r, fd, buffer() + i * p->buf,
				   slot[i].end - slot[i].pos,
				   f->base + slot[i].pos, rwf, flags, i);
			flying++;
			queued++;
		}
	} while (flying || next < (off_t)f->size);
	close(r.fd);
	close(fd);
}

/* Why a pattern cannot be had here, or NULL. */
static const char *unfit(const struct pattern *p)
{
	static char why[128];
	struct ring r;

	if (p->run == run_uring) {
		if (!ring_open(&r, 1)) {
			snprintf(why, sizeof(why), "io_uring: %s",
				 strerror(errno));
			return why;
		}
		close(r.fd);
	}
	if (p->run == run_interleaved &&
	    (usual_size() - p->start) / p->n < 4 * at.window) {
		snprintf(why, sizeof(why),
			 "windows of %zu bytes are too large for %d streams",
			 at.window, p->n);
		return why;
	}
	if (p->run == run_back && usual_size() < 14 * at.window) {
		snprintf(why, sizeof(why),
			 "windows of %zu bytes are too large to go back by",
			 at.window);
		return why;
	}
	if (p->run == run_overtaken && p->buf >= KB(128) &&
	    p->buf < at.window) {
		snprintf(why, sizeof(why),
			 "windows of %zu bytes are longer than the reads",
			 at.window);
		return why;
	}
	/* One read that hits the start of the file reads a window. */
	if ((p->run == run_random || p->run == run_clusters ||
	     p->run == run_peek) &&
	    (p->size ? p->size : usual_size()) < 32 * at.window) {
		snprintf(why, sizeof(why),
			 "windows of %zu bytes are too large for random reads",
			 at.window);
		return why;
	}
	return NULL;
}

/*
 * Figures
 */
struct disk {
	__u64 reads, sectors;
};

/* Once nothing is under way; false if the device has no counters. */
static bool disk_stat(struct file *f, struct disk *d)
{
	char name[64], buf[512];
	__u64 flying;
	int i;

	snprintf(name, sizeof(name), "/sys/dev/block/%u:%u/stat",
		 major(f->dev), minor(f->dev));
	for (i = 0; i < 50; i++) {
		if (!slurp(name, buf, sizeof(buf)) ||
		    sscanf(buf, "%llu %*u %llu %*u %*u %*u %*u %*u %llu",
			   &d->reads, &d->sectors, &flying) != 3)
			return false;
		if (!flying)
			break;
		usleep(1000);
	}
	return true;
}

/*
 * The kernel may keep hints of where streams got to, and a new file may look
 * like one of an earlier test.  Many short reads apart crowd them out.
 */
static void forget_streams(struct file *f)
{
	int fd = reopen(f), i;
	char c;

	get_range(f, fd, 0, KB(64), KB(64), 0);
	for (i = 0; i < 2000; i++) {
		struct iovec iov = { &c, 1 };

		preadv2(fd, &iov, 1, f->base + i * 32, RWF_DONTCACHE);
	}
	close(fd);
}

static void measure(struct file *f, const struct pattern *p, int rwf,
		    struct figures *fig)
{
	struct disk a = {}, b = {};
	bool counted;
	__u64 bytes;

	memset(fig, 0, sizeof(*fig));
	if ((p->run == run_interleaved || p->run == run_overtaken) && rwf)
		forget_streams(f);
	if (!make_cold(f))
		return;
	f->asked = 0;
	f->spans = 0;
	f->since = 0;
	f->peak = 0;
	f->every = rwf & RWF_DONTCACHE ? KB(16) : MB(1);
	counted = disk_stat(f, &a);
	bytes = io_field("read_bytes");
	p->run(f, p, rwf);
	fig->bytes = io_field("read_bytes") - bytes;
	counted = counted && disk_stat(f, &b);
	fig->reqs = b.reads - a.reads;
	fig->quiet = counted && (b.sectors - a.sectors) * 512 == fig->bytes;
	fig->left = cached(f);
	fig->peak = f->peak > fig->left ? f->peak : fig->left;
	fig->asked = f->asked;
	fig->spans = f->spans;
	f->every = 0;
}

/* Both readers; again a few times if somebody else used the device. */
static void measure_both(struct file *f, const struct pattern *p,
			 struct figures *plain, struct figures *d)
{
	int i;

	for (i = 0; i < 3 && !f->err[0]; i++) {
		measure(f, p, 0, plain);
		measure(f, p, RWF_DONTCACHE, d);
		if (!p->reqs || (plain->quiet && d->quiet))
			break;
	}
}

static const char *show_amp(const struct figures *fig, char *buf, size_t len)
{
	__u64 amp = fig->asked ? fig->bytes * 100 / fig->asked : 0;

	snprintf(buf, len, "%llu.%02llu", amp / 100, amp % 100);
	return buf;
}

static const char *show_reqs(const struct figures *fig, char *buf, size_t len)
{
	snprintf(buf, len, fig->quiet ? "%llu" : "?", fig->reqs);
	return buf;
}

/* All figures of a reader, and in brackets those of the plain one. */
static const char *show(const struct figures *d, const struct figures *plain)
{
	static char line[256];
	char a[24], b[24], c[24], e[24];

	snprintf(line, sizeof(line),
		 "amp %s (plain %s), bytes %llu (%llu), requests %s (%s), pages left %llu (%llu), peak %llu (%llu)",
		 show_amp(d, a, sizeof(a)), show_amp(plain, b, sizeof(b)),
		 d->bytes, plain->bytes, show_reqs(d, c, sizeof(c)),
		 show_reqs(plain, e, sizeof(e)), d->left, plain->left, d->peak,
		 plain->peak);
	return line;
}

/* Ends the test when the one who waits for it was killed. */
static void *watch(void *arg)
{
	struct pollfd p = { .fd = (long)arg, .events = POLLIN };

	while (poll(&p, 1, -1) < 0)
		;
	_exit(KSFT_FAIL);
}

static void watch_main(void)
{
	long fd = syscall(__NR_pidfd_open, main_pid, 0);
	pthread_t id;

	if (fd >= 0 && !pthread_create(&id, NULL, watch, (void *)fd))
		pthread_detach(id);
}

FIXTURE(pattern)
{
	struct file f;
};

FIXTURE_VARIANT(pattern)
{
	struct pattern p;
};

FIXTURE_SETUP(pattern)
{
	const char *why = unfit(&variant->p);

	watch_main();
	self->f.fd = -1;
	if (why)
		SKIP(return, "%s", why);
	make_file(&self->f, variant->p.size);
	ASSERT_STREQ("", self->f.err);
}

FIXTURE_TEARDOWN(pattern)
{
	if (self->f.fd >= 0)
		close(self->f.fd);
}

/* One reader from end to end: nothing twice, nothing left, same requests. */
#define SEQ(len, from)							\
	.p = { run_seq, .buf = len, .start = from, .amp = 100, .reqs = 101, \
	       .peak = 2 }

FIXTURE_VARIANT_ADD(pattern, sequential_1k) { SEQ(KB(1), 0) };
FIXTURE_VARIANT_ADD(pattern, sequential_4k) { SEQ(KB(4), 0) };
FIXTURE_VARIANT_ADD(pattern, sequential_16k) { SEQ(KB(16), 0) };
FIXTURE_VARIANT_ADD(pattern, sequential_64k) { SEQ(KB(64), 0) };
FIXTURE_VARIANT_ADD(pattern, sequential_128k) { SEQ(KB(128), 0) };
FIXTURE_VARIANT_ADD(pattern, sequential_4k_from_3m) { SEQ(KB(4), MB(3)) };
FIXTURE_VARIANT_ADD(pattern, sequential_5000) { SEQ(5000, 0) };

/* Retries must find the folio: only bytes that were copied count. */
FIXTURE_VARIANT_ADD(pattern, efault_4k) {
	.p = { run_efault, .size = MB(2), .buf = KB(4), .amp = 100 }
};

FIXTURE_VARIANT_ADD(pattern, efault_64k) {
	.p = { run_efault, .buf = KB(64), .amp = 100 }
};

FIXTURE_VARIANT_ADD(pattern, nowait_16k) {
	.p = { run_nowait, .buf = KB(16), .amp = 100 }
};

FIXTURE_VARIANT_ADD(pattern, nowait_only_16k) {
	.p = { run_nowait_only, .buf = KB(16), .amp = 100 }
};

FIXTURE_VARIANT_ADD(pattern, signals_4k) {
	.p = { run_signals, .buf = KB(4), .amp = 100 }
};

FIXTURE_VARIANT_ADD(pattern, iovecs_short) {
	.p = { run_iovecs, .size = MB(4), .n = 3, .amp = 100, .reqs = 101 }
};

FIXTURE_VARIANT_ADD(pattern, iovecs_many) {
	.p = { run_iovecs, .n = 64, .amp = 100, .reqs = 101 }
};

FIXTURE_VARIANT_ADD(pattern, iovecs_pages) {
	.p = { run_iovecs, .start = 1, .n = 64, .amp = 100, .reqs = 101 }
};

/*
 * Out of order inside a folio: its end is read before the rest.  With own open
 * files each has a readahead window of its own, and reads that fit a folio leave
 * nothing by which one window could find the others: a little is read twice.
 */
FIXTURE_VARIANT_ADD(pattern, overtaken_16k) {
	.p = { run_overtaken, .buf = KB(16), .n = 4, .amp = 105, .left = 1 }
};

FIXTURE_VARIANT_ADD(pattern, overtaken_16k_own_files) {
	.p = { run_overtaken, .buf = KB(16), .n = 4, .own = true, .amp = 112,
	       .left = 4 }
};

FIXTURE_VARIANT_ADD(pattern, overtaken_5000) {
	.p = { run_overtaken, .size = MB(4), .buf = 5000, .n = 4, .amp = 105,
	       .left = 1 }
};

/*
 * Reads as long as a window need none, and what it brought would go unread.  One
 * that follows the last read by chance gets one all the same.
 */
FIXTURE_VARIANT_ADD(pattern, overtaken_128k) {
	.p = { run_overtaken, .buf = KB(128), .n = 8, .amp = 110, .left = 6 }
};

/*
 * Some come so late that their piece is gone, and after them others whose folio
 * went with its last byte.  The piece is fetched again, and no window that nobody
 * would read.
 */
FIXTURE_VARIANT_ADD(pattern, late_16k) {
	.p = { run_late, .buf = KB(16), .amp = 105, .again = true, .left = 3 }
};

/*
 * The same with real threads.  One that is kept waiting for longer than the
 * others take for a window reads again what was dropped meanwhile: that depends
 * on the scheduler, so the bounds have a margin, and are below the least that
 * an unfixed kernel reads (135 % and, with units of 64K, 384 %).
 */
FIXTURE_VARIANT_ADD(pattern, threads_16k) {
	.p = { run_pull, .buf = KB(16), .n = 4, .amp = 115, .left = 4 }
};

FIXTURE_VARIANT_ADD(pattern, threads_16k_own_files) {
	.p = { run_pull, .buf = KB(16), .n = 4, .own = true, .amp = 120,
	       .left = 8 }
};

FIXTURE_VARIANT_ADD(pattern, threads_parts_16k) {
	.p = { run_parts, .buf = KB(16), .n = 4, .amp = 105, .slack = 3,
	       .left = 6 }
};

#define URING(bytes, len)						\
	.p = { run_uring, .size = bytes, .buf = len, .n = 16, .amp = 105, \
	       .left = 1 }

FIXTURE_VARIANT_ADD(pattern, uring_4k) { URING(MB(4), KB(4)) };
FIXTURE_VARIANT_ADD(pattern, uring_16k) { URING(MB(8), KB(16)) };

/* Workers are threads, and as late as they are. */
#define ASYNC								\
	.p.async = true, .p.amp = 125, .p.again = true, .p.left = 12,	\
	.p.left_units = 12

FIXTURE_VARIANT_ADD(pattern, uring_async_4k) {
	URING(MB(4), KB(4)),
	ASYNC
};

FIXTURE_VARIANT_ADD(pattern, uring_async_16k) {
	URING(MB(8), KB(16)),
	ASYNC
};

/*
 * Streams on one open file: each has its window, and leaves it.  Of that a
 * plain reader fetches as much in vain.
 */
#define STREAMS(nr, len, from)						\
	.p = { run_interleaved, .n = nr, .buf = len, .start = from,	\
	       .plain = 102, .each = true, .reqs = 101 }

FIXTURE_VARIANT_ADD(pattern, streams2_4k) { STREAMS(2, KB(4), 0) };
FIXTURE_VARIANT_ADD(pattern, streams2_16k) { STREAMS(2, KB(16), 0) };
FIXTURE_VARIANT_ADD(pattern, streams2_4k_away) { STREAMS(2, KB(4), MB(1)) };
FIXTURE_VARIANT_ADD(pattern, streams2_16k_away) { STREAMS(2, KB(16), MB(1)) };
FIXTURE_VARIANT_ADD(pattern, streams8_4k) { STREAMS(8, KB(4), 0) };
FIXTURE_VARIANT_ADD(pattern, streams8_16k) { STREAMS(8, KB(16), 0) };
FIXTURE_VARIANT_ADD(pattern, streams8_16k_away) { STREAMS(8, KB(16), MB(1)) };

/* From the end. */
FIXTURE_VARIANT_ADD(pattern, backward_1k) {
	.p = { run_backward, .size = MB(4), .buf = KB(1), .plain = 110,
	       .left = 1 }
};

FIXTURE_VARIANT_ADD(pattern, backward_4k) {
	.p = { run_backward, .buf = KB(4), .plain = 110, .left = 1 }
};

/* Two reads share a folio: it stays for the other. */
FIXTURE_VARIANT_ADD(pattern, backward_5000) {
	.p = { run_backward, .buf = 5000, .plain = 110, .left = 1 }
};

FIXTURE_VARIANT_ADD(pattern, tail_1k) {
	.p = { run_backward, .buf = KB(1), .start = KB(256), .plain = 110,
	       .left_kb = 16, .left_units = 1 }
};

FIXTURE_VARIANT_ADD(pattern, footer_first) {
	.p = { run_footer, .buf = KB(4), .plain = 110 }
};

/*
 * Two readers: once each at worst.  Near each other it is once for both, but
 * for the end of each folio, which the first drops under the second.
 */
FIXTURE_VARIANT_ADD(pattern, second_reader_0) {
	.p = { run_lag, .buf = KB(4), .start = 0, .own = true,
	       .amp = 52, .again = true }
};

FIXTURE_VARIANT_ADD(pattern, second_reader_4k) {
	.p = { run_lag, .buf = KB(4), .start = KB(4), .own = true,
	       .amp = 54, .again = true }
};

/* Away from 0, where what one reads ahead is behind the other. */
FIXTURE_VARIANT_ADD(pattern, second_reader_behind_4k) {
	.p = { run_lag, .buf = KB(4), .start = KB(4), .n = 1, .own = true,
	       .amp = 60, .again = true }
};

FIXTURE_VARIANT_ADD(pattern, second_reader_32k) {
	.p = { run_lag, .buf = KB(16), .start = KB(32), .own = true,
	       .amp = 100 }
};

FIXTURE_VARIANT_ADD(pattern, second_reader_256k) {
	.p = { run_lag, .buf = KB(16), .start = KB(256), .own = true,
	       .amp = 100 }
};

FIXTURE_VARIANT_ADD(pattern, second_reader_2m) {
	.p = { run_lag, .buf = KB(16), .start = MB(2), .own = true,
	       .amp = 100 }
};

/*
 * The same on one open file, where readahead has to tell them from reads that
 * overtake each other.  A plain reader fetches the file once.
 */
FIXTURE_VARIANT_ADD(pattern, near_4k) {
	.p = { run_lag, .buf = KB(4), .start = KB(256), .amp = 102,
	       .reqs = 250, .left = 2 }
};

FIXTURE_VARIANT_ADD(pattern, near_16k) {
	.p = { run_lag, .buf = KB(16), .start = KB(256), .amp = 102,
	       .reqs = 250, .left = 2 }
};

FIXTURE_VARIANT_ADD(pattern, near_4k_from_both) {
	.p = { run_lag, .buf = KB(4), .start = KB(256), .n = 1, .amp = 102,
	       .reqs = 250, .left = 2 }
};

/* What was dropped is read again, in windows. */
FIXTURE_VARIANT_ADD(pattern, back_4k) {
	.p = { run_back, .buf = KB(4), .amp = 102, .reqs = 210, .left = 2 }
};

/* Rarely to the end of a folio: what is left behind has a bound. */
FIXTURE_VARIANT_ADD(pattern, strided_40) {
	.p = { run_strided, .buf = 40, .start = KB(3), .plain = 102, .left = 1,
	       .left_units = 1 }
};

FIXTURE_VARIANT_ADD(pattern, strided_32k) {
	.p = { run_strided, .size = MB(32), .buf = KB(32), .start = KB(320),
	       .plain = 102, .left = 1, .left_units = 1 }
};

/* Close enough to be one of several that overtake each other. */
FIXTURE_VARIANT_ADD(pattern, strided_1k) {
	.p = { run_strided, .size = MB(16), .buf = KB(1), .start = KB(8),
	       .plain = 102, .left = 6 }
};

FIXTURE_VARIANT_ADD(pattern, strided_128k) {
	.p = { run_strided, .buf = KB(4), .start = KB(128), .plain = 102,
	       .left = 6 }
};

FIXTURE_VARIANT_ADD(pattern, strided_4k) {
	.p = { run_strided, .size = MB(16), .buf = KB(4), .start = KB(16),
	       .plain = 102, .left = 6 }
};

/* Longer than what is left for others. */
FIXTURE_VARIANT_ADD(pattern, strided_2m) {
	.p = { run_strided, .size = MB(32), .buf = MB(2),
	       .start = MB(2) + KB(20), .plain = 102, .left = 8 }
};

/* It stays a stream, and what is far behind is not left for anybody. */
FIXTURE_VARIANT_ADD(pattern, look_back_1k) {
	.p = { run_look_back, .size = MB(32), .buf = KB(1), .start = MB(20),
	       .n = 16, .spans = 104, .left = 6 }
};

/*
 * What is read ahead of a stream waits for it when others look into it.  They
 * also look behind it, and what they left there a plain stream finds.
 */
FIXTURE_VARIANT_ADD(pattern, peek_4k) {
	.p = { run_peek, .buf = KB(4), .n = 8, .amp = 160, .again = true,
	       .left = 1 }
};

FIXTURE_VARIANT_ADD(pattern, clusters_1k) {
	.p = { run_clusters, .size = MB(32), .buf = KB(1), .n = 400,
	       .spans = 120, .left = 2, .left_plain = 25 }
};

#define RANDOM(nr, len, bytes)						\
	.p = { run_random, .size = bytes, .buf = len, .n = nr, .spans = 104, \
	       .left_kb = 256, .left_units = 8, .left_plain = 25 }

FIXTURE_VARIANT_ADD(pattern, random_1k) { RANDOM(1000, KB(1), SIZE) };
FIXTURE_VARIANT_ADD(pattern, random_to_5000) { RANDOM(1000, 0, SIZE) };
FIXTURE_VARIANT_ADD(pattern, random_4k) { RANDOM(1000, KB(4), SIZE) };
FIXTURE_VARIANT_ADD(pattern, random_1k_32m) { RANDOM(4000, KB(1), MB(32)) };
FIXTURE_VARIANT_ADD(pattern, random_to_5000_32m) { RANDOM(4000, 0, MB(32)) };

FIXTURE_VARIANT_ADD(pattern, random_retried_1k) {
	RANDOM(600, KB(1), SIZE),
	.p.async = true,
	.p.spans = 0,		/* an attempt may fetch for nobody */
	.p.left_kb = 192,
	.p.left_plain = 0
};

FIXTURE_VARIANT_ADD(pattern, abandon_1k) {
	.p = { run_abandon, .buf = KB(1), .n = 16, .plain = 102,
	       .left_kb = 16 * 32, .left_units = 16 * 2 }
};

FIXTURE_VARIANT_ADD(pattern, overlap_512) {
	.p = { run_overlap, .buf = KB(4), .start = 512, .amp = 200 }
};

/*
 * Where the smallest folio is larger than a page, each of several streams on
 * one descriptor reads its first one up to three times: twice it cannot be told
 * from a random reader yet.
 */
static int starts(const struct pattern *p)
{
	return p->each && at.unit > page ? 2 * p->n : 0;
}

TEST_F_TIMEOUT(pattern, bounds, TIMEOUT)
{
	const struct pattern *p = &variant->p;
	int each = p->each ? 2 * p->n : 0;
	struct figures plain, d;
	__u64 max;

	measure_both(&self->f, p, &plain, &d);
	ASSERT_STREQ("", self->f.err);
	TH_LOG("%s", show(&d, &plain));
	EXPECT_EQ(plain.asked, d.asked);

	if (p->amp) {
		max = d.asked * p->amp / 100 + p->slack * at.window;
		if (p->again)
			max += self->f.size / at.window * at.unit;
		/* Whole units: the first may begin before, the last end after. */
		max = (max + at.unit - 1) / at.unit * at.unit;
		if (p->start % at.unit)
			max += at.unit;
		EXPECT_LE(d.bytes, max)
			TH_LOG(AGAIN);
	}
	if (p->spans) {
		max = d.spans * p->spans / 100 + at.window;
		EXPECT_LE(d.bytes, max)
			TH_LOG("more than the units each read touches: " AGAIN);
	}
	if (p->plain) {
		max = plain.bytes * p->plain / 100 +
		      (1 + starts(p)) * at.unit;
		EXPECT_LE(d.bytes, max)
			TH_LOG("more than a plain reader: " AGAIN);
	}
	if (p->reqs && p->run == run_lag && p->start < 2 * at.window) {
		TH_LOG("requests not compared: the second is inside the windows of the first");
	} else if (p->reqs && plain.quiet && d.quiet) {
		max = (plain.reqs * p->reqs + 99) / 100 + starts(p);
		EXPECT_LE(d.reqs, max)
			TH_LOG(RESTARTS);
	} else if (p->reqs) {
		TH_LOG("requests not compared: no counters, or others use the device");
	}

	max = p->left_units * at.unit;
	if (max < KB(p->left_kb))
		max = KB(p->left_kb);
	max += (p->left + each) * at.window;
	if (max < plain.left * page * p->left_plain / 100)
		max = plain.left * page * p->left_plain / 100;
	EXPECT_LE(d.left, max / page)
		TH_LOG(STAYS);

	max = p->peak * at.window + (p->buf > at.unit ? p->buf : at.unit);
	if (p->peak && max < self->f.size) {
		EXPECT_LE(d.peak, max / page)
			TH_LOG(STAYS);
	}
}

/*
 * Data that ends inside a page or a folio, and small files.
 */
FIXTURE(small)
{
	struct file f;
};

FIXTURE_VARIANT(small)
{
	size_t size;
};

FIXTURE_VARIANT_ADD(small, bytes_1) { .size = 1 };
FIXTURE_VARIANT_ADD(small, bytes_100) { .size = 100 };
FIXTURE_VARIANT_ADD(small, bytes_4095) { .size = 4095 };
FIXTURE_VARIANT_ADD(small, bytes_4096) { .size = 4096 };
FIXTURE_VARIANT_ADD(small, bytes_4097) { .size = 4097 };
FIXTURE_VARIANT_ADD(small, bytes_5000) { .size = 5000 };
FIXTURE_VARIANT_ADD(small, bytes_16385) { .size = 16385 };
FIXTURE_VARIANT_ADD(small, bytes_65535) { .size = 65535 };
FIXTURE_VARIANT_ADD(small, bytes_65636) { .size = 65636 };
FIXTURE_VARIANT_ADD(small, bytes_204807) { .size = 204807 };

FIXTURE_SETUP(small)
{
	watch_main();
	self->f.fd = -1;
	if (at.bdev)
		SKIP(return, "a block device is only read");
	make_file(&self->f, variant->size);
	ASSERT_STREQ("", self->f.err);
}

FIXTURE_TEARDOWN(small)
{
	if (self->f.fd >= 0)
		close(self->f.fd);
}

TEST_F_TIMEOUT(small, gone_at_the_end, TIMEOUT)
{
	static const size_t bufs[] = { 100, KB(1), KB(4), KB(64) };
	size_t size = variant->size, i;
	struct figures d, plain;

	for (i = 0; i < ARRAY_SIZE(bufs); i++) {
		struct pattern p = { run_seq, .buf = bufs[i] };

		measure_both(&self->f, &p, &plain, &d);
		ASSERT_STREQ("", self->f.err);
		TH_LOG("%s", show(&d, &plain));
		EXPECT_LE(d.bytes, (size + at.unit - 1) / at.unit * at.unit)
			TH_LOG("buffer %zu: " AGAIN, bufs[i]);
		EXPECT_EQ(0ULL, d.left)
			TH_LOG("buffer %zu: " STAYS, bufs[i]);
	}
}

/*
 * A plain access claims a flagged folio: what it touched stays, although a
 * reader with RWF_DONTCACHE brought it in and passes over it later.
 */
static bool touch_read(struct file *f, off_t pos)
{
	int fd = reopen(f);

	get_range(f, fd, pos, pos + page, page, 0);
	close(fd);
	return true;
}

static bool touch_sendfile(struct file *f, off_t pos)
{
	int pipes[2], fd = reopen(f);
	off_t off = f->base + pos;
	ssize_t r = -1;

	if (!pipe(pipes)) {
		r = sendfile(pipes[1], fd, &off, page);
		if (r == (ssize_t)page)
			r = read(pipes[0], buffer(), page);
		close(pipes[0]);
		close(pipes[1]);
	}
	if (r != (ssize_t)page)
		wrong(f, "sendfile: %s", strerror(errno));
	else
		took(f, buffer(), pos, page);
	close(fd);
	return true;
}

static bool touch_fault(struct file *f, off_t pos)
{
	unsigned char *m = mmap(NULL, page, PROT_READ, MAP_SHARED, f->fd,
				f->base + pos);

	if (m == MAP_FAILED) {
		wrong(f, "mmap: %s", strerror(errno));
		return true;
	}
	took(f, m, pos, page);
	munmap(m, page);
	return true;
}

/* True if the page is mapped here. */
static bool mapped(void *addr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	__u64 entry = 0;

	if (fd < 0)
		return false;
	if (pread(fd, &entry, sizeof(entry),
		  (uintptr_t)addr / page * sizeof(entry)) != sizeof(entry))
		entry = 0;
	close(fd);
	return entry >> 63;
}

/* Touches a neighbour, so that our page is mapped along with it. */
static bool touch_fault_around(struct file *f, off_t pos)
{
	size_t around = KB(64);
	unsigned char *area, *m;
	bool ok;

	/* What is mapped along lies in one aligned block of addresses. */
	area = mmap(NULL, 2 * around + 2 * page, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	m = area + around - (uintptr_t)area % around;
	if (area == MAP_FAILED ||
	    mmap(m, 2 * page, PROT_READ, MAP_SHARED | MAP_FIXED, f->fd,
		 f->base + pos) == MAP_FAILED) {
		wrong(f, "mmap: %s", strerror(errno));
		return true;
	}
	took(f, m + page, pos + page, page);
	ok = mapped(m);
	munmap(area, 2 * around + 2 * page);
	return ok;
}

FIXTURE(claim)
{
	struct file f;
};

FIXTURE_VARIANT(claim)
{
	bool (*touch)(struct file *f, off_t pos);
};

FIXTURE_VARIANT_ADD(claim, read) { touch_read };
FIXTURE_VARIANT_ADD(claim, sendfile) { touch_sendfile };
FIXTURE_VARIANT_ADD(claim, fault) { touch_fault };
FIXTURE_VARIANT_ADD(claim, fault_around) { touch_fault_around };

FIXTURE_SETUP(claim)
{
	watch_main();
	self->f.fd = -1;
	make_file(&self->f, 0);
	ASSERT_STREQ("", self->f.err);
}

FIXTURE_TEARDOWN(claim)
{
	if (self->f.fd >= 0)
		close(self->f.fd);
}

/* The folio that was read in part, and one that readahead fetched. */
TEST_F_TIMEOUT(claim, stays, TIMEOUT)
{
	off_t pos, part = 5 * at.unit, ahead = 0;
	struct file *f = &self->f;
	bool in_part = false;
	__u64 left, bytes;
	int fd;

	fd = reopen(f);
	get_range(f, fd, 0, part + 100, page, RWF_DONTCACHE);
	EXPECT_EQ(1ULL, cached_in(f, part, page))
		TH_LOG(AGAIN);
	if (cached_in(f, part, page))
		in_part = variant->touch(f, part);
	for (pos = part + 2 * at.unit; pos < part + (off_t)KB(512) && !ahead;
	     pos += page)
		if (cached_in(f, pos, page) && variant->touch(f, pos))
			ahead = pos;
	ASSERT_NE(0, ahead)
		TH_LOG("of %llu pages cached, none read ahead or mapped along: %s",
		       cached(f), f->err);

	bytes = io_field("read_bytes");
	get_range(f, fd, part + 100, f->size, KB(16), RWF_DONTCACHE);
	bytes = io_field("read_bytes") - bytes;
	left = cached(f);
	ASSERT_STREQ("", f->err);
	TH_LOG("bytes %llu, pages left %llu", bytes, left);
	if (in_part) {
		EXPECT_EQ(1ULL, cached_in(f, part, page))
			TH_LOG("the partly read page went, that was used");
	}
	EXPECT_EQ(1ULL, cached_in(f, ahead, page))
		TH_LOG("the page read ahead went, that was used");
	/* With them what a fault maps along and a plain reader reads ahead. */
	EXPECT_LE(left, (f->size / 2) / page)
		TH_LOG(STAYS);
	close(fd);
}

/*
 * Everything else that is one of its kind.
 */
FIXTURE(file)
{
	struct file f;
};

FIXTURE_SETUP(file)
{
	watch_main();
	self->f.fd = -1;
	make_file(&self->f, MB(4));
	ASSERT_STREQ("", self->f.err);
}

FIXTURE_TEARDOWN(file)
{
	if (self->f.fd >= 0)
		close(self->f.fd);
}

/* What was in the cache before stays in it, and the rest goes. */
TEST_F_TIMEOUT(file, cached_half_stays, TIMEOUT)
{
	struct file *f = &self->f;
	__u64 before, after, bytes;
	int fd = reopen(f);

	get_range(f, fd, 0, f->size / 2, KB(64), 0);
	close(fd);
	before = cached(f);
	bytes = io_field("read_bytes");
	fd = reopen(f);
	get_range(f, fd, 0, f->size, KB(16), RWF_DONTCACHE);
	close(fd);
	bytes = io_field("read_bytes") - bytes;
	after = cached(f);
	ASSERT_STREQ("", f->err);
	TH_LOG("bytes %llu, pages before %llu, left %llu", bytes, before,
	       after);
	EXPECT_EQ(before, after);
	EXPECT_EQ(f->size - before * page, bytes)
		TH_LOG(AGAIN);
}

/* Pages asked for by posix_fadvise() or readahead() are no reader's. */
TEST_F_TIMEOUT(file, prefetched_stays, TIMEOUT)
{
	struct file *f = &self->f;
	__u64 before, after, bytes;
	int fd = reopen(f);
	off_t pos;

	for (pos = 0; pos < (off_t)f->size; pos += KB(128))
		posix_fadvise(fd, f->base + pos, KB(128),
			      POSIX_FADV_WILLNEED);
	before = cached(f);
	bytes = io_field("read_bytes");
	get_range(f, fd, 0, f->size, KB(4), RWF_DONTCACHE);
	close(fd);
	bytes = io_field("read_bytes") - bytes;
	after = cached(f);
	ASSERT_STREQ("", f->err);
	TH_LOG("bytes %llu, pages before %llu, left %llu", bytes, before,
	       after);
	ASSERT_LT(0ULL, before);
	EXPECT_EQ(before, after);
	EXPECT_LE(bytes, f->size - before * page)
		TH_LOG(AGAIN);
}

/*
 * A mapped page is neither torn out nor wrong: neither the one that a fault
 * asked for, nor its neighbour that was mapped along.
 */
TEST_F_TIMEOUT(file, mapping_stays, TIMEOUT)
{
	off_t pos = at.unit > page ? at.unit : 2 * page;
	struct file *f = &self->f;
	unsigned char *m;
	bool along;
	int fd;

	fd = reopen(f);
	get_range(f, fd, 0, page + 100, page, RWF_DONTCACHE);
	m = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, f->fd, f->base + pos);
	ASSERT_NE(MAP_FAILED, m);
	took(f, m + page, pos + page, page);
	ASSERT_TRUE(mapped(m + page));
	along = mapped(m);
	get_range(f, fd, page + 100, f->size, KB(4), RWF_DONTCACHE);
	TH_LOG("page %smapped, neighbour %s, pages left %llu",
	       mapped(m + page) ? "" : "un", !along ? "never mapped" :
	       mapped(m) ? "mapped" : "unmapped", cached(f));
	/* Since 848d2ce2fce1 ("mm: filemap: retain mapped dropbehind folios") */
	if (!kernel_before(7, 3)) {
		EXPECT_TRUE(mapped(m + page));
		EXPECT_TRUE(mapped(m) || !along);
	}
	took(f, m, pos, 2 * page);
	ASSERT_STREQ("", f->err);
	munmap(m, 2 * page);
	close(fd);
}

/* Nothing that is dirty goes, and later all of it does. */
TEST_F_TIMEOUT(file, dirty_is_not_lost, TIMEOUT)
{
	static const unsigned char zeroes[KB(64)];
	struct file *f = &self->f;
	__u64 left, most;
	size_t pos;
	int fd;

	if (at.bdev)
		SKIP(return, "a block device is only read");
	/*
	 * Zeroes, to tell what was lost.  Not a hole: when a write ends, XFS
	 * looks up what it may have reserved in vain, and so claims a folio.
	 */
	for (pos = 0; pos < f->size; pos += sizeof(zeroes))
		ASSERT_EQ((ssize_t)sizeof(zeroes),
			  pwrite(f->fd, zeroes, sizeof(zeroes), pos));
	ASSERT_TRUE(make_cold(f));
	fd = reopen(f);
	for (pos = 0; pos < f->size; pos += KB(64)) {
		fill(f, pos, KB(64), RWF_DONTCACHE);
		get_range(f, fd, pos, pos + KB(64), KB(4), RWF_DONTCACHE);
	}
	fsync(f->fd);
	get_range(f, fd, 0, f->size, KB(4), RWF_DONTCACHE);
	left = cached(f);
	TH_LOG("pages left %llu of %zu", left, f->size / page);
	/* And two that were written back just then. */
	most = f->size / page / 100 + 2 * KB(64) / page;
	EXPECT_LE(left, most)
		TH_LOG(STAYS);
	ASSERT_TRUE(make_cold(f));
	get_range(f, fd, 0, f->size, KB(64), 0);
	EXPECT_STREQ("", f->err);

	/* And folios that a reader brought and a writer made dirty. */
	ASSERT_EQ(0, ftruncate(f->fd, 0));
	ASSERT_EQ(0, ftruncate(f->fd, f->size));
	f->right = right_or_zero;
	for (pos = 0; pos < f->size; pos += KB(64)) {
		get(f, fd, pos, 100, RWF_DONTCACHE);
		fill(f, pos + 50, 3000, 0);
		get_range(f, fd, pos + 100, pos + KB(64), KB(4),
			  RWF_DONTCACHE);
	}
	ASSERT_TRUE(make_cold(f));
	f->right = NULL;
	for (pos = 0; pos < f->size; pos += KB(64))
		get_range(f, fd, pos + 50, pos + 3050, 3000, 0);
	EXPECT_STREQ("", f->err);
	close(fd);
}

/* Reads what is appended as it comes. */
TEST_F_TIMEOUT(file, follow_tail, TIMEOUT)
{
	size_t start = 100000, pos = start, grow = 200, n = 200, i;
	struct file *f = &self->f;
	__u64 bytes, written, tail;
	struct cached c;
	int fd;

	if (at.bdev)
		SKIP(return, "a block device is only read");
	ASSERT_EQ(0, ftruncate(f->fd, start));
	ASSERT_TRUE(make_cold(f));
	fd = reopen(f);
	get_range(f, fd, 0, start, KB(4), RWF_DONTCACHE);
	bytes = io_field("read_bytes");
	written = io_field("write_bytes");
	for (i = 0; i < n; i++, pos += grow) {
		ASSERT_TRUE(fill(f, pos, grow, 0));
		ASSERT_EQ(grow, get(f, fd, pos, KB(4), RWF_DONTCACHE));
	}
	bytes = io_field("read_bytes") - bytes;
	written = io_field("write_bytes") - written;
	ASSERT_EQ(0, cachestat(f->fd, (pos - 1) / page * page, page, &c));
	tail = c.cache;
	TH_LOG("%zu appends: bytes read %llu, pages dirtied %llu, tail cached %llu, dirty %llu",
	       n, bytes, written / page, (__u64)c.cache, (__u64)c.dirty);
	/* The first append may have to read the page that it changes. */
	EXPECT_LE(bytes, 2 * at.unit)
		TH_LOG("the tail is read again as the file grows");
	/* Each page once, and again if background writeback came by. */
	EXPECT_LE(written, 2 * n * grow + 4 * at.unit)
		TH_LOG("reads force dirty pages out");
	EXPECT_EQ(1ULL, tail);

	/* Brought in, dirtied and written without cache: gone once passed. */
	ASSERT_TRUE(make_cold(f));
	for (i = 0; i < n / 4; i++, pos += grow) {
		ASSERT_TRUE(fill(f, pos, grow, RWF_DONTCACHE));
		ASSERT_EQ(grow, get(f, fd, pos, KB(4), RWF_DONTCACHE));
	}
	fsync(f->fd);
	get_range(f, fd, start, pos, KB(4), RWF_DONTCACHE);
	TH_LOG("after fsync and another read, pages left %llu", cached(f));
	EXPECT_EQ(0ULL, cached(f))
		TH_LOG(STAYS);
	EXPECT_STREQ("", f->err);
	close(fd);
}

/* D reads from the start to the middle of a folio, and tells where that is. */
static off_t read_halfway(struct file *f, int fd, off_t pos)
{
	get_range(f, fd, 0, pos, KB(16), RWF_DONTCACHE);
	get(f, fd, pos, 100, RWF_DONTCACHE);
	return pos + 100;
}

/* The file ends nearer than the folio did: then that is where it goes. */
TEST_F_TIMEOUT(file, truncated_halfway, TIMEOUT)
{
	struct file *f = &self->f;
	off_t pos, ends[2];
	int fd, i;

	if (at.bdev)
		SKIP(return, "a block device is only read");
	ends[0] = MB(1) + at.unit;
	ends[1] = MB(1) + 300;
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ftruncate(f->fd, 0));
		ASSERT_TRUE(fill(f, 0, f->size, 0));
		ASSERT_TRUE(make_cold(f));
		fd = reopen(f);
		pos = read_halfway(f, fd, MB(1));
		EXPECT_EQ(1ULL, cached_in(f, MB(1), page))
			TH_LOG(AGAIN);
		ASSERT_EQ(0, ftruncate(f->fd, ends[i]));
		get_range(f, fd, pos, ends[i], 100, RWF_DONTCACHE);
		TH_LOG("size %llu: pages left %llu", (__u64)ends[i],
		       cached(f));
		/* Truncation may have used, and so claimed, its last folio. */
		EXPECT_LE(cached(f), at.window / page)
			TH_LOG(STAYS);
		close(fd);
	}
	EXPECT_STREQ("", f->err);
}

/* The file goes on where it ended: so does the reader. */
TEST_F_TIMEOUT(file, extended_halfway, TIMEOUT)
{
	off_t size = MB(1) + 300, pos;
	struct file *f = &self->f;
	int fd;

	if (at.bdev)
		SKIP(return, "a block device is only read");
	ASSERT_EQ(0, ftruncate(f->fd, size));
	ASSERT_TRUE(make_cold(f));
	fd = reopen(f);
	pos = read_halfway(f, fd, MB(1));
	ASSERT_EQ(0, ftruncate(f->fd, MB(2)));
	f->right = right_or_zero;
	get_range(f, fd, pos, size, KB(4), RWF_DONTCACHE);
	EXPECT_EQ(1ULL, cached_in(f, MB(1), page))
		TH_LOG("it went where the file ended once: " AGAIN);
	get_range(f, fd, size, MB(2), KB(4), RWF_DONTCACHE);
	TH_LOG("pages left %llu", cached(f));
	/* Extending it may have claimed the folio in which it ended. */
	EXPECT_LE(cached(f), at.unit / page)
		TH_LOG(STAYS);
	EXPECT_STREQ("", f->err);
	close(fd);
}

/* The folio goes under the reader, and what comes next with it. */
TEST_F_TIMEOUT(file, punched_halfway, TIMEOUT)
{
	struct file *f = &self->f;
	__u64 bytes;
	off_t pos;
	int fd;

	if (at.bdev)
		SKIP(return, "a block device is only read");
	fd = reopen(f);
	bytes = io_field("read_bytes");
	pos = read_halfway(f, fd, MB(1));
	if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MB(1),
		      2 * at.unit))
		SKIP(return, "no holes here: %s", strerror(errno));
	f->right = right_or_zero;
	get_range(f, fd, pos, MB(1) + 2 * at.unit, KB(4), RWF_DONTCACHE);
	f->right = NULL;
	get_range(f, fd, MB(1) + 2 * at.unit, f->size, KB(4), RWF_DONTCACHE);
	bytes = io_field("read_bytes") - bytes;
	TH_LOG("bytes %llu, pages left %llu", bytes, cached(f));
	/* What punching cuts in two it may have claimed. */
	EXPECT_LE(cached(f), at.window / page)
		TH_LOG(STAYS);
	EXPECT_LE(bytes, f->size)
		TH_LOG(AGAIN);
	EXPECT_STREQ("", f->err);
	close(fd);
}

/* Nothing is copied: nothing goes. */
TEST_F_TIMEOUT(file, empty_read_halfway, TIMEOUT)
{
	struct file *f = &self->f;
	struct iovec iov = { buffer(), 0 };
	off_t pos, at_pos[3];
	__u64 before;
	int fd, i;

	fd = reopen(f);
	pos = read_halfway(f, fd, MB(1));
	before = cached(f);
	EXPECT_EQ(1ULL, cached_in(f, MB(1), page))
		TH_LOG(AGAIN);
	at_pos[0] = pos;
	at_pos[1] = 0;
	at_pos[2] = f->size - 1;
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, get_iov(f, fd, at_pos[i], &iov, 1,
				     RWF_DONTCACHE));
		EXPECT_EQ(before, cached(f));
	}
	get_range(f, fd, pos, f->size, KB(4), RWF_DONTCACHE);
	EXPECT_EQ(0ULL, cached(f))
		TH_LOG(STAYS);
	EXPECT_STREQ("", f->err);
	close(fd);
}

/* Killed in the middle: what stays has the bound of every reader. */
TEST_F_TIMEOUT(file, reader_killed, TIMEOUT)
{
	struct file *f = &self->f;
	int fd, status, i, pipes[2];
	__u64 left, bytes;
	char c = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	for (i = 0; i < 8; i++) {
		ASSERT_TRUE(make_cold(f));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			fd = reopen(f);
			get_range(f, fd, 0, i * KB(200), KB(1), RWF_DONTCACHE);
			if (write(pipes[1], &c, 1) != 1)
				_exit(1);
			get_range(f, fd, i * KB(200), f->size, KB(1),
				  RWF_DONTCACHE);
			pause();
		}
		ASSERT_EQ(1, read(pipes[0], &c, 1));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		left = cached(f);
		fd = reopen(f);
		bytes = io_field("read_bytes");
		get_range(f, fd, 0, f->size, KB(4), RWF_DONTCACHE);
		bytes = io_field("read_bytes") - bytes;
		TH_LOG("pages left %llu, then bytes %llu, left %llu", left,
		       bytes, cached(f));
		EXPECT_LE(left, (2 * at.window + at.unit) / page)
			TH_LOG(STAYS);
		EXPECT_LE(bytes, f->size)
			TH_LOG(AGAIN);
		EXPECT_EQ(0ULL, cached(f))
			TH_LOG(STAYS);
		close(fd);
	}
	EXPECT_STREQ("", f->err);
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * A read at the start of the file opens a window whatever comes after it.  One
 * between reads elsewhere is no stream: what it read goes with the next.
 */
TEST_F_TIMEOUT(file, start_goes, TIMEOUT)
{
	struct file *f = &self->f;
	__u64 left, window;
	int fd;

	ASSERT_TRUE(make_cold(f));
	fd = reopen(f);
	get(f, fd, f->size / 2, KB(1), RWF_DONTCACHE);
	get(f, fd, 0, KB(1), RWF_DONTCACHE);
	window = cached_in(f, 0, f->size / 2);
	get(f, fd, f->size / 4 * 3, KB(1), RWF_DONTCACHE);
	left = cached_in(f, 0, at.unit);
	close(fd);

	ASSERT_STREQ("", f->err);
	TH_LOG("pages read ahead %llu, left of the first folio %llu", window,
	       left);
	EXPECT_EQ(0ULL, left)
		TH_LOG(STAYS);
}

/* All of it is a plain reader's, who came by: nothing goes any more. */
TEST_F_TIMEOUT(file, plain_reader_keeps, TIMEOUT)
{
	struct file *f = &self->f;
	__u64 before, after, bytes;
	int fd, other;
	off_t pos;

	fd = reopen(f);
	pos = read_halfway(f, fd, MB(1));
	other = reopen(f);
	get_range(f, other, 0, f->size, KB(16), 0);
	close(other);
	before = cached(f);
	bytes = io_field("read_bytes");
	get_range(f, fd, pos, f->size, KB(4), RWF_DONTCACHE);
	get_range(f, fd, 0, f->size, KB(16), RWF_DONTCACHE);
	bytes = io_field("read_bytes") - bytes;
	after = cached(f);
	TH_LOG("pages before %llu, left %llu, bytes %llu", before, after,
	       bytes);
	EXPECT_EQ(f->size / page, before);
	EXPECT_EQ(before, after);
	EXPECT_EQ(0ULL, bytes);
	EXPECT_STREQ("", f->err);
	close(fd);
}

/* Flags of the physical page behind a mapped one; 0 without privilege. */
static __u64 page_flags(void *addr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	__u64 entry = 0, flags = 0;

	if (fd >= 0 && pread(fd, &entry, sizeof(entry), (uintptr_t)addr / page *
			     sizeof(entry)) != sizeof(entry))
		entry = 0;
	close(fd);
	entry &= (1ULL << 55) - 1;
	fd = open("/proc/kpageflags", O_RDONLY);
	if (fd >= 0 && entry && pread(fd, &flags, sizeof(flags), entry *
				      sizeof(flags)) != sizeof(flags))
		flags = 0;
	close(fd);
	return flags;
}

static __u64 flags_at(struct file *f, off_t pos)
{
	void *m = mmap(NULL, page, PROT_READ, MAP_SHARED | MAP_POPULATE,
		       f->fd, f->base + pos);
	__u64 flags = 0;

	if (m != MAP_FAILED) {
		flags = page_flags(m);
		munmap(m, page);
	}
	return flags;
}

#define KPF_ACTIVE 0x40

/* A folio left half read is the first that reclaim takes. */
TEST_F_TIMEOUT(file, abandoned_is_cold, TIMEOUT)
{
	struct file *f = &self->f;
	__u64 cold, warm;
	__u64 left;
	int fd, i;

	fd = reopen(f);
	for (i = 0; i < 8; i++)
		get(f, fd, 0, 100, RWF_DONTCACHE);
	close(fd);
	left = cached(f);
	cold = flags_at(f, 0);
	if (!cold)
		SKIP(return, "/proc/kpageflags cannot be read");
	fd = reopen(f);
	for (i = 0; i < 8; i++)
		get(f, fd, f->size / 2 + i % 2 * KB(2), 100, 0);
	close(fd);
	/* Active pages get there through a batch of each CPU. */
	for (i = 0; i < 50; i++) {
		warm = flags_at(f, f->size / 2);
		if (warm & KPF_ACTIVE)
			break;
		fd = reopen(f);
		get_range(f, fd, 0, f->size / 4, KB(64), 0);
		close(fd);
	}
	ASSERT_STREQ("", f->err);
	TH_LOG("pages left %llu, %sactive; of a plain reader %sactive", left,
	       cold & KPF_ACTIVE ? "" : "in", warm & KPF_ACTIVE ? "" : "in");
	EXPECT_LE(left, (at.window + at.unit) / page)
		TH_LOG(STAYS);
	EXPECT_EQ(0ULL, cold & KPF_ACTIVE);
}

/*
 * The right bytes, whatever happens to the file meanwhile.  The first half
 * always holds the right ones; the second is cut, punched and filled again.
 */
struct beside {
	struct file *f;
	int stop;
};

static void *disturb(void *arg)
{
	struct beside *b = arg;
	struct file *f = b->f;
	size_t half = f->size / 2, pos, len;
	unsigned int seed = 7;
	unsigned char *m;

	m = mmap(NULL, half, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (m == MAP_FAILED) {
		wrong(f, "mmap: %s", strerror(errno));
		return NULL;
	}
	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) {
		len = any(&seed) % 9000 + 1;
		pos = any(&seed) % (half - len);
		switch (any(&seed) % 8) {
		case 0:
			fill(f, pos, len, 0);
			break;
		case 1:
			fill(f, pos, len, RWF_DONTCACHE);
			break;
		case 2:
			memcpy(m + pos, want + pos, len);
			break;
		case 3:
			sync_file_range(f->fd, pos, len,
					SYNC_FILE_RANGE_WRITE);
			break;
		case 4:
			posix_fadvise(f->fd, pos, KB(256),
				      POSIX_FADV_DONTNEED);
			madvise(m, half, MADV_DONTNEED);
			break;
		case 5:
			fallocate(f->fd, FALLOC_FL_PUNCH_HOLE |
				  FALLOC_FL_KEEP_SIZE, half + pos, len);
			break;
		case 6:
			fill(f, half + pos, len, 0);
			break;
		case 7:
			if (ftruncate(f->fd, half + pos) ||
			    ftruncate(f->fd, f->size))
				wrong(f, "truncate: %s", strerror(errno));
		}
	}
	munmap(m, half);
	return NULL;
}

TEST_F_TIMEOUT(file, beside_writers, TIMEOUT)
{
	struct file *f = &self->f;
	struct beside b = { .f = f };
	size_t half = f->size / 2;
	unsigned int seed = 3;
	pthread_t id;
	off_t pos;
	int fd, i;

	if (at.bdev)
		SKIP(return, "a block device is only read");
	fd = reopen(f);
	ASSERT_EQ(0, pthread_create(&id, NULL, disturb, &b));
	for (i = 0; i < 4; i++) {
		f->right = NULL;
		for (pos = 0; pos < (off_t)half; )
			pos = get_range(f, fd, pos, pos + KB(4) < half ?
					pos + KB(4) : half,
					any(&seed) % KB(4) + 1,
					RWF_DONTCACHE);
		f->right = right_or_zero;
		/* It may be short. */
		for (pos = half; pos < (off_t)f->size; pos += KB(3))
			get(f, fd, pos, pos + KB(3) < f->size ?
			    KB(3) : f->size - pos, RWF_DONTCACHE);
	}
	__atomic_store_n(&b.stop, 1, __ATOMIC_RELAXED);
	pthread_join(id, NULL);
	EXPECT_STREQ("", f->err);

	/* And what reached the disk. */
	f->right = NULL;
	ASSERT_TRUE(make_cold(f));
	get_range(f, fd, 0, half, KB(64), 0);
	EXPECT_STREQ("", f->err);
	close(fd);
}

/*
 * Directories in cgroup2 and tracefs outlive those who made them.  This is a
 * process that removes one when we are gone, however we end; it writes undo to
 * the file undo_in first.  It is there before the directory: who is killed while
 * he makes it leaves nothing either.  The answer is a descriptor to close when
 * the directory is to go.  Unless it is -1, the guard has a copy of the
 * descriptor held for as long as it lives.
 */
static int guard_dir(const char *dir, const char *undo_in, const char *undo,
		     int held)
{
	int pipes[2], i;
	pid_t pid;
	char c = 0;

	if (pipe2(pipes, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid < 0) {
		close(pipes[0]);
		close(pipes[1]);
		return -1;
	}
	if (pid) {
		close(pipes[0]);
		return pipes[1];
	}
	/* Out of reach of what ends the tests, and in nobody's way. */
	setsid();
	if (chdir("/"))
		_exit(1);
	for (i = 0; i < 256; i++)
		if (i != pipes[0] && i != held)
			close(i);
	while (read(pipes[0], &c, 1) < 0)
		;
	/* What was there before is not ours. */
	for (i = 0; !c && i < 500 && rmdir(dir) && errno == EBUSY; i++)
		usleep(10000);
	if (undo)
		spit(undo_in, undo);
	_exit(0);
}

/*
 * Has the guard remove the directory now, and waits for that: the next test
 * shall not find what is about to go.
 */
static void end_guard(int *guard)
{
	if (*guard < 0)
		return;
	close(*guard);
	*guard = -1;
	while (wait(NULL) < 0 && errno == EINTR)
		;
}

/* Tells the guard that the directory was not made, and why that was. */
static bool not_made(int *guard)
{
	int err = errno;

	if (write(*guard, "-", 1) != 1)
		abort();
	end_guard(guard);
	errno = err;
	return false;
}

/* Makes the directory that is guarded; ends the guard if that fails. */
static bool make_guarded(const char *dir, int *guard)
{
	return !mkdir(dir, 0700) || not_made(guard);
}

/*
 * Readahead cannot tell the flag: the same sequence of reads makes it do the
 * same.
 */
static const char * const events[] = {
	"page_cache_sync_ra", "page_cache_async_ra", "page_cache_ra_order",
	"page_cache_ra_unbounded",
};

FIXTURE(readahead)
{
	struct file f;
	char dir[64];
	int guard;
};

FIXTURE_VARIANT(readahead)
{
	struct pattern p;
	bool unordered;		/* compare how many, not which */
};

FIXTURE_VARIANT_ADD(readahead, sequential_1k) { SEQ(KB(1), 0) };
FIXTURE_VARIANT_ADD(readahead, sequential_4k) { SEQ(KB(4), 0) };
FIXTURE_VARIANT_ADD(readahead, sequential_16k) { SEQ(KB(16), 0) };
FIXTURE_VARIANT_ADD(readahead, sequential_64k) { SEQ(KB(64), 0) };
FIXTURE_VARIANT_ADD(readahead, sequential_128k) { SEQ(KB(128), 0) };
FIXTURE_VARIANT_ADD(readahead, sequential_1k_from_3m) { SEQ(KB(1), MB(3)) };
FIXTURE_VARIANT_ADD(readahead, sequential_4k_from_3m) { SEQ(KB(4), MB(3)) };
FIXTURE_VARIANT_ADD(readahead, sequential_64k_from_3m) { SEQ(KB(64), MB(3)) };
FIXTURE_VARIANT_ADD(readahead, streams2_4k) { STREAMS(2, KB(4), 0) };
FIXTURE_VARIANT_ADD(readahead, streams2_16k) { STREAMS(2, KB(16), 0) };
FIXTURE_VARIANT_ADD(readahead, streams2_4k_away) { STREAMS(2, KB(4), MB(1)) };
FIXTURE_VARIANT_ADD(readahead, streams2_16k_away) { STREAMS(2, KB(16), MB(1)) };
FIXTURE_VARIANT_ADD(readahead, streams8_4k) { STREAMS(8, KB(4), 0) };
FIXTURE_VARIANT_ADD(readahead, streams8_16k) { STREAMS(8, KB(16), 0) };
FIXTURE_VARIANT_ADD(readahead, streams8_16k_away) { STREAMS(8, KB(16), MB(1)) };

FIXTURE_VARIANT_ADD(readahead, threads_parts_16k) {
	.p = { run_parts, .buf = KB(16), .n = 4 },
	.unordered = true
};

static bool trace_file(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return spit(path, text);
}

FIXTURE_SETUP(readahead)
{
	const char *why = unfit(&variant->p);
	char filter[64], name[128];
	struct stat st;
	size_t i, n = 0;

	watch_main();
	self->f.fd = -1;
	self->guard = -1;
	snprintf(self->dir, sizeof(self->dir),
		 "/sys/kernel/tracing/instances/dontcache_read.%d", getpid());
	self->guard = guard_dir(self->dir, NULL, NULL, -1);
	if (self->guard < 0 || !make_guarded(self->dir, &self->guard))
		SKIP(return, "/sys/kernel/tracing/instances: %s",
		     strerror(errno));
	/* Each thread would read ahead into the part of the next. */
	if (!why && variant->unordered &&
	    usual_size() / variant->p.n < 4 * at.window)
		why = "windows are too large for the parts of the threads";
	if (why)
		SKIP(return, "%s", why);
	make_file(&self->f, variant->p.size);
	ASSERT_STREQ("", self->f.err);
	ASSERT_EQ(0, fstat(self->f.fd, &st));
	/* Of a block device, the inode is that of bdevfs: it has no name. */
	snprintf(filter, sizeof(filter), "i_ino == %llu && s_dev == %llu",
		 (__u64)st.st_ino,
		 (__u64)(major(st.st_dev) << 20 | minor(st.st_dev)));
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(name, sizeof(name), "events/readahead/%s/filter",
			 events[i]);
		if (!at.bdev && !trace_file(self->dir, name, filter))
			continue;
		snprintf(name, sizeof(name), "events/readahead/%s/enable",
			 events[i]);
		n += trace_file(self->dir, name, "1");
	}
	if (!n)
		SKIP(return, "this kernel has no readahead trace events");
	trace_file(self->dir, "buffer_size_kb", "4096");
}

FIXTURE_TEARDOWN(readahead)
{
	if (self->f.fd >= 0)
		close(self->f.fd);
	end_guard(&self->guard);
}

/* What readahead did, without who and when.  To be freed. */
static char *traced(struct file *f, const char *dir, const struct pattern *p,
		    int rwf, int *count)
{
	char name[PATH_MAX], line[512], *text = NULL;
	size_t len = 0, i;
	FILE *in, *out;
	char *s;

	*count = 0;
	if (rwf)
		forget_streams(f);
	make_cold(f);
	trace_file(dir, "trace", "");
	f->every = 0;
	p->run(f, p, rwf);
	trace_file(dir, "tracing_on", "0");
	snprintf(name, sizeof(name), "%s/trace", dir);
	in = fopen(name, "r");
	out = open_memstream(&text, &len);
	while (in && out && fgets(line, sizeof(line), in)) {
		for (i = 0; i < ARRAY_SIZE(events); i++) {
			s = strstr(line, events[i]);
			if (s && s[strlen(events[i])] == ':') {
				fputs(s, out);
				++*count;
			}
		}
	}
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	trace_file(dir, "tracing_on", "1");
	return text;
}

TEST_F_TIMEOUT(readahead, cannot_tell, TIMEOUT)
{
	int n_plain, n_d, line = 1, more;
	char *plain, *d, *a, *b;

	plain = traced(&self->f, self->dir, &variant->p, 0, &n_plain);
	d = traced(&self->f, self->dir, &variant->p, RWF_DONTCACHE,
		   &n_d);
	ASSERT_STREQ("", self->f.err);
	TH_LOG("events %d (plain %d)", n_d, n_plain);
	ASSERT_LT(0, n_plain);
	if (variant->unordered || starts(&variant->p)) {
		/* Each start is a miss and the read of a folio. */
		more = variant->unordered ? n_plain / 5 + 8 :
					    2 * starts(&variant->p);
		EXPECT_LE(n_d, n_plain + more)
			TH_LOG(RESTARTS);
		return;
	}
	for (a = plain, b = d; *a && *a == *b; a++, b++)
		line += *a == '\n';
	EXPECT_EQ(*a, *b) {
		while (a > plain && a[-1] != '\n') {
			a--;
			b--;
		}
		TH_LOG("event %d, plain: %.*s", line, (int)strcspn(a, "\n"), a);
		TH_LOG("event %d, RWF_DONTCACHE: %.*s", line,
		       (int)strcspn(b, "\n"), b);
		TH_LOG(RESTARTS);
	}
	free(plain);
	free(d);
}

/*
 * Folios that move in memory keep their flag.  To see whether they moved, a
 * plain reader of another file, whose pages lie between theirs, has it mapped.
 */
FIXTURE(migration)
{
	struct file f, control, holes;
};

FIXTURE_SETUP(migration)
{
	watch_main();
	self->f.fd = -1;
	self->control.fd = -1;
	self->holes.fd = -1;
	if (at.bdev)
		SKIP(return, "a block device is only read");
	if (access("/proc/sys/vm/compact_memory", W_OK))
		SKIP(return, "/proc/sys/vm/compact_memory: %s",
		     strerror(errno));
	make_file(&self->f, MB(16));
	ASSERT_STREQ("", self->f.err);
	make_file(&self->control, MB(16));
	ASSERT_STREQ("", self->control.err);
	make_file(&self->holes, MAX_SIZE);
	ASSERT_STREQ("", self->holes.err);
}

FIXTURE_TEARDOWN(migration)
{
	if (self->f.fd >= 0)
		close(self->f.fd);
	if (self->control.fd >= 0)
		close(self->control.fd);
	if (self->holes.fd >= 0)
		close(self->holes.fd);
}

/* Where the page is in memory; 0 without privilege. */
static __u64 frame(void *addr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	__u64 entry = 0;

	if (fd >= 0 && pread(fd, &entry, sizeof(entry), (uintptr_t)addr / page *
			     sizeof(entry)) != sizeof(entry))
		entry = 0;
	close(fd);
	return entry >> 63 ? entry & ((1ULL << 55) - 1) : 0;
}

/*
 * Has flagged folios wait for their readers, compacts memory, and lets them
 * read on.  How many pages near them moved, of how many?
 *
 * A folio for which there is no room as large as it is split.  Its parts keep
 * the flag since "mm: preserve PG_dropbehind flag during folio split"; before,
 * only the smallest folios can tell whether moving it keeps it.
 */
static size_t migrate(struct file *f, struct file *control, struct file *holes,
		      __u64 *before, size_t *of)
{
	size_t step = KB(64) + at.unit, n = f->size / step / 2, pos, i;
	size_t len = n * KB(64), moved = 0;
	int fd[512], other = reopen(control), round, j;
	unsigned char *m;
	__u64 *frames;

	/* Those of the others are to lie between them. */
	if (kernel_before(7, 1))
		posix_fadvise(other, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < n; i++) {
		fd[i] = reopen(f);
		if (kernel_before(7, 1)) {
			posix_fadvise(fd[i], 0, 0, POSIX_FADV_RANDOM);
			get(f, fd[i], i * 2 * step, KB(1), RWF_DONTCACHE);
		} else {
			for (j = 0; j < 4; j++)
				get(f, fd[i], i * 2 * step + j * KB(4), KB(4),
				    RWF_DONTCACHE);
		}
		get_range(control, other, i * KB(64), (i + 1) * KB(64),
			  kernel_before(7, 1) ? KB(4) : KB(64), 0);
	}
	close(other);
	*before = cached(f);

	frames = calloc(len / page, sizeof(*frames));
	m = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, control->fd,
		 0);
	if (!frames || m == MAP_FAILED)
		abort();
	*of = 0;
	for (pos = 0; pos < len; pos += page) {
		frames[pos / page] = frame(m + pos);
		*of += !!frames[pos / page];
	}
	/*
	 * Where to: compaction fills blocks of memory that have holes, higher
	 * than what it moves.  Large folios are not kept per CPU when freed.
	 */
	for (round = 0; round < 8 && moved <= *of / 4; round++) {
		get_range(holes, holes->fd, 0, holes->size, KB(64), 0);
		for (pos = 0; pos < holes->size; pos += KB(512))
			posix_fadvise(holes->fd, pos + round % 2 * KB(256),
				      KB(256), POSIX_FADV_DONTNEED);
		if (!spit("/proc/sys/vm/compact_memory", "1"))
			wrong(f, "compact_memory: %s", strerror(errno));
		moved = 0;
		for (pos = 0; pos < len; pos += page)
			moved += frames[pos / page] != frame(m + pos);
	}
	munmap(m, len);
	free(frames);

	/* Each to its end, and one more that passes over all. */
	for (i = 0; i < n; i++) {
		pos = i * 2 * step + (kernel_before(7, 1) ? KB(1) : KB(16));
		get_range(f, fd[i], pos, (i + 1) * 2 * step, KB(4),
			  RWF_DONTCACHE);
		close(fd[i]);
	}
	other = reopen(f);
	get_range(f, other, 0, f->size, KB(64), RWF_DONTCACHE);
	close(other);
	return moved;
}

TEST_F_TIMEOUT(migration, keeps_the_flag, TIMEOUT)
{
	struct file *f = &self->f;
	size_t moved = 0, of = 0;
	__u64 before = 0, left = 0;
	int i;

	/* It depends on what memory they get. */
	for (i = 0; i < 5 && moved <= of / 16; i++) {
		ASSERT_TRUE(make_cold(f));
		ASSERT_TRUE(make_cold(&self->control));
		moved = migrate(f, &self->control, &self->holes, &before, &of);
		left = cached(f);
		ASSERT_STREQ("", f->err);
		ASSERT_STREQ("", self->control.err);
		TH_LOG("pages cached %llu; of %zu others %zu moved; left %llu",
		       before, of, moved, left);
		/* What was dropped before it could move tells nothing. */
		ASSERT_LE(of / 32, before)
			TH_LOG(AGAIN);
		EXPECT_LE(left, before / 100)
			TH_LOG("folios that moved lost the flag: " STAYS);
	}
	if (moved <= of / 16)
		SKIP(return, "compaction moved too little near them");
}

/*
 * Many streams in a memory cgroup much smaller than their files: no reclaim.
 */
#define MEMCG_STREAMS 8

FIXTURE(memcg)
{
	struct file f[MEMCG_STREAMS];
	char dir[64];
	int guard;
};

FIXTURE_VARIANT(memcg)
{
	const char *limit, *key;
};

FIXTURE_VARIANT_ADD(memcg, max) { "memory.max", "max" };
FIXTURE_VARIANT_ADD(memcg, high) { "memory.high", "high" };

/*
 * Who finds the memory controller off switches it on and later off again, which
 * must not happen under another who found it on: one at a time, until the guard
 * has cleaned up.  The answer is a descriptor; -1, with errno, if there is none or
 * the others do not end.
 */
static int lock_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), i;

	for (i = 0; fd >= 0 && i < 2000; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		usleep(10000);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

FIXTURE_SETUP(memcg)
{
	static const char * const roots[] = {
		"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
	};
	char name[128], buf[256];
	const char *root = NULL;
	bool enabled = false;
	int lock;
	size_t i;

	watch_main();
	self->guard = -1;
	for (i = 0; i < MEMCG_STREAMS; i++)
		self->f[i].fd = -1;
	if (at.bdev)
		SKIP(return, "a block device is only read");
	if (at.window > KB(512))
		SKIP(return, "windows of %zu bytes are too large for this",
		     at.window);
	for (i = 0; i < ARRAY_SIZE(roots) && !root; i++) {
		snprintf(name, sizeof(name), "%s/cgroup.controllers",
			 roots[i]);
		if (slurp(name, buf, sizeof(buf)) && strstr(buf, "memory"))
			root = roots[i];
	}
	if (!root)
		SKIP(return, "no cgroup2 with the memory controller");
	lock = lock_dir(root);
	if (lock < 0)
		SKIP(return, "the lock of %s: %s", root, strerror(errno));
	snprintf(name, sizeof(name), "%s/cgroup.subtree_control", root);
	enabled = slurp(name, buf, sizeof(buf)) && strstr(buf, "memory");
	snprintf(self->dir, sizeof(self->dir), "%s/dontcache_read.%d", root,
		 getpid());
	self->guard = guard_dir(self->dir, name, enabled ? NULL : "-memory",
				lock);
	close(lock);
	if (self->guard < 0)
		SKIP(return, "a process to clean up: %s", strerror(errno));
	if (!enabled && !spit(name, "+memory") && !not_made(&self->guard))
		SKIP(return, "%s: %s", name, strerror(errno));
	if (!make_guarded(self->dir, &self->guard))
		SKIP(return, "%s: %s", self->dir, strerror(errno));
	for (i = 0; i < MEMCG_STREAMS; i++) {
		make_file(&self->f[i], MB(4));
		ASSERT_STREQ("", self->f[i].err);
	}
}

FIXTURE_TEARDOWN(memcg)
{
	char name[128];
	int i;

	for (i = 0; i < MEMCG_STREAMS; i++)
		if (self->f[i].fd >= 0)
			close(self->f[i].fd);
	if (self->guard < 0)
		return;
	/* Out of it, so that it can go. */
	snprintf(name, sizeof(name), "%s/../cgroup.procs", self->dir);
	spit(name, "0");
	end_guard(&self->guard);
}

static bool memcg_event(const char *dir, const char *key, __u64 *val)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/memory.events", dir);
	return field(name, key, val);
}

/* Streams that take turns; returns the most pages in the cache at once. */
static __u64 memcg_streams(struct file *f, int rwf)
{
	__u64 peak = 0, now;
	int fd[MEMCG_STREAMS], i;
	off_t pos;

	for (i = 0; i < MEMCG_STREAMS; i++)
		fd[i] = reopen(&f[i]);
	for (pos = 0; pos < (off_t)f->size; pos += KB(16)) {
		now = 0;
		for (i = 0; i < MEMCG_STREAMS; i++) {
			get_range(&f[i], fd[i], pos, pos + KB(16), KB(16),
				  rwf);
			now += cached(&f[i]);
		}
		if (now > peak)
			peak = now;
	}
	for (i = 0; i < MEMCG_STREAMS; i++)
		close(fd[i]);
	return peak;
}

TEST_F_TIMEOUT(memcg, no_reclaim, TIMEOUT)
{
	static const char * const keys[] = { "high", "max", "oom" };
	__u64 before[3], after[3], peak, bound, bytes, hit, plain;
	char name[128], limit[32];
	int i;

	bound = MEMCG_STREAMS * 2 * at.window;
	snprintf(limit, sizeof(limit), "%llu", bound + MB(8));
	snprintf(name, sizeof(name), "%s/%s", self->dir, variant->limit);
	ASSERT_TRUE(spit(name, limit));
	snprintf(name, sizeof(name), "%s/cgroup.procs", self->dir);
	ASSERT_TRUE(spit(name, "0"));

	for (i = 0; i < 3; i++)
		ASSERT_TRUE(memcg_event(self->dir, keys[i], &before[i]));
	bytes = io_field("read_bytes");
	peak = memcg_streams(self->f, RWF_DONTCACHE);
	bytes = io_field("read_bytes") - bytes;
	for (i = 0; i < 3; i++)
		ASSERT_TRUE(memcg_event(self->dir, keys[i], &after[i]));
	ASSERT_TRUE(memcg_event(self->dir, variant->key, &hit));
	/* The control: the limit is one that a plain reader meets. */
	memcg_streams(self->f, 0);
	ASSERT_TRUE(memcg_event(self->dir, variant->key, &plain));
	TH_LOG("%s %s: bytes %llu, peak pages %llu, then events of a plain reader %llu",
	       variant->limit, limit, bytes, peak, plain - hit);
	EXPECT_LT(hit, plain);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(before[i], after[i])
			TH_LOG("memory.events, line %d: " STAYS, i + 2);
	EXPECT_LE(peak, bound / page)
		TH_LOG(STAYS);
	EXPECT_LE(bytes, MEMCG_STREAMS * MB(4))
		TH_LOG(AGAIN);
	for (i = 0; i < MEMCG_STREAMS; i++)
		EXPECT_STREQ("", self->f[i].err);
}

/*
 * Where to test
 */
static bool number(const char *fmt, unsigned int ma, unsigned int mi,
		   size_t *val)
{
	char name[128], buf[32];

	snprintf(name, sizeof(name), fmt, ma, mi);
	return slurp(name, buf, sizeof(buf)) && sscanf(buf, "%zu", val) == 1;
}

/*
 * Takes the place, or says why it does not do.
 */
static const char *use_place(const char *path)
{
	static char why[PATH_MAX + 128];
	struct cached c;
	struct statfs fs;
	struct iovec iov;
	struct stat st;
	struct file f;
	int blksize;
	size_t kb;
	__u64 val;
	char b;

	if (stat(path, &st)) {
		snprintf(why, sizeof(why), "%s: %s", path, strerror(errno));
		return why;
	}
	if (!S_ISDIR(st.st_mode) && !S_ISBLK(st.st_mode)) {
		snprintf(why, sizeof(why),
			 "%s: neither a directory nor a block device", path);
		return why;
	}
	snprintf(at.path, sizeof(at.path), "%s", path);
	at.bdev = S_ISBLK(st.st_mode);
	at.unit = page;
	open_file(&f, at.bdev ? MAX_SIZE : page);
	if (f.err[0] || (!at.bdev && !fill(&f, 0, page, 0))) {
		snprintf(why, sizeof(why), "%s: %s", path, f.err);
		goto out;
	}
	iov = (struct iovec) { &b, 1 };
	if (preadv2(f.fd, &iov, 1, f.base, RWF_DONTCACHE) != 1) {
		snprintf(why, sizeof(why), "%s does not take RWF_DONTCACHE: %s",
			 path, strerror(errno));
		goto out;
	}
	if (cachestat(f.fd, 0, page, &c)) {
		snprintf(why, sizeof(why), "no cachestat(2): %s",
			 strerror(errno));
		goto out;
	}
	if (!field("/proc/self/io", "read_bytes", &val)) {
		snprintf(why, sizeof(why),
			 "no /proc/self/io: CONFIG_TASK_IO_ACCOUNTING is not set");
		goto out;
	}
	if (at.bdev) {
		if (!ioctl(f.fd, BLKBSZGET, &blksize) &&
		    blksize > (int)at.unit)
			at.unit = blksize;
		/* There is no telling what must be there, but past the cache. */
		close(f.fd);
		f.fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (f.fd < 0 || pread(f.fd, want, MAX_SIZE, f.base) !=
		    (ssize_t)MAX_SIZE) {
			snprintf(why, sizeof(why), "%s: O_DIRECT: %s", path,
				 strerror(errno));
			goto out;
		}
	} else if (!fstatfs(f.fd, &fs) && (size_t)fs.f_bsize > at.unit &&
		   fs.f_bsize <= (int)KB(64)) {
		at.unit = fs.f_bsize;
	}
	kb = 128;
	if (!number("/sys/class/bdi/%u:%u/read_ahead_kb", major(f.dev),
		    minor(f.dev), &kb) &&
	    !number("/sys/dev/block/%u:%u/queue/read_ahead_kb", major(f.dev),
		    minor(f.dev), &kb))
		number("/sys/dev/block/%u:%u/../queue/read_ahead_kb",
		       major(f.dev), minor(f.dev), &kb);
	at.window = KB(kb);
	if (at.window < at.unit)
		at.window = at.unit;
	why[0] = 0;
out:
	if (f.fd >= 0)
		close(f.fd);
	return why[0] ? why : NULL;
}

static bool run_quietly(const char *prog, const char *arg, const char *dev)
{
	int status, null;
	pid_t pid = fork();

	if (!pid) {
		null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		execlp(prog, prog, arg, dev, NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/*
 * A file system of our own: on a loop device that clears itself, over a file
 * without name, in a mount without place.  All of it goes with us.
 */
static const char *use_loop(void)
{
	static const struct {
		const char *fs, *mkfs, *quiet;
		off_t size;
	} kinds[] = {
		{ "ext4", "mkfs.ext4", "-qF", MB(512) },
		{ "xfs", "mkfs.xfs", "-qf", MB(320) },
	};
	static char why[128];
	char dev[32], path[32];
	const char *tmp = getenv("TMPDIR") ?: "/tmp";
	int ctl, loop = -1, back, fs, mnt, nr, ro;
	struct loop_config conf = {
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	const char *bad;
	size_t i;

	if (geteuid())
		return "a loop device takes root";
	ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (ctl < 0)
		return "no /dev/loop-control";
	snprintf(why, sizeof(why), "neither mkfs.ext4 nor mkfs.xfs works");
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		back = open_unnamed(tmp);
		if (back < 0 || ftruncate(back, kinds[i].size)) {
			snprintf(why, sizeof(why), "%s: %s", tmp,
				 strerror(errno));
			break;
		}
		conf.fd = back;
		loop = -1;
		for (nr = 0; nr < 8; nr++) {
			snprintf(dev, sizeof(dev), "/dev/loop%d",
				 ioctl(ctl, LOOP_CTL_GET_FREE));
			loop = open(dev, O_RDWR | O_CLOEXEC);
			if (loop >= 0 && !ioctl(loop, LOOP_CONFIGURE, &conf))
				break;
			if (loop >= 0)
				close(loop);
			loop = -1;
		}
		/* The usual window: a file of ours is to be many of them. */
		if (loop >= 0)
			ioctl(loop, BLKRASET, 256);
		close(back);
		if (loop < 0)
			return "no free loop device";
		if (!run_quietly(kinds[i].mkfs, kinds[i].quiet, dev)) {
			close(loop);
			continue;
		}
		/* Without CONFIG_BLK_DEV_WRITE_MOUNTED no writer may have it. */
		ro = open(dev, O_RDONLY | O_CLOEXEC);
		close(loop);
		loop = ro;
		fs = syscall(__NR_fsopen, kinds[i].fs, 1);
		mnt = -1;
		if (fs >= 0 &&
		    !syscall(__NR_fsconfig, fs, CFG_SET_STRING, "source", dev,
			     0) &&
		    !syscall(__NR_fsconfig, fs, CFG_CMD_CREATE, NULL, NULL, 0))
			mnt = syscall(__NR_fsmount, fs, 0, 0);
		close(fs);
		close(loop);
		if (mnt < 0) {
			snprintf(why, sizeof(why), "cannot mount %s: %s",
				 kinds[i].fs, strerror(errno));
			continue;
		}
		/* The mount lives as long as this descriptor. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", mnt);
		bad = use_place(path);
		if (!bad) {
			printf("# no place named: %s of our own on %s\n",
			       kinds[i].fs, dev);
			close(ctl);
			return NULL;
		}
		snprintf(why, sizeof(why), "%.100s", bad);
		close(mnt);
	}
	close(ctl);
	return why;
}

static int skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return KSFT_SKIP;
}

/* path NULL: find one. */
static int run_at(const char *path, int argc, char **argv)
{
	char why[512];
	const char *bad;

	main_pid = getpid();
	if (path) {
		bad = use_place(path);
		if (bad)
			return skip_all(bad);
	} else {
		bad = use_place(".");
		if (bad) {
			snprintf(why, sizeof(why), "%.200s", bad);
			bad = use_loop();
			if (bad) {
				snprintf(why + strlen(why),
					 sizeof(why) - strlen(why),
					 "; %.200s", bad);
				return skip_all(why);
			}
		}
	}
	printf("# %s: folios of at least %zu bytes, readahead of %zu\n",
	       at.path, at.unit, at.window);
	fflush(stdout);
	return test_harness_run(argc, argv);
}

/* Each place is one test, and its own tests are diagnostics of that. */
static int run_each(char **paths, int n, int argc, char **argv)
{
	int i, status, pipes[2], result = KSFT_SKIP;
	char line[4096];
	pid_t pid;
	FILE *in;

	printf("1..%d\n", n);
	for (i = 0; i < n; i++) {
		fflush(stdout);
		if (pipe2(pipes, O_CLOEXEC))
			return KSFT_FAIL;
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			dup2(pipes[1], 1);
			dup2(pipes[1], 2);
			close(pipes[0]);
			close(pipes[1]);
			exit(run_at(paths[i], argc, argv));
		}
		close(pipes[1]);
		in = fdopen(pipes[0], "r");
		while (in && fgets(line, sizeof(line), in)) {
			printf("# %s", line);
			fflush(stdout);
		}
		if (pid < 0 || !in || waitpid(pid, &status, 0) != pid)
			return KSFT_FAIL;
		fclose(in);
		status = WIFEXITED(status) ? WEXITSTATUS(status) : KSFT_FAIL;
		printf("%sok %d %s%s\n", status == KSFT_PASS ||
		       status == KSFT_SKIP ? "" : "not ", i + 1, paths[i],
		       status == KSFT_SKIP ? " # SKIP" : "");
		if (status == KSFT_PASS && result == KSFT_SKIP)
			result = KSFT_PASS;
		else if (status != KSFT_PASS && status != KSFT_SKIP)
			result = KSFT_FAIL;
	}
	return result;
}

int main(int argc, char **argv)
{
	char *paths[64], *env, *s;
	__u64 x;
	size_t i;
	int n = 0;

	page = sysconf(_SC_PAGESIZE);
	if (posix_memalign((void **)&want, KB(64), MAX_SIZE))
		return KSFT_FAIL;
	/* Never zero, to tell it from a hole. */
	for (i = 0; i < MAX_SIZE; i += sizeof(x)) {
		x = (i + 1) * 0x9e3779b97f4a7c15ULL;
		x ^= x >> 29;
		x |= 0x0101010101010101ULL;
		memcpy(want + i, &x, sizeof(x));
	}

	for (i = 1; i < (size_t)argc && strcmp(argv[i], "--"); i++)
		;
	if (i < (size_t)argc) {
		for (n = 0; i + 1 + n < (size_t)argc && n < 64; n++)
			paths[n] = argv[i + 1 + n];
		argc = i;
		argv[argc] = NULL;
	}
	env = getenv("DONTCACHE_DIRS");
	if (!n && env)
		for (s = strtok(strdup(env), " :\t\n"); s && n < 64;
		     s = strtok(NULL, " :\t\n"))
			paths[n++] = s;
	/* The header comes first, and once. */
	ksft_print_header();
	setenv("KSFT_TAP_LEVEL", "1", 0);
	if (n > 1)
		return run_each(paths, n, argc, argv);
	return run_at(n ? paths[0] : NULL, argc, argv);
}
