#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Read a cold file from start to end outside any cgroup, and in one whose
# memory.high is a fifth and whose memory.max is three fifths of the file.
#
# usage: bench/cgroup.sh [DIR...]
#
# Without DIR, the NVMe disk with ext4 and the rotational one with xfs.  One
# line per run to $OUT/cgroup.tsv: those of dcread, and behind them
#
#   ev_high ev_max ev_oom   memory.events of the cgroup
#   pgscan pgsteal refault  of its memory.stat; outside, of all the guest
#   cg_peak_kib             memory.peak: the file cache, and dcread's memory
#
#   OUT, KERNEL       as for sequential.sh
#   BENCH_CGROUP_MIB  size of the file (default 160; BENCH_SCALE=1: 5120)
#   BENCH_BUFFERS     default: 4k 64k
#   BENCH_MODES       default: plain dontcache
#   BENCH_RUNS        default 3, but of what has taken 6 s only a third; all
#                     are in the result
#   BENCH_FULL        if set, buffers of 1k, 16k and 128k, and modes fadvise and
#                     direct, too
#
# For bench/run:
# guest-set: quick
# guest-split: nvme-ext4,hdd-xfs
# guest-files: dcread guest-lib
# guest-size: 448
# guest-timeout: 600
# guest-size-full: 5632
# guest-mem-full: 8192
# guest-timeout-full: 7200

set -eu
: "${OUT:?set it to the directory of the result}"
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/guest-lib
. "$here/guest-lib"

kernel=${KERNEL:-stock}
size=160
[ "${BENCH_SCALE:-}" != 1 ] || size=5120
size=${BENCH_CGROUP_MIB:-$size}
buffers='4k 64k' modes='plain dontcache'
[ -z "${BENCH_FULL:-}" ] ||
	buffers='1k 4k 16k 64k 128k' modes="$modes fadvise direct"
buffers=${BENCH_BUFFERS:-$buffers}
modes=${BENCH_MODES:-$modes}
runs=${BENCH_RUNS:-3}
dcread=${DCREAD:-$here/dcread}
high=$((size / 5)) max=$((size * 3 / 5))
# dcread keeps this much data of its own.
slice=$((size >= 640 ? 16 : 4))

[ $# -gt 0 ] || set -- ${DONTCACHE_NVME_EXT4:+"$DONTCACHE_NVME_EXT4"} \
	${DONTCACHE_HDD_XFS:+"$DONTCACHE_HDD_XFS"}
[ $# -gt 0 ] || fail "no disk: name a directory"
meta file "$size MiB"
meta limits "memory.high $high MiB, memory.max $max MiB"
meta runs "$runs, fewer of what is slow; the fastest is shown"

cg=/sys/fs/cgroup/dontcache-bench
tsv=$OUT/cgroup.tsv
file=''
# shellcheck disable=SC2317,SC2329 # called by trap
cleanup() {
	[ -z "$file" ] || rm -f "$file" "$file.warm"
	[ ! -d "$cg" ] || rmdir "$cg"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
case " $(cat /sys/fs/cgroup/cgroup.subtree_control) " in
*' memory '*) ;;
*)	echo +memory >/sys/fs/cgroup/cgroup.subtree_control ;;
esac

printf 'kernel\tdevice\tfs\tra_kb\tcgroup\thigh_mib\tmax_mib\t%s\t%s\n' \
	"$("$dcread" --header)" \
	"$(echo 'ev_high ev_max ev_oom pgscan pgsteal refault cg_peak_kib' |
		tr ' ' '\t')" >"$tsv.part"

# one BUFFER MODE CGROUP: print the line of one run
one() {
	if [ "$3" = none ]; then
		_stat=/proc/vmstat
		set -- "$1" "$2" 0 0 \
			"$dcread" -s "${slice}m" -b "$1" -m "$2" "$file"
		_steal='pgsteal_kswapd pgsteal_direct'
		_scan='pgscan_kswapd pgscan_direct'
	else
		# A new cgroup for each run counts from zero.
		mkdir "$cg" || return 1
		echo "${high}M" >"$cg/memory.high"
		echo "${max}M" >"$cg/memory.max"
		_stat=$cg/memory.stat
		_scan=pgscan _steal=pgsteal
		# shellcheck disable=SC2016 # for the inner shell
		set -- "$1" "$2" "$high" "$max" \
			sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$cg" \
			"$dcread" -s "${slice}m" -b "$1" -m "$2" "$file"
	fi
	_group=$3 _max=$4
	shift 4
	# shellcheck disable=SC2086 # lists of names
	{
		_a=$(count $_stat $_scan) _b=$(count $_stat $_steal)
		_c=$(count $_stat workingset_refault_file)
		_row=$("$@") || return
		_a=$(($(count $_stat $_scan) - _a))
		_b=$(($(count $_stat $_steal) - _b))
		_c=$(($(count $_stat workingset_refault_file) - _c))
	}
	_events='0 0 0' _peak=0 _where=none
	if [ "$_group" != 0 ]; then
		_where=limits
		_events="$(count "$cg/memory.events" high) $(count \
			"$cg/memory.events" max) $(count \
			"$cg/memory.events" oom)"
		_peak=$(($(cat "$cg/memory.peak") / 1024))
		rmdir "$cg"
	fi
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$kernel" "$device" \
		"$fs" "$ra" "$_where" "$_group" "$_max" "$_row" \
		"$(echo "$_events $_a $_b $_c $_peak" | tr ' ' '\t')"
}

# The runs of a case are interleaved, so that all modes see the same neighbours
# on the host.
measure() {
	first_run
	run=0
	while [ "$run" -lt "$runs" ]; do
		run=$((run + 1))
		for mode in $modes; do
			case $mode:$buffer in
			direct:512 | direct:1k | direct:2k) continue ;;
			esac
			! enough "$mode" || continue
			rc=0
			timed "$mode" one "$buffer" "$mode" "$1" \
				>>"$tsv.part" || rc=$?
			[ "$rc" = 0 ] || [ ! -d "$cg" ] || rmdir "$cg"
			# Not supported here: the report misses the row.
			[ "$rc" = 0 ] || [ "$rc" = 3 ] || exit "$rc"
		done
	done
}

n=0
total=$(($(echo "$buffers" | wc -w) * $#))
for dir; do
	where "$dir"
	ra=$(cat "$disk/queue/read_ahead_kb")
	file=$dir/cgroup.$$
	"$dcread" --create "${size}m" "$file"
	# Once for nothing: an emulator translates the code that it meets.
	"$dcread" --create 16m "$file.warm"
	for mode in $modes; do
		"$dcread" -b 64k -m "$mode" "$file.warm" >/dev/null ||
			[ $? = 3 ]
	done
	for buffer in $buffers; do
		n=$((n + 1))
		echo "$n of $total: $device $fs, buffer $buffer"
		for group in none limits; do
			measure "$group"
		done
	done
	rm -f "$file" "$file.warm"
	file=
done
mv "$tsv.part" "$tsv"
