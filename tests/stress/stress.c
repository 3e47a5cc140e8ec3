// SPDX-License-Identifier: GPL-2.0-only
/*
 * stress - threads and processes at one file, with a model of its bytes.
 *
 *	stress [-s SEED] [-o OPS] [-t WORKERS] [-m MIB] [-b] [-e] [-x] [-w] FILE
 *	stress -H FILE
 *
 *	-s SEED		of all random choices (default: the time)
 *	-o OPS		operations of all workers together (default 20000)
 *	-t WORKERS	every second one is a process, the others are threads
 *			(default 6)
 *	-m MIB		largest size of the file (default 8)
 *	-b		FILE is a block device: its first MIB MiB, size fixed
 *	-e		ENOMEM is no error: memory is short, try again
 *	-x		print how many operations of each kind there were, their
 *			seconds, and those of the processor
 *	-w		change bytes behind the back of the model: must be found
 *	-H		print the sum of FILE, as is printed at the end of a run
 *
 * Each worker owns a region of the file, whose edges are on no boundary of
 * anything, so that folios are shared.  Only the owner changes its bytes, first
 * in the file, then in the model, and makes the sequence number of the region
 * odd meanwhile.  Anybody may read anything: if the numbers of all regions that
 * a read touched were even and did not change until the bytes were compared,
 * they must be those of the model.  What moves other workers' bytes (truncate,
 * collapse and insert range) has a lock and a sequence number for the whole
 * file, that readers of foreign bytes do not wait for.
 *
 * Direct writes are coherent with the page cache only if nobody dirties the
 * same folios meanwhile, so these two exclude each other.  Readers do not: a
 * direct read writes dirty folios out, then looks for the blocks, and fails with
 * EIO if a store faulted on a hole between the two (iomap_dio_iter(); the kernel
 * says "Direct I/O collision").  Only then, only for that reason, and not again
 * while nobody stores.
 *
 * The same SEED, OPS, WORKERS and MIB give each worker the same operations; the
 * order among workers is up to the scheduler.  When something is wrong, the
 * last operations of each worker are printed, and the command for a replay.
 *
 * Exit codes: 0 all bytes were right, 1 they were not or a call failed, 2 usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/falloc.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

/* Not in the headers of older distributions. */
#ifndef MADV_COLD
#define MADV_COLD	20
#define MADV_PAGEOUT	21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#endif
#define MPOL_MF_MOVE_ALL	4

#define MAX_LEN		MIB
#define MAX_WORKERS	32
#define LOG_SIZE	32
/* A worker that is at one operation for so long hangs. */
#define HANG_SECONDS	600

enum op {
	DREAD, DREAD_ANY, DREADV, DSTREAM, DBACK, DSHARED, DNOWAIT, DURING,
	READ, READ_ANY, SPLICE, MAP_READ, DIRECT_READ,
	DWRITE, WRITE, STORE, SPLICE_WRITE, DIRECT_WRITE,
	PUNCH, ZERO, ALLOCATE, TRUNCATE, COLLAPSE, INSERT,
	FSYNC, FADVISE, READAHEAD, REMAP, MADVISE, MIGRATE,
	NR_OPS
};

static const struct {
	const char *name;
	int weight;
} ops[NR_OPS] = {
	[DREAD]		= { "dread", 8 },
	[DREAD_ANY]	= { "dread-any", 8 },
	[DREADV]	= { "dreadv", 4 },
	[DSTREAM]	= { "dstream", 16 },
	[DBACK]		= { "dback", 3 },
	[DSHARED]	= { "dshared", 6 },
	[DNOWAIT]	= { "dnowait", 3 },
	[DURING]	= { "during", 5 },
	[READ]		= { "read", 4 },
	[READ_ANY]	= { "read-any", 4 },
	[SPLICE]	= { "splice", 3 },
	[MAP_READ]	= { "map-read", 5 },
	[DIRECT_READ]	= { "direct-read", 2 },
	[DWRITE]	= { "dwrite", 4 },
	[WRITE]		= { "write", 5 },
	[STORE]		= { "store", 4 },
	[SPLICE_WRITE]	= { "splice-write", 1 },
	[DIRECT_WRITE]	= { "direct-write", 1 },
	[PUNCH]		= { "punch", 1 },
	[ZERO]		= { "zero-range", 1 },
	[ALLOCATE]	= { "fallocate", 1 },
	[TRUNCATE]	= { "truncate", 1 },
	[COLLAPSE]	= { "collapse", 1 },
	[INSERT]	= { "insert", 1 },
	[FSYNC]		= { "fsync", 2 },
	[FADVISE]	= { "fadvise", 4 },
	[READAHEAD]	= { "readahead", 2 },
	[REMAP]		= { "remap", 3 },
	[MADVISE]	= { "madvise", 2 },
	[MIGRATE]	= { "migrate", 1 },
};

struct entry {
	enum op op;
	long off, len, ret, extra;
};

struct ring {
	int fd;
	unsigned int entries;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

/* What the other workers see of one. */
struct shown {
	_Atomic unsigned long seq;	/* odd: its bytes change */
	long start, end;		/* its region */
	_Atomic unsigned long done;
	_Atomic unsigned long checked;	/* bytes compared */
	unsigned long count[NR_OPS];
	double seconds[NR_OPS], cpu[NR_OPS];
	struct entry log[LOG_SIZE];
};

static struct shared {
	pthread_rwlock_t shape;		/* who owns which byte is fixed */
	pthread_rwlock_t direct;	/* folios may be dirtied */
	_Atomic unsigned long seq;	/* odd: shape is changing */
	/* The size of the file is between these. */
	_Atomic long size_low, size_high;
	_Atomic int failed, told;
	_Atomic unsigned long lacked;	/* ENOMEM */
	/* through mappings: begun, and done */
	_Atomic unsigned long stores_begun, stores_done;
	_Atomic unsigned long collided;	/* direct reads with these */
	struct shown shown[MAX_WORKERS];
	unsigned char model[];
} *shared;

struct worker {
	int nr;
	bool is_process;
	struct shown *me;
	uint64_t rng;
	unsigned long generation;
	int fd, direct_fd, pipe[2];
	unsigned char *buf;
	struct ring ring;
	/* a mapping that lives for some operations */
	unsigned char *map;
	long map_off, map_len;
	/* sequential readers */
	long pos, chunk, back_pos, back_chunk, shared_pos, shared_chunk;
	struct entry *now;
	pthread_t thread;
	pid_t pid;
};

static struct worker workers[MAX_WORKERS];
static int nr_workers = 6;
static unsigned long nr_ops = 20000;
static uint64_t seed;
static long max_size = 8 * MIB;
static long block;
static bool is_bdev, no_uring, wreck, may_lack;
static int nr_nodes;
static int shared_fd;
static const char *path;
static int weights;

static __thread sigjmp_buf bus_env;
static __thread volatile bool bus_expected;

static double clock_now(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static double now(void)
{
	return clock_now(CLOCK_MONOTONIC);
}

/* A number below n. */
static unsigned long below(struct worker *w, unsigned long n)
{
	w->rng += RANDOM_STEP;
	return mix(w->rng) % n;
}

static void print_log(void)
{
	for (int i = 0; i < nr_workers; i++) {
		struct shown *s = &shared->shown[i];
		unsigned long done = atomic_load(&s->done);
		unsigned long k = done < LOG_SIZE ? 0 : done - LOG_SIZE + 1;

		fprintf(stderr, "worker %d, region %ld-%ld, after %lu operations:\n",
			i, s->start, s->end, done);
		for (; k <= done; k++) {
			struct entry *e = &s->log[k % LOG_SIZE];

			fprintf(stderr, "  %s off %ld len %ld ret %ld (%ld)\n",
				ops[e->op].name, e->off, e->len, e->ret,
				e->extra);
		}
	}
	fprintf(stderr, "replay: stress -s %llu -o %lu -t %d -m %ld%s%s %s\n",
		(unsigned long long)seed, nr_ops, nr_workers, max_size / MIB,
		is_bdev ? " -b" : "", may_lack ? " -e" : "", path);
}

static void kill_children(void)
{
	for (int i = 0; i < nr_workers; i++)
		if (workers[i].is_process && workers[i].pid > 0)
			kill(workers[i].pid, SIGKILL);
}

/* Who fails first tells; nobody ends the run before that is done. */
static bool first_to_tell(void)
{
	if (!atomic_exchange(&shared->failed, 1))
		return true;
	for (int ms = 0; !atomic_load(&shared->told) && ms < 10000; ms += 10)
		usleep(10000);
	return false;
}

#define fail(w, fmt, ...) do {						\
	if (first_to_tell()) {						\
		fprintf(stderr, "stress: worker %d, %s: " fmt "\n",	\
			(w)->nr, ops[(w)->now->op].name, ##__VA_ARGS__);\
		print_log();						\
		atomic_store(&shared->told, 1);				\
	}								\
	if (!(w)->is_process)						\
		kill_children();					\
	_exit(1);							\
} while (0)

/* Is it only that there is no memory at the moment? */
static bool lack(int error)
{
	if (!may_lack || error != ENOMEM)
		return false;
	atomic_fetch_add(&shared->lacked, 1);
	usleep(1000);
	return true;
}

static __attribute__((noreturn)) void die(const char *what)
{
	fprintf(stderr, "stress: %s: %s: %s\n", path, what, strerror(errno));
	kill_children();
	_exit(1);
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (bus_expected)
		siglongjmp(bus_env, 1);
	fprintf(stderr, "stress: signal %d at %p\n", sig, info->si_addr);
	print_log();
	kill_children();
	_exit(1);
}

/* Bytes that are a function of the offset, the worker and the generation. */
static void fill(struct worker *w, unsigned char *p, long off, long len)
{
	uint64_t key = mix(seed ^ mix(((uint64_t)w->nr << 48) + ++w->generation));
	long i = 0;

	for (; i + 8 <= len; i += 8) {
		uint64_t word = key ^ ((uint64_t)(off + i) * 0x9e3779b97f4a7c15);

		memcpy(p + i, &word, 8);
	}
	for (; i < len; i++)
		p[i] = key >> (i & 7) * 8 ^ (off + i);
}

/* Lengths of 1 byte to 1 MiB, mostly small. */
static long pick_len(struct worker *w)
{
	unsigned long r = below(w, 100);
	int bits = below(w, r < 88 ? 13 : r < 98 ? 17 : 20);

	return (1L << bits) + below(w, 1L << bits);
}

/* What a stream reads at a time: 512 bytes to 128 KiB, mostly small. */
static long pick_chunk(struct worker *w)
{
	return 1L << (9 + below(w, below(w, 4) ? 6 : 9));
}

struct range {
	long off, len;
};

/* In the file, sometimes over its end; sometimes on boundaries of pages. */
static struct range pick(struct worker *w, long start, long end)
{
	struct range r = { .len = pick_len(w) };

	r.off = start + below(w, end - start);
	if (below(w, 4) == 0) {
		r.off &= -PAGE;
		r.len = (r.len + PAGE - 1) & -PAGE;
		if (r.off < start)
			r.off = start;
	}
	if (r.len > end - r.off)
		r.len = end - r.off;
	w->now->off = r.off;
	w->now->len = r.len;
	return r;
}

static struct range pick_own(struct worker *w)
{
	return pick(w, w->me->start, w->me->end);
}

static struct range pick_any(struct worker *w)
{
	return pick(w, 0, max_size);
}

static long clip(struct range r, long size)
{
	if (size <= r.off)
		return 0;
	return size - r.off < r.len ? size - r.off : r.len;
}

/* A look at bytes that others may change meanwhile. */
struct look {
	struct range r;
	unsigned long seq, seqs[MAX_WORKERS];
	int first, last;
	long low;
	bool stable;
};

static void look_begin(struct look *l, struct range r)
{
	l->r = r;
	l->seq = atomic_load(&shared->seq);
	l->stable = !(l->seq & 1);
	l->low = atomic_load(&shared->size_low);
	l->first = nr_workers;
	l->last = -1;
	for (int i = 0; i < nr_workers; i++) {
		struct shown *s = &shared->shown[i];

		if (s->start >= r.off + r.len || s->end <= r.off)
			continue;
		if (i < l->first)
			l->first = i;
		l->last = i;
		l->seqs[i] = atomic_load(&s->seq);
		if (l->seqs[i] & 1)
			l->stable = false;
	}
}

static bool look_end(struct look *l)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!l->stable || atomic_load(&shared->seq) != l->seq)
		return false;
	for (int i = l->first; i <= l->last; i++)
		if (atomic_load(&shared->shown[i].seq) != l->seqs[i])
			return false;
	return true;
}

static void wrong(struct worker *w, long off, const unsigned char *got,
		  const unsigned char *want, long len)
{
	long i, n = 0, last = 0;

	for (i = 0; i < len && got[i] == want[i]; i++)
		;
	if (i == len)
		fail(w, "bytes at %ld-%ld were wrong, but are right now",
		     off, off + len);
	for (long k = i; k < len; k++) {
		if (got[k] != want[k]) {
			n++;
			last = k;
		}
	}
	fail(w, "%ld wrong bytes at %ld-%ld: the first is %02x, not %02x (size %ld)",
	     n, off + i, off + last, got[i], want[i],
	     atomic_load(&shared->size_low));
}

/* @n bytes were read to @got: compare them with the model. */
static void look_check(struct worker *w, struct look *l,
		       const unsigned char *got, long n, bool may_be_short,
		       bool own)
{
	long high, low = clip(l->r, l->low);
	bool differs;

	w->now->ret = n;
	if (n > l->r.len)
		fail(w, "%ld bytes instead of %ld", n, l->r.len);
	differs = memcmp(got, shared->model + l->r.off, n);
	high = clip(l->r, atomic_load(&shared->size_high));
	if (!look_end(l)) {
		if (own)
			fail(w, "the region changed under its owner");
		return;
	}
	/* What memory was lacking for may be the rest of a read. */
	if (n > high || (n < low && !may_be_short && (!may_lack || !n)))
		fail(w, "%ld bytes at %ld, not %ld to %ld", n, l->r.off, low,
		     high);
	if (differs)
		wrong(w, l->r.off, got, shared->model + l->r.off, n);
	atomic_fetch_add(&w->me->checked, n);
}

/* Split a buffer into some pieces. */
static int make_iov(struct worker *w, struct iovec *iov, int max,
		    unsigned char *buf, long len)
{
	int n = 0;

	while (len && n < max - 1) {
		long piece = below(w, 4) ? 1 + below(w, len) : below(w, 2);

		if (piece > len)
			piece = len;
		iov[n++] = (struct iovec){ buf, piece };
		buf += piece;
		len -= piece;
	}
	if (len)
		iov[n++] = (struct iovec){ buf, len };
	return n;
}

static void shape_read_lock(void)
{
	pthread_rwlock_rdlock(&shared->shape);
}

static void shape_unlock(void)
{
	pthread_rwlock_unlock(&shared->shape);
}

static void do_read(struct worker *w, int fd, struct range r, int flags,
		    bool own, int pieces)
{
	struct iovec iov[16];
	struct look l;
	int n_iov;
	ssize_t n;

	n_iov = make_iov(w, iov, pieces, w->buf, r.len);
	if (own)
		shape_read_lock();
	look_begin(&l, r);
	n = preadv2(fd, iov, n_iov, r.off, flags);
	if (n < 0 && errno == EAGAIN && (flags & RWF_NOWAIT))
		w->now->ret = -errno;
	else if (n < 0 && lack(errno))
		w->now->ret = -ENOMEM;
	else if (n < 0)
		fail(w, "%s at %ld", strerror(errno), r.off);
	else
		look_check(w, &l, w->buf, n, flags & RWF_NOWAIT, own);
	if (own)
		shape_unlock();
}

/* The next piece of a reader that goes through the file with one size. */
static void do_stream(struct worker *w, int fd, long *pos, long *chunk)
{
	struct range r;

	if (!*chunk || *pos >= max_size ||
	    *pos >= atomic_load(&shared->size_high)) {
		*pos = below(w, 4) ? 0 : (long)below(w, max_size);
		*chunk = below(w, 3) ? pick_chunk(w) : pick_len(w);
	}
	r = (struct range){ *pos, *chunk };
	if (r.len > max_size - r.off)
		r.len = max_size - r.off;
	w->now->off = r.off;
	w->now->len = r.len;
	do_read(w, fd, r, RWF_DONTCACHE, false, 1);
	*pos += r.len;
}

static void do_back(struct worker *w)
{
	struct range r;

	if (!w->back_chunk || w->back_pos <= 0) {
		w->back_pos = atomic_load(&shared->size_low);
		w->back_chunk = pick_chunk(w);
		if (!w->back_pos)
			return;
	}
	r.off = w->back_pos > w->back_chunk ? w->back_pos - w->back_chunk : 0;
	r.len = w->back_pos - r.off;
	w->now->off = r.off;
	w->now->len = r.len;
	do_read(w, w->fd, r, RWF_DONTCACHE, false, 1);
	w->back_pos = r.off;
}

/* Several reads with the flag at once, in neighbouring ranges. */
static void do_uring(struct worker *w)
{
	struct ring *ring = &w->ring;
	unsigned int n, tail, mask = *ring->sq_mask;
	struct look l[8];
	long start, chunk;
	int done;

	n = 1 + below(w, 8);
	chunk = pick_len(w);
	if (chunk > MAX_LEN / 8)
		chunk = MAX_LEN / 8;
	if (below(w, 3) && chunk > SECTOR)
		chunk &= -SECTOR;
	start = below(w, max_size - n * chunk);
	w->now->off = start;
	w->now->len = chunk;
	w->now->extra = n;
	tail = *ring->sq_tail;
	for (unsigned int i = 0; i < n; i++) {
		struct io_uring_sqe *sqe = &ring->sqes[tail & mask];
		/* not always in order */
		unsigned int k = n - 1 - i;

		if (i % 2 == 0 && i + 1 < n)
			k = i + 1;
		else if (i % 2)
			k = i - 1;
		else
			k = i;
		look_begin(&l[k], (struct range){ start + k * chunk, chunk });
		memset(sqe, 0, sizeof(*sqe));
		sqe->opcode = IORING_OP_READ;
		sqe->fd = w->fd;
		sqe->off = l[k].r.off;
		sqe->addr = (unsigned long)(w->buf + k * chunk);
		sqe->len = chunk;
		sqe->rw_flags = RWF_DONTCACHE;
		sqe->user_data = k;
		if (below(w, 4) == 0)
			sqe->flags = IOSQE_ASYNC;
		ring->sq_array[tail & mask] = tail & mask;
		tail++;
	}
	__atomic_store_n(ring->sq_tail, tail, __ATOMIC_RELEASE);
	for (unsigned int sent = 0; sent < n; sent += done) {
		done = syscall(__NR_io_uring_enter, ring->fd, n - sent, 0, 0,
			       NULL, 0);
		if (done < 0 && (errno == EINTR || errno == EAGAIN))
			done = 0;
		else if (done < 0)
			fail(w, "io_uring_enter: %s", strerror(errno));
	}
	while (n) {
		unsigned int head = *ring->cq_head;
		struct io_uring_cqe *cqe;

		if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
			if (syscall(__NR_io_uring_enter, ring->fd, 0, 1,
				    IORING_ENTER_GETEVENTS, NULL, 0) < 0 &&
			    errno != EINTR)
				fail(w, "io_uring_enter: %s", strerror(errno));
			continue;
		}
		cqe = &ring->cqes[head & *ring->cq_mask];
		if (cqe->res < 0 && !lack(-cqe->res))
			fail(w, "%s at %ld", strerror(-cqe->res),
			     l[cqe->user_data].r.off);
		/* io_uring may give less than was asked for */
		if (cqe->res >= 0)
			look_check(w, &l[cqe->user_data],
				   w->buf + cqe->user_data * chunk, cqe->res,
				   true, false);
		__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
		n--;
	}
}

static void do_splice(struct worker *w)
{
	struct range r = pick_any(w);
	struct look l;
	loff_t off = r.off;
	ssize_t n, got = 0;

	if (r.len > 64 * KIB)
		r.len = 64 * KIB;
	look_begin(&l, r);
	n = splice(w->fd, &off, w->pipe[1], NULL, r.len, SPLICE_F_NONBLOCK);
	if (n < 0 && (errno == EAGAIN || lack(errno)))
		return;
	if (n < 0)
		fail(w, "%s at %ld", strerror(errno), r.off);
	while (got < n) {
		ssize_t k = read(w->pipe[0], w->buf + got, n - got);

		if (k <= 0)
			fail(w, "the pipe has %zd of %zd bytes", got, n);
		got += k;
	}
	/* It gives what one pipe buffer after the other takes. */
	look_check(w, &l, w->buf, n, true, false);
}

/* The part of the mapping that is in [start, end). */
static struct range mapped(struct worker *w, long start, long end)
{
	struct range r;

	if (start < w->map_off)
		start = w->map_off;
	if (end > w->map_off + w->map_len)
		end = w->map_off + w->map_len;
	if (start >= end) {
		w->now->extra = -1;
		return (struct range){ 0, 0 };
	}
	r = pick(w, start, end);
	return r;
}

static void do_remap(struct worker *w)
{
	long len, off;
	void *map;

	if (w->map && below(w, 2)) {
		/* another size, perhaps another place */
		len = (pick_len(w) + PAGE - 1) & -PAGE;
		if (len > max_size - w->map_off)
			len = max_size - w->map_off;
		map = mremap(w->map, w->map_len, len, MREMAP_MAYMOVE);
		if (map == MAP_FAILED)
			fail(w, "mremap: %s", strerror(errno));
		w->map = map;
		w->map_len = len;
		return;
	}
	if (w->map && munmap(w->map, w->map_len))
		fail(w, "munmap: %s", strerror(errno));
	w->map = NULL;
	if (below(w, 8) == 0)
		return;
	/* Often over the own region, so that it can be stored to. */
	off = below(w, 3) ? w->me->start - PAGE : (long)below(w, max_size);
	off = off < 0 ? 0 : off & -PAGE;
	len = 64 * KIB + below(w, MIB);
	len = (len + PAGE - 1) & -PAGE;
	if (len > max_size - off)
		len = max_size - off;
	w->now->off = off;
	w->now->len = len;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_SHARED | (below(w, 6) ? 0 : MAP_POPULATE), w->fd, off);
	if (map == MAP_FAILED)
		fail(w, "mmap: %s", strerror(errno));
	w->map = map;
	w->map_off = off;
	w->map_len = len;
}

static void do_map_read(struct worker *w)
{
	struct look l;
	struct range r;
	bool bus = false;

	if (!w->map) {
		do_remap(w);
		return;
	}
	r = mapped(w, 0, atomic_load(&shared->size_low));
	if (!r.len)
		return;
	look_begin(&l, r);
	if (clip(r, l.low) < r.len)
		return;
	bus_expected = true;
	if (sigsetjmp(bus_env, 0) == 0)
		memcpy(w->buf, w->map + (r.off - w->map_off), r.len);
	else
		bus = true;
	bus_expected = false;
	if (!bus)
		look_check(w, &l, w->buf, r.len, false, false);
	else if (look_end(&l) && !may_lack)
		fail(w, "SIGBUS at %ld, size %ld", r.off, l.low);
}

static void own_begin(struct worker *w)
{
	atomic_fetch_add(&w->me->seq, 1);
}

static void own_end(struct worker *w)
{
	atomic_fetch_add(&w->me->seq, 1);
}

static void raise_to(_Atomic long *p, long to)
{
	long old = atomic_load(p);

	while (old < to && !atomic_compare_exchange_weak(p, &old, to))
		;
}

static void do_store(struct worker *w)
{
	struct range r;

	if (!w->map) {
		do_remap(w);
		return;
	}
	shape_read_lock();
	pthread_rwlock_rdlock(&shared->direct);
	r = mapped(w, w->me->start, w->me->end);
	r.len = clip(r, atomic_load(&shared->size_low));
	if (r.len) {
		fill(w, w->buf, r.off, r.len);
		own_begin(w);
		atomic_fetch_add(&shared->stores_begun, 1);
		memcpy(w->map + (r.off - w->map_off), w->buf, r.len);
		atomic_fetch_add(&shared->stores_done, 1);
		memcpy(shared->model + r.off, w->buf, r.len);
		own_end(w);
	}
	pthread_rwlock_unlock(&shared->direct);
	shape_unlock();
}

static void do_write(struct worker *w, int flags)
{
	struct range r = pick_own(w);
	struct iovec iov[16];
	int n_iov;
	ssize_t n;

	fill(w, w->buf, r.off, r.len);
	n_iov = make_iov(w, iov, below(w, 3) ? 1 : 16, w->buf, r.len);
	shape_read_lock();
	pthread_rwlock_rdlock(&shared->direct);
	own_begin(w);
	raise_to(&shared->size_high, r.off + r.len);
	do {
		n = pwritev2(w->fd, iov, n_iov, r.off, flags);
		w->now->ret = n;
	} while (may_lack && n != r.len && (n > 0 || lack(errno)));
	if (n != r.len)
		fail(w, "%zd of %ld bytes: %s", n, r.len, strerror(errno));
	memcpy(shared->model + r.off, w->buf, r.len);
	raise_to(&shared->size_low, r.off + r.len);
	own_end(w);
	pthread_rwlock_unlock(&shared->direct);
	shape_unlock();
}

static void do_splice_write(struct worker *w)
{
	struct range r = pick_own(w);
	loff_t off = r.off;
	ssize_t n;

	if (r.len > 32 * KIB)
		r.len = 32 * KIB;
	fill(w, w->buf, r.off, r.len);
	if (write(w->pipe[1], w->buf, r.len) != r.len)
		fail(w, "the pipe does not take %ld bytes", r.len);
	shape_read_lock();
	pthread_rwlock_rdlock(&shared->direct);
	own_begin(w);
	raise_to(&shared->size_high, r.off + r.len);
	while (off < r.off + r.len) {
		n = splice(w->pipe[0], NULL, w->fd, &off, r.off + r.len - off, 0);
		if (n <= 0 && !(n < 0 && lack(errno)))
			fail(w, "%zd at %ld: %s", n, (long)off, strerror(errno));
	}
	memcpy(shared->model + r.off, w->buf, r.len);
	raise_to(&shared->size_low, r.off + r.len);
	own_end(w);
	pthread_rwlock_unlock(&shared->direct);
	shape_unlock();
}

static void do_direct_read(struct worker *w)
{
	struct range r = pick_any(w);
	unsigned long stores_done;
	struct look l;
	ssize_t n;

	r.len = (r.off + r.len + SECTOR - 1) & -SECTOR;
	r.off &= -SECTOR;
	r.len -= r.off;
	if (r.len > MAX_LEN)
		r.len = MAX_LEN;
	look_begin(&l, r);
	stores_done = atomic_load(&shared->stores_done);
	n = pread(w->direct_fd, w->buf, r.len, r.off);
	if (n < 0 && errno == EIO && !is_bdev &&
	    atomic_load(&shared->stores_begun) != stores_done) {
		pthread_rwlock_wrlock(&shared->direct);
		atomic_fetch_add(&shared->collided, 1);
		w->now->extra = EIO;
		look_begin(&l, r);
		n = pread(w->direct_fd, w->buf, r.len, r.off);
		pthread_rwlock_unlock(&shared->direct);
	}
	if (n < 0 && lack(errno))
		return;
	if (n < 0)
		fail(w, "%s at %ld", strerror(errno), r.off);
	look_check(w, &l, w->buf, n, false, false);
}

static void do_direct_write(struct worker *w)
{
	struct range r = pick_own(w);
	ssize_t n;

	r.len = (r.off + r.len) & -SECTOR;
	r.off = (r.off + SECTOR - 1) & -SECTOR;
	r.len -= r.off;
	if (r.len <= 0)
		return;
	fill(w, w->buf, r.off, r.len);
	shape_read_lock();
	pthread_rwlock_wrlock(&shared->direct);
	own_begin(w);
	/* Not over the end: that is a buffered writer's. */
	r.len = clip(r, atomic_load(&shared->size_low)) & -SECTOR;
	if (r.len) {
		do {
			n = pwrite(w->direct_fd, w->buf, r.len, r.off);
			w->now->ret = n;
		} while (n < 0 && lack(errno));
		if (n != r.len)
			fail(w, "%zd of %ld bytes: %s", n, r.len,
			     strerror(errno));
		memcpy(shared->model + r.off, w->buf, r.len);
	}
	own_end(w);
	pthread_rwlock_unlock(&shared->direct);
	shape_unlock();
}

static int change(int fd, int mode, long off, long len)
{
	int ret;

	do {
		ret = fallocate(fd, mode, off, len);
	} while (ret && lack(errno));
	return ret;
}

/* Own bytes become zero: a hole, or not. */
static void do_zero(struct worker *w, int mode)
{
	struct range r = pick_own(w);

	if (is_bdev) {
		/* whole pages only, and nobody else's */
		r.len = (r.off + r.len) & -PAGE;
		r.off = (r.off + PAGE - 1) & -PAGE;
		r.len -= r.off;
		if (r.len <= 0)
			return;
	}
	shape_read_lock();
	if (is_bdev)
		pthread_rwlock_wrlock(&shared->direct);
	own_begin(w);
	if (change(w->fd, mode | FALLOC_FL_KEEP_SIZE, r.off, r.len) == 0)
		memset(shared->model + r.off, 0, r.len);
	else if (errno != EOPNOTSUPP)
		fail(w, "%s at %ld", strerror(errno), r.off);
	else
		w->now->ret = -errno;
	own_end(w);
	if (is_bdev)
		pthread_rwlock_unlock(&shared->direct);
	shape_unlock();
}

static void do_allocate(struct worker *w)
{
	struct range r = pick_own(w);
	bool keep = below(w, 2);

	shape_read_lock();
	if (!keep)
		raise_to(&shared->size_high, r.off + r.len);
	if (change(w->fd, keep ? FALLOC_FL_KEEP_SIZE : 0, r.off, r.len))
		fail(w, "%s at %ld", strerror(errno), r.off);
	if (!keep)
		raise_to(&shared->size_low, r.off + r.len);
	shape_unlock();
}

/* For those that move everybody's bytes. */
static long shape_begin(void)
{
	pthread_rwlock_wrlock(&shared->shape);
	atomic_fetch_add(&shared->seq, 1);
	return atomic_load(&shared->size_low);
}

static void shape_end(long size)
{
	atomic_store(&shared->size_low, size);
	atomic_store(&shared->size_high, size);
	atomic_fetch_add(&shared->seq, 1);
	pthread_rwlock_unlock(&shared->shape);
}

static void shape_between(long a, long b)
{
	atomic_store(&shared->size_low, a < b ? a : b);
	atomic_store(&shared->size_high, a < b ? b : a);
}

static void do_truncate(struct worker *w)
{
	long size, to;
	int ret;

	/* Mostly near the end, or the file would be small all the time. */
	if (below(w, 8))
		to = max_size - pick_len(w);
	else
		to = below(w, max_size + 1);
	w->now->off = to;
	size = shape_begin();
	shape_between(size, to);
	do {
		ret = ftruncate(w->fd, to);
	} while (ret && lack(errno));
	if (ret)
		fail(w, "%s at %ld", strerror(errno), to);
	if (to < size)
		memset(shared->model + to, 0, size - to);
	shape_end(to);
}

/*
 * Where bytes move.  All that is behind is written and leaves the page cache, so
 * it is mostly not much.
 */
static long pick_move(struct worker *w)
{
	long from = below(w, 4) ? max_size - MIB : 0;

	return (from + below(w, max_size - from)) & -block;
}

static void do_collapse(struct worker *w)
{
	long off = pick_move(w);
	long len = (pick_len(w) + block - 1) & -block;
	long size;

	w->now->off = off;
	w->now->len = len;
	size = shape_begin();
	if (off + len < size) {
		shape_between(size - len, size);
		if (change(w->fd, FALLOC_FL_COLLAPSE_RANGE, off, len))
			fail(w, "%s at %ld", strerror(errno), off);
		memmove(shared->model + off, shared->model + off + len,
			size - off - len);
		memset(shared->model + size - len, 0, len);
		size -= len;
	}
	shape_end(size);
}

static void do_insert(struct worker *w)
{
	long off = pick_move(w);
	long len = (pick_len(w) + block - 1) & -block;
	long size;

	w->now->off = off;
	w->now->len = len;
	size = shape_begin();
	if (off < size && size + len <= max_size) {
		shape_between(size, size + len);
		if (change(w->fd, FALLOC_FL_INSERT_RANGE, off, len))
			fail(w, "%s at %ld", strerror(errno), off);
		memmove(shared->model + off + len, shared->model + off,
			size - off);
		memset(shared->model + off, 0, len);
		size += len;
	}
	shape_end(size);
}

static void do_fsync(struct worker *w)
{
	struct range r = pick_any(w);
	int ret;

	/* Mostly only a range: the others wait for what all have written. */
	switch (below(w, 8)) {
	case 0:
		ret = fsync(w->fd);
		break;
	case 1:
		ret = fdatasync(w->fd);
		break;
	default:
		ret = sync_file_range(w->fd, r.off, r.len,
				      SYNC_FILE_RANGE_WAIT_BEFORE |
				      SYNC_FILE_RANGE_WRITE |
				      SYNC_FILE_RANGE_WAIT_AFTER);
	}
	if (ret && !lack(errno))
		fail(w, "%s", strerror(errno));
}

static void do_fadvise(struct worker *w)
{
	static const int advice[] = {
		POSIX_FADV_DONTNEED, POSIX_FADV_DONTNEED, POSIX_FADV_DONTNEED,
		POSIX_FADV_WILLNEED, POSIX_FADV_NORMAL, POSIX_FADV_RANDOM,
		POSIX_FADV_SEQUENTIAL, POSIX_FADV_NOREUSE, POSIX_FADV_NORMAL,
	};
	struct range r = pick_any(w);
	int which = below(w, sizeof(advice) / sizeof(*advice));

	w->now->extra = advice[which];
	if (below(w, 8) == 0)
		r = (struct range){ 0, 0 };
	errno = posix_fadvise(w->fd, r.off, r.len, advice[which]);
	if (errno)
		fail(w, "%s", strerror(errno));
}

static void do_madvise(struct worker *w)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT,
		MADV_POPULATE_READ, MADV_RANDOM, MADV_SEQUENTIAL, MADV_NORMAL,
	};
	int which = below(w, sizeof(advice) / sizeof(*advice));

	if (!w->map)
		return;
	w->now->extra = advice[which];
	/* Nothing is promised of the file but its bytes. */
	w->now->ret = madvise(w->map, w->map_len, advice[which]);
}

/* Mapped pages go to another node and come back. */
static void do_migrate(struct worker *w)
{
	void *pages[64];
	int nodes[64], status[64], n = 0;
	volatile unsigned char byte;
	long low;

	if (!w->map || nr_nodes < 2)
		return;
	low = atomic_load(&shared->size_low);
	for (volatile long off = 0; off < w->map_len && n < 64; off += PAGE) {
		if (w->map_off + off >= low)
			break;
		bus_expected = true;
		if (sigsetjmp(bus_env, 0) == 0) {
			byte = w->map[off];
			(void)byte;
			nodes[n] = below(w, nr_nodes);
			pages[n++] = w->map + off;
		}
		bus_expected = false;
	}
	if (n)
		w->now->ret = syscall(__NR_move_pages, 0, (long)n, pages, nodes,
				      status, MPOL_MF_MOVE_ALL);
	w->now->len = n;
}

static bool impossible(enum op op)
{
	switch (op) {
	case ALLOCATE:
	case TRUNCATE:
	case COLLAPSE:
	case INSERT:
		return is_bdev;
	case DURING:
		return no_uring;
	case MIGRATE:
		return nr_nodes < 2;
	default:
		return false;
	}
}

static void one(struct worker *w)
{
	unsigned long done = atomic_load(&w->me->done);
	long r;
	double began = now(), cpu = clock_now(CLOCK_THREAD_CPUTIME_ID);
	enum op op;

	do {
		r = below(w, weights);
		for (op = 0; r >= ops[op].weight; op++)
			r -= ops[op].weight;
	} while (impossible(op));

	w->now = &w->me->log[done % LOG_SIZE];
	*w->now = (struct entry){ .op = op };
	w->me->count[op]++;
	switch (op) {
	case DREAD:
		do_read(w, w->fd, pick_own(w), RWF_DONTCACHE, true, 1);
		break;
	case DREAD_ANY:
		do_read(w, below(w, 4) ? w->fd : shared_fd, pick_any(w),
			RWF_DONTCACHE, false, 1);
		break;
	case DREADV:
		do_read(w, w->fd, pick_any(w), RWF_DONTCACHE, false, 16);
		break;
	case DSTREAM:
		do_stream(w, w->fd, &w->pos, &w->chunk);
		break;
	case DBACK:
		do_back(w);
		break;
	case DSHARED:
		do_stream(w, shared_fd, &w->shared_pos, &w->shared_chunk);
		break;
	case DNOWAIT:
		do_read(w, w->fd, pick_any(w), RWF_DONTCACHE | RWF_NOWAIT,
			false, 4);
		break;
	case DURING:
		do_uring(w);
		break;
	case READ:
		do_read(w, w->fd, pick_own(w), 0, true, 1);
		break;
	case READ_ANY:
		do_read(w, w->fd, pick_any(w), 0, false, 1);
		break;
	case SPLICE:
		do_splice(w);
		break;
	case MAP_READ:
		do_map_read(w);
		break;
	case DIRECT_READ:
		do_direct_read(w);
		break;
	case DWRITE:
		do_write(w, RWF_DONTCACHE);
		break;
	case WRITE:
		do_write(w, 0);
		break;
	case STORE:
		do_store(w);
		break;
	case SPLICE_WRITE:
		do_splice_write(w);
		break;
	case DIRECT_WRITE:
		do_direct_write(w);
		break;
	case PUNCH:
		do_zero(w, FALLOC_FL_PUNCH_HOLE);
		break;
	case ZERO:
		do_zero(w, FALLOC_FL_ZERO_RANGE);
		break;
	case ALLOCATE:
		do_allocate(w);
		break;
	case TRUNCATE:
		do_truncate(w);
		break;
	case COLLAPSE:
		do_collapse(w);
		break;
	case INSERT:
		do_insert(w);
		break;
	case FSYNC:
		do_fsync(w);
		break;
	case FADVISE:
		do_fadvise(w);
		break;
	case READAHEAD: {
		struct range range = pick_any(w);

		if (readahead(w->fd, range.off, range.len))
			fail(w, "%s", strerror(errno));
		break;
	}
	case REMAP:
		do_remap(w);
		break;
	case MADVISE:
		do_madvise(w);
		break;
	case MIGRATE:
		do_migrate(w);
		break;
	case NR_OPS:
		break;
	}
	w->me->seconds[op] += now() - began;
	w->me->cpu[op] += clock_now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	atomic_store(&w->me->done, done + 1);
}

static void ring_open(struct worker *w)
{
	struct io_uring_params p = { 0 };
	struct ring *ring = &w->ring;
	unsigned char *sq, *cq;

	ring->fd = syscall(__NR_io_uring_setup, 8, &p);
	if (ring->fd < 0)
		die("io_uring_setup");
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned int),
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*ring->cqes),
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		  IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, p.sq_entries * sizeof(*ring->sqes),
			  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			  IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || ring->sqes == MAP_FAILED)
		die("mmap of an io_uring");
	ring->sq_tail = (unsigned int *)(sq + p.sq_off.tail);
	ring->sq_mask = (unsigned int *)(sq + p.sq_off.ring_mask);
	ring->sq_array = (unsigned int *)(sq + p.sq_off.array);
	ring->cq_head = (unsigned int *)(cq + p.cq_off.head);
	ring->cq_tail = (unsigned int *)(cq + p.cq_off.tail);
	ring->cq_mask = (unsigned int *)(cq + p.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned long todo = nr_ops / nr_workers;

	if ((unsigned long)w->nr < nr_ops % nr_workers)
		todo++;
	w->fd = open(path, O_RDWR | O_CLOEXEC);
	if (w->fd < 0)
		die("open");
	w->direct_fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (w->direct_fd < 0)
		die("open with O_DIRECT");
	if (pipe2(w->pipe, O_CLOEXEC))
		die("pipe");
	w->buf = mmap(NULL, MAX_LEN + PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->buf == MAP_FAILED)
		die("no memory");
	if (!no_uring)
		ring_open(w);
	while (todo-- && !atomic_load(&shared->failed))
		one(w);
	if (w->map)
		munmap(w->map, w->map_len);
	munmap(w->buf, MAX_LEN + PAGE);
	close(w->pipe[0]);
	close(w->pipe[1]);
	close(w->direct_fd);
	close(w->fd);
	if (!no_uring)
		close(w->ring.fd);
	return NULL;
}

/* FNV over words, of the first @size bytes. */
static uint64_t sum_of(const unsigned char *p, long size)
{
	uint64_t sum = 0xcbf29ce484222325, word;

	for (long i = 0; i + 8 <= size; i += 8) {
		memcpy(&word, p + i, 8);
		sum = (sum ^ word) * 0x100000001b3;
	}
	for (long i = size & -8; i < size; i++)
		sum = (sum ^ p[i]) * 0x100000001b3;
	return sum;
}

/* The whole file, once more in each way. */
static void check_all(long size)
{
	static const struct {
		const char *name;
		int open_flags, flags;
	} way[] = {
		{ "dontcache", 0, RWF_DONTCACHE },
		{ "direct", O_DIRECT, 0 },
		{ "plain", 0, 0 },
	};
	unsigned char *buf = mmap(NULL, max_size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buf == MAP_FAILED)
		die("no memory");
	for (unsigned int i = 0; i < sizeof(way) / sizeof(*way); i++) {
		int fd = open(path, O_RDONLY | way[i].open_flags);
		long pos = 0;

		if (fd < 0)
			die("open");
		while (pos < size) {
			long want = size - pos < 64 * KIB ? size - pos : 64 * KIB;
			struct iovec iov = {
				buf + pos, (want + SECTOR - 1) & -SECTOR,
			};
			ssize_t n = preadv2(fd, &iov, 1, pos, way[i].flags);

			if (n < 0 && lack(errno))
				continue;
			if (n <= 0)
				die(way[i].name);
			if (n < want && !may_lack)
				die("short read");
			pos += n;
		}
		if (memcmp(buf, shared->model, size)) {
			for (pos = 0; buf[pos] == shared->model[pos]; pos++)
				;
			fprintf(stderr, "stress: %s: at the end, %s: wrong from %ld on\n",
				path, way[i].name, pos);
			print_log();
			_exit(1);
		}
		close(fd);
	}
	munmap(buf, max_size);
}

static int print_sum(void)
{
	struct stat st;
	unsigned char *buf;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		die("open");
	buf = malloc(st.st_size + 1);
	if (!buf || pread(fd, buf, st.st_size, 0) != st.st_size)
		die("read");
	printf("sum %016llx size %lld\n",
	       (unsigned long long)sum_of(buf, st.st_size),
	       (long long)st.st_size);
	return 0;
}

/* The edges of the regions: at random, but none is very small. */
static void set_regions(void)
{
	uint64_t rng = mix(seed);
	long each = max_size / nr_workers;

	for (int i = 0; i < nr_workers; i++) {
		rng = mix(rng);
		shared->shown[i].start = i ? i * each - rng % (each / 2) : 0;
		if (i)
			shared->shown[i - 1].end = shared->shown[i].start;
	}
	shared->shown[nr_workers - 1].end = max_size;
}

static void prepare(void)
{
	pthread_rwlockattr_t attr;
	struct statvfs vfs;
	struct stat st;
	struct worker w = { .nr = MAX_WORKERS };

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_rwlockattr_setkind_np(&attr,
		PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&shared->shape, &attr);
	pthread_rwlock_init(&shared->direct, &attr);
	set_regions();

	shared_fd = open(path, O_RDWR | (is_bdev ? 0 : O_CREAT | O_TRUNC), 0600);
	if (shared_fd < 0 || fstatvfs(shared_fd, &vfs) || fstat(shared_fd, &st))
		die("open");
	block = vfs.f_bsize;
	fill(&w, shared->model, 0, max_size);
	for (long pos = 0; pos < max_size; pos += 64 * KIB)
		while (pwrite(shared_fd, shared->model + pos, 64 * KIB, pos) !=
		       64 * KIB)
			if (!lack(errno))
				die("write");
	if (fsync(shared_fd))
		die("fsync");
	atomic_store(&shared->size_low, max_size);
	atomic_store(&shared->size_high, max_size);

	for (nr_nodes = 0; ; nr_nodes++) {
		char node[64];

		snprintf(node, sizeof(node), "/sys/devices/system/node/node%d",
			 nr_nodes);
		if (access(node, F_OK))
			break;
	}
	int ring = syscall(__NR_io_uring_setup, 1,
			   &(struct io_uring_params){ 0 });

	no_uring = ring < 0;
	if (ring >= 0)
		close(ring);
}

static unsigned long all_done(void)
{
	unsigned long sum = 0;

	for (int i = 0; i < nr_workers; i++)
		sum += atomic_load(&shared->shown[i].done);
	return sum;
}

/* The control: somebody else changes a byte. */
static void wreck_byte(void)
{
	static uint64_t rng;
	unsigned char byte;
	long size, off;

	/* Only a byte: a file of another size is another fault. */
	if (pthread_rwlock_tryrdlock(&shared->shape))
		return;
	size = atomic_load(&shared->size_low);
	rng = mix(rng + seed);
	off = size ? rng % size : 0;
	if (size && pread(shared_fd, &byte, 1, off) == 1) {
		byte ^= 0x55;
		if (pwrite(shared_fd, &byte, 1, off) != 1)
			die("write");
	}
	shape_unlock();
}

/* Wait for the workers, tell how far they are, see who hangs or died. */
static void watch(double began)
{
	unsigned long seen[MAX_WORKERS] = { 0 };
	double since[MAX_WORKERS], told = began;
	int status, processes = 0;

	for (int i = 0; i < nr_workers; i++) {
		since[i] = began;
		processes += workers[i].is_process;
	}
	while (processes || all_done() < nr_ops) {
		double t = now();
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0) {
			processes--;
			if (!WIFEXITED(status) || WEXITSTATUS(status)) {
				if (first_to_tell()) {
					fprintf(stderr, "stress: a process ended with status %x\n",
						status);
					print_log();
					atomic_store(&shared->told, 1);
				}
				kill_children();
				_exit(1);
			}
			continue;
		}
		for (int i = 0; i < nr_workers; i++) {
			unsigned long done = atomic_load(&shared->shown[i].done);

			if (done != seen[i] || done >= nr_ops / nr_workers) {
				seen[i] = done;
				since[i] = t;
			} else if (t - since[i] > HANG_SECONDS) {
				fprintf(stderr, "stress: worker %d hangs\n", i);
				print_log();
				kill_children();
				_exit(1);
			}
		}
		if (t - told >= 20) {
			printf("%lu of %lu operations\n", all_done(), nr_ops);
			fflush(stdout);
			told = t;
		}
		if (wreck)
			wreck_byte();
		usleep(20000);
	}
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_bus,
				.sa_flags = SA_SIGINFO | SA_NODEFER };
	unsigned long checked = 0, total[NR_OPS] = { 0 };
	double spent[NR_OPS] = { 0 }, cpu[NR_OPS] = { 0 };
	bool only_sum = false, counts = false;
	double began, seconds;
	long size;
	int opt;

	seed = time(NULL);
	while ((opt = getopt(argc, argv, "s:o:t:m:bexwH")) != -1) {
		switch (opt) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			nr_ops = strtoul(optarg, NULL, 0);
			break;
		case 't':
			nr_workers = atoi(optarg);
			break;
		case 'm':
			max_size = atol(optarg) * MIB;
			break;
		case 'b':
			is_bdev = true;
			break;
		case 'e':
			may_lack = true;
			break;
		case 'x':
			counts = true;
			break;
		case 'w':
			wreck = true;
			break;
		case 'H':
			only_sum = true;
			break;
		default:
			return 2;
		}
	}
	if (optind != argc - 1 || nr_workers < 2 || nr_workers > MAX_WORKERS ||
	    max_size < 2 * MIB || !nr_ops) {
		fprintf(stderr, "usage: stress [-s SEED] [-o OPS] [-t WORKERS] [-m MIB] [-b] [-e] [-x] [-w] FILE\n"
				"       stress -H FILE\n");
		return 2;
	}
	path = argv[optind];
	if (only_sum)
		return print_sum();

	shared = mmap(NULL, sizeof(*shared) + max_size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("no memory");
	for (int i = 0; i < NR_OPS; i++)
		weights += ops[i].weight;
	printf("seed %llu, %lu operations, %d workers, %ld MiB\n",
	       (unsigned long long)seed, nr_ops, nr_workers, max_size / MIB);
	fflush(stdout);
	prepare();
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);

	for (int i = 0; i < nr_workers; i++) {
		struct worker *w = &workers[i];

		w->nr = i;
		w->me = &shared->shown[i];
		w->rng = mix(seed + 0x10001 * (i + 1));
		w->is_process = i % 2;
	}
	began = now();
	/* Processes first, as threads do not survive fork. */
	for (int i = 1; i < nr_workers; i += 2) {
		workers[i].pid = fork();
		if (workers[i].pid < 0)
			die("fork");
		if (!workers[i].pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(&workers[i]);
			_exit(0);
		}
	}
	for (int i = 0; i < nr_workers; i += 2)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("pthread_create");
	watch(began);
	for (int i = 0; i < nr_workers; i += 2)
		pthread_join(workers[i].thread, NULL);
	seconds = now() - began;
	if (all_done() != nr_ops || atomic_load(&shared->failed)) {
		first_to_tell();
		fprintf(stderr, "stress: %lu of %lu operations\n", all_done(),
			nr_ops);
		return 1;
	}

	size = atomic_load(&shared->size_low);
	if (fsync(shared_fd))
		die("fsync");
	check_all(size);
	for (int i = 0; i < nr_workers; i++) {
		checked += atomic_load(&shared->shown[i].checked);
		for (int k = 0; k < NR_OPS; k++) {
			total[k] += shared->shown[i].count[k];
			spent[k] += shared->shown[i].seconds[k];
			cpu[k] += shared->shown[i].cpu[k];
		}
	}
	if (counts) {
		printf("counts");
		for (int k = 0; k < NR_OPS; k++)
			printf(" %s %lu %.1f %.1f", ops[k].name, total[k],
			       spent[k], cpu[k]);
		printf("\n");
	}
	printf("sum %016llx size %ld\n",
	       (unsigned long long)sum_of(shared->model, size), size);
	if (may_lack)
		printf("lacked memory %lu times\n",
		       atomic_load(&shared->lacked));
	if (atomic_load(&shared->collided))
		printf("collided %lu direct reads with stores\n",
		       atomic_load(&shared->collided));
	printf("done %lu operations, %.1f seconds, %.1f MiB compared\n", nr_ops,
	       seconds, checked / 1048576.0);
	return 0;
}
