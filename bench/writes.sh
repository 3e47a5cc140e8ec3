#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Write a file in small pieces, with and without RWF_DONTCACHE: is a page
# dropped, or written, once per piece?  See writes.c; one line per run to
# $OUT/writes.tsv.
#
# usage: bench/writes.sh [DIR...]	(default: the NVMe disks)
#
#   OUT, KERNEL       as for sequential.sh
#   BENCH_WRITE_MIB   size of the file (default 32; BENCH_SCALE=1: 1024)
#   BENCH_PIECES      default: 512 1k 4k 16k 64k 1m
#   BENCH_RUNS        default 1, with BENCH_FULL 3, but none begins after 6 s;
#                     all are in the result
#
# For bench/run:
# guest-set: full
# guest-split: nvme-ext4,nvme-xfs
# guest-files: writes guest-lib
# guest-size: 448
# guest-timeout: 600
# guest-size-full: 1536
# guest-timeout-full: 7200

set -eu
: "${OUT:?set it to the directory of the result}"
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/guest-lib
. "$here/guest-lib"

kernel=${KERNEL:-stock}
size=32
[ "${BENCH_SCALE:-}" != 1 ] || size=1024
size=${BENCH_WRITE_MIB:-$size}
pieces=${BENCH_PIECES:-512 1k 4k 16k 64k 1m}
runs=1
[ -z "${BENCH_FULL:-}" ] || runs=3
runs=${BENCH_RUNS:-$runs}
[ $# -gt 0 ] || set -- ${DONTCACHE_NVME_EXT4:+"$DONTCACHE_NVME_EXT4"} \
	${DONTCACHE_NVME_XFS:+"$DONTCACHE_NVME_XFS"}
[ $# -gt 0 ] || fail "no disk: name a directory"
meta file "$size MiB"
meta runs "$runs, fewer of what is slow; the fastest is shown"

tsv=$OUT/writes.tsv
file=
trap '[ -z "$file" ] || rm -f "$file"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The runs of a case are interleaved, so that both modes see the same neighbours
# on the host.
measure() {
	first_run
	run=0
	while [ "$run" -lt "$runs" ]; do
		run=$((run + 1))
		for mode in plain dontcache; do
			! enough "$mode" || continue
			rc=0
			row=$(timed "$mode" "$here/writes" ${how:+"$how"} \
				-b "$piece" -m "$mode" -s "${size}m" \
				"$file") || rc=$?
			rm -f "$file"
			# Not supported here: the report misses the row.
			[ "$rc" != 3 ] || continue
			[ "$rc" = 0 ] || exit "$rc"
			printf '%s\t%s\t%s\t%s\n' "$kernel" "$device" "$fs" \
				"$row" >>"$tsv.part"
		done
	done
}

n=0
total=$(($(echo "$pieces" | wc -w) * $#))
printf 'kernel\tdevice\tfs\t%s\n' "$("$here/writes" --header)" >"$tsv.part"
for dir; do
	where "$dir"
	file=$dir/writes.$$
	for piece in $pieces; do
		n=$((n + 1))
		echo "$n of $total: $device $fs, pieces of $piece"
		for how in '' -o; do
			measure
		done
	done
	file=
done
mv "$tsv.part" "$tsv"
