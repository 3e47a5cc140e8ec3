#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In the guest: the installed kselftest as kernel CI runs it.  See tests/vmtests,
# which numbers what this prints.
#
# WHICH		patched or stock

mkdir -p /ks /usr/bin /etc
tar -xf /job/kselftest.tar -C /ks
tar -xf /job/mkfs.tar -C /
ln -s /job/bash-static /bin/bash
ln -s /proc/self/fd/1 /dev/stdout
echo 'root:x:0:0::/:/bin/sh
user:x:1000:1000::/:/bin/sh' >/etc/passwd
nvme=$DONTCACHE_NVME_EXT4 hdd=$DONTCACHE_HDD_EXT4
nvme_dev=$(findfs LABEL=NVME_EXT4)
hdd_dev=$(findfs LABEL=HDD_EXT4)
said=/said
PATH=$PATH:/usr/sbin

# All that tests could leave behind.
state() {
	for _d in /mnt/* /tmp /ks /ks/mm; do
		echo "$_d:" && ls -A "$_d"
	done
	df -Pk 2>/dev/null | awk '/^.dev/ { print $6, $3 }'
	df -Pi 2>/dev/null | awk '/^.dev/ { print $6, $3 }'
	losetup -a
	cat /proc/mounts
	ls /sys/kernel/tracing/instances
	find /sys/fs/cgroup -type d
	cat /sys/fs/cgroup/cgroup.subtree_control
	for exe in /proc/[0-9]*/exe; do
		readlink "$exe"
	done | grep dontcache_read
}

# verdict NAME: TAP of the conditions since the last one, and what was said if
# one did not hold.
bad=
verdict() {
	# What the kernel does in the background may take a moment.
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		state >/after
		cmp -s /before /after && break
		sleep 1
	done
	if ! cmp -s /before /after; then
		bad="$bad
something is left behind:
$(diff /before /after)"
	fi
	if [ "$bad" ]; then
		echo "$bad" | sed 's/^/# /'
		tail -n 40 "$said" | sed 's/^/# > /'
		echo "not ok - $1"
	else
		echo "ok - $1"
	fi
	bad=
}
code() {
	[ "$rc" = "$1" ] || bad="$bad
exit status $rc, not $1"
}
# has [NUMBER] LINE: of what was said, that many begin with it.
has() {
	_many=1
	[ $# = 1 ] || { _many=$1; shift; }
	_n=$(sed 's/^[# ]*//' "$said" | awk -v line="$1" \
		'index($0, line) == 1 { n++ } END { print n + 0 }')
	[ "$_n" = "$_many" ] || bad="$bad
$_n times, not $_many: $1"
}

small=small.bytes_100.gone_at_the_end
select="-r pattern.sequential_4k.bounds -r $small"
in_mm() {
	cd /ks/mm || exit
	"$@" >"$said" 2>&1
	rc=$?
}

state >/before
cd /ks || exit
KSELFTEST_KSFT_DONTCACHE_SH_ARGS=$select ./run_kselftest.sh \
	-t mm:ksft_dontcache.sh >"$said" 2>&1
rc=$?
has 2 'ok 2 small.bytes_100.gone_at_the_end'
[ "$(sed 1q "$said")" = 'TAP version 13' ] || bad="$bad
it does not begin as TAP does"
if [ "$WHICH" = stock ]; then
	# The runner of 6.18 ends with 0 whatever the tests said.
	! grep -q KSFT_FAIL /ks/run_kselftest.sh || code 1
	has "not ok 1 $nvme"
	has "not ok 2 $hdd"
	has 2 'not ok 1 pattern.sequential_4k.bounds'
	has 1 'not ok 1 dontcache_read'
	has 1 'not ok 1 selftests: mm: ksft_dontcache.sh # exit=1'
	n=$(grep -c 'this kernel lacks the fix, see Documentation/mm/dontcache.rst' \
		"$said")
	[ "$n" -ge 2 ] || bad="$bad
$n lines say that the fix is missing"
	verdict 'kselftest: fails on a disk of each kind, points to the document, leaves nothing'
	exit
fi
code 0
has "ok 1 $nvme"
has "ok 2 $hdd"
has 2 'ok 1 pattern.sequential_4k.bounds'
has 'ok 1 dontcache_read'
has 'ok 1 selftests: mm: ksft_dontcache.sh'
verdict 'kselftest: passes on a disk of each kind, leaves nothing'

in_mm ./run_vmtests.sh -h
code 0
has '- dontcache'
DONTCACHE_DIRS=$hdd DONTCACHE_ARGS=$select in_mm ./run_vmtests.sh -t dontcache
code 0
has "$hdd: folios of"
has 'ok 1 dontcache_read'
verdict 'run_vmtests.sh: runs where DONTCACHE_DIRS says'

# Of a user, where the disks are not his, in a directory that is.
mkdir "$nvme/user"
cp -r /ks/mm "$nvme/user/"
chown -R 1000:1000 "$nvme/user"
state >/before
cat >"$nvme/user/run" <<E2
#!/bin/sh
cd "$nvme/user/mm" && exec ./ksft_dontcache.sh $select -f claim \\
	-r file.mapping_stays -r file.abandoned_is_cold \\
	-r readahead.sequential_4k.cannot_tell -f migration -f memcg
E2
state >/before
in_mm su -s /bin/sh user -c "sh $nvme/user/run"
code 0
has 'SKIP no file system on a disk that is nvme takes RWF_DONTCACHE'
has 'SKIP no file system on a disk that is rotational takes RWF_DONTCACHE'
has '.: folios of'
for name in pattern.sequential_4k.bounds small.bytes_100.gone_at_the_end \
    claim.read.stays claim.sendfile.stays claim.fault.stays \
    claim.fault_around.stays file.mapping_stays; do
	grep -Eq "^[# ]*ok [0-9]+ $name\$" "$said" || bad="$bad
$name did not pass"
done
for name in file.abandoned_is_cold readahead.sequential_4k.cannot_tell \
    migration.keeps_the_flag memcg.max.no_reclaim memcg.high.no_reclaim; do
	grep -Eq "^[# ]*ok [0-9]+ $name # SKIP .*/(proc|sys)/" "$said" ||
		bad="$bad
$name does not say which file it cannot use"
done
has 'ok 1 dontcache_read'
verdict 'an ordinary user: what needs no privilege passes, the rest is skipped with its reason'
rm -rf "$nvme/user"

# What is absent is named.
umount "$hdd"
state >/before
in_mm ./ksft_dontcache.sh -r $small
code 0
has 'SKIP no file system on a disk that is rotational takes RWF_DONTCACHE'
has 0 'SKIP no file system on a disk that is nvme'
has "$nvme: folios of"
has 'ok 1 small.bytes_100.gone_at_the_end'
verdict 'no rotational disk: it is named, the other one is tested'
umount "$nvme"
state >/before
in_mm ./ksft_dontcache.sh -r $small
code 0
has 'SKIP no file system on a disk that is rotational takes RWF_DONTCACHE'
has 'SKIP no file system on a disk that is nvme takes RWF_DONTCACHE'
has 'no place named: ext4 of our own on /dev/loop'
has 'ok 1 small.bytes_100.gone_at_the_end'
verdict 'neither disk: a loop device of its own, which goes'
PATH=/bin in_mm ./ksft_dontcache.sh -r $small
code 4
has '1..0 # SKIP . does not take RWF_DONTCACHE'
grep -q 'neither mkfs.ext4 nor mkfs.xfs works' "$said" || bad="$bad
it does not say what is missing"
has "ok 1 dontcache_read -r $small # SKIP"
verdict 'nowhere to run: skipped, and the reason told'

# interrupted NAME SIGNAL OF DIR COMMAND...: once a test has made a directory in
# DIR, kill OF: the job with all that is in its process group, the program, or
# the test.
interrupted() {
	what=$1
	rm -f /job.pid
	hunt "$2" "$3" "$4" >/hunted 2>&1 &
	shift 4
	state >/before
	cd /ks/mm || exit
	# Here it has a process group of its own.  What a shell without job
	# control starts in the background would ignore SIGINT.
	bash -c "set -m
		$* >$said 2>&1 &
		echo \$! >/job.pid
		wait \$!" 2>/dev/null
	rc=$?
	wait
	[ "$rc" != 0 ] || bad="$bad
exit status 0"
	[ ! -s /hunted ] || bad="$bad
$(cat /hunted)"
	verdict "$what: leaves nothing"
}

# hunt SIGNAL OF DIR: see there
hunt() {
	# While it is being made is the worst moment: do not sleep.
	_end=$(($(date +%s) + 30)) made=
	while [ -z "$made" ] && [ "$(date +%s)" -lt "$_end" ]; do
		for _ in 1 2 3 4 5 6 7 8; do
			for _d in "$3"/dontcache_read.*; do
				[ ! -e "$_d" ] || made=$_d
			done
			[ -z "$made" ] || break
		done
	done
	test=${made##*.}
	case $made-$2 in
	-*)	echo "no test made a directory in $3" ;;
	*-job)	until [ -s /job.pid ]; do :; done
		kill "-$1" "-$(cat /job.pid)" ;;
	*-test)	kill "-$1" "$test" ;;
	*-program) # the harness has a child that waits for the test
		_p=$(awk '/^PPid:/ { print $2 }' "/proc/$test/status")
		_p=$(awk '/^PPid:/ { print $2 }' "/proc/$_p/status")
		case $(readlink "/proc/$_p/exe") in
		*/dontcache_read) kill "-$1" "$_p" ;;
		*)	echo "$_p is not the program" ;;
		esac ;;
	esac
}

tracing=/sys/kernel/tracing/instances cgroup=/sys/fs/cgroup
interrupted 'SIGINT, on a loop device' INT job $cgroup \
	./ksft_dontcache.sh -f memcg
interrupted 'the program killed, on a loop device' KILL program $cgroup \
	./ksft_dontcache.sh -f memcg
interrupted 'SIGTERM, on a loop device' TERM job $tracing \
	./ksft_dontcache.sh -r readahead.sequential_1k.cannot_tell
mount "$nvme_dev" "$nvme"
mount "$hdd_dev" "$hdd"

# Two instances, each in need of the memory controller, which is off before.
state >/before
cd /ks/mm || exit
thrice='for i in 1 2 3; do ./ksft_dontcache.sh -f memcg || exit; done'
DONTCACHE_DIRS=$nvme bash -c "$thrice" >/said.2 2>&1 &
DONTCACHE_DIRS=$nvme in_mm bash -c "$thrice"
code 0
wait $! || bad="$bad
exit status $? of the second"
cat /said.2 >>"$said"
! grep -q 'not ok\|memcg.* # SKIP' "$said" || bad="$bad
they disturb each other"
verdict 'two at a time: neither takes the memory controller from the other'
interrupted 'SIGINT, on a disk' INT job $tracing \
	./ksft_dontcache.sh -r readahead.sequential_1k.cannot_tell
interrupted 'a test killed, on a disk' KILL test $tracing \
	./ksft_dontcache.sh -r readahead.sequential_1k.cannot_tell
interrupted 'the program killed, on a disk' KILL program $cgroup \
	./ksft_dontcache.sh -f memcg
interrupted 'all killed, on a disk' KILL job $cgroup \
	./ksft_dontcache.sh -f memcg
exit 0
