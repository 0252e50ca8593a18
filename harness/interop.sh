#!/bin/bash
# usage: interop.sh [SERVER:CLIENT:CIPHER]...
# OpenVPN as server and client in a guest: both with the kernel data channel
# (dco), and each against a peer with OpenVPN's own (user), an independent
# implementation of the wire format. Default: dco:dco, dco:user and user:dco, each
# with AES-128-GCM and CHACHA20-POLY1305. Results: $LOGS/results/interop.tap.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=prepare.sh
. "$TOP/harness/prepare.sh"
# shellcheck source=guest/tap.sh
. "$TOP/harness/guest/tap.sh"

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
-*) die "unknown option $1; next: interop.sh --help" ;;
esac

prepare run 1
OUT=$LOGS/interop
rm -rf "$OUT"
mkdir -p "$OUT"
tap_begin "$LOGS/results/interop.tap" interop

step "OpenVPN server and client, kernel and userspace data channel"
rc=0
"$TOP/harness/vm.sh" --cpus 2 --timeout 900 --image "$IMG" --rw "out=$OUT" --log "$OUT/guest.log" \
	-- bash /mnt/harness/guest/interop.sh "$@" || rc=$?
if [ -e "$OUT/interop.tap.part" ]; then
	mv "$OUT/interop.tap.part" "$LOGS/results/interop.tap.part"
fi
if [ "$rc" -ne 0 ] && { [ "$rc" -ne 1 ] || [ "$(tap_failures)" -eq 0 ]; }; then
	tap_case not "guest ended with status $rc" "log: $OUT/guest.log and .console"$'\n'"$(tail -n 40 "$OUT/guest.log")"
fi
say "$(tap_failures) cases failed: $LOGS/results/interop.tap"
tap_end
