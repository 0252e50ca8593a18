#!/bin/bash
# usage: deps.sh [-h] [PACKAGE]...
# Install what the host needs (Debian packages), and the PACKAGEs. Does nothing
# when all is there.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"

# build; guest; checks; mail
PACKAGES='
	gcc make flex bison bc cpio kmod rsync perl python3 xz-utils ccache libelf-dev libssl-dev
	mmdebstrap debian-archive-keyring qemu-system-x86 jq
	gcc-multilib sparse shellcheck codespell
	git-email libmailtools-perl
'

missing() {
	local package

	for package in $PACKAGES; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" = installed ] ||
			printf '%s\n' "$package"
	done
}

# install PACKAGE...: with the lists as they are, else with fresh ones
install() {
	local log=$LOGS/deps.log

	export DEBIAN_FRONTEND=noninteractive
	apt-get install -q -y --no-install-recommends "$@" > "$log" 2>&1 && return
	debian_mirror > /dev/null || exit 1
	say "fresh package lists"
	apt-get update -q >> "$log" 2>&1 ||
		die "apt-get update failed ($(grep -m 1 '^[EW]:' "$log" | cut -c 1-160)); next: see $log, check /etc/apt and the network"
	apt-get install -q -y --no-install-recommends "$@" >> "$log" 2>&1 ||
		die "apt-get install failed ($(grep '^E:' "$log" | tail -n 1 | cut -c 1-160)); next: see $log"
}

install_virtme() {
	local tmp

	need_root
	# in Debian since trixie; older releases can use that package
	if apt-cache show virtme-ng 2> /dev/null | grep -q '^Filename: pool'; then
		say "install virtme-ng"
		install virtme-ng
		return
	fi
	private_apt_init
	say "install virtme-ng of $APT_SUITES"
	mkdir -p "$CACHE/deb"
	tmp=$(mktemp -d "$CACHE/deb/new.XXXXXX")
	# shellcheck disable=SC2064  # the value of now
	trap "rm -rf '$tmp'" EXIT
	(cd "$tmp" && private_apt apt-get download virtme-ng > "$LOGS/apt.log" 2>&1) ||
		die "download of virtme-ng failed ($(grep -m 1 '^E:' "$LOGS/apt.log")); next: check the network, then again"
	install "$tmp"/virtme-ng_*.deb
}

case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
'')	;;
-*)	die "unknown option '$1'; next: $0 -h" ;;
*)	PACKAGES="$PACKAGES $*" ;;
esac
command -v apt-get > /dev/null 2>&1 ||
	die "this is no Debian; next: install what PACKAGES in $0 names, and mmdebstrap and virtme-ng"
mapfile -t want < <(missing)
if [ ${#want[@]} -gt 0 ]; then
	need_root
	need_space "$CACHE" 2
	say "install ${want[*]}"
	with_lock apt install "${want[@]}"
fi
command -v vng > /dev/null 2>&1 || with_lock apt install_virtme
say "host packages: all there"
