# shellcheck shell=bash
# Shared by the scripts of harness/: where things are kept, how steps report.
# Sourced, never run.

# shellcheck disable=SC2034  # what is set here is used by the scripts

set -euo pipefail

# "make run KERNEL=... FORCE=1": not for the makes that are started from here
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# all that is large or slow to make lives here, outside the checkout
CACHE=${OVPN_GSO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ovpn-gso}
JOBS=${JOBS:-$(nproc)}
export TOP CACHE JOBS

say()  { printf '[%s] %s: %s\n' "$(date +%H:%M:%S)" "$(basename "$0" .sh)" "$*" >&2; }
warn() { say "warning: $*"; }
die()  { say "error: $*"; exit 1; }

need_root() {
	[ "$(id -u)" -eq 0 ] || die "must run as root (namespaces, chroot, mounts); next: sudo $0"
}

# need_space DIR GIB: fail early instead of half-written files
need_space() {
	local have

	mkdir -p "$1"
	have=$(df --output=avail -BG "$1" | tail -n 1 | tr -dc 0-9)
	[ "$have" -ge "$2" ] ||
		die "$1 has $have GiB free, $2 are needed; next: free some, or set OVPN_GSO_CACHE to another disk"
}

# need_cmd NAME PACKAGE
need_cmd() {
	command -v "$1" > /dev/null 2>&1 ||
		die "$1 is missing; next: harness/deps.sh, or apt-get install $2"
}

# with_lock NAME cmd...: one at a time over all runs that share the cache
with_lock() {
	local name=$1 fd rc=0

	shift
	mkdir -p "$CACHE/lock"
	exec {fd}> "$CACHE/lock/$name"
	flock "$fd"
	# not "|| rc=$?": errexit has to hold in there
	"$@" {fd}>&-
	rc=$?
	exec {fd}>&-
	return "$rc"
}

# The base kernel that is worked on: KERNEL=/path/to/tree, or BASE=7.3|7.2
# (a package named in series/base). BASE_KEY names its directories.
BASE=${BASE:-7.3}
KERNEL=${KERNEL:-}

base_key() {
	local rev ver

	if [ -n "$KERNEL" ]; then
		[ -r "$KERNEL/drivers/net/ovpn/Makefile" ] ||
			die "KERNEL=$KERNEL is no kernel tree with drivers/net/ovpn; next: name one of Linux 6.16 or newer, or leave KERNEL= out"
		if [ -e "$KERNEL/.git" ]; then
			rev=$(git -c safe.directory='*' -C "$KERNEL" rev-parse --short=12 HEAD) ||
				die "KERNEL=$KERNEL has a .git but no commit; next: check it out, or copy the files without .git"
		else
			rev=$(cat "$KERNEL/Makefile" "$KERNEL"/drivers/net/ovpn/*.[ch] "$KERNEL"/net/ipv4/udp*.c "$KERNEL"/net/core/skbuff.c | sha256sum | cut -c 1-12)
		fi
		printf 'user-%s-%s\n' "$(basename "$(realpath "$KERNEL")" | tr -c 'A-Za-z0-9.\n' _)" "$rev"
		return
	fi
	ver=$(awk -v b="$BASE" '$1 == b { print $3 }' "$TOP/series/base")
	[ -n "$ver" ] || die "no base '$BASE' in series/base; next: BASE=$(awk '/^[0-9]/ { printf "%s%s", s, $1; s = " or BASE=" }' "$TOP/series/base"), or KERNEL=/path/to/tree"
	printf '%s\n' "$ver" | tr '~+' '__'
}

BASE_KEY=$(base_key)
# the git tree in which people work: branch "series" on top of tag "base"
SRC=${TREE:-$CACHE/src/$BASE_KEY}
# a checkout of it that belongs to the harness: builds never see half an edit
BUILD=$CACHE/build/$BASE_KEY
ROOTFS=$CACHE/rootfs
LOGS=${LOGS:-$CACHE/log}
mkdir -p "$LOGS"

export CCACHE_DIR=$CACHE/ccache CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-10G}
export CCACHE_BASEDIR=$CACHE CCACHE_NOHASHDIR=1
