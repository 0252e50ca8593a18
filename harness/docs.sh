#!/bin/bash
# usage: docs.sh [--check]
# Make docs/architecture.svg from docs/architecture.dot. --check writes nothing and
# fails when it was made from another one.

. "$(dirname "$0")/lib.sh"

DOT=$TOP/docs/architecture.dot
SVG=$TOP/docs/architecture.svg
source_hash=$(sha256sum < "$DOT" | cut -d ' ' -f 1)

case ${1:-} in
-h|--help) sed -n '2,/^$/s/^# \?//p' "$0"; exit 0 ;;
--check)
	grep -qF "<!-- source: $source_hash -->" "$SVG" || die "docs/architecture.svg is not made from docs/architecture.dot; next: make docs"
	;;
'')	command -v dot > /dev/null 2>&1 || die "dot is missing; next: apt-get install graphviz"
	dot -Tsvg "$DOT" > "$SVG.new" || die "dot refuses $DOT; next: see its message above"
	# programs of other versions draw other bytes, so that only the source is compared
	{ cat "$SVG.new"; printf '<!-- source: %s -->\n' "$source_hash"; } > "$SVG"
	rm "$SVG.new"
	say "made docs/architecture.svg"
	;;
*)	die "unknown argument '$1'; next: $0 -h" ;;
esac
