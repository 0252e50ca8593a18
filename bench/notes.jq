# below the table: what is flagged
"",
"instructions per byte of payload, executed on the one CPU that both ends share, unless it says otherwise",
(.rows[] | select(.flags | length > 0) | "! \(.name): \(.flags | join(", "))")
