#!/bin/bash
# usage: rootfs.sh [-h]
# Make the root file system of the guest (Debian trixie with backports) in
# $ROOTFS. Done again only when the list of packages below changes.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/apt.sh"

SUITE=trixie
DEFAULT_RELEASE=trixie-backports
SPACE_GIB=4
PACKAGES='
	bash systemd-sysv procps kmod psmisc util-linux
	iproute2 ethtool nftables iputils-ping tcpdump netcat-openbsd socat
	iperf3 openvpn openssl wireguard-tools lksctp-tools
	jq bc strace busybox-static rsync
	python3-yaml python3-jsonschema python3-scapy python3-cryptography
	gcc libc6-dev make pkg-config
	libnl-3-dev libnl-genl-3-dev libmbedtls-dev libssl-dev libcap-dev libmnl-dev
	linux-perf bpftrace
'

# everything that the content depends on
wanted() {
	{
		printf '%s %s %s\n' "$SUITE" "$DEFAULT_RELEASE" "$APT_SUITES"
		tr -s '\t\n ' '\n' <<< "$PACKAGES" | sort -u
		declare -f settle stub_udev
	} | sha256sum | cut -d ' ' -f 1
}

# virtme-ng's init wants of udev nothing but names for its virtio ports, and of
# tmpfiles nothing. The real ones take most of a boot in an emulator, and udevd
# has a look at every device that a test makes.
stub_udev() {
	local root=$1

	rm -f "$root/usr/bin/systemd-tmpfiles"
	ln -sf true "$root/usr/bin/udevadm"
	cat > "$root/usr/lib/systemd/systemd-udevd" <<- 'END'
		#!/bin/bash
		# name the virtio ports
		mkdir -p /dev/virtio-ports
		for port in /sys/class/virtio-ports/*; do
			read -r name < "$port/name" &&
				ln -sf "../${port##*/}" "/dev/virtio-ports/$name"
		done
		exit 0
	END
	chmod 755 "$root/usr/lib/systemd/systemd-udevd"
}

# what a boot by virtme-ng, or by QEMU with the root over 9p, expects
settle() {
	local root=$1

	stub_udev "$root"
	mkdir -p "$root/etc/lvm" "$root/lib/modules" "$root/mnt"
	printf 'ovpn-gso\n' > "$root/etc/hostname"
	printf '127.0.0.1 localhost ovpn-gso\n::1 localhost\n' > "$root/etc/hosts"
	# tests start these themselves
	rm -f "$root"/etc/systemd/system/multi-user.target.wants/{openvpn,iperf3,nftables}.service
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
}

drop_tree() {
	[ -e "$1" ] || return 0
	! grep -q " $1/" /proc/mounts ||
		die "$1 has something mounted in it; next: umount it (grep $1 /proc/mounts), then again"
	rm -rf --one-file-system "$1"
}

make_rootfs() {
	local new=$ROOTFS.new stamp log=$LOGS/rootfs.log pid list

	stamp=$(wanted)
	if [ "$(cat "$ROOTFS/.ovpn-gso-stamp" 2> /dev/null)" = "$stamp" ]; then
		say "up to date: $ROOTFS"
		return
	fi
	need_root
	need_cmd mmdebstrap mmdebstrap
	need_space "$CACHE" "$SPACE_GIB"
	with_lock apt private_apt_init
	drop_tree "$new"
	list=$(tr -s '\t\n ' ',' <<< "$PACKAGES")
	list=${list#,}
	say "guest root: $SUITE, $(tr , '\n' <<< "${list%,}" | wc -l) packages and what they need (about 3 min; $log)"
	mmdebstrap --variant=minbase --format=directory --include="${list%,}" \
		--aptopt="APT::Default-Release \"$DEFAULT_RELEASE\"" \
		--aptopt='Acquire::Retries "3"' \
		--dpkgopt=path-exclude=/usr/share/man/* \
		--dpkgopt=path-exclude=/usr/share/locale/* \
		--dpkgopt=path-exclude=/usr/share/doc/* \
		"$SUITE" "$new" "$APT_DIR/sources.list" < /dev/null > "$log" 2>&1 &
	pid=$!
	# shellcheck disable=SC2064  # the values of now
	trap "kill $pid 2> /dev/null || true; wait $pid 2> /dev/null || true; rm -rf --one-file-system '$new'" EXIT
	while kill -0 "$pid" 2> /dev/null; do
		sleep 1
		[ $((SECONDS % 15)) -ne 0 ] ||
			say "$(du -sm "$new" 2> /dev/null | cut -f 1) MB so far"
	done
	if ! wait "$pid"; then
		tail -n 15 "$log" >&2
		die "mmdebstrap failed; next: see $log (network? a package gone from the mirror?), then again"
	fi
	settle "$new"
	printf '%s\n' "$stamp" > "$new/.ovpn-gso-stamp"
	drop_tree "$ROOTFS"
	mv "$new" "$ROOTFS"
	trap - EXIT
	say "made $ROOTFS: $(du -sm "$ROOTFS" | cut -f 1) MB in $SECONDS s"
}

case ${1:-} in
-h|--help)
	sed -n '2,/^$/s/^# \?//p' "$0"
	exit 0
	;;
'')	;;
*)	die "unknown argument '$1'; next: $0 -h" ;;
esac
with_lock rootfs make_rootfs
