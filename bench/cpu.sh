#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What reading costs the processors while memory is short: the scenario readers,
# in virtual time, where each instruction takes 1 ns.  Processor time per GiB is
# then a count of instructions, and repeats on any machine to 1 %.
#
# Throughput means little here: while all wait for the disk, time jumps to the
# next timer.  Copying a byte to the reader takes one instruction, 1074 ms for a
# GiB, far more than on hardware: see what is left without them.
#
# usage: bench/cpu.sh [DIR...]
#
# The result is $OUT/cpu.tsv.  Variables: those of readers.sh.
#
# For bench/run:
# guest-set: full
# guest-split: nvme-xfs
# guest-files: dcread readers guest-lib readers.sh
# guest-clock: virtual
# guest-append: tsc_early_khz=1000000 nolapic_timer nvme_core.io_timeout=255
# guest-mem: 128
# guest-size: 1280
# guest-timeout: 1800

set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${BENCH_THREADS:=1 8 32}" "${BENCH_RUNS:=2}"
# What a run takes here is nothing to be kept short.
BENCH_NAME=cpu BENCH_ENOUGH_S=1000 BENCH_INTERVAL_MS=25
export BENCH_NAME BENCH_THREADS BENCH_RUNS BENCH_ENOUGH_S BENCH_INTERVAL_MS
# shellcheck source=bench/readers.sh
. "$here/readers.sh"
