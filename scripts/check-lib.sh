# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Sourced after series-lib.sh by check and bisect-check: build only the objects
# that the series touches, with all warnings, and compare.
#
# One work tree and one object directory per base serve all of it; they stay in
# the cache.  What a build said is kept under a name made from the sources, the
# configuration and the tools, so that nothing is built twice.

CHECK=$CACHE/check
SRC=$CHECK/src

# Released versions of sparse do not know this keyword of the kernel's headers.
SPARSE='sparse -D__typeof_unqual__=__typeof__'

# src_at COMMIT: put the work tree there.
src_at() {
	if [ ! -e "$SRC/.git" ]; then
		writable "$CHECK" 3145728
		new_tree "$SRC"
	fi
	rm -f "$SRC/.git/index.lock"
	tree_git "$SRC" update-index -q --refresh >/dev/null 2>&1 || :
	tree_git "$SRC" checkout -q -f --detach "$1" ||
		die "$EX_SPACE" "cannot write $SRC (is the disk full?)"
	tree_git "$SRC" clean -q -f -d
}

# touched_objects BASE: what to build for the C files that the series changes.
touched_objects() {
	touched "$1" | sed -n 's/\.c$/.o/p' | grep -v '^tools/' | xargs
}

# build_touched BASE COMMIT OBJECTS: WARNINGS names a file with what gcc (W=1)
# and sparse (C=2) said of them, without line numbers; fails if they do not build.
build_touched() {
	_key=$({
		seen_by_build "$2"
		echo "$3"
		cat "$TOP/vm/guest.config"
		gcc --version
		echo "$SPARSE"
		sparse --version
	} 2>&1 | sha256sum | cut -c 1-16)
	WARNINGS=$CHECK/$1-$_key.warnings
	BUILD_LOG=$CHECK/$1-$_key.log
	[ ! -f "$WARNINGS" ] || return 0
	src_at "$2"
	_obj=$CHECK/obj-$1
	mkdir -p "$_obj"
	cp "$TOP/vm/guest.config" "$_obj/fragment"
	say "building $3 of $(bare_git log -1 --format='%h (%s)' "$2")"
	check_make KCONFIG_ALLCONFIG="$_obj/fragment" allnoconfig || return 1
	mv "$BUILD_LOG" "$BUILD_LOG.config"
	check_make -j"$(nproc)" prepare || return 1
	# A new warning must not hide behind an object that is up to date.
	for _o in $3; do
		rm -f "$_obj/$_o"
	done
	# shellcheck disable=SC2086 # a list
	check_make W=1 C=2 CHECK="$SPARSE" $3 || return 1
	# make goes on without sparse if it finds it too old.
	if ! grep -q '^  CHECK ' "$BUILD_LOG"; then
		echo "error: sparse did not run" >>"$BUILD_LOG"
		return 1
	fi
	# Each message once, and with no word of where in the file it stands.
	sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: \(warning\|error\)/\1: \2/p' \
		"$BUILD_LOG" | sed "s,^$SRC/,,; s,^\.\./[./]*src/,," |
		sort >"$WARNINGS.new"
	mv "$WARNINGS.new" "$WARNINGS"
}

check_make() {
	logged "$BUILD_LOG" env CCACHE_DIR="$CACHE/ccache" \
		CCACHE_BASEDIR="$CHECK" CCACHE_NOHASHDIR=1 \
		KBUILD_BUILD_TIMESTAMP=1970-01-01 KBUILD_BUILD_VERSION=1 \
		KBUILD_BUILD_USER=dontcache KBUILD_BUILD_HOST=dontcache \
		make -C "$SRC" O="$_obj" CC='ccache gcc' HOSTCC='ccache gcc' "$@"
}

# build_error LOG: the line that says why.
build_error() {
	grep -m 1 -E 'error:|Error |No rule' "$1" || tail -n 1 "$1"
}
