#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Does a working set survive that a file five times the memory is streamed, or
# copied?  See workingset.c; one line per case to $OUT/workingset.tsv.
#
# usage: bench/workingset.sh [DIR]	(default: the NVMe disk with ext4)
#
#   OUT, KERNEL       as for sequential.sh
#   BENCH_SET_MIB     size of the working set (default 60; BENCH_SCALE=1: 375)
#   BENCH_STREAM_MIB  size of the stream (default 768; BENCH_SCALE=1: 5120)
#   BENCH_BUFFERS     default: 64k; with BENCH_FULL: 4k 64k
#   BENCH_MODES       default: plain dontcache dontcache-rw fadvise direct
#   BENCH_RUNS        default 1, with BENCH_FULL 3, but none begins after 12 s;
#                     all are in the result
#
# For bench/run:
# guest-set: quick
# guest-split: nvme-ext4
# guest-files: dcread workingset guest-lib
# guest-mem: 192
# guest-size: 1728
# guest-timeout: 600
# guest-mem-full: 1024
# guest-size-full: 11264
# guest-timeout-full: 7200

set -eu
: "${OUT:?set it to the directory of the result}"
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/guest-lib
. "$here/guest-lib"

kernel=${KERNEL:-stock}
set_mib=60 stream=768
[ "${BENCH_SCALE:-}" != 1 ] || set_mib=375 stream=5120
set_mib=${BENCH_SET_MIB:-$set_mib} stream=${BENCH_STREAM_MIB:-$stream}
buffers=64k
[ -z "${BENCH_FULL:-}" ] || buffers='4k 64k'
buffers=${BENCH_BUFFERS:-$buffers}
modes=${BENCH_MODES:-plain dontcache dontcache-rw fadvise direct}
runs=1
[ -z "${BENCH_FULL:-}" ] || runs=3
runs=${BENCH_RUNS:-$runs}

: "${BENCH_ENOUGH_S:=12}"
dir=${1:-${DONTCACHE_NVME_EXT4:-}}
[ "$dir" ] || fail "no disk: name a directory"
where "$dir"
meta file "working set $set_mib MiB, stream $stream MiB"
meta runs "$runs, fewer of what is slow; the fastest is shown"

tsv=$OUT/workingset.tsv
file=$dir/workingset.$$
trap 'rm -f "$file.set" "$file.stream" "$file.copy"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
"$here/dcread" --create "${set_mib}m" "$file.set"
"$here/dcread" --create "${stream}m" "$file.stream"

printf 'kernel\tdevice\tfs\t%s\n' "$("$here/workingset" --header)" \
	>"$tsv.part"
# The runs of a case are interleaved, so that all modes see the same neighbours
# on the host.
measure() {
	first_run
	run=0
	while [ "$run" -lt "$runs" ]; do
		run=$((run + 1))
		for mode in $modes; do
			# Where nothing is written.
			[ "$op $mode" != 'read dontcache-rw' ] || continue
			! enough "$mode" || continue
			echo "$n of $total: $op $mode, buffer $buffer"
			set -- -b "$buffer" -m "$mode"
			[ "$op" = read ] || set -- "$@" -c "$file.copy"
			rc=0
			row=$(timed "$mode" "$here/workingset" "$@" \
				"$file.set" "$file.stream") || rc=$?
			rm -f "$file.copy"
			# Not supported here: the report misses the row.
			[ "$rc" != 3 ] || continue
			[ "$rc" = 0 ] || exit "$rc"
			printf '%s\t%s\t%s\t%s\n' "$kernel" "$device" "$fs" \
				"$row" >>"$tsv.part"
		done
	done
}

n=0
total=$((2 * $(echo "$buffers" | wc -w)))
for op in read copy; do
	for buffer in $buffers; do
		# Where each piece costs two system calls, one size will do.
		[ "$op $buffer" != 'copy 4k' ] || [ "${BENCH_BUFFERS:-}" ] ||
			continue
		n=$((n + 1))
		measure
	done
done
mv "$tsv.part" "$tsv"
