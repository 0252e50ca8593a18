# shellcheck shell=bash
# OpenVPN's server in namespace a and client in b, with the kernel data channel
# (dco) or with OpenVPN's own (user, --disable-dco). The server has 10.8.0.1, the
# client 10.8.0.2. Sourced after lib.sh, never run.

OPENVPN_WAIT=90
openvpn_pids=()

# a self-signed certificate a side; each names the other by its fingerprint
openvpn_certificates() {
	local who

	for who in server client; do
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
			-subj "/CN=$who" -keyout /tmp/$who.key -out /tmp/$who.crt 2> /tmp/openssl.log ||
			{ cat /tmp/openssl.log; die "openssl made no certificate"; }
		openssl x509 -in /tmp/$who.crt -noout -fingerprint -sha256 | cut -d = -f 2 > /tmp/$who.fp
	done
	mkdir -p /dev/net
	[ -c /dev/net/tun ] || mknod /dev/net/tun c 10 200
}

# openvpn_start WHO NS PEER MODE CIPHER arg...
openvpn_start() {
	local who=$1 ns=$2 peer=$3 mode=$4 cipher=$5 extra=()

	shift 5
	[ "$mode" = dco ] || extra=(--disable-dco)
	on "$ns" openvpn --dev-type tun --dev tun0 --verb 4 --cert "/tmp/$who.crt" --key "/tmp/$who.key" \
		--peer-fingerprint "$(cat "/tmp/$peer.fp")" --data-ciphers "$cipher" \
		--auth-nocache --connect-timeout 30 "${extra[@]}" "$@" > "/mnt/out/$who.log" 2>&1 &
	openvpn_pids+=($!)
}

openvpn_stop() {
	[ ${#openvpn_pids[@]} -eq 0 ] || kill "${openvpn_pids[@]}" 2> /dev/null || true
	[ ${#openvpn_pids[@]} -eq 0 ] || wait "${openvpn_pids[@]}" 2> /dev/null || true
	openvpn_pids=()
}

# wait_for SECONDS cmd...
wait_for() {
	local end=$((SECONDS + $1))

	shift
	until "$@" > /dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.5
	done
}

# openvpn_pair SERVER_MODE CLIENT_MODE CIPHER [ARG]...: start both
openvpn_pair() {
	local server=$1 client=$2 cipher=$3

	shift 3
	openvpn_start server a client "$server" "$cipher" --server 10.8.0.0 255.255.255.0 --topology subnet \
		--tls-server --dh none --proto udp --local 10.10.1.1 --port "$PORT" --keepalive 10 60 "$@"
	wait_for 30 grep -q 'UDPv4 link local' /mnt/out/server.log || true
	openvpn_start client b server "$client" "$cipher" --client --proto udp --remote 10.10.1.1 "$PORT" --nobind "$@"
}

# openvpn_handshake CIPHER: until the tunnel is up
openvpn_handshake() {
	if ! wait_for $OPENVPN_WAIT grep -q 'Initialization Sequence Completed' /mnt/out/client.log ||
	   ! wait_for 10 grep -q "Data Channel: cipher '$1'" /mnt/out/client.log; then
		tail -n 15 /mnt/out/client.log /mnt/out/server.log
		return 1
	fi
}
