# docs/results/NAME.md
def show: if . == null then "-" elif . >= 1000 then round | tostring else . * 100 | round / 100 | tostring end;
def per_cent: if . == null then "" else (. * 10 | round / 10) as $p | "\(if $p > 0 then "+" else "" end)\($p)%" end;
def line: "| " + (map(tostring) | join(" | ")) + " |";

"# " + { full: "Base against series", quick: "Base against series, short", "per-patch": "After every patch" }[.mode],
"",
"Executed guest instructions per byte of payload, sender and receiver on one",
"CPU, unless it says otherwise. Written by `\(.command)`, then",
"`harness/bench.sh --commit-results`; how it is measured: [testing](../testing.md).",
"",
"![bars](\(.mode).svg)",
"",
if .mode == "per-patch" then
	. as $d
	| (["patch", "subject"] + (.rows | map(.name)) | line),
	  (["---", "---"] + (.rows | map("---:")) | line),
	  (.kernels[] | .label as $l | [$l, .subject] + [ $d.rows[] | .kernels[$l].median | show ] | line)
else
	(["workload", "row", "base", "series", "change", "must / aim", "reached", "idle %"] | line),
	(["---", "---", "---:", "---:", "---:", "---", "---", "---:"] | line),
	(.rows[] | [.title + (if .unit == "instructions/byte" then "" else " (\(.unit))" end), .name,
		(.kernels.base.median | show), (.kernels.series.median | show), (.change_percent | per_cent),
		.targets, (.reached // ""), ([.kernels[].idle_percent | numbers] | max // "-")] | line)
end,
"",
"\(.repeats) measurement\(if .repeats > 1 then "s of each row, the median is shown" else " of each row" end). " +
	(if [.rows[].flags[]] | length > 0 then "Flagged (idle above 2%, spread above 2%):" else "None flagged (idle above 2%, spread above 2%)." end),
"",
(.rows[] | select(.flags | length > 0) | "- \(.name): \(.flags | join(", "))"),
(if [.rows[].flags[]] | length > 0 then "" else empty end),
"Measured with \(.environment.qemu); \(.environment.compiler); \(.environment.iperf3); base \(.environment.base);",
"AES-GCM by \(.environment.aead["gcm(aes)"]). Every single measurement is in [\(.mode).json](\(.mode).json)."
