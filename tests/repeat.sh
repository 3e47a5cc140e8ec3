#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In the guest: the selftest again and again, beside a load.  See tests/repeat.
#
# TIMES, PLACE, LOAD, SELECT

eval "where=\${DONTCACHE_$PLACE:-}"
[ "$where" ] || {
	echo "# $PLACE is not mounted"
	exit 1
}

# Reads, writes and computes on the file system under test, about half of the
# time: without a rest a run would take three times as long on an emulator.
load() {
	while :; do
		dd if=/dev/urandom of="$1/load" bs=64k count=64 conv=fsync
		dd if="$1/load" of=/dev/null bs=16k
		cp "$1/load" "$1/load2"
		md5sum "$1/load" "$1/load2"
		rm "$1/load2"
		sleep 1
	done >/dev/null 2>&1
}
busy=
if [ "$LOAD" != none ]; then
	dir=/tmp
	[ ! -d "$where" ] || dir=$where
	load "$dir" &
	busy=$!
fi

for i in $(seq "$TIMES"); do
	tap=$OUT/$i.tap
	# shellcheck disable=SC2086 # a list
	./dontcache_read $SELECT -- "$where" >"$tap" 2>&1
	rc=$?
	tests=$(grep -cE '^(not )?ok [0-9]' "$tap")
	if [ "$rc" = 0 ] && [ "1..$tests" = "$(grep '^1\.\.' "$tap")" ]; then
		echo "ok $i - $PLACE, $tests tests"
		continue
	fi
	# What a failed test said goes before its verdict.
	awk '/^# +RUN / { said = ""; next }
		/^not ok / { printf "%s# %s\n", said, $0 }
		/^#/ { said = said $0 "\n" }' "$tap"
	echo "not ok $i - $PLACE, exit status $rc, $tests tests"
done
[ -z "$busy" ] || kill "$busy"
exit 0
