#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The guest's side of tests/stress/run: run parts, one row each to
# $OUT/stress.tsv.
#
#   PARTS	of: coherency life faults kill gone input bound
#   OPS		operations of coherency, and of life, on each disk
#   ROUNDS	rounds of kill on each disk
#   SEED	of all random choices
#   FAULT_OPS	operations of alloc, and of request, on each disk
#   QUICK_INPUT	y: not all combinations of flags
#   BASE_SKIPS	disks that do not take the flag on this base
#
# Columns: verdict, part, disk, operations, faults, seconds, warnings, pages
# left, note.
#
# Each part has a cgroup that its processes are in, also those that mount and
# unmount, so that what is charged to it when the file system is unmounted is
# what is left.  A completion that the emulated NVMe disk lost (see vm/boot) does
# not matter here: nothing is measured in time.

# Parts are called by their names.
# shellcheck disable=SC2317,SC2329
set -u

cg=/sys/fs/cgroup/stress
nullb=/sys/kernel/config/nullb
tsv=$OUT/stress.tsv
bad_pattern='WARNING:|BUG:|Oops|INFO: task .* blocked|Bad page|bad page|UBSAN:|KASAN:|possible .* detected|INFO: possible|suspicious RCU|inconsistent lock state|ODEBUG|page_table_check|list_(add|del) corruption|detected stall|soft lockup|general protection|Page cache invalidation failure'
any_bad=0

cat /proc/kmsg >"$OUT/kmsg" &
kmsg=$!

say() { echo "$*"; }

# How many warnings there were since begin
warnings() {
	sleep 1
	_n=$(tail -n +"$kmsg_from" "$OUT/kmsg" | grep -cE "$bad_pattern")
	[ "$(cat /proc/sys/kernel/tainted)" = "$taint_from" ] || _n=$((_n + 1))
	echo "$_n"
}

# settle: no process of the part is left
settle() {
	echo 1 >"$cg/cgroup.kill"
	while [ -s "$cg/cgroup.procs" ] && [ -n "$(cat "$cg/cgroup.procs")" ]; do
		usleep 10000
	done
}

# begin PART DISK
begin() {
	part=$1 disk=$2
	began=$(cut -d . -f 1 /proc/uptime)
	kmsg_from=$(($(wc -l <"$OUT/kmsg") + 1))
	taint_from=$(cat /proc/sys/kernel/tainted)
	verdict=ok operations=0 faults=0 pages_left=- note=''
	rm -f /tmp/said
	: >/tmp/log
	rm -f /tmp/disturb
	if [ -d "$cg" ]; then
		settle
		rmdir "$cg" || wrong "the last cgroup is in use"
	fi
	mkdir -p "$cg"
	echo "part $part, $disk" >/dev/kmsg
}

# wrong TEXT: the part failed
wrong() {
	verdict='not ok'
	note="${note:+$note; }$*"
}

# skip TEXT
skip() {
	verdict=skip
	note="$*"
}

# finish: the row of the part
finish() {
	_warnings=$(warnings)
	[ "$_warnings" = 0 ] || {
		wrong "the kernel warned"
		tail -n +"$kmsg_from" "$OUT/kmsg" |
			grep -m 3 -E "$bad_pattern"
	}
	[ "$pages_left" = - ] || [ "$pages_left" = 0 ] ||
		wrong "$pages_left pages are left"
	_seconds=$(($(cut -d . -f 1 /proc/uptime) - began))
	[ "$verdict" = 'not ok' ] && {
		any_bad=1
		cp /tmp/log "$OUT/log.$part.$disk"
		tail -n 40 /tmp/log
	}
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$verdict" "$part" \
		"$disk" "$operations" "$faults" "$_seconds" "$_warnings" \
		"$pages_left" "$note" >>"$tsv"
	say "$part, $disk: $verdict: $operations operations, $faults faults, $_seconds s, $_warnings warnings, $pages_left pages left${note:+ ($note)}"
}

# inside COMMAND...: in the cgroup
inside() {
	sh -c "echo \$\$ >$cg/cgroup.procs && exec \"\$@\"" sh "$@"
}

# program COMMAND...: in the cgroup; its numbers are added.  4 is a skip.
program() {
	inside "$@" >/tmp/said 2>&1 &
	_pid=$!
	{ while sleep 20; do tail -n 1 /tmp/said | grep " of [0-9]* "; done; } &
	_teller=$!
	wait "$_pid"
	_rc=$?
	kill "$_teller"
	wait "$_teller" 2>/dev/null
	cat /tmp/said >>/tmp/log
	_done=$(tail -n 1 /tmp/said)
	case $_rc-$_done in
	0-done*) ;;
	4-*)	return 4 ;;
	*)	wrong "$1 ${2:-} ended with $_rc: $(grep -m 1 -E '^[a-z]+: ' /tmp/said)"
		return 1 ;;
	esac
	operations=$((operations + $(echo "$_done" | cut -d ' ' -f 2)))
	case $_done in
	*faults*) faults=$((faults + $(echo "$_done" | cut -d ' ' -f 4))) ;;
	esac
}

label() { echo "$1" | tr "a-z-" "A-Z_"; }

# attach DISK: mount it, set dir and dev
attach() {
	_label=$(label "$1")
	dir=/mnt/$_label
	eval "dev=\${dev_$_label:-}"
	[ "$dev" ] || dev=$(findfs "LABEL=$_label" 2>/dev/null) || {
		skip "no such disk"
		return 1
	}
	eval "dev_$_label=$dev"
	# init has mounted it; it must be the cgroup's.
	mkdir -p "$dir"
	! grep -q " $dir " /proc/mounts || umount "$dir" || {
		wrong "cannot unmount"
		return 1
	}
	inside mount "$dev" "$dir" 2>/tmp/mount.err && return
	if [ "$1" = nvme-xfs64k ]; then
		skip "this kernel does not mount it"
	else
		wrong "$(head -n 1 /tmp/mount.err)"
	fi
	return 1
}

# add_up: make memory.stat tell all that it knows.  The kernel adds it up when
# asked if there is much to add, else each two seconds, when it gets to it.
add_up() {
	inside dd if=/dev/zero of=/dev/null bs=2M count=1 2>/dev/null
}

# Pages of files that the cgroup is charged for, not those in tmpfs.
left() {
	_tries=0
	while :; do
		add_up
		_left=$(awk '$1 == "file" { f = $2 } $1 == "shmem" { s = $2 }
			END { print (f - s) / 4096 }' "$cg/memory.stat")
		[ "$_left" = 0 ] || [ "$_tries" -ge 4 ] && break
		_tries=$((_tries + 1))
		sleep 1
	done
	echo "$_left"
}

# leaked [SECONDS]: pages that are charged, but are none of those that
# memory.stat knows: they belong to no file any more, and were not freed.
#
# What is only late goes when it is asked to, at the latest after some time:
# folios in the batches of the LRU lists (compact_memory empties those of all
# processors), charges in the stocks of the processors (memory.high has them
# given back, by work on the other processors; of a few pages of the kernel
# memory.stat then tells two seconds later).  Then no page is unaccounted for;
# what leaks stays.
leaked() {
	_tries=0
	while :; do
		if [ $((_tries % 4)) = 0 ]; then
			add_up
			echo 1 >/proc/sys/vm/compact_memory
		fi
		echo 0 >"$cg/memory.high"
		usleep 100000
		_leaked=$(awk -v current="$(cat "$cg/memory.current")" '
			$1 == "anon" || $1 == "file" || $1 == "kernel" ||
			$1 == "sock" {
				current -= $2
			}
			END { print current / 4096 }' "$cg/memory.stat")
		echo max >"$cg/memory.high"
		[ "$_leaked" = 0 ] || [ "$_tries" -ge "${1:-60}" ] && break
		_tries=$((_tries + 1))
		sleep 1
	done
	[ "$_tries" = 0 ] ||
		echo "$part, $disk: $_leaked pages unaccounted for after $_tries s" >>"$OUT/late"
	echo "$_leaked"
}

# detach: unmount, and count what is left
detach() {
	settle
	sync
	inside umount "$dir" || wrong "cannot unmount"
	_left=$(left)
	_leaked=$(leaked)
	[ "$_leaked" = 0 ] || wrong "$_leaked pages are leaked"
	[ "$pages_left" = - ] && pages_left=0
	pages_left=$((pages_left + _left + _leaked))
}

# null_disk NAME MIB: a disk in memory, at /dev/NAME
null_disk() {
	[ -d "$nullb" ] || mount -t configfs configfs /sys/kernel/config 2>/dev/null
	mkdir "$nullb/$1" 2>/dev/null || return 1
	echo "$2" >"$nullb/$1/size" &&
		echo 1 >"$nullb/$1/memory_backed" &&
		echo 1 >"$nullb/$1/power" || return 1
	for _try in 1 2 3 4 5; do
		[ -b "/dev/$1" ] && return
		sleep 1
	done
	return 1
}

no_null_disk() {
	echo 0 >"$nullb/$1/power"
	rmdir "$nullb/$1"
}

# What stress found when it ended, and what the disk says after a remount.
same_after_remount() {
	_sum=$(grep '^sum' /tmp/said)
	detach
	[ "$verdict" = ok ] || return
	attach "$disk" || return
	_now=$(inside ./stress -H "$dir/stress")
	[ "$_now" = "$_sum" ] ||
		wrong "after a remount the file has other bytes ($_now, not $_sum)"
	rm -f "$dir/stress"
	detach
}

# run_stress OPTIONS: on the disk of this part
run_stress() {
	if [ "$disk" = nvme-raw ]; then
		case " $BASE_SKIPS " in
		*" $disk "*)
			skip "block devices do not take the flag here"
			return ;;
		esac
		file=$DONTCACHE_NVME_RAW
		set -- -b "$@"
	else
		attach "$disk" || return 1
		file=$dir/stress
	fi
	if [ "$part" = life ]; then
		set -- -e "$@"
		disturb "$file" &
		_disturber=$!
	fi
	program ./stress -x -s "$SEED" -o "$OPS" "$@" "$file"
	if [ "$part" = life ]; then
		rm /tmp/disturb
		wait "$_disturber"
		echo max >"$cg/memory.max"
	fi
	sed -n 's/^counts //p' /tmp/said >>"$OUT/counts.$part.$disk"
	if [ "$disk" = nvme-raw ]; then
		settle
		pages_left=$(($(left) + $(leaked)))
	else
		same_after_remount
	fi
	# The one reason for which a direct read may fail (see stress.c), and
	# the kernel says so.
	_collided=$(sed -n 's/^collided //p' /tmp/said)
	if [ "$_collided" ]; then
		note="${note:+$note; }$_collided"
		tail -n +"$kmsg_from" "$OUT/kmsg" |
			grep -q 'Direct I/O collision' ||
			wrong "the kernel knows of no such collision"
	fi
}

part_coherency() {
	begin coherency "$1"
	run_stress
	finish
}

# disturb: whatever moves, drops or splits folios, in turns, until told to stop
disturb() {
	n=0
	slack=4194304
	# Blocks of 64K are not to be had if there is little.
	[ "$disk" = nvme-xfs64k ] && slack=8388608
	split=/sys/kernel/debug/split_huge_pages
	# Of a file it wants pages, and looks for each: 8 MiB of 4K.
	pages=0x0,0x800
	while [ -e /tmp/disturb ]; do
		n=$((n + 1))
		# One that failed, as reclaim may, does not count.
		case $((n % 10)) in
		0|5)	echo 1 >/proc/sys/vm/compact_memory
			what=compact ;;
		1)	echo 1 >/proc/sys/vm/drop_caches
			what=drop_caches ;;
		2)	echo "$1,$pages" >"$split"
			what="split" ;;
		7)	echo "$1,$pages,$((n / 10 % 4))" >"$split"
			what="split" ;;
		3)	echo 3 >/proc/sys/vm/drop_caches
			what=drop_caches ;;
		4|9)	# As much as there is, but for the file.
			max=$(awk '$1 == "anon" || $1 == "shmem" || $1 == "kernel" {
				sum += $2 } END { print sum }' "$cg/memory.stat")
			max=$((max + $(cat "$cg/memory.swap.current") + slack))
			# The program begins with 8 MiB of model and as much file.
			[ "$max" -ge 20000000 ] || max=20000000
			echo "$max" >"$cg/memory.max"
			what=memory.max ;;
		6)	swapoff /dev/swap && swapon /dev/swap
			what=swap ;;
		8)	echo 2M >"$cg/memory.reclaim"
			what=reclaim ;;
		esac 2>/dev/null && echo "$what" >>/tmp/disturbed
		usleep 20000
	done
}

part_life() {
	begin life "$1"
	: >/tmp/disturbed
	: >/tmp/disturb
	if null_disk swap 128; then
		{ mkswap /dev/swap >/dev/null && swapon /dev/swap; } ||
			wrong "no swap"
	fi
	run_stress
	rm -f /tmp/disturb
	swapoff /dev/swap
	no_null_disk swap
	faults=$(wc -l </tmp/disturbed)
	events=$(sort /tmp/disturbed | uniq -c | awk '{ printf " %s %s", $2, $1 }')
	[ -z "$events" ] || note="${note:+$note; }${events# }"
	echo "disturbed$events" >>"$OUT/counts.$part.$disk"
	grep -q '^oom_kill 0$' "$cg/memory.events" || wrong "a process was killed"
	# Where did it get to: reclaim must have met the file.
	awk '$1 ~ /^(pgscan|pgsteal|pswpout|pgmigrate_success|compact_stall|compact_success)$/' \
		/proc/vmstat >>"$OUT/counts.$part.$disk"
	finish
}

# Reads that fail, with a disk that has bad blocks.
part_window() {
	begin window "$1"
	if ! attach "$1"; then
		finish
		return
	fi
	inside umount "$dir"
	if ! null_disk bad 512; then
		skip 'no null_blk with configfs'
	elif ! inside ./faults clone "$dev" /dev/bad ||
	    ! inside mount /dev/bad "$dir"; then
		wrong 'no copy of the disk'
	else
		inside ./faults create 2 "$dir/file"
		program ./faults window "$nullb/bad/badblocks" "$dir/file"
		detach
	fi
	no_null_disk bad 2>/dev/null
	finish
}

# Allocations that fail.
part_alloc() {
	begin alloc "$1"
	if [ ! -d /sys/kernel/debug/failslab ]; then
		skip 'no FAULT_INJECTION in this kernel'
	elif attach "$1"; then
		for _dir in failslab fail_page_alloc; do
			_dir=/sys/kernel/debug/$_dir
			echo N >"$_dir/ignore-gfp-wait"
			echo 0 >"$_dir/verbose"
		done
		echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
		echo N >/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem
		inside ./faults create 4 "$dir/file"
		program ./faults alloc "$fault_ops" "$dir/file"
		detach
		for _dir in failslab fail_page_alloc; do
			echo Y >"/sys/kernel/debug/$_dir/ignore-gfp-wait"
		done
	fi
	finish
}

# Requests that fail.
part_request() {
	begin request "$1"
	if [ ! -d /sys/kernel/debug/fail_make_request ]; then
		skip 'no FAULT_INJECTION in this kernel'
	elif attach "$1"; then
		inside ./faults create 8 "$dir/file"
		cd /sys/kernel/debug/fail_make_request || return
		echo Y >task-filter
		echo 0 >verbose
		echo 25 >probability
		echo -1 >./times
		cd /job || return
		echo 1 >"/sys/block/${dev##*/}/make-it-fail"
		program ./faults request "$fault_ops" "$dir/file"
		echo 0 >"/sys/block/${dev##*/}/make-it-fail"
		echo 0 >/sys/kernel/debug/fail_make_request/probability
		detach
	fi
	finish
}

part_faults() {
	part_window "$1"
	part_alloc "$1"
	part_request "$1"
}

# Readers that are killed.
part_kill() {
	begin kill "$1"
	if attach "$1"; then
		inside ./faults create 8 "$dir/file"
		program ./faults kill "$ROUNDS" "$dir/file"
		note=$(sed -n 's/^lost \(.*\)/\1 less free than before/p' /tmp/said)
		detach
	fi
	finish
}

# A disk that goes away under its readers.
part_gone() {
	begin gone "$1"
	if attach "$1"; then
		inside ./faults create 8 "$dir/file"
		_sys=/sys/block/${dev##*/}
		case $1 in
		nvme-*)	_sys=$(readlink -f "$_sys/device/device")/remove ;;
		*)	_sys=$_sys/device/delete ;;
		esac
		{
			until grep -q reading /tmp/said 2>/dev/null; do
				usleep 50000
			done
			sleep 2
			echo 1 >"$_sys"
		} &
		_remover=$!
		program ./faults gone "$dir/file"
		wait "$_remover"
		detach
	fi
	finish
}

# A page that somebody outside holds when its file is no more
part_control_leak() {
	: >/tmp/held
	./faults hold 1 "$dir/file" >>/tmp/held &
	_holder=$!
	until grep -q holding /tmp/held; do
		kill -0 "$_holder" || break
		usleep 10000
	done
	settle
	umount "$dir" || wrong "a held page keeps the file system mounted"
	_left=$(left)
	[ "$_left" = 0 ] || wrong "$_left pages of files are counted, not 0"
	_leaked=$(leaked 3)
	[ "${_leaked%.*}" -ge 1 ] || wrong "a page that leaks is not counted"
	kill "$_holder"
	wait "$_holder" 2>/dev/null
}

# The tools of the other parts: bytes that somebody else changed are found, and
# so are pages that are left, and those that leak.
part_control() {
	begin control "$1"
	if attach "$1"; then
		inside ./stress -w -s "$SEED" -o 200000 "$dir/stress" \
			>/tmp/log 2>&1
		{ [ $? = 1 ] && grep -q "wrong bytes" /tmp/log; } ||
			wrong "stress did not find a wrong byte"
		inside ./faults create 2 "$dir/file"
		_left=$(left)
		[ "${_left%.*}" -ge 512 ] ||
			wrong "$_left pages are counted, not 512"
		inside sh -c "exec sleep 1000 <'$dir/file'" &
		_holder=$!
		sleep 1
		! umount "$dir" 2>/dev/null || wrong "an open file was unmounted"
		settle
		wait "$_holder" 2>/dev/null
		part_control_leak
		operations=3
		attach "$1" && detach
	fi
	finish
}

part_input() {
	begin input "$1"
	if attach "$1"; then
		head -c 20603 /dev/urandom >/tmp/data
		mkdir -p /tmp/lower /tmp/over /tmp/squash
		cp /tmp/data "$dir/data"
		mount -t overlay -o "lowerdir=$dir:/tmp/lower" overlay \
			/tmp/over 2>/dev/null
		[ -f squashfs ] &&
			mount -t squashfs -o loop,ro squashfs /tmp/squash 2>/dev/null
		TMPFS=/tmp/data OVERLAY='' SQUASHFS=''
		[ -f /tmp/over/data ] && OVERLAY=/tmp/over/data
		[ -f /tmp/squash/data ] && SQUASHFS=/tmp/squash/data
		export TMPFS OVERLAY SQUASHFS
		_takes=
		case " $BASE_SKIPS " in
		*' nvme-raw '*) _takes=-b ;;
		esac
		program ./badinput ${_takes:+-b} ${QUICK_INPUT:+-q} "$dir" \
			${DONTCACHE_NVME_RAW:+"$DONTCACHE_NVME_RAW"}
		note=$(sed -n 's/^skipped: \(.*\): not here/\1/p' /tmp/said |
			tr '\n' ' ')
		note=${note:+without ${note% }}
		cp /tmp/said "$OUT/input.$1"
		umount /tmp/squash 2>/dev/null
		umount /tmp/over 2>/dev/null
		detach
	fi
	finish
}

part_bound() {
	begin bound "$1"
	if attach "$1"; then
		program ./bound "$cg" "${BOUND_FDS:-512}" "$dir/file" &&
			grep '^bound' /tmp/said >"$OUT/bound.$1"
		# In too little memory: no more than that, and nobody dies.
		echo 16M >"$cg/memory.max"
		program ./bound "$cg" "${BOUND_FDS:-512}" "$dir/file"
		grep -q '^oom_kill 0$' "$cg/memory.events" ||
			wrong "a process was killed"
		echo max >"$cg/memory.max"
		detach
	fi
	finish
}

echo +memory >/sys/fs/cgroup/cgroup.subtree_control
fault_ops=${FAULT_OPS:-3000}
for what in $PARTS; do
	"part_${what%%:*}" "${what#*:}"
done
kill $kmsg
# See the head: times do not matter here.
if grep -q 'nvme.*QID.*timeout' "$OUT/kmsg"; then
	echo "note: the emulated NVMe disk lost completions"
	dmesg -c | grep -v 'QID.*timeout' >/dev/null
fi
exit $any_bad
