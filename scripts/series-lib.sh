# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Sourced after lib.sh by what handles bases and the series.
#
# All bases share one bare repository in the cache, so that what they have in
# common is stored once.  refs/base/SERIES is a commit of the base, written
# last: a base without it does not exist.  The series is composed there with
# git's plumbing, without a work tree, in a few seconds.
#
# Commit ids depend on nothing but the trees and the mails, so they are the same
# everywhere: identity and dates are fixed.

case $CACHE in
/*) ;;
*)	CACHE=$PWD/$CACHE ;;
esac
REPO=$CACHE/base/linux.git
PATCHES=$TOP/patches
NOBODY_NAME="dontcache series"
NOBODY_EMAIL=series@dontcache.invalid
EPOCH="1767225600 +0000"

unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY \
	GIT_ALTERNATE_OBJECT_DIRECTORIES

# bare_git ARGS...: git on the cache's repository, deaf to the user's settings
# (diff.noprefix, format.*, core.autocrlf, hooks ... would change what we write).
bare_git() {
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null \
		git --git-dir="$REPO" "$@"
}

# tree_git DIR ARGS...: the same on a work tree.
tree_git() {
	_dir=$1
	shift
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null \
		git -c core.hooksPath=/dev/null -C "$_dir" "$@"
}

# commit_tree NAME EMAIL ARGS...: git commit-tree with nothing left to chance.
commit_tree() {
	_name_=$1 _email_=$2
	shift 2
	env GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null \
		GIT_AUTHOR_NAME="$_name_" GIT_AUTHOR_EMAIL="$_email_" \
		GIT_COMMITTER_NAME="${SENDER_NAME:-$NOBODY_NAME}" \
		GIT_COMMITTER_EMAIL="${SENDER_EMAIL:-$NOBODY_EMAIL}" \
		GIT_AUTHOR_DATE="$EPOCH" GIT_COMMITTER_DATE="$EPOCH" \
		git --git-dir="$REPO" -c i18n.commitEncoding=UTF-8 \
		commit-tree "$@"
}

# scratch: a directory in $SCRATCH that goes when the script ends.
scratch() {
	SCRATCH=$(mktemp -d "$TMP/dontcache.XXXXXX") ||
		die "$EX_SPACE" "cannot write to $TMP; set DONTCACHE_TMP"
	trap 'rm -rf "$SCRATCH"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# locked FILE: wait for, then hold, a lock until the script ends.
locked() {
	need flock=util-linux
	mkdir -p "$(dirname "$1")"
	exec 9>"$1"
	flock -n 9 || { say "waiting for another run ($1)"; flock 9; }
}

# The hunk headers of a diff depend on this attribute of the kernel's own
# .gitattributes, which git does not read in a bare repository.
attributes() {
	mkdir -p "$1/info"
	echo '*.[ch] diff=cpp' >"$1/info/attributes"
}

repo_init() {
	[ -f "$REPO/info/attributes" ] && return
	mkdir -p "$REPO"
	bare_git init -q --bare "$REPO"
	bare_git config gc.auto 0
	attributes "$REPO"
}

# new_tree DIR: an empty work tree in DIR that borrows the cache's objects.
new_tree() {
	git init -q --template= "$1"
	mkdir -p "$1/.git/objects/info"
	echo "$REPO/objects" >"$1/.git/objects/info/alternates"
	attributes "$1/.git"
	git -C "$1" config gc.auto 0
	git -C "$1" config core.autocrlf false
}

newest_base() {
	(cd "$TOP/bases" && printf '%s\n' *) | sort -V | tail -n 1
}

all_bases() {
	(cd "$TOP/bases" && printf '%s\n' *) | sort -rV
}

# base_commit BASE: the commit of the base, which must be in the cache.
base_commit() {
	bare_git rev-parse -q --verify "refs/base/$1^{commit}" 2>/dev/null ||
		die "$EX_BASE" "no sources of $1 in the cache: scripts/fetch $1"
}

# version_of TREEISH: what the Makefile calls it, such as 7.3.4.
version_of() {
	bare_git cat-file blob "$1:Makefile" 2>/dev/null | awk '
		/^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *=/ { v[$1] = $3 }
		/^EXTRAVERSION/ { exit }
		END {
			printf "%s.%s", v["VERSION"], v["PATCHLEVEL"]
			if (v["SUBLEVEL"] != "" && v["SUBLEVEL"] != "0")
				printf ".%s", v["SUBLEVEL"]
			print v["EXTRAVERSION"]
		}'
}

# seen_by_build COMMIT: a hash over what a kernel build sees of it.
seen_by_build() {
	{
		bare_git ls-tree "$1" |
			grep -Ev '	(Documentation|MAINTAINERS|tools)$'
		bare_git ls-tree "$1:tools" | grep -v '	testing$'
	} | sha256sum | cut -c 1-40
}

# series_file BASE: the order that holds for this base.
series_file() {
	if [ -f "$PATCHES/$1/series" ]; then
		echo "$PATCHES/$1/series"
	else
		echo "$PATCHES/series"
	fi
}

# series_lines BASE: the lines that name a mail.
series_lines() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$(series_file "$1")"
}

# mail_file BASE NAME: the mail for this base.
mail_file() {
	if [ -f "$PATCHES/$1/$2" ]; then
		echo "$PATCHES/$1/$2"
	else
		echo "$PATCHES/$2"
	fi
}

# mail_paths FILE: the existing files that a mail changes.
mail_paths() {
	sed -n 's,^--- a/,,p' "$1" | sed 's/[[:space:]]*$//'
}

# touched BASE: the upstream files that the series changes, less MAINTAINERS,
# where our block finds its place by its title.
touched() {
	series_lines "$1" | while read -r _name _; do
		[ -f "$(mail_file "$1" "$_name")" ] &&
			mail_paths "$(mail_file "$1" "$_name")"
	done | sort -u | sed '/^MAINTAINERS$/d'
}

# insert_block < upstream's MAINTAINERS: our block put in its place.  Upstream's
# order has flaws, so the place is where the fewest titles are on the wrong side.
insert_block() {
	awk -v block="$TOP/MAINTAINERS" '
		BEGIN { getline title < block; close(block) }
		{ line[NR] = $0 }
		# A title is a line of text that a line "X:<tab>" follows.
		/^[A-Z]:\t/ && line[NR - 1] ~ /^[^ \t]/ &&
		    line[NR - 1] !~ /^[A-Z]:\t/ {
			if (!place || wrong < least) {
				least = wrong
				place = NR - 1
			}
			wrong += line[NR - 1] "" < title ? -1 : 1
		}
		END {
			for (i = 1; i <= NR; i++) {
				if (i == place) {
					while ((getline text < block) > 0)
						print text
					print ""
				}
				print line[i]
			}
			exit !place
		}'
}

# compose BASE: commits the series on top of the base and sets HEAD_COMMIT, and
# COMMITS to the list of commits.  SENDER_NAME and SENDER_EMAIL, if set, stand
# for mails that name no author.  COMPOSE_FIRST=N takes the first N mails,
# COMPOSE_WITHOUT=N all but the Nth.  Needs scratch().
compose() {
	_base=$1 _n=0
	_commit=$(base_commit "$_base") || exit
	export GIT_INDEX_FILE="$SCRATCH/index"
	rm -f "$GIT_INDEX_FILE"
	bare_git read-tree "$_commit"
	COMMITS=
	series_lines "$_base" >"$SCRATCH/lines"
	[ -s "$SCRATCH/lines" ] || die "$EX_APPLY" \
		"$(series_file "$_base") names no mail"
	while read -r _name _paths; do
		_n=$((_n + 1))
		[ "$_n" != "${COMPOSE_WITHOUT:-}" ] || continue
		[ "$_n" -le "${COMPOSE_FIRST:-$_n}" ] || break
		_file=$(mail_file "$_base" "$_name")
		[ -f "$_file" ] || die "$EX_APPLY" \
			"$_name: named in $(series_file "$_base"), but there is no such file"
		compose_one "$_name" "$_file" "$_paths"
		COMMITS="$COMMITS $_commit"
	done <"$SCRATCH/lines"
	# shellcheck disable=SC2034 # for the caller
	HEAD_COMMIT=$_commit
	unset GIT_INDEX_FILE
}

# commit_of BASE WHICH: sets HEAD_COMMIT to the base commit (stock), the end of
# the series (patched) or of a part of it: first-N, without-N.  Fails if WHICH is
# none of these.  Needs scratch().
commit_of() {
	case ${2#*-} in
	stock|patched) ;;
	''|0*|*[!0-9]*) return 1 ;;
	esac
	# shellcheck disable=SC2034 # for the caller
	case $2 in
	stock)	HEAD_COMMIT=$(base_commit "$1") || exit ;;
	patched) compose "$1" ;;
	first-*) COMPOSE_FIRST=${2#first-} compose "$1" ;;
	without-*) COMPOSE_WITHOUT=${2#without-} compose "$1" ;;
	*)	return 1 ;;
	esac
}

# compose_one NAME FILE PATHS: one more commit on $_commit.
compose_one() {
	bare_git mailinfo "$SCRATCH/msg" "$SCRATCH/diff" <"$2" \
		>"$SCRATCH/info" 2>/dev/null ||
		die "$EX_APPLY" "$1: not a mail (From:, Subject:, text, ---, diff)"
	_subject=$(sed -n 's/^Subject: //p' "$SCRATCH/info")
	[ "$_subject" ] || die "$EX_APPLY" "$1: no Subject: line"
	[ -s "$SCRATCH/msg" ] || die "$EX_APPLY" "$1: no text above the --- line"
	_author=$(sed -n 's/^Author: //p' "$SCRATCH/info")
	_email=$(sed -n 's/^Email: //p' "$SCRATCH/info")

	if grep -q '^diff --git ' "$SCRATCH/diff"; then
		# --recount would forgive a damaged hunk; nothing here does.
		if ! bare_git apply --cached --whitespace=nowarn --verbose \
		    "$SCRATCH/diff" >"$SCRATCH/apply" 2>&1; then
			die "$EX_APPLY" "$1 does not apply to $_base: $(
				apply_error "$SCRATCH/apply" "$SCRATCH/diff")"
		fi
		if grep -q 'offset' "$SCRATCH/apply"; then
			[ "$V" = 0 ] || grep offset "$SCRATCH/apply" |
				sed "s/^/$1: /" >&2
		fi
	fi
	_set=
	for _path in $3; do
		[ "$_path" = + ] && continue
		add_path "$1" "$_path"
		_set=1
	done
	grep -q '^diff --git ' "$SCRATCH/diff" || [ "$_set" ] ||
		die "$EX_APPLY" "$1: changes nothing (no diff, and no + PATH in series)"

	# The notes under the --- line stay with the commit; git am drops them.
	{
		printf '%s\n\n' "$_subject"
		cat "$SCRATCH/msg"
		mail_notes "$SCRATCH/diff" >"$SCRATCH/notes"
		if [ -s "$SCRATCH/notes" ]; then
			printf -- '---\n'
			cat "$SCRATCH/notes"
		fi
	} | git stripspace >"$SCRATCH/message"
	_tree=$(bare_git write-tree)
	_commit=$(commit_tree "${_author:-${SENDER_NAME:-$NOBODY_NAME}}" \
		"${_email:-${SENDER_EMAIL:-$NOBODY_EMAIL}}" \
		-p "$_commit" "$_tree" <"$SCRATCH/message")
}

# add_path NAME PATH: a new file from this repository into the index.
add_path() {
	[ -f "$TOP/$2" ] || die "$EX_APPLY" \
		"$1: adds $2, which is not in this repository"
	_mode=100644
	if [ "$2" = MAINTAINERS ]; then
		_blob=$(bare_git cat-file blob ":MAINTAINERS" |
			{ insert_block || echo >"$SCRATCH/noplace"; } |
			bare_git hash-object -w --stdin)
		[ ! -e "$SCRATCH/noplace" ] || die "$EX_APPLY" \
			"$1: found no place for our block in MAINTAINERS of $_base"
	else
		[ -z "$(bare_git ls-files -- "$2")" ] || die "$EX_APPLY" \
			"$1: adds $2, which $_base has already"
		[ -x "$TOP/$2" ] && _mode=100755
		_blob=$(bare_git hash-object -w --no-filters "$TOP/$2")
	fi
	bare_git update-index --add --cacheinfo "$_mode,$_blob,$2"
}

# mail_notes DIFFPART: what stands between --- and the diff, less the diffstat.
mail_notes() {
	awk '
		/^diff --git / { exit }
		NR == 1 && /^---/ { next }
		/^ .* \| +([0-9]+|Bin)/ || /^ [0-9]+ files? changed/ ||
		    /^ (create|delete|rename|mode)/ { next }
		{ print }' "$1" | git stripspace
}

# apply_error LOG DIFF: one line, with file and hunk, from git apply's output.
apply_error() {
	awk '
		FNR == 1 { n++ }
		n == 1 && /^error: patch failed: / {
			sub(/^error: patch failed: /, ""); where = $0
		}
		n == 1 && /^error: / && first == "" {
			sub(/^error: /, ""); first = $0
		}
		n == 2 && where != "" && hunk == "" {
			if ($1 == "---")
				path = substr($2, 3)
			split(where, w, ":")
			if ($1 == "@@" && path == w[1] && $2 ~ "^-" w[2] "(,|$)")
				hunk = $0
		}
		END {
			if (where != "")
				print where ": hunk " hunk
			else
				print first
		}' "$1" "$2"
}
