# SPDX-License-Identifier: GPL-2.0-only
# The only entry point; what each target does is in the scripts it calls.

BASE ?= 7.3
KERNEL_UNDER_TEST ?= patched
RUN ?=
ARGS ?=
SCENARIOS ?=
PARTS ?=
V ?= 0
export V KERNEL PARTS

.DEFAULT_GOAL := help
.PHONY: help bench bench-full bench-virtual report publish test stress check bisect-check \
	tree refresh series kernel guest clean distclean

help:
	@echo 'make bench          build both kernels, benchmark stock against patched'
	@echo 'make bench-full     all scenarios, all that they measure (it takes long)'
	@echo 'make bench-virtual  the cost of reads in virtual time, against results/ (PUBLISH=1)'
	@echo 'make report         a page with pictures of the newest results: out/report'
	@echo 'make publish        keep the newest results in results/, their tables in README.md'
	@echo 'make test           test the patched kernel; stock must fail; test the harness'
	@echo '                    (PARTS="patched-nvme series" for some of it: tests/run)'
	@echo 'make stress         the kernel with sanitizers, under stress and faults (STRESS_OPS=n)'
	@echo 'make check          all checks that need no guest'
	@echo 'make bisect-check   build and boot every commit of the series on its own'
	@echo 'make tree           compose the series into out/tree/BASE, a git tree'
	@echo 'make refresh        write commits edited there back to patches/'
	@echo 'make series         write the mails to out/series/BASE, for git am'
	@echo 'make kernel         build both kernels of BASE, print where they are'
	@echo 'make guest          a shell in the guest, or RUN=program ARGS=... in it'
	@echo 'make clean          remove out/ (trees with edits are kept)'
	@echo 'make distclean      clean, and remove the cache of sources and kernels'
	@echo
	@echo 'BASE=7.3|7.2|7.1|6.18   the base kernel (now $(BASE))'
	@echo 'KERNEL=path             take its sources from a tree or tarball of yours'
	@echo 'KERNEL_UNDER_TEST=stock|patched   for make guest (now $(KERNEL_UNDER_TEST))'
	@echo 'V=1                     show every command'

bench:
	@bench/run $(BASE) $(SCENARIOS)

bench-full:
	@bench/run $(BASE) --full $(SCENARIOS)

bench-virtual:
	@bench/virtual $(BASE)

report:
	@bench/report-page $(BASE)

publish:
	@bench/publish $(BASE)

test:
	@tests/run $(BASE)

stress:
	@tests/stress/run $(BASE)

check:
	@scripts/check

bisect-check:
	@scripts/bisect-check $(BASE)

tree:
	@scripts/compose $(BASE)

refresh:
	@scripts/refresh $(BASE)

series:
	@scripts/series $(BASE)

kernel:
	@vm/kernel $(BASE) stock
	@vm/kernel $(BASE) patched

guest:
	@vm/guest $(BASE) $(KERNEL_UNDER_TEST) $(RUN) $(ARGS)

clean:
	@scripts/clean

distclean:
	@scripts/clean --all
