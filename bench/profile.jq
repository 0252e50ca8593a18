# docs/results/profile.md. In: an array of { row, kernel, value (instructions per
# byte of the row without perf), lines (of bench/profile.awk) }
include "lib";

def round_to(n): . * pow(10; n) | round / pow(10; n);

map(. as $p | (.lines | split("\n") | map(split("\t"))) as $l
	| ($l | map(select(.[0] == "side") | { key: .[1], value: (.[2] | tonumber) }) | from_entries) as $side
	| ([$side.sender, $side.receiver, $side.other // 0] | add) as $n
	| ($l | map(select(.[0] == "records"))[0] | .[1:] | map(tonumber)) as $records
	| $p + { n: $n, perf: ($side.perf // 0),
		sides: (["sender", "receiver", "other"] | map({ key: ., value: (($side[.] // 0) / $n) }) | from_entries),
		acks: ($records[1] / $records[0]),
		symbols: ($l | map(select(.[0] == "symbol")
			| { name: .[1], sender: (.[2] | tonumber / $n), receiver: (.[3] | tonumber / $n), other: (.[4] | tonumber / $n) }
			| . + { total: (.sender + .receiver + .other) }) | sort_by(-.total)) } | del(.lines))
| "# Where the instructions go",
"",
"Sender and receiver of the TCP rows apart, by a profile inside the guest in",
"which a sample is taken every 200,000 instructions or so. The share of a side",
"times the row's figure gives its instructions per byte. Error: two standard",
"deviations of the sampling; and the sender's work on acknowledgements counts as",
"the receiver's, at most the share of records given in the last column. The",
"sampler's own work is left out. Written by `harness/bench.sh --commit-results`.",
"",
(["row", "kernel", "together", "sender", "receiver", "neither", "error", "samples", "ack records"] | line),
(["---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:"] | line),
(.[] | . as $p | [.row, .kernel, (.value | fixed(2)), (.sides.sender * .value | fixed(2)), (.sides.receiver * .value | fixed(2)),
	(.sides.other * .value | fixed(2)),
	"±" + (2 * ((.sides.sender * (1 - .sides.sender) / .n) | sqrt) * .value | fixed(2)),
	.n, "\(.acks * 100 | round_to(1))%"] | line),
(.[] | . as $p | "", "## \(.row), \(.kernel): the first 20 of \(.symbols | length) functions", "",
	(["function", "instructions/byte", "share", "sender", "receiver"] | line),
	(["---", "---:", "---:", "---:", "---:"] | line),
	(.symbols[:20][] | ["`\(.name)`", (.total * $p.value | fixed(2)), "\(.total * 100 | round_to(1))%",
		(.sender * $p.value | fixed(2)), (.receiver * $p.value | fixed(2))] | line))
