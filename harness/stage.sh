#!/bin/bash
# usage: stage.sh [COMMIT]
# Put the selftests and tools of COMMIT (default: the branch "series") into a
# directory for the guest, compiled by the guest root's own compiler, and print
# the directory. It is named by content: what is there is not made again.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# of tools/testing/selftests/net, beside all of net/ovpn
NET_PROGS='msg_zerocopy txtimestamp udpgso udpgso_bench_rx udpgso_bench_tx'

STAGE_PATHS='
	tools/testing/selftests/net
	tools/testing/selftests/kselftest
	tools/testing/selftests/kselftest.h
	tools/testing/selftests/kselftest_harness.h
	tools/testing/selftests/lib.mk
	tools/testing/selftests/run_kselftest.sh
	tools/include
	tools/net/ynl
	Documentation/netlink
'
# what "make headers" reads
HEADER_PATHS='
	Makefile Kbuild scripts usr/include include/uapi include/asm-generic
	include/linux/compiler_types.h arch/x86/Makefile arch/x86/include
	arch/x86/entry/syscalls arch/x86/tools tools/include tools/scripts
'

# archive COMMIT DIR PATH...: those of the paths that the commit has
archive() {
	local commit=$1 dir=$2 p have=()

	shift 2
	for p in "$@"; do
		! git -C "$SRC" cat-file -e "$commit:$p" 2> /dev/null || have+=("$p")
	done
	mkdir -p "$dir"
	git -C "$SRC" archive "$commit" -- "${have[@]}" | tar -x -C "$dir"
}

# headers COMMIT: the user-space headers, shared by all commits that agree on them
headers() {
	local commit=$1 key dir tmp

	key=$(git -C "$SRC" rev-parse "$commit:include/uapi" "$commit:include/asm-generic" \
		"$commit:arch/x86/include/uapi" | sha256sum | cut -c 1-12)
	dir=$CACHE/stage/$BASE_KEY/headers-$key
	if [ ! -d "$dir" ]; then
		say "user-space headers of $commit"
		tmp=$dir.tmp
		rm -rf "$tmp"
		# shellcheck disable=SC2086 # a list of paths
		archive "$commit" "$tmp/src" $HEADER_PATHS
		make -s -C "$tmp/src" ARCH=x86 -j "$JOBS" headers > "$LOGS/stage-headers.log" 2>&1 || {
			tail -n 20 "$LOGS/stage-headers.log" >&2
			die "make headers failed; next: read $LOGS/stage-headers.log"
		}
		find "$tmp/src/usr/include" -type f ! -name '*.h' -delete
		mv "$tmp/src/usr/include" "$tmp/include"
		mv "$tmp/include" "$dir"
		rm -rf "$tmp"
	fi
	printf '%s\n' "$dir"
}

# in_chroot DIR cmd...: run in the guest root with DIR at /mnt; the mounts live
# in a namespace of their own and end with the command, however it ends
in_chroot() {
	local dir=$1

	shift
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare --mount --propagation private -- bash -c '
		set -e
		root=$1 dir=$2
		shift 2
		mount --bind "$dir" "$root/mnt"
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"
	' bash "$ROOTFS" "$dir" "$@"
}

compile() {
	local dir=$1 log=$LOGS/stage.log self=/mnt/tools/testing/selftests

	# net's own Makefile wants clang and BPF; its one-file programs do not
	# shellcheck disable=SC2016 # expanded in the chroot
	in_chroot "$dir" bash -ec '
		self=$1 progs=$2 jobs=$3
		make -C "$self/net/ovpn" -j "$jobs" KHDR_INCLUDES="-isystem /mnt/usr/include"
		cd "$self/net"
		for p in $progs; do
			gcc -O2 -g -Wall -D_GNU_SOURCE= -isystem /mnt/usr/include -I.. -Ilib -o "$p" "$p.c"
		done
	' bash "$self" "$NET_PROGS" "$JOBS" > "$log" 2>&1 || {
		tail -n 20 "$log" >&2
		die "the selftests do not compile; next: read $log"
	}
	[ -x "$dir/tools/testing/selftests/net/ovpn/ovpn-cli" ] ||
		die "no ovpn-cli was made; next: read $log"
}

stage() {
	local commit=$1 tree key dir tmp

	tree=$(git -C "$SRC" rev-parse --verify --quiet "$commit^{tree}") ||
		die "no commit $commit in $SRC; next: harness/tree.sh, or name one of: $(git -C "$SRC" tag | tr '\n' ' ')"
	key=${tree:0:12}-$(cat "${BASH_SOURCE[0]}" "$ROOTFS/.ovpn-gso-stamp" | sha256sum | cut -c 1-8)
	dir=$CACHE/stage/$BASE_KEY/$key
	if [ ! -d "$dir" ]; then
		need_space "$CACHE" 1
		say "staging the selftests of $commit (${tree:0:12})"
		tmp=$dir.tmp
		# shellcheck disable=SC2064 # the value of now
		trap "rm -rf '$CACHE/stage/$BASE_KEY'/*.tmp" EXIT
		rm -rf "$tmp"
		# shellcheck disable=SC2086 # a list of paths
		archive "$commit" "$tmp" $STAGE_PATHS
		mkdir -p "$tmp/usr"
		cp -rl "$(headers "$commit")" "$tmp/usr/include"
		compile "$tmp"
		mv "$tmp" "$dir"
		trap - EXIT
	fi
	printf '%s\n' "$dir"
}

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
-*) die "unknown option $1; next: stage.sh --help" ;;
esac
need_root
[ -e "$SRC/.git" ] || die "no git tree in $SRC; next: harness/tree.sh"
[ -f "$ROOTFS/.ovpn-gso-stamp" ] || die "no guest root in $ROOTFS; next: harness/rootfs.sh"
mkdir -p "$CACHE/stage/$BASE_KEY"
with_lock "stage-$BASE_KEY" stage "${1:-series}"
