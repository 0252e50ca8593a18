/* SPDX-License-Identifier: GPL-2.0-only */
/*  OpenVPN data channel offload
 *
 *  UDP GSO batching
 */

#ifndef _NET_OVPN_GSO_H_
#define _NET_OVPN_GSO_H_

#include <linux/skbuff.h>
#include <net/tso.h>

struct ovpn_aead_batch;

/**
 * struct ovpn_gso_limits - what an aggregate may be
 * @size: bytes of all its records together
 * @records: number of records
 */
struct ovpn_gso_limits {
	unsigned int size;
	unsigned int records;
};

/**
 * struct ovpn_gso - a GSO skb on its way into aggregates
 * @skb: the GSO skb. It keeps the charge to the socket until the last segment
 *	 has left.
 * @segs: finished segments that are left, if @cursor can not segment @skb
 * @cursor: position in @skb
 * @limits: what an aggregate may be
 * @use_cursor: take the segments from @cursor, not from @segs
 * @ooo_okay: the next skb may still go to another TX queue
 * @tx_flags: TX timestamp requests that no skb carries yet (cursor only)
 * @records: number of records of the last aggregate
 * @dropped: number of segments lost while the last aggregate was built
 */
struct ovpn_gso {
	struct sk_buff *skb;
	struct sk_buff *segs;
	struct tso_cursor cursor;
	struct ovpn_gso_limits limits;
	bool use_cursor;
	bool ooo_okay;
	u8 tx_flags;
	unsigned int records;
	unsigned int dropped;
};

bool ovpn_gso_can_batch(const struct sk_buff *skb);
int ovpn_gso_start(struct ovpn_gso *gso, struct sk_buff *skb,
		   const struct ovpn_gso_limits *limits);
bool ovpn_gso_done(const struct ovpn_gso *gso);
unsigned int ovpn_gso_left(const struct ovpn_gso *gso);
struct sk_buff *ovpn_gso_next(struct ovpn_gso *gso,
			      struct ovpn_aead_batch *batch);
struct sk_buff *ovpn_gso_next_segment(struct ovpn_gso *gso);
void ovpn_gso_finish(struct ovpn_gso *gso, bool complete);

#endif /* _NET_OVPN_GSO_H_ */
