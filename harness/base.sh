#!/bin/bash
# usage: base.sh [-h]
# Make the git tree of the base kernel (tag "base", branch "series"): from the Debian
# package that series/base names for BASE (7.3 unless said), or from KERNEL=/path/to/tree.
# A tree that is there already stays as it is.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"
. "$(dirname "$0")/patches.sh"

SPACE_GIB=12

# base_field N: of the line of series/base
base_field() { awk -v b="$BASE" -v n="$1" '$1 == b { print $n }' "$TOP/series/base"; }

# package_gone PACKAGE VERSION: say which bases would do
package_gone() {
	local name package version sum offered='' newer

	while read -r name package version sum; do
		[[ $name =~ ^[0-9] && -n $sum ]] || continue
		if private_apt apt-cache madison "$package" 2> /dev/null | awk '{ print $3 }' | grep -qxF "$version"; then
			offered="$offered BASE=$name,"
		fi
	done < "$TOP/series/base"
	newer=$(private_apt apt-cache madison "$1" 2> /dev/null | awk 'NR == 1 { print $3 }')
	die "$1 $2 is not on the mirror any more${newer:+ (it has $newer: that version and its sha256 can go into series/base)}; next:${offered} KERNEL=/path/to/tree"
}

# print the path of the .deb, fetched and verified
fetch_package() {
	local package version sum deb tmp

	package=$(base_field 2)
	version=$(base_field 3)
	sum=$(base_field 4)
	deb=$CACHE/deb/${package}_${version}_all.deb
	mkdir -p "$CACHE/deb"
	if [ ! -r "$deb" ] || ! sha256sum -c --status <<< "$sum  $deb"; then
		with_lock apt private_apt_init
		private_apt apt-cache madison "$package" 2> /dev/null | awk '{ print $3 }' | grep -qxF "$version" ||
			package_gone "$package" "$version"
		say "download $package $version (160 MB)"
		tmp=$(mktemp -d "$CACHE/deb/new.XXXXXX")
		# shellcheck disable=SC2064  # the value of now
		trap "rm -rf '$tmp'" EXIT
		(cd "$tmp" && private_apt apt-get download "$package=$version" > "$LOGS/apt.log" 2>&1) ||
			die "download of $package $version failed ($(grep -m 1 '^E:' "$LOGS/apt.log" | cut -c 1-160)); next: check the network, then again, or KERNEL=/path/to/tree"
		sha256sum -c --status <<< "$sum  $(echo "$tmp"/*.deb)" ||
			die "$package $version has not the sha256 that series/base names; next: compare with apt-cache show $package, then again"
		mv "$tmp"/*.deb "$deb"
		rm -rf "$tmp"
		trap - EXIT
	fi
	printf '%s\n' "$deb"
}

# commit_all DIR MESSAGE: everything, with a fixed date, so that the commit id is
# the same wherever it is made
commit_all() {
	local REPO=$1

	sgit add -A -f .
	GIT_AUTHOR_NAME=base GIT_AUTHOR_EMAIL=base@localhost GIT_AUTHOR_DATE='@0 +0000' \
	GIT_COMMITTER_NAME=base GIT_COMMITTER_EMAIL=base@localhost GIT_COMMITTER_DATE='@0 +0000' \
		sgit commit -q -m "$2"
}

init_repo() {
	git init -q -b "$SERIES_BRANCH" "$1"
	git -C "$1" config core.compression 0
	git -C "$1" config gc.auto 0
}

from_package() {
	local new=$1 deb tarball

	need_cmd dpkg-deb dpkg
	need_cmd xz xz-utils
	deb=$(fetch_package) || exit 1
	init_repo "$new"
	say "unpack $(basename "$deb")"
	tarball=./usr/src/$(base_field 2).tar.xz
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "$tarball" | tar -xJ -C "$new" --strip-components=1
	say "git tree of it"
	commit_all "$new" "Debian $(base_field 2) $(base_field 3)"
}

from_user() {
	local new=$1 kernel

	kernel=$(realpath "$KERNEL")
	init_repo "$new"
	if [ -e "$kernel/.git" ]; then
		[ -z "$(git -c safe.directory='*' -C "$kernel" status --porcelain --untracked-files=no)" ] ||
			warn "$KERNEL has changes that are not committed; they are left out"
		say "commit $(git -c safe.directory='*' -C "$kernel" log -1 --format='%h %s') of $KERNEL (1 to 2 min)"
		# also for the other side of the fetch: nothing to gain from small packs
		printf '[safe]\n\tdirectory = *\n[pack]\n\twindow = 0\n\tcompression = 0\n' > "$new/.git/fetch-config"
		GIT_CONFIG_GLOBAL=$new/.git/fetch-config git -C "$new" fetch -q --depth=1 --no-tags "file://$kernel" HEAD
		git -C "$new" reset -q --hard FETCH_HEAD
	else
		say "copy $KERNEL"
		# without what a build in the tree leaves
		rsync -a --exclude=.git --exclude='*.o' --exclude='*.ko' --exclude='*.cmd' --exclude='/vmlinux*' "$kernel/" "$new/"
		rm -f "$new/.config"
		rm -rf "$new/include/config" "$new/include/generated" "$new/arch/x86/include/generated"
		commit_all "$new" "$(basename "$kernel")"
	fi
}

make_base() {
	local new=$SRC.new

	if ! git -C "$SRC" rev-parse -q --verify "refs/tags/$BASE_TAG" > /dev/null 2>&1; then
		[ ! -e "$SRC" ] || [ -z "$(ls -A "$SRC")" ] ||
			die "$SRC is there but has no tag $BASE_TAG; next: move it away, or TREE=/another/path"
		mkdir -p "$(dirname "$SRC")"
		need_space "$CACHE" "$SPACE_GIB"
		need_space "$(dirname "$SRC")" 4
		rm -rf "$new"
		# shellcheck disable=SC2064  # the value of now
		trap "rm -rf '$new'" EXIT
		if [ -n "$KERNEL" ]; then
			from_user "$new"
		else
			from_package "$new"
		fi
		git -C "$new" tag "$BASE_TAG"
		[ ! -d "$SRC" ] || rmdir "$SRC"
		mv "$new" "$SRC"
		trap - EXIT
		say "made $SRC"
	fi
	# the checkout that builds use
	if ! git -C "$BUILD" rev-parse -q --verify HEAD > /dev/null 2>&1 ||
	   ! git -C "$BUILD" cat-file -e "$(git -C "$SRC" rev-parse "$BASE_TAG^{commit}")" 2> /dev/null; then
		need_space "$CACHE" 4
		rm -rf "$BUILD"
		git -C "$SRC" worktree prune
		mkdir -p "$(dirname "$BUILD")"
		git -C "$SRC" worktree add -q --detach "$BUILD" "$BASE_TAG"
		say "made $BUILD"
	fi
}

case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
'')	;;
*)	die "unknown argument '$1'; next: $0 -h" ;;
esac
need_cmd git git
with_lock "base-$BASE_KEY" make_base
