#!/bin/sh -e
# SPDX-License-Identifier: GPL-2.0
#
# Has dontcache_read run on one file system of an NVMe disk and on one of a
# rotational disk, where there are such; where there is neither, it looks for a
# place by itself.  DONTCACHE_DIRS says where to run it instead.
#
# usage: ksft_dontcache.sh [options of dontcache_read, such as -f small]
#
# kselftest's runner passes KSELFTEST_KSFT_DONTCACHE_SH_ARGS.

# The first mounted file system on a disk of this kind in which we can make
# files, and read them with RWF_DONTCACHE.
find_dir() {
	while read -r _ _ dev _ dir _; do
		# These separate the names in DONTCACHE_DIRS, or are escaped.
		case $dir in
		*:* | *\\*)	continue ;;
		esac
		if ! [ -d "$dir" ] || ! [ -w "$dir" ]; then
			continue
		fi

		disk=$(readlink -f "/sys/dev/block/$dev") || continue
		[ -e "$disk/queue" ] || disk=${disk%/*}
		[ -r "$disk/queue/rotational" ] || continue
		names=" ${disk##*/} $(ls "$disk/slaves" 2>/dev/null)"
		case $1-$(cat "$disk/queue/rotational")$names in
		*" loop"* | *" ram"* | *" zram"*) continue ;;
		nvme-0*" nvme"* | rotational-1*) ;;
		*)	continue ;;
		esac

		case $(./dontcache_read -l -- "$dir" 2>/dev/null) in
		*"# SKIP"*)	continue ;;
		esac
		echo "$dir"
		return
	done </proc/self/mountinfo
}

if [ -z "$DONTCACHE_DIRS" ]; then
	for kind in nvme rotational; do
		dir=$(find_dir $kind)
		if [ "$dir" ]; then
			DONTCACHE_DIRS="$DONTCACHE_DIRS $dir"
		else
			echo "# SKIP no file system on a disk that is $kind takes RWF_DONTCACHE"
		fi
	done
	export DONTCACHE_DIRS
fi

if [ $# != 0 ]; then
	export DONTCACHE_ARGS="$*"
fi
./run_vmtests.sh -t dontcache
