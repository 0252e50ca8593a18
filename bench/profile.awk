# Samples of a guest in which sender and receiver share the CPU, by the side that
# they belong to. In: what the workload "profile" writes (harness/guest/bench.sh).
# Out, separated by tabs: "side NAME SAMPLES", "records SENDER RECEIVER",
# "symbol NAME SENDER RECEIVER OTHER".
#
# In a softirq the nearest frame decides that belongs to one of TCP's sides only;
# without one it is the receiver: packets are received there. Outside, the process
# decides. So the sender's work to decrypt acknowledgements is taken for the
# receiver's: at most the share of records that the receiver sends.

function side(    i, in_softirq) {
	if (comm ~ /^perf/)
		return "perf"
	for (i = 1; i <= n; i++) {
		if (frame[i] ~ /^(net_rx_action|tasklet_action_common|workqueue_softirq_action|net_tx_action)$/) {
			in_softirq = i
			break
		}
	}
	if (!in_softirq) {
		if (pid == receiver)
			return "receiver"
		return comm ~ /^iperf3/ ? "sender" : "other"
	}
	for (i = 1; i < in_softirq; i++) {
		if (frame[i] ~ /^(__tcp_send_ack|tcp_send_ack|tcp_send_dupack|tcp_data_queue|tcp_delack_timer)/)
			return "receiver"
		if (frame[i] ~ /^(tcp_write_xmit|tcp_ack|tcp_tsq_|tcp_xmit_recovery|tcp_push|__tcp_push_pending_frames)/)
			return "sender"
	}
	return "receiver"
}

function account(    s) {
	if (!n)
		return
	s = side()
	total[s]++
	if (s != "perf") {
		symbol[frame[1]] = 1
		count[frame[1], s]++
	}
	n = 0
}

BEGIN { OFS = "\t" }
/^# receiver/ { receiver = $3; next }
/^# records/ { print "records", $3, $4; next }
/^$/ { account(); next }
/^[^ \t]/ {
	account()
	# "comm pid": a comm may have spaces
	pid = $NF
	comm = $0
	sub(/ +[0-9]+ *$/, "", comm)
	next
}
{ frame[++n] = $2 }
END {
	account()
	for (s in total)
		print "side", s, total[s]
	for (f in symbol)
		print "symbol", f, count[f, "sender"] + 0, count[f, "receiver"] + 0, count[f, "other"] + 0
}
