#!/bin/bash
# Inside the guest: OpenVPN's server and client in two namespaces, with the
# kernel data channel (dco) and with OpenVPN's own (user, --disable-dco). Cases
# go to /mnt/out/interop.tap.part.
# usage: interop.sh [SERVER:CLIENT:CIPHER]...   e.g. dco:user:AES-128-GCM

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=openvpn.sh
. "$(dirname "${BASH_SOURCE[0]}")/openvpn.sh"
# shellcheck source=tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

SIZE_MIB=6

# the device is what the mode asks for: the test would be void otherwise
device_kind() {
	local ns=$1 mode=$2 kind

	kind=$(ip -n "$ns" -j -d link show tun0 | jq -r '.[0].linkinfo.info_kind')
	case $mode:$kind in
	dco:ovpn|user:tun) ;;
	*) echo "tun0 of $ns is of kind $kind"; return 1 ;;
	esac
}

pings() {
	on a ping -q -c 20 -i 0.05 -w 15 10.8.0.2 && on b ping -q -c 5 -i 0.05 -s 4000 -w 15 10.8.0.1
}

# iperf [-R]: bytes must arrive
iperf() {
	local got

	on b timeout 120 iperf3 -c 10.8.0.1 -n 1M -J --connect-timeout 30000 "$@" > /tmp/iperf.json ||
		{ jq -r .error /tmp/iperf.json; return 1; }
	got=$(jq '.end.sum_received.bytes' /tmp/iperf.json)
	[ "$got" -gt 100000 ] || { echo "only $got bytes arrived"; return 1; }
}

# transfer FROM TO ADDRESS: a file over TCP, hashes equal
transfer() {
	local from=$1 to=$2 addr=$3 rx

	rm -f /tmp/got
	timeout 90 ip netns exec "$to" nc -l "$addr" 9000 > /tmp/got & rx=$!
	wait_for 10 listening "$to"
	timeout 90 ip netns exec "$from" nc -N "$addr" 9000 < /tmp/file || { echo "nc failed"; kill $rx; return 1; }
	wait $rx || { echo "the receiver failed"; return 1; }
	cmp /tmp/file /tmp/got
	[ "$(sha256sum < /tmp/file)" = "$(sha256sum < /tmp/got)" ]
}

listening() { on "$1" ss -Hltn 'sport = :9000' | grep -q .; }

checksum_errors() {
	local ns bad

	for ns in a b; do
		bad=$(on $ns nstat -asz | awk '/InCsumErrors/ && $2 > 0')
		[ -z "$bad" ] || { echo "$ns: $bad"; return 1; }
	done
}

one() {
	local server=$1 client=$2 cipher=$3 name="server $1, client $2, $3" srv

	say "$name"
	pair_up 1500
	openvpn_pair "$server" "$client" "$cipher"
	if tap_check "$name: handshake" openvpn_handshake "$cipher"; then
		tap_check "$name: server's device" device_kind a "$server" || true
		tap_check "$name: client's device" device_kind b "$client" || true
		tap_check "$name: ping" pings || true
		on a iperf3 -s > /dev/null 2>&1 & srv=$!
		sleep 0.5
		tap_check "$name: iperf3 to the server" iperf || true
		tap_check "$name: iperf3 to the client" iperf -R || true
		kill $srv 2> /dev/null || true
		wait $srv 2> /dev/null || true
		tap_check "$name: file to the server" transfer b a 10.8.0.1 || true
		tap_check "$name: file to the client" transfer a b 10.8.0.2 || true
		tap_check "$name: no checksum errors" checksum_errors || true
	fi
	openvpn_stop
	mkdir -p "/mnt/out/$server-$client-$cipher"
	mv /mnt/out/server.log /mnt/out/client.log "/mnt/out/$server-$client-$cipher/"
	ip netns del a
	ip netns del b
}

[ $# -gt 0 ] || set -- {dco:dco,dco:user,user:dco}:{AES-128-GCM,CHACHA20-POLY1305}
trap openvpn_stop EXIT
tap_resume /mnt/out/interop.tap interop
head -c $((SIZE_MIB << 20)) /dev/urandom > /tmp/file
openvpn_certificates
for combo in "$@"; do
	IFS=: read -r server client cipher <<< "$combo"
	one "$server" "$client" "$cipher"
done
[ "$(tap_failures)" -eq 0 ]
