#!/bin/bash
# usage: export.sh [--check] [--to DIR] [-h]
# Write the commits of branch "series" back to series/*/ (mailable patches; the
# text of cover letters is kept) and the mirrored kernel paths.
#   --check   write nothing, fail when something differs
#   --to DIR  write patches only, to DIR: for commits on another base (KERNEL=)

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/patches.sh"

check=0
to=
while [ $# -gt 0 ]; do
	case $1 in
	-h|--help)
		sed -n '2,/^$/s/^# \?//p' "$0"
		exit 0
		;;
	--check) check=1 ;;
	--to)	to=${2:-}
		[ -n "$to" ] || die "--to needs a directory; next: $0 -h"
		shift
		;;
	*)	die "unknown argument '$1'; next: $0 -h" ;;
	esac
	shift
done

# compare OLD NEW LABEL: one line for each file that differs
compare() {
	local out

	out=$(diff -rq "$1" "$2" 2>&1) || true
	[ -n "$out" ] || return 0
	sed -e "s,$2,exported,g" -e "s,$TOP/,,g" <<< "$out" | head -n 20 >&2
	return 1
}

export_series() {
	local head tmp path folder bad=0 stamp

	sgit rev-parse -q --verify "refs/tags/$BASE_TAG" > /dev/null 2>&1 ||
		die "no git tree in $SRC; next: make tree"
	head=$(sgit rev-parse -q --verify "refs/heads/$SERIES_BRANCH^{commit}") ||
		die "no branch $SERIES_BRANCH in $SRC; next: make tree"
	sgit merge-base --is-ancestor "$BASE_TAG" "$head" ||
		die "branch $SERIES_BRANCH is not on top of tag $BASE_TAG; next: git -C $SRC rebase --onto $BASE_TAG OLD_BASE $SERIES_BRANCH"
	tmp=$(mktemp -d)
	# shellcheck disable=SC2064  # the value of now
	trap "rm -rf '$tmp'" EXIT
	mkdir "$tmp/series" "$tmp/mirror"
	series_bounds "$head" > "$tmp/bounds"
	[ -s "$tmp/bounds" ] || die "branch $SERIES_BRANCH has no commit on top of $BASE_TAG; next: make tree"
	series_write "$tmp/series" "$tmp/bounds"
	if [ -n "$to" ]; then
		mkdir -p "$to"
		cp -r "$tmp/series/." "$to/"
		say "patches written to $to"
		return
	fi
	if [ -n "$KERNEL" ] || [ "$BASE" != "$HOME_BASE" ]; then
		die "series/ is kept against base $HOME_BASE, not ${KERNEL:-$BASE}; next: make series without KERNEL= and BASE=, or $0 --to DIR"
	fi
	mirror_write "$tmp/mirror" "$head"
	if [ "$check" = 1 ]; then
		mkdir "$tmp/now"
		mirror_paths > "$tmp/paths"
		(cd "$TOP" && xargs -r -d '\n' cp --parents -P -t "$tmp/now" < "$tmp/paths")
		mkdir "$tmp/patches"
		for folder in $(series_folders); do
			cp -r "$TOP/series/$folder" "$tmp/patches/"
		done
		compare "$tmp/patches" "$tmp/series" || bad=1
		compare "$tmp/now" "$tmp/mirror" || bad=1
		[ "$bad" = 0 ] || die "series/ or the mirrored paths are not what $SRC gives; next: make series (commits are right), or make tree FORCE=1 (series/ is right)"
		say "series/ and mirrored paths are in step with $SRC"
		return
	fi
	for folder in $(cd "$tmp/series" && echo *); do
		mkdir -p "$TOP/series/$folder"
		rsync -rc --delete "$tmp/series/$folder/" "$TOP/series/$folder/"
		say "series/$folder: $(folder_patches "$folder" | wc -l) patches"
		! grep -q '\*\*\* BLURB HERE' "$TOP/series/$folder/0000-cover-letter.patch" ||
			warn "series/$folder/0000-cover-letter.patch has no text yet; next: write it there, it is kept"
	done
	for folder in $(series_folders); do
		[ -d "$tmp/series/$folder" ] || warn "series/$folder has no commits any more; next: git rm -r series/$folder, if that is meant"
	done
	while read -r path; do
		[ -e "$tmp/mirror/$path" ] || rm -f "${TOP:?}/$path"
	done < <(mirror_paths)
	rsync -rpc "$tmp/mirror/" "$TOP/"
	for path in $MIRROR_DIRS; do
		[ ! -d "$TOP/$path" ] || find "$TOP/$path" -type d -empty -delete
	done
	while read -r folder path; do
		sgit tag -f "$folder" "$path" > /dev/null
	done < "$tmp/bounds"
	stamp=$(sgit rev-parse --absolute-git-dir)/ovpn-gso-stamp
	printf '%s %s\n' "$(series_hash)" "$head" > "$stamp"
	say "mirrored paths: $(mirror_paths | wc -l) files"
}

need_cmd git git
need_cmd rsync rsync
with_lock "tree-$BASE_KEY" export_series
