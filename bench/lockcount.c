// SPDX-License-Identifier: GPL-2.0-only
/*
 * lockcount - a plugin of QEMU's emulation: how often does the guest's kernel
 * take a lock, and where?
 *
 *	cc -shared -fPIC -o lockcount.so lockcount.c
 *	qemu-system-x86_64 ... -plugin ./lockcount.so,map=SYSTEM_MAP,out=FILE
 *
 * The kernel is as it is, neither built nor booted for this.  Of each call, or
 * jump, to the entry of a function that takes a lock (see is_lock()) it counts
 * how often it ran.  A program in the guest says when: it executes a NOP with
 * the number MARK in it (see readers.c), once to begin and once to end.  For
 * each such pair FILE gets the lines
 *
 *	pair<TAB>function<TAB>caller<TAB>count
 *
 * pair being its number, from 1.  Callers are functions, what the compiler
 * inlined into them included.
 *
 * The kernel must run where SYSTEM_MAP says (no CONFIG_RANDOMIZE_BASE), and
 * QEMU must emulate processors one at a time: the counts are not atomic.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK	0x6b636f6c	/* "lock" */

/*
 * QEMU before version 8 comes without this header.  What follows instead is
 * all that is used of it, in version 1.
 */
#if __has_include(<qemu-plugin.h>)
#include <qemu-plugin.h>
#else
#define QEMU_PLUGIN_VERSION	1
#define QEMU_PLUGIN_EXPORT	__attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
	void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
	void (*cb)(unsigned int vcpu, void *data),
	enum qemu_plugin_cb_flags flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
#endif

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

struct symbol {
	uint64_t at;
	char *name;
};

struct site {
	uint64_t at;
	const char *function, *caller;
	uint64_t count;
	struct site *next;
};

static struct symbol *symbols;
static size_t nr_symbols;
static struct site *sites[1024];
static FILE *out;
static int pair;
static bool open_pair;

/* Functions that take a lock, and the ways of the slow path. */
static bool is_lock(const char *name)
{
	static const char * const locks[] = {
		"_raw_spin_lock", "_raw_spin_trylock", "_raw_read_lock",
		"_raw_read_trylock", "_raw_write_lock", "_raw_write_trylock",
		"mutex_lock", "mutex_trylock", "down_read", "down_write",
		"queued_spin_lock_slowpath", NULL
	};
	static const char * const ends[] = {
		"", "_irq", "_irqsave", "_bh", "_trylock", "_killable",
		"_interruptible", "_irq_disable", NULL
	};

	for (int i = 0; locks[i]; i++) {
		size_t n = strlen(locks[i]);

		if (strncmp(name, locks[i], n))
			continue;
		for (int j = 0; ends[j]; j++)
			if (!strcmp(name + n, ends[j]))
				return true;
	}
	return false;
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static bool read_symbols(const char *path)
{
	FILE *f = fopen(path, "r");
	char name[256], type;
	uint64_t at;

	if (!f)
		return false;
	while (fscanf(f, "%" SCNx64 " %c %255s", &at, &type, name) == 3) {
		if (!strchr("tTwW", type))
			continue;
		if (!(nr_symbols & (nr_symbols + 1)))
			symbols = realloc(symbols, (2 * nr_symbols + 2) *
					  sizeof(*symbols));
		symbols[nr_symbols].at = at;
		symbols[nr_symbols++].name = strdup(name);
	}
	fclose(f);
	qsort(symbols, nr_symbols, sizeof(*symbols), by_address);
	return nr_symbols > 0;
}

/* The function that has this address in it. */
static const struct symbol *symbol_of(uint64_t at)
{
	size_t low = 0, high = nr_symbols;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (symbols[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &symbols[low - 1] : NULL;
}

static struct site *site_of(uint64_t at, const char *function)
{
	struct site **head = &sites[at / 4 % 1024], *site;

	for (site = *head; site; site = site->next)
		if (site->at == at)
			return site;
	site = calloc(1, sizeof(*site));
	site->at = at;
	site->function = function;
	site->caller = symbol_of(at) ? symbol_of(at)->name : "?";
	site->next = *head;
	*head = site;
	return site;
}

static void count(unsigned int vcpu, void *data)
{
	struct site *site = data;

	(void)vcpu;
	site->count++;
}

static void mark(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	open_pair = !open_pair;
	if (open_pair)
		pair++;
	for (int i = 0; i < 1024; i++) {
		for (struct site *site = sites[i]; site; site = site->next) {
			if (!open_pair && site->count)
				fprintf(out, "%d\t%s\t%s\t%" PRIu64 "\n", pair,
					site->function, site->caller,
					site->count);
			site->count = 0;
		}
	}
	fflush(out);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		size_t size = qemu_plugin_insn_size(insn);
		uint64_t at = qemu_plugin_insn_vaddr(insn);
		const struct symbol *to;
		unsigned char code[16];
		int32_t word;

		if (size != 5 && size != 8)
			continue;
#if QEMU_PLUGIN_VERSION >= 3
		qemu_plugin_insn_data(insn, code, sizeof(code));
#else
		memcpy(code, qemu_plugin_insn_data(insn), size);
#endif
		memcpy(&word, code + size - 4, 4);
		if (size == 8) {
			/* nopl MARK(%rax,%rax) */
			if (!memcmp(code, "\x0f\x1f\x84\x00", 4) &&
			    word == MARK)
				qemu_plugin_register_vcpu_insn_exec_cb(insn,
					mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
			continue;
		}
		/* call, jmp */
		if ((code[0] != 0xe8 && code[0] != 0xe9) ||
		    at < symbols[0].at)
			continue;
		to = symbol_of(at + 5 + word);
		if (to && to->at == at + 5 + word && is_lock(to->name))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, count,
				QEMU_PLUGIN_CB_NO_REGS,
				site_of(at, to->name));
	}
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
					   const qemu_info_t *info, int argc,
					   char **argv)
{
	const char *map = "", *path = "";

	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "map=", 4))
			map = argv[i] + 4;
		else if (!strncmp(argv[i], "out=", 4))
			path = argv[i] + 4;
	}
	if (!read_symbols(map)) {
		fprintf(stderr, "lockcount: no symbols in \"%s\"\n", map);
		return 1;
	}
	out = fopen(path, "w");
	if (!out) {
		fprintf(stderr, "lockcount: cannot write \"%s\"\n", path);
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
