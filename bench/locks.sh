#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# How often is each lock taken by reading threads?  On a kernel with
# CONFIG_LOCK_STAT; the counts hold where times say nothing, and tell what many
# processors will meet.  Memory is a quarter of the data, as in readers.sh.  One
# line for each kind of lock (lockdep's classes) to $OUT/locks.tsv:
#
#   acquisitions contentions   of this class, while the data was read
#   per_mib                    acquisitions / MiB read
#   hold_us                    how long it was held, on average
#
# The class "all" is their sum.
#
# usage: bench/locks.sh [DIR]	(default: the NVMe disk with xfs)
#
#   OUT, KERNEL       as for sequential.sh
#   BENCH_LOCKS_MIB   data (default: four times the memory)
#   BENCH_THREADS     default: 1 4
#   BENCH_BUFFERS     default: 64k 4k
#   BENCH_MODES       default: plain dontcache direct
#   BENCH_LAYOUTS     default: own one
#
# For bench/run:
# guest-set: full
# guest-split: nvme-xfs
# guest-files: dcread readers guest-lib
# guest-config: bench/lockstat.config
# guest-kernels: patched
# guest-mem: 192
# guest-size: 1792
# guest-cpus: 4
# guest-timeout: 900

set -eu
: "${OUT:?set it to the directory of the result}"
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/guest-lib
. "$here/guest-lib"

[ -w /proc/lock_stat ] || fail "no /proc/lock_stat: the kernel needs CONFIG_LOCK_STAT"
kernel=${KERNEL:-stock}
threads=${BENCH_THREADS:-1 4}
buffers=${BENCH_BUFFERS:-64k 4k}
modes=${BENCH_MODES:-plain dontcache direct}
layouts=${BENCH_LAYOUTS:-own one}
mem=$(awk '/^MemTotal/ { print int(($2 / 1024 + 63) / 64) * 64 }' /proc/meminfo)
size=${BENCH_LOCKS_MIB:-$((4 * mem))}
files=4

dir=${1:-${DONTCACHE_NVME_XFS:-}}
[ "$dir" ] || fail "no disk: name a directory"
where "$dir"
meta file "$size MiB in $files files, and in one"
meta runs 1

own='' one=$dir/locks.$$.one
for i in 0 1 2 3; do
	own="$own $dir/locks.$$.$i"
done
# shellcheck disable=SC2064 # these files
trap "rm -f $own $one" EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
echo "making $size MiB of files, twice"
for file in $own; do
	"$here/dcread" --create "$((size / files))m" "$file"
done
"$here/dcread" --create "${size}m" "$one"

tsv=$OUT/locks.tsv
printf 'kernel\tfs\tlayout\tthreads\tmode\tbuffer\tmib\tclass\t' >"$tsv.part"
printf 'acquisitions\tcontentions\tper_mib\thold_us\n' >>"$tsv.part"

# classes: from /proc/lock_stat, class, acquisitions, contentions, hold time in
# all.  A class has spaces in its name and, if readers share it, two lines.
classes() {
	awk '
	match($0, /: +[0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ /) {
		class = substr($0, 1, RSTART - 1)
		sub(/^ +/, "", class)
		sub(/-[RW]$/, "", class)
		split(substr($0, RSTART + 1), value, " ")
		contended[class] += value[2]
		taken[class] += value[8]
		held[class] += value[11]
	}
	END {
		for (class in taken)
			if (taken[class])
				printf "%s\t%d\t%d\t%.2f\n", class, \
					taken[class], contended[class], \
					held[class]
	}' /proc/lock_stat
}

n=0
total=$(($(echo "$layouts" | wc -w) * $(echo "$buffers" | wc -w) * \
	$(echo "$threads" | wc -w) * $(echo "$modes" | wc -w)))
echo 0 >/proc/sys/kernel/lock_stat
for layout in $layouts; do
	list=$own
	[ "$layout" = own ] || list=$one
	for buffer in $buffers; do
		for t in $threads; do
			for mode in $modes; do
				n=$((n + 1))
				echo "$n of $total: $layout, $t threads," \
					"buffer $buffer, $mode"
				echo 0 >/proc/lock_stat
				echo 1 >/proc/sys/kernel/lock_stat
				# shellcheck disable=SC2086 # a list of files
				row=$("$here/readers" -t "$t" -b "$buffer" \
					-m "$mode" -i 60000 $list)
				echo 0 >/proc/sys/kernel/lock_stat
				bytes=$(echo "$row" | cut -f 3)
				classes | awk -F '\t' -v mib="$size" \
				    -v before="$kernel\t$fs\t$layout\t$t\t$mode\t$bytes\t$size" '
				function line(class, taken, contended, held) {
					printf "%s\t%s\t%d\t%d\t%.3f\t%.2f\n", \
						before, class, taken, \
						contended, taken / mib, \
						held / taken
				}
				{
					taken += $2
					contended += $3
					held += $4
					if ($2 / mib >= 0.1)
						line($1, $2, $3, $4)
				}
				END { line("all", taken, contended, held) }' \
					>>"$tsv.part"
			done
		done
	done
done
mv "$tsv.part" "$tsv"
