#!/bin/bash
# usage: rehearse-hardware.sh
# bench/on-hardware.sh between two namespaces of a guest: does the script work?
# Its figures tell nothing.

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=prepare.sh
. "$TOP/harness/prepare.sh"

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
'') ;;
*) die "unknown argument $1; next: rehearse-hardware.sh --help" ;;
esac

prepare run 1
step "bench/on-hardware.sh rehearse, in a guest"
"$TOP/harness/vm.sh" --cpus 2 --timeout 600 --image "$IMG" --ro "stage=$STAGE" --ro "bench=$TOP/bench" \
	--log "$LOGS/rehearse-hardware.log" -- env OVPN_CLI=/mnt/stage/tools/testing/selftests/net/ovpn/ovpn-cli \
	bash /mnt/bench/on-hardware.sh rehearse --rounds 1 --seconds 2 --out /tmp/on-hardware.jsonl
