#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Several threads read at once, with memory a quarter of the data: each its own
# files, and all parts of one file.  See readers.c; one line per run to
# $OUT/readers.tsv, throughput and page cache over time to
# $OUT/readers.seconds.tsv.
#
# usage: bench/readers.sh [DIR...]
#
# Without DIR, all xfs file systems on NVMe disks.  The files are spread over
# the directories; the one file is in the first.
#
#   OUT, KERNEL        as for sequential.sh
#   BENCH_READERS_MIB  data, in 32 files or in one
#                      (default: four times the memory)
#   BENCH_THREADS      default: 1 8 32; with BENCH_FULL: 1 2 4 8 16 32
#   BENCH_BUFFERS      default: 64k 4k
#   BENCH_MODES        default: plain dontcache direct (not 4k, but with
#                      BENCH_FULL)
#   BENCH_LAYOUTS      default: own one
#   BENCH_RUNS         default 1, with BENCH_FULL 3, but none begins after 6 s;
#                      all are in the result
#   BENCH_INTERVAL_MS  between two samples (default 100; BENCH_SCALE=1: 1000)
#
# For bench/run:
# guest-set: quick
# guest-split: nvme-xfs
# guest-files: dcread readers guest-lib
# guest-mem: 128
# guest-size: 1280
# guest-timeout: 900
# guest-mem-full: 2048
# guest-size-full: 17408
# guest-timeout-full: 14400

set -eu
: "${OUT:?set it to the directory of the result}"
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/guest-lib
. "$here/guest-lib"

kernel=${KERNEL:-stock}
threads='1 8 32' interval=100
[ -z "${BENCH_FULL:-}" ] || threads='1 2 4 8 16 32'
[ "${BENCH_SCALE:-}" != 1 ] || interval=1000
threads=${BENCH_THREADS:-$threads}
buffers=${BENCH_BUFFERS:-64k 4k}
modes=${BENCH_MODES:-plain dontcache direct}
layouts=${BENCH_LAYOUTS:-own one}
runs=1
[ -z "${BENCH_FULL:-}" ] || runs=3
runs=${BENCH_RUNS:-$runs}
interval=${BENCH_INTERVAL_MS:-$interval}
files=32
# What the kernel has kept for itself counts, too: round up.
mem=$(awk '/^MemTotal/ { print int(($2 / 1024 + 63) / 64) * 64 }' /proc/meminfo)
size=${BENCH_READERS_MIB:-$((4 * mem))}
each=$((size / files))

if [ $# = 0 ]; then
	for dir in /mnt/NVME_XFS /mnt/NVME_XFS_*; do
		[ ! -d "$dir" ] || set -- "$@" "$dir"
	done
fi
[ $# -gt 0 ] || fail "no disk: name a directory"
dirs=$*
where "$1"
meta file "$size MiB in $files files, and in one; on $# file system(s)"
meta runs "$runs, fewer of what is slow; the fastest is shown"

own='' one=$1/readers.$$.one
i=0
while [ "$i" -lt "$files" ]; do
	for dir in $dirs; do
		[ "$i" -lt "$files" ] || break
		own="$own $dir/readers.$$.$i"
		i=$((i + 1))
	done
done
# shellcheck disable=SC2064 # these files
trap "rm -f $own $one $1/readers.$$.warm" EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
echo "making $size MiB of files for each of: $layouts"
for layout in $layouts; do
	if [ "$layout" = one ]; then
		"$here/dcread" --create "${size}m" "$one"
		continue
	fi
	for file in $own; do
		"$here/dcread" --create "${each}m" "$file"
	done
done

name=${BENCH_NAME:-readers}
tsv=$OUT/$name.tsv
samples=$OUT/$name.seconds.tsv
printf 'kernel\tfs\tlayout\t%s\n' "$("$here/readers" --header)" >"$tsv.part"
printf 'kernel\tfs\tlayout\trun\t%s\n' "$("$here/readers" --sample-header)" \
	>"$samples.part"

# The runs of a case are interleaved, so that all modes see the same neighbours
# on the host.
measure() {
	first_run
	run=0
	while [ "$run" -lt "$runs" ]; do
		run=$((run + 1))
		for mode in $modes; do
			# It takes long, and says nothing new.
			[ "$mode $buffer" != 'direct 4k' ] ||
				[ "${BENCH_FULL:-}" ] || continue
			! enough "$mode" || continue
			rc=0
			rm -f "$samples.one"
			# shellcheck disable=SC2086 # a list of files
			row=$(timed "$mode" "$here/readers" -t "$t" \
				-b "$buffer" -m "$mode" -i "$interval" ${BENCH_MARKS:+-k} \
				-o "$samples.one" $list) || rc=$?
			# Not supported here: the report misses the row.
			[ "$rc" != 3 ] || continue
			[ "$rc" = 0 ] || exit "$rc"
			printf '%s\t%s\t%s\t%s\n' "$kernel" "$fs" "$layout" \
				"$row" >>"$tsv.part"
			awk -v before="$kernel\t$fs\t$layout\t$run" \
				'{ print before "\t" $0 }' "$samples.one" \
				>>"$samples.part"
		done
	done
}

# Once for nothing: an emulator translates the code that it meets.
"$here/dcread" --create 16m "$1/readers.$$.warm"
for mode in $modes; do
	"$here/readers" -m "$mode" "$1/readers.$$.warm" >/dev/null ||
		[ $? = 3 ]
done

n=0
total=$(($(echo "$layouts" | wc -w) * $(echo "$buffers" | wc -w) * \
	$(echo "$threads" | wc -w)))
for layout in $layouts; do
	list=$own
	[ "$layout" = own ] || list=$one
	for buffer in $buffers; do
		for t in $threads; do
			n=$((n + 1))
			echo "$n of $total: $layout, $t threads," \
				"buffer $buffer"
			measure
		done
	done
done
rm -f "$samples.one"
mv "$samples.part" "$samples"
mv "$tsv.part" "$tsv"
