#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In the guest: run dontcache_read on each disk.  tests/selftest reads what it
# leaves in $OUT: DISK.tap, and DISK.rc when it came to its end.
#
# PLACES	the disks, as named by DONTCACHE_*
# SELECT	options for the harness

for place in $PLACES; do
	eval "where=\${DONTCACHE_$place:-}"
	if [ -z "$where" ]; then
		echo absent >"$OUT/$place.rc"
		continue
	fi
	echo "$place"
	# shellcheck disable=SC2086 # a list
	./dontcache_read $SELECT -- "$where" >"$OUT/$place.tap" 2>&1
	echo $? >"$OUT/$place.rc"
done
