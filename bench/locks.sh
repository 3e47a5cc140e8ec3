#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# How often readers take each lock, for a MiB: the scenario readers, in virtual
# time, with QEMU counting (see lockcount.c).  The counts say on one processor
# what many will meet.
#
# usage: bench/locks.sh [DIR...]
#
# bench/run makes out/bench/locks.tsv from what this leaves, in $OUT/locks.tsv,
# and what QEMU counted: a line for each run and each caller of a function that
# takes a lock.  Variables: those of readers.sh.
#
# For bench/run:
# guest-set: full
# guest-split: nvme-xfs
# guest-files: dcread readers guest-lib readers.sh
# guest-clock: virtual
# guest-append: tsc_early_khz=1000000 nolapic_timer nvme_core.io_timeout=255
# guest-plugin: lockcount
# guest-mem: 128
# guest-size: 1280
# guest-timeout: 1800

set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${BENCH_THREADS:=8}"
# Counted once: a second run would say the same.
BENCH_NAME=locks BENCH_MARKS=1 BENCH_RUNS=1
export BENCH_NAME BENCH_MARKS BENCH_THREADS BENCH_RUNS
# shellcheck source=bench/readers.sh
. "$here/readers.sh"
