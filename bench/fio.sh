#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Run the fio jobs of bench/fio, each case without and with RWF_DONTCACHE; one
# line per run to $OUT/fio.tsv, progress to stdout.  bench/fio.awk makes a
# table of it.
#
# usage: bench/fio.sh [DIR...]
#
# Without DIR, the disks of the guest.  The jobs run as they are but for their
# sizes; a case is all the jobs from one stonewall to the next.  Before any of
# them the flag that fio passes is looked at (fioprobe.c).  The programs fio and
# fioprobe and the job files lie beside this script, or are named by FIO,
# FIOPROBE and FIO_JOBS (a directory).
#
#   OUT, KERNEL      as for sequential.sh
#   BENCH_FIO_JOBS   default: sequential uring random mixed readers
#   BENCH_FIO_DIV    divide the sizes in the jobs by this (default 4; with
#                    BENCH_SCALE=1, 1)
#   BENCH_RUNS       runs of each case (default 3, but none begins after 6 s)
#
#   reader_mib_s     throughput of a reader, the mean of all of the case; and
#   lowest_mib_s     of the slowest
#   amp              bytes read from the disk / bytes read by the readers
#   res_pages        pages of what they read in the page cache afterwards
#   writer_mib_s     throughput of the writer beside the readers
#
# Exit codes: 0, 1 fio or a job failed, or its flag is wrong, 2 usage, 3 the
# kernel or the file system does not take the flag.
#
# For bench/run:
# guest-set: full
# guest-split: nvme-ext4 hdd-xfs
# guest-files: fioprobe guest-lib fio/sequential.fio fio/uring.fio fio/random.fio fio/mixed.fio fio/readers.fio
# guest-get: fio-get
# guest-size: 1024
# guest-timeout: 900
# guest-size-full: 4096
# guest-timeout-full: 3600

set -eu
: "${OUT:?set it to the directory of the result}"
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/guest-lib
. "$here/guest-lib"

kernel=${KERNEL:-stock}
jobs=${BENCH_FIO_JOBS:-sequential uring random mixed readers}
div=4
[ "${BENCH_SCALE:-}" != 1 ] || div=1
div=${BENCH_FIO_DIV:-$div}
runs=${BENCH_RUNS:-3}
fio=${FIO:-$here/fio}
probe=${FIOPROBE:-$here/fioprobe}
job_dir=${FIO_JOBS:-$here}

if [ $# = 0 ]; then
	set -- ${DONTCACHE_NVME_EXT4:+"$DONTCACHE_NVME_EXT4"} \
		${DONTCACHE_NVME_XFS:+"$DONTCACHE_NVME_XFS"} \
		${DONTCACHE_HDD_EXT4:+"$DONTCACHE_HDD_EXT4"} \
		${DONTCACHE_HDD_XFS:+"$DONTCACHE_HDD_XFS"}
fi
[ $# -gt 0 ] || fail "no disk: name a directory"
for job in $jobs; do
	[ -f "$job_dir/$job.fio" ] || fail "no job file $job_dir/$job.fio"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/fio.XXXXXX")
dir=
cleanup() {
	[ -z "$dir" ] || rm -f "$dir"/dontcache-fio.*
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# scaled JOB: the job file, with its sizes divided
scaled() {
	awk -v div="$div" '
	/^(size|filesize|offset|offset_increment)=[0-9]+m$/ {
		split($0, part, "=")
		print part[1] "=" int((part[2] + 0) * 1024 / div) "k"
		next
	}
	{ print }' "$job_dir/$1.fio"
}

# cases FILE: a line for each, with the names of its jobs
cases() {
	awk '
	function flush() {
		if (name == "")
			return
		if (stonewall || line == "") {
			if (line != "")
				print line
			line = name
		} else {
			line = line " " name
		}
	}
	/^\[.*\]$/ {
		flush()
		name = substr($0, 2, length($0) - 2)
		stonewall = 0
		if (name == "global")
			name = ""
		else
			stonewall = everywhere
	}
	/^stonewall/ {
		if (name == "")
			everywhere = 1
		stonewall = 1
	}
	END {
		flush()
		print line
	}' "$1"
}

# run_fio FILE JOB...: in $dir, results to $work/terse
run_fio() {
	file=$1
	shift
	for section; do
		shift
		set -- "$@" "--section=$section"
	done
	(cd "$dir" && "$fio" --output-format=terse --terse-version=3 \
		--eta=never "$@" "$file") >"$work/terse" 2>"$work/err" || {
		cat "$work/err" >&2
		grep -v '^3;' "$work/terse" >&2 || :
		echo "fio.sh: ${file##*/}: $* failed" >&2
		exit 1
	}
}

# reads: requests and bytes that the disk has read until now
reads() {
	awk '{ printf "%d %.0f\n", $1, $3 * 512 }' "$partition/stat"
}

# measure JOB CASE-MODE SECTION...: one run, one line
measure() {
	job=$1 name=$2
	shift 2
	before=$(reads)
	run_fio "$work/$job.fio" "$@"
	after=$(reads)
	pages=0
	for file in "$dir"/dontcache-fio.*; do
		[ "${file%.bulk}" = "$file" ] || continue
		pages=$((pages + $("$probe" --cached "$file")))
	done
	awk -F ';' -v before="$before" -v after="$after" -v pages="$pages" \
	    -v what="$kernel	$device	$fs	$ra	$job	${name%-*}	${name##*-}" '
	$1 != 3 { next }
	$5 { failed = failed " " $3 ": error " $5 }
	$6 {
		readers++
		bytes += $6 * 1024
		sum += $7 / 1024
		if (readers == 1 || $7 / 1024 < lowest)
			lowest = $7 / 1024
	}
	$47 { writer += $48 / 1024 }
	END {
		if (failed != "" || !readers) {
			print "fio.sh:" (failed != "" ? failed : \
				" nothing was read") >"/dev/stderr"
			exit 1
		}
		split(before, old, " ")
		split(after, new, " ")
		printf "%s\t%d\t%.1f\t%.1f\t%.2f\t%d\t%d\t%.0f\t%.0f\t%.1f\n",
			what, readers, sum / readers, lowest,
			(new[2] - old[2]) / bytes, new[1] - old[1], pages,
			bytes, new[2] - old[2], writer
	}' "$work/terse" >>"$tsv.part"
}

tsv=$OUT/fio.tsv
printf 'kernel\tdevice\tfs\tra_kb\tjob\tcase\tmode\treaders\treader_mib_s\tlowest_mib_s\tamp\trequests\tres_pages\tbytes\tdevice_bytes\twriter_mib_s\n' \
	>"$tsv.part"
meta fio "$("$fio" --version), sizes of the jobs divided by $div"

for dir; do
	where "$dir"
	# The counters of the partition, not of all the disk.
	partition=/sys/dev/block/$(stat -c %d "$dir" | awk '{
		printf "%d:%d", int($1 / 256) % 4096,
			$1 % 256 + int($1 / 1048576) * 256 }')
	ra=$(cat "$disk/queue/read_ahead_kb")
	"$probe" "$fio" "$dir" >"$work/probe" || exit
	uring=y
	! grep -q '^io_uring absent' "$work/probe" || uring=
	for job in $jobs; do
		scaled "$job" >"$work/$job.fio"
		if [ -z "$uring" ] && grep -q '^ioengine=io_uring' \
		    "$work/$job.fio"; then
			echo "$job: skipped, this kernel has no io_uring or forbids it"
			continue
		fi
		# Nobody ends others while files are made.
		sed -e "s/^\[global\]\$/&\\ncreate_only=1/" -e "/^exitall/d" \
			"$work/$job.fio" >"$work/create.fio"
		run_fio "$work/create.fio"
		sync
		cases "$work/$job.fio" >"$work/cases"
		# Once for nothing: an emulator translates the code it meets.
		# shellcheck disable=SC2046 # a list of names
		run_fio "$work/$job.fio" $(sed -n '2p' "$work/cases")
		n=0
		while read -r first others <&3; do
			n=$((n + 1))
			echo "$device $fs, $job: $n of $(wc -l <"$work/cases"): $first"
			first_run
			run=0
			while [ "$run" -lt "$runs" ] && ! enough run; do
				run=$((run + 1))
				# shellcheck disable=SC2086 # a list of names
				timed run measure "$job" "$first" "$first" $others
			done
		done 3<"$work/cases"
	done
	rm -f "$dir"/dontcache-fio.*
done
dir=
mv "$tsv.part" "$tsv"
