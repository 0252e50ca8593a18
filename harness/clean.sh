#!/bin/bash
# usage: clean.sh [-h]
# Remove what was built: objects, kernels, staged selftests, guest root, logs. The git
# trees, downloads and the compiler cache stay. FORCE=1 removes them as well, unless a git tree
# has work that is not in series/.

. "$(dirname "$0")/lib.sh"

case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
'')	;;
*)	die "unknown argument '$1'; next: $0 -h" ;;
esac

! grep -q " $CACHE/" /proc/mounts ||
	die "something is mounted below $CACHE; next: umount it ($(grep -o " $CACHE/[^ ]*" /proc/mounts | head -n 1))"
mkdir -p "$CACHE/lock"
exec {fd}> "$CACHE/lock/build"
flock -n "$fd" || die "a build is running; next: wait for it, or end it"
if [ "${FORCE:-0}" = 1 ]; then
	for tree in "$CACHE"/src/*/; do
		[ -d "$tree/.git" ] || continue
		read -r _ known < "$tree/.git/ovpn-gso-stamp" 2> /dev/null || known=$(git -C "$tree" rev-parse base)
		[ -z "$(git -C "$tree" status --porcelain --untracked-files=no)$(git -C "$tree" log --format=%h "$known..series")" ] ||
			die "$tree has work that is not in series/; next: make series, or remove it by hand"
	done
	rm -rf --one-file-system "$CACHE"
	say "removed $CACHE"
	exit
fi
for dir in obj img stage rootfs rootfs.new check log; do
	rm -rf --one-file-system "${CACHE:?}/$dir"
done
say "removed what was built in $CACHE"
