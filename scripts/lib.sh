# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Sourced by the other scripts: places, messages, exit codes, tools.
#
# The caller sets TOP (the checkout) before sourcing this.
#
#   V=1                print each command before it runs
#   DONTCACHE_CACHE    where finished kernels and base sources live
#                      (default: $XDG_CACHE_HOME/dontcache)
#   DONTCACHE_TMP      where guest disks live (default: /dev/shm)

# Exit codes.  A program that ran in the guest keeps its own (0-99).
EX_FAIL=1		# a test or a check failed
EX_USAGE=2		# the command line is wrong
EX_TOOL=121		# a program or package is missing
EX_BASE=122		# base sources: not to be had, or not what they should be
EX_APPLY=123		# a patch does not apply, or the series is inconsistent
EX_TIMEOUT=124		# the guest did not finish in time
EX_BUILD=125		# a kernel or program did not build
EX_SPACE=126		# a disk is full or not writable
EX_GUEST=255		# the guest died, or said nothing
export EX_FAIL EX_USAGE EX_TOOL EX_BASE EX_APPLY EX_TIMEOUT EX_BUILD EX_SPACE \
	EX_GUEST

OUT=${OUT:-$TOP/out}
CACHE=${DONTCACHE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dontcache}
TMP=${DONTCACHE_TMP:-/dev/shm}
[ -d "$TMP" ] && [ -w "$TMP" ] || TMP=${TMPDIR:-/tmp}
V=${V:-0}
ME=${0##*/}
# Children count elapsed time from when the first script began.
: "${DONTCACHE_T0:=$(date +%s)}"
export OUT CACHE TMP V DONTCACHE_T0

# Everything a script prints must read the same everywhere.
export LC_ALL=C

# say TEXT: one line of progress, with the time since the start.
say() {
	_t=$(($(date +%s) - DONTCACHE_T0))
	printf '[%4d:%02d] %s\n' $((_t / 60)) $((_t % 60)) "$*" >&2
}

# die CODE TEXT: one line that says what, where and what to do.
die() {
	_code=$1
	shift
	printf '%s: %s\n' "$ME" "$*" >&2
	exit "$_code"
}

# run COMMAND...: run it, and with V=1 show it first.
run() {
	[ "$V" = 1 ] && printf '+ %s\n' "$*" >&2
	"$@"
}

# logged LOG COMMAND...: run it with its output in LOG (and, with V=1, on the
# terminal too).
logged() {
	_log=$1
	shift
	if [ "$V" = 1 ]; then
		printf '+ %s\n' "$*" >&2
		{ "$@" 2>&1; echo $? >"$_log.rc"; } | tee "$_log" >&2
		_rc=$(cat "$_log.rc")
		rm -f "$_log.rc"
		return "$_rc"
	fi
	"$@" >"$_log" 2>&1
}

# missing TOOL=PACKAGE...: what is not there goes into _tools and _packages.
missing() {
	_packages=
	_tools=
	for _pair in "$@"; do
		_tool=${_pair%%=*}
		case $_tool in
		/*)	[ -e "$_tool" ] && continue ;;
		*)	command -v "$_tool" >/dev/null 2>&1 && continue
			[ -x "/usr/sbin/$_tool" ] || [ -x "/sbin/$_tool" ] &&
				continue ;;
		esac
		_tools="$_tools $_tool"
		case " $_packages " in
		*" ${_pair#*=} "*) ;;
		*)	_packages="$_packages ${_pair#*=}" ;;
		esac
	done
	[ "$_packages" ]
}

# apt LOG ARGUMENT...: apt-get, waiting for one that somebody else runs.
apt() {
	_log=$1
	shift
	DEBIAN_FRONTEND=noninteractive logged "$_log" \
		apt-get -o DPkg::Lock::Timeout=600 "$@"
}

# need TOOL=PACKAGE...: see that each tool is there.  What is missing is
# installed when we are root on a Debian-like system, else named, all at once.
# TOOL may be an absolute path of a file (a header, a static program).
need() {
	missing "$@" || return 0
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		die "$EX_TOOL" "missing:$_tools; install$_packages (Debian names)"
	fi
	# One at a time: two guests that start together lack the same tools, and
	# apt's own timeout is not for all of its locks.
	(
		flock 8
		missing "$@" || exit 0
		say "installing$_packages"
		mkdir -p "$OUT"
		_apt=$OUT/apt-$$.log
		# shellcheck disable=SC2086 # a list of packages
		apt "$_apt" install -y --no-install-recommends $_packages ||
		{ apt "$_apt" update &&
		apt "$_apt" install -y --no-install-recommends $_packages; } ||
			die "$EX_TOOL" "cannot install$_packages, see $_apt"
		rm -f "$_apt"
	) 8</var/lib/dpkg || exit
}

# writable DIR KIB: DIR exists, can be written, and has KIB free.
writable() {
	mkdir -p "$1" 2>/dev/null || :
	[ -w "$1" ] ||
		die "$EX_SPACE" "cannot write to $1; set DONTCACHE_CACHE, DONTCACHE_TMP or OUT"
	_free=$(df -Pk "$1" | awk 'NR == 2 { print $4 }')
	[ "$_free" -ge "$2" ] ||
		die "$EX_SPACE" "$1 has $((_free / 1024)) MiB free, $(($2 / 1024)) MiB are needed"
}

# base_vars BASE: read bases/BASE into BASE_* variables.
base_vars() {
	[ -f "$TOP/bases/$1" ] || die "$EX_USAGE" \
		"no such base: $1 (there are: $(cd "$TOP/bases" && echo *))"
	# shellcheck disable=SC1090 # a file of plain assignments
	. "$TOP/bases/$1"
}
