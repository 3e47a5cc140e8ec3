#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Read a cold file from start to end: each disk, readahead size, buffer size
# and mode; one line per run to $OUT/sequential.tsv, progress to stdout.
#
# usage: bench/sequential.sh [DIR...]
#
# Without DIR, the disks of the guest (DONTCACHE_NVME_EXT4 and so on).  This
# runs in the guest under busybox, so it uses nothing else of this repository
# than the program dcread, which lies beside it or is named by DCREAD.
#
#   OUT               directory of the result
#   KERNEL            what to put in the column kernel (default: stock)
#   BENCH_SIZE_MIB    size of the file (default 64)
#   BENCH_RUNS        runs of each (default 3; a third of them of what takes
#                     2 s or more)
#   BENCH_BUFFERS     buffer sizes (default: 1k 4k 16k 64k 128k)
#   BENCH_MODES       default: plain dontcache; with BENCH_FULL fadvise and
#                     direct, too
#   BENCH_RA_KB       read_ahead_kb, "default" is what the disk has
#                     (default: default 4096)
#   BENCH_DROP        all: drop all caches before each run (default), or file:
#                     only the file's, for a machine that is used by others
#
# For bench/run (one guest for each disk):
# guest-set: quick
# guest-split: nvme-ext4 nvme-xfs hdd-ext4 hdd-xfs
# guest-files: dcread

set -eu

: "${OUT:?set it to the directory of the result}"
kernel=${KERNEL:-stock}
size=${BENCH_SIZE_MIB:-64}
runs=${BENCH_RUNS:-3}
buffers=${BENCH_BUFFERS:-1k 4k 16k 64k 128k}
modes=${BENCH_MODES:-plain dontcache${BENCH_FULL:+ fadvise direct}}
ras=${BENCH_RA_KB:-default 4096}
drop=
[ "${BENCH_DROP:-all}" = all ] || drop=-c
dcread=${DCREAD:-$(dirname "$0")/dcread}

if [ $# = 0 ]; then
	set -- ${DONTCACHE_NVME_EXT4:+"$DONTCACHE_NVME_EXT4"} \
		${DONTCACHE_NVME_XFS:+"$DONTCACHE_NVME_XFS"} \
		${DONTCACHE_HDD_EXT4:+"$DONTCACHE_HDD_EXT4"} \
		${DONTCACHE_HDD_XFS:+"$DONTCACHE_HDD_XFS"}
fi
[ $# -gt 0 ] || {
	echo "sequential.sh: no disk: name a directory" >&2
	exit 2
}

# Whatever happens, the disk gets its readahead back and loses our file.
ra_file='' ra_default='' file=''
restore() {
	[ -z "$ra_file" ] || [ "$ra_default" = "$(cat "$ra_file")" ] ||
		echo "$ra_default" >"$ra_file"
	[ -z "$file" ] || rm -f "$file"
	ra_file='' file=''
}
trap restore EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# O_DIRECT reads whole blocks.
skip() {
	case $1:$2 in
	direct:512 | direct:1k | direct:2k) return 0 ;;
	esac
	return 1
}

n=0
total=$(($(echo "$ras" | wc -w) * $(echo "$buffers" | wc -w) * $#))
tsv=$OUT/sequential.tsv
printf 'runs\t%s\n' "$runs, of what takes 2 s or more $(((runs + 2) / 3))" \
	>"$OUT/meta"
printf 'kernel\tdevice\tfs\tra_kb\t%s\n' "$("$dcread" --header)" >"$tsv.part"

# The runs of one buffer size are interleaved, so that all modes see the same
# neighbours on the host.
measure() {
	run=0 slow=
	while [ "$run" -lt "$runs" ]; do
		run=$((run + 1))
		for mode in $modes; do
			skip "$mode" "$buffer" && continue
			[ $(($(echo "$slow" | grep -cx "$mode") * 3)) -lt \
				"$runs" ] || continue
			rc=0
			row=$("$dcread" $drop -b "$buffer" -m "$mode" \
				"$file") || rc=$?
			# Not supported here: the report misses the row.
			[ "$rc" = 3 ] && continue
			[ "$rc" = 0 ] || exit "$rc"
			printf '%s\t%s\t%s\t%s\t%s\n' "$kernel" "$device" \
				"$fs" "$ra" "$row" >>"$tsv.part"
			# Column seconds: what is slow, the noise cannot hide,
			# but a single run may have met a pause of the host.
			[ "$(echo "$row" | cut -f 11 | cut -d . -f 1)" -lt 2 ] ||
				slow="$slow
$mode"
		done
	done
}

for dir; do
	# Where the directory is: mount point, device number, file system.
	mount=$(df -P "$dir" | awk 'END { print $NF }')
	where=$(awk -v m="$mount" '$5 == m {
		for (i = 7; $i != "-"; i++)
			;
		where = $3 " " $(i + 1)
	} END { print where }' /proc/self/mountinfo)
	disk=/sys/dev/block/${where% *}
	fs=${where#* }
	# With blocks larger than pages it is another thing.
	block=$(stat -f -c %S "$dir")
	[ "$block" -le 4096 ] || fs=$fs$((block / 1024))k
	[ -d "$disk" ] || {
		echo "sequential.sh: $dir: $fs is on no single disk" >&2
		exit 2
	}
	[ -d "$disk/queue" ] || disk=$disk/..
	device=nvme
	[ "$(cat "$disk/queue/rotational")" = 0 ] || device=hdd

	file=$dir/dcread.$$
	"$dcread" --create "${size}m" "$file"
	# Once for nothing: an emulator translates the code that it meets.
	for mode in $modes; do
		skip "$mode" 64k || "$dcread" $drop -b 64k -m "$mode" "$file" \
			>/dev/null || [ $? = 3 ]
	done
	ra_default=$(cat "$disk/queue/read_ahead_kb")
	for ra in $ras; do
		ra_file=$disk/queue/read_ahead_kb
		[ "$ra" != default ] || ra=$ra_default
		[ "$ra" = "$(cat "$ra_file")" ] || echo "$ra" >"$ra_file"
		for buffer in $buffers; do
			n=$((n + 1))
			echo "$n of $total: $device $fs, readahead ${ra}k," \
				"buffer $buffer"
			measure
		done
	done
	restore
done
mv "$tsv.part" "$tsv"
