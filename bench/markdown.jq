# docs/results/NAME.md
include "lib";

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
	  (.kernels[] | .label as $l | [$l, .subject] + [ $d.rows[] | .kernels[$l].median | figure ] | line)
else
	(["workload", "row", "base", "series", "change", "must / aim", "reached", "idle %"] | line),
	(["---", "---", "---:", "---:", "---:", "---", "---", "---:"] | line),
	(.rows[] | [.title + unit_note, .name,
		(.kernels.base.median | figure), (.kernels.series.median | figure), (.change_percent | per_cent),
		.targets, (.reached // ""), max_idle_percent] | line)
end,
"",
"\(.repeats) measurement\(if .repeats > 1 then "s of each row, the median is shown" else " of each row" end). " +
	(if [.rows[].flags[]] | length > 0 then "Flagged (idle above 2%, spread above 2%):" else "None flagged (idle above 2%, spread above 2%)." end),
"",
(.rows[] | select(.flags | length > 0) | "- \(.name): \(.flags | join(", "))"),
(if [.rows[].flags[]] | length > 0 then "" else empty end),
"Measured with \(.environment.qemu); \(.environment.compiler); \(.environment.iperf3); base \(.environment.base);",
"AES-GCM by \(.environment.aead["gcm(aes)"]). Every single measurement is in [\(.mode).json](\(.mode).json)."
