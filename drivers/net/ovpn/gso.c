// SPDX-License-Identifier: GPL-2.0
/*  OpenVPN data channel offload
 *
 *  Batching: the segments of one GSO skb become records of as few UDP GSO
 *  skbs ("aggregates") as possible. Which skbs get here, what is counted and
 *  where an aggregate goes is decided elsewhere.
 */

#include <kunit/visibility.h>
#include <linux/gfp.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/checksum.h>
#include <net/gso.h>
#include <net/sock.h>
#include <net/tcp.h>
#include <net/tso.h>

#include "ovpnpriv.h"
#include "main.h"
#include "crypto.h"
#include "crypto_aead.h"
#include "gso.h"
#include "io.h"
#include "pktid.h"

/* An aggregate must not eat into the reserves, and not having it is no reason
 * to warn: there is the per-record path.
 */
#define OVPN_GSO_GFP	(GFP_ATOMIC | __GFP_NOWARN | __GFP_NOMEMALLOC)

/* room for all outer headers: udp_tunnel_xmit_skb() pushes without checking */
#define OVPN_GSO_HEADROOM	ALIGN(LL_MAX_HEADER + OVPN_HEAD_ROOM, 16)

/**
 * ovpn_gso_can_batch - can the segments of a GSO skb become aggregates?
 * @skb: the GSO skb
 *
 * Return: true if it is worth trying
 */
bool ovpn_gso_can_batch(const struct sk_buff *skb)
{
	const struct skb_shared_info *sh = skb_shinfo(skb);

	if (!(sh->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6 | SKB_GSO_UDP_L4)))
		return false;

	/* segments of any length */
	if (sh->gso_size == GSO_BY_FRAGS)
		return false;

	return !skb_shared(skb) && skb_frags_readable(skb) &&
	       skb_transport_header_was_set(skb);
}
EXPORT_SYMBOL_IF_KUNIT(ovpn_gso_can_batch);

/* Segment with the charge to the socket put aside: the segments have no owner,
 * the aggregates made of them are charged instead.
 */
static struct sk_buff *ovpn_gso_segment(struct sk_buff *skb)
{
	void (*destructor)(struct sk_buff *skb) = skb->destructor;
	const unsigned int truesize = skb->truesize;
	const bool owned = is_skb_wmem(skb);
	struct sock *sk = skb->sk;
	struct sk_buff *segs;

	if (owned) {
		skb->destructor = NULL;
		skb->sk = NULL;
	}

	/* checksums are completed by ovpn_gso_copy_segment(), in the same pass
	 * that copies the data
	 */
	segs = skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HW_CSUM);

	if (owned) {
		skb->truesize = truesize;
		skb->sk = sk;
		skb->destructor = destructor;
	}

	return segs ?: ERR_PTR(-EINVAL);
}

/**
 * ovpn_gso_start - start to turn a GSO skb into aggregates
 * @gso: the state to initialize
 * @skb: a GSO skb that ovpn_gso_can_batch()
 * @limits: what an aggregate may be, at least one record
 *
 * Return: 0 on success, then @skb belongs to @gso until ovpn_gso_finish().
 * A negative error code if it can not be segmented. Then the caller keeps it,
 * but can only free it: skb_segment_list() may have taken its frag list off.
 */
int ovpn_gso_start(struct ovpn_gso *gso, struct sk_buff *skb,
		   const struct ovpn_gso_limits *limits)
{
	gso->skb = skb;
	gso->limits = *limits;
	gso->segs = NULL;
	gso->ooo_okay = skb->ooo_okay;
	gso->tx_flags = 0;

	gso->use_cursor = !skb_network_offset(skb) &&
			  !tso_cursor_init(&gso->cursor, skb);
	if (gso->use_cursor) {
		gso->tx_flags = skb_shinfo(skb)->tx_flags & SKBTX_ANY_TSTAMP;
		return 0;
	}

	gso->segs = ovpn_gso_segment(skb);

	return PTR_ERR_OR_ZERO(gso->segs);
}
EXPORT_SYMBOL_IF_KUNIT(ovpn_gso_start);

/**
 * ovpn_gso_left - how many segments are left
 * @gso: the state
 *
 * Return: the number of segments, 0 at the end
 */
unsigned int ovpn_gso_left(const struct ovpn_gso *gso)
{
	const struct sk_buff *seg;
	unsigned int n = 0;

	if (gso->use_cursor)
		return tso_cursor_segs(&gso->cursor);

	for (seg = gso->segs; seg; seg = seg->next)
		n++;

	return n;
}
EXPORT_SYMBOL_IF_KUNIT(ovpn_gso_left);

/**
 * ovpn_gso_done - check whether all segments have been taken
 * @gso: the state
 *
 * Return: true at the end
 */
bool ovpn_gso_done(const struct ovpn_gso *gso)
{
	return gso->use_cursor ? !gso->cursor.left : !gso->segs;
}
EXPORT_SYMBOL_IF_KUNIT(ovpn_gso_done);

/* How many of the next segments can go into one aggregate, which wants all of
 * them to be equally long, but the last one, which may be shorter.
 */
static unsigned int ovpn_gso_run(const struct ovpn_gso *gso, unsigned int *len)
{
	const struct sk_buff *seg = gso->segs;
	unsigned int n = 1;

	if (gso->use_cursor) {
		*len = tso_cursor_seg_len(&gso->cursor);
		return tso_cursor_segs(&gso->cursor);
	}

	*len = seg->len;
	while ((seg = seg->next) && seg->len <= *len) {
		n++;
		if (seg->len < *len)
			break;
	}

	return n;
}

/* Split what does not fit one aggregate evenly: a full one and a rest of a few
 * records would be dearer.
 */
static unsigned int ovpn_gso_split(const struct ovpn_gso_limits *limits,
				   unsigned int n, unsigned int rec_len)
{
	const unsigned int max = clamp(limits->size / rec_len, 1U,
				       limits->records);

	return DIV_ROUND_UP(n, DIV_ROUND_UP(n, max));
}

/* Add a page fragment for up to @n records, none of which straddles its end:
 * the crypto code gets a record in one piece, and its header can be written
 * through one pointer.
 *
 * Returns the number of records that fit, 0 if there is no memory.
 */
static unsigned int ovpn_gso_add_frag(struct sk_buff *agg, unsigned int n,
				      unsigned int rec_len)
{
	unsigned int order = min_t(unsigned int, get_order(n * rec_len),
				   PAGE_ALLOC_COSTLY_ORDER);
	struct page *page = NULL;

	for (;; order--) {
		gfp_t gfp = OVPN_GSO_GFP;

		if ((PAGE_SIZE << order) < rec_len)
			return 0;
		if (order)
			gfp |= __GFP_COMP | __GFP_NORETRY;

		page = alloc_pages(gfp, order);
		if (likely(page))
			break;
		if (!order)
			return 0;
	}

	n = min_t(unsigned int, n, (PAGE_SIZE << order) / rec_len);
	skb_add_rx_frag(agg, skb_shinfo(agg)->nr_frags, page, 0, n * rec_len,
			PAGE_SIZE << order);

	return n;
}

/* Allocate an skb with room for up to *@n records in its fragments. There may
 * be room for less if only small pages are to be had, *@n tells.
 */
static struct sk_buff *ovpn_gso_alloc(unsigned int *n, unsigned int rec_len)
{
	unsigned int room = 0, fit;
	struct sk_buff *agg;

	agg = alloc_skb(OVPN_GSO_HEADROOM, OVPN_GSO_GFP);
	if (unlikely(!agg))
		return NULL;

	skb_reserve(agg, OVPN_GSO_HEADROOM);

	while (room < *n && skb_shinfo(agg)->nr_frags < MAX_SKB_FRAGS) {
		fit = ovpn_gso_add_frag(agg, *n - room, rec_len);
		if (unlikely(!fit))
			break;
		room += fit;
	}

	if (unlikely(!room)) {
		consume_skb(agg);
		return NULL;
	}
	*n = room;

	return agg;
}

/* Copy a finished segment and complete its checksum on the way.
 *
 * Returns its length or a negative error code.
 */
static int ovpn_gso_copy_segment(const struct sk_buff *seg, void *dst)
{
	unsigned int start = seg->len, check = 0;
	__wsum csum;
	int ret;

	if (seg->ip_summed == CHECKSUM_PARTIAL) {
		start = skb_checksum_start_offset(seg);
		check = start + seg->csum_offset;
		if (unlikely(start >= seg->len ||
			     check + sizeof(__sum16) > seg->len))
			return -EINVAL;
	}

	ret = skb_copy_bits(seg, 0, dst, start);
	if (unlikely(ret))
		return ret;

	if (start < seg->len) {
		csum = skb_copy_and_csum_bits(seg, start, dst + start,
					      seg->len - start);
		put_unaligned(csum_fold(csum) ?: CSUM_MANGLED_0,
			      (__sum16 *)(dst + check));
	}

	return seg->len;
}

/* Take over the timestamp request if the byte or datagram it is about is among
 * those that the cursor has passed.
 */
static void ovpn_gso_cursor_tstamp(struct ovpn_gso *gso, struct sk_buff *to)
{
	const u32 tskey = skb_shinfo(gso->skb)->tskey;

	if (likely(!gso->tx_flags))
		return;

	if (gso->cursor.tcp && !before(tskey, gso->cursor.seq))
		return;

	skb_shinfo(to)->tx_flags |= gso->tx_flags;
	skb_shinfo(to)->tskey = tskey;
	gso->tx_flags = 0;
}

/* Write the next segment to @dst and be done with it.
 *
 * Returns its length or a negative error code, then it is lost.
 */
static int ovpn_gso_write(struct ovpn_gso *gso, struct sk_buff *agg, void *dst)
{
	struct sk_buff *seg = gso->segs;
	u8 tx_flags;
	int ret;

	if (gso->use_cursor) {
		ret = tso_cursor_copy(&gso->cursor, dst);
		ovpn_gso_cursor_tstamp(gso, agg);
		return ret;
	}

	ret = ovpn_gso_copy_segment(seg, dst);
	tx_flags = skb_shinfo(seg)->tx_flags & SKBTX_ANY_TSTAMP;
	if (unlikely(tx_flags)) {
		skb_shinfo(agg)->tx_flags |= tx_flags;
		skb_shinfo(agg)->tskey = skb_shinfo(seg)->tskey;
	}

	gso->segs = seg->next;
	skb_mark_not_on_list(seg);
	if (unlikely(ret < 0))
		kfree_skb(seg);
	else
		consume_skb(seg);

	return ret;
}

/* Write and encrypt up to @n records to the fragments of @agg.
 *
 * Returns how many there are in the end. A segment that fails is lost and
 * counted in gso->dropped, those behind it stay in @gso.
 */
static unsigned int ovpn_gso_fill(struct ovpn_gso *gso,
				  struct ovpn_aead_batch *batch,
				  struct sk_buff *agg, unsigned int n,
				  unsigned int rec_len, u32 pktid)
{
	struct skb_shared_info *sh = skb_shinfo(agg);
	unsigned int off = 0, total = 0, i;
	const skb_frag_t *frag = sh->frags;
	void *rec;
	int len;

	for (i = 0; i < n; i++) {
		const u8 tx_flags = sh->tx_flags;
		const u32 tskey = sh->tskey;

		if (off == skb_frag_size(frag)) {
			frag++;
			off = 0;
		}

		rec = skb_frag_address(frag) + off;
		len = ovpn_gso_write(gso, agg, rec + OVPN_AEAD_OVERHEAD);
		if (unlikely(len <= 0 ||
			     ovpn_aead_batch_encrypt(batch, rec, len,
						     pktid + i))) {
			/* no timestamp for what does not leave */
			sh->tx_flags = tx_flags;
			sh->tskey = tskey;
			gso->dropped++;
			break;
		}

		off += rec_len;
		total += OVPN_AEAD_OVERHEAD + len;
	}

	/* a shorter last record, or all that a failed one leaves unused */
	if (total != agg->len)
		pskb_trim_unique(agg, total);

	return i;
}

/* What the outer stack and the qdiscs want to know about the data. A fresh skb
 * gets just these: a copy of the header of @gso->skb would import inner
 * offsets, extensions and flags that mean nothing for a UDP packet.
 */
static void ovpn_gso_copy_meta(struct ovpn_gso *gso, struct sk_buff *to)
{
	const struct sk_buff *from = gso->skb;

	to->protocol = from->protocol;
	to->priority = from->priority;
	skb_copy_hash(to, from);
	skb_copy_secmark(to, from);
	skb_set_delivery_time(to, from->tstamp, from->tstamp_type);
	skb_set_dst_pending_confirm(to, skb_get_dst_pending_confirm(from));
	to->ooo_okay = gso->ooo_okay;
	gso->ooo_okay = false;
}

/* Charge an skb that carries data of gso->skb to the socket of the latter. The
 * last one takes the charge of gso->skb over, without running its destructor:
 * TCP Small Queues must not be woken before the data has left, and the last
 * destructor to run must find nothing charged that has left.
 */
static void ovpn_gso_charge(struct ovpn_gso *gso, struct sk_buff *to)
{
	struct sk_buff *from = gso->skb;
	struct sock *sk = from->sk;
	int delta = to->truesize;

	if (!is_skb_wmem(from))
		return;

	to->sk = sk;
	to->destructor = from->destructor;

	if (ovpn_gso_done(gso)) {
		from->sk = NULL;
		from->destructor = NULL;
		delta -= from->truesize;
	}

	if (likely(delta >= 0))
		refcount_add(delta, &sk->sk_wmem_alloc);
	else
		WARN_ON_ONCE(refcount_sub_and_test(-delta,
						   &sk->sk_wmem_alloc));
}

/**
 * ovpn_gso_next - build the next aggregate
 * @gso: the state, with segments left
 * @batch: what to encrypt with
 *
 * On success gso->records tells how many records the aggregate has and
 * gso->dropped how many segments were lost. A single record is a plain skb.
 *
 * Return: the aggregate, which belongs to the caller, NULL if its only segment
 * was lost, or an ERR_PTR if none was touched: -ENOMEM, or the error of
 * ovpn_pktid_xmit_reserve().
 */
struct sk_buff *ovpn_gso_next(struct ovpn_gso *gso,
			      struct ovpn_aead_batch *batch)
{
	unsigned int n, rec_len;
	struct sk_buff *agg;
	u32 pktid;
	int ret;

	gso->records = 0;
	gso->dropped = 0;

	n = ovpn_gso_run(gso, &rec_len);
	rec_len += OVPN_AEAD_OVERHEAD;
	n = ovpn_gso_split(&gso->limits, n, rec_len);

	agg = ovpn_gso_alloc(&n, rec_len);
	if (unlikely(!agg))
		return ERR_PTR(-ENOMEM);

	/* as late as possible: what other CPUs send meanwhile gets lower IDs
	 * and leaves earlier
	 */
	ret = ovpn_pktid_xmit_reserve(&batch->ks->pid_xmit, n, &pktid);
	if (unlikely(ret)) {
		consume_skb(agg);
		return ERR_PTR(ret);
	}

	n = ovpn_gso_fill(gso, batch, agg, n, rec_len, pktid);
	if (unlikely(!n)) {
		kfree_skb(agg);
		return NULL;
	}

	gso->records = n;
	ovpn_gso_copy_meta(gso, agg);
	ovpn_gso_charge(gso, agg);
	if (n > 1) {
		skb_shinfo(agg)->gso_type = SKB_GSO_UDP_L4;
		skb_shinfo(agg)->gso_size = rec_len;
		skb_shinfo(agg)->gso_segs = n;
	}

	return agg;
}
EXPORT_SYMBOL_IF_KUNIT(ovpn_gso_next);

static struct sk_buff *ovpn_gso_cursor_segment(struct ovpn_gso *gso)
{
	const unsigned int len = tso_cursor_seg_len(&gso->cursor);
	struct sk_buff *seg;

	seg = alloc_skb(OVPN_GSO_HEADROOM + len, GFP_ATOMIC | __GFP_NOWARN);
	if (unlikely(!seg))
		return NULL;

	skb_reserve(seg, OVPN_GSO_HEADROOM);
	skb_reset_network_header(seg);
	tso_cursor_copy(&gso->cursor, __skb_put(seg, len));
	ovpn_gso_cursor_tstamp(gso, seg);
	ovpn_gso_copy_meta(gso, seg);

	return seg;
}

static struct sk_buff *ovpn_gso_list_segment(struct ovpn_gso *gso)
{
	struct sk_buff *seg = gso->segs, *next = seg->next;

	skb_mark_not_on_list(seg);
	/* the first segment of a fraglist is gso->skb itself */
	if (seg == gso->skb)
		seg = skb_share_check(seg, GFP_ATOMIC);
	gso->segs = next;

	return seg;
}

/**
 * ovpn_gso_next_segment - take the next segment out for the per-record path
 * @gso: the state, with segments left
 *
 * Return: the segment as an skb of its own, which belongs to the caller, or
 * NULL if there is no memory. Then the rest can only be dropped.
 */
struct sk_buff *ovpn_gso_next_segment(struct ovpn_gso *gso)
{
	struct sk_buff *seg;

	if (gso->use_cursor)
		seg = ovpn_gso_cursor_segment(gso);
	else
		seg = ovpn_gso_list_segment(gso);
	if (unlikely(!seg))
		return NULL;

	ovpn_gso_charge(gso, seg);

	return seg;
}
EXPORT_SYMBOL_IF_KUNIT(ovpn_gso_next_segment);

/**
 * ovpn_gso_finish - release all that is left
 * @gso: the state
 * @complete: no segment was lost
 *
 * Segments that are still there are freed, the caller has counted them. A
 * charge to the socket that no aggregate has taken over is released together
 * with the GSO skb.
 */
void ovpn_gso_finish(struct ovpn_gso *gso, bool complete)
{
	kfree_skb_list(gso->segs);

	/* the data was copied: tell a sender that asked for zerocopy */
	if (!skb_cloned(gso->skb)) {
		skb_zcopy_downgrade_managed(gso->skb);
		skb_zcopy_clear(gso->skb, false);
	}

	if (likely(complete))
		consume_skb(gso->skb);
	else
		kfree_skb(gso->skb);
}
EXPORT_SYMBOL_IF_KUNIT(ovpn_gso_finish);
