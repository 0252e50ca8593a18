// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests for the TSO cursor: each segment that it writes must be the one
 * that skb_gso_segment() yields, to the bit.
 */

#include <kunit/skbuff.h>
#include <kunit/test.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/checksum.h>
#include <net/gso.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>
#include <net/tso.h>

/* The random geometry differs from run to run. To repeat a run set this to the
 * seed that it has printed.
 */
#define TSO_TEST_SEED		0
#define TSO_TEST_ROUNDS		300

#define TSO_TEST_FRAGS		6
/* the longest payload */
#define TSO_TEST_LEN		120000
#define TSO_TEST_HDR_MAX	(ETH_HLEN + 60 + 60)

/* no byte beside the segment may be written */
#define TSO_TEST_GUARD		16
#define TSO_TEST_POISON		0xa5

struct tso_test_bufs {
	u8 dst[TSO_TEST_GUARD + 8 + SZ_128K + TSO_TEST_GUARD];
	u8 ref[SZ_128K];
	struct sk_buff old;
	u8 old_head[SZ_256K];
	u8 old_data[SZ_128K];
	u8 new_data[SZ_128K];
};

struct tso_test_frag {
	unsigned int off;
	unsigned int size;
};

struct tso_test_geom {
	const char *name;
	bool ipv6;
	bool udp;
	/* the checksum of the first segment comes out as 0 */
	bool zero_csum;
	/* options of IPv4, a destination options header of IPv6 */
	u8 ip_opts;
	u8 tcp_opts;
	u8 tcp_flags;
	u8 mac_len;
	u16 ip_id;
	u32 seq;
	/* modifiers */
	u32 gso_type;
	unsigned int mss;
	/* bytes of payload in the linear area */
	unsigned int linear;
	struct tso_test_frag frags[TSO_TEST_FRAGS];
};

#define TSO_TEST_FLAGS	(TCPHDR_ACK | TCPHDR_PSH | TCPHDR_FIN)

static const struct tso_test_geom tso_test_geom[] = {
	{
		.name = "tcp4_linear",
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1000,
		.linear = 3500,
	}, {
		.name = "tcp6_linear",
		.ipv6 = true,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1000,
		.linear = 3500,
	}, {
		.name = "udp4_linear",
		.udp = true,
		.mss = 1000,
		.linear = 3500,
	}, {
		.name = "udp6_linear",
		.ipv6 = true,
		.udp = true,
		.mss = 1000,
		.linear = 3500,
	}, {
		.name = "tcp4_exact_multiple",
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1448,
		.tcp_opts = 12,
		.frags = { { 0, 4 * 1448 } },
	}, {
		.name = "udp6_exact_multiple",
		.ipv6 = true,
		.udp = true,
		.mss = 1380,
		.frags = { { 0, 4 * 1380 } },
	}, {
		.name = "tcp6_one_byte_tail",
		.ipv6 = true,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1428,
		.tcp_opts = 12,
		.frags = { { 0, 3 * 1428 + 1 } },
	}, {
		.name = "udp4_one_byte_tail",
		.udp = true,
		.mss = 1380,
		.frags = { { 0, 3 * 1380 + 1 } },
	}, {
		.name = "tcp4_two_segments",
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 536,
		.linear = 537,
	}, {
		.name = "tcp4_mss_1",
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1,
		.linear = 3,
		.frags = { { 0, 50 } },
	}, {
		.name = "udp6_mss_1",
		.ipv6 = true,
		.udp = true,
		.mss = 1,
		.frags = { { 1, 30 }, { 0, 1 }, { 3, 20 } },
	}, {
		.name = "tcp4_odd_mss",
		.tcp_flags = TSO_TEST_FLAGS,
		.tcp_opts = 12,
		.mss = 1363,
		.frags = { { 0, 10001 } },
	}, {
		/* a segment collects odd pieces: sums have to be rotated */
		.name = "tcp4_odd_frags",
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1400,
		.linear = 7,
		.frags = { { 1, 3 }, { 5, 1001 }, { 0, 1 }, { 7, 2999 },
			   { 4095, 1 }, { 2, 777 } },
	}, {
		.name = "udp4_odd_frags",
		.udp = true,
		.mss = 701,
		.linear = 1,
		.frags = { { 3, 1 }, { 1, 701 }, { 9, 1403 }, { 0, 5 },
			   { 11, 699 }, { 2, 350 } },
	}, {
		.name = "tcp6_mixed",
		.ipv6 = true,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1000,
		.linear = 1500,
		.frags = { { 100, 1500 }, { 200, 1500 } },
	}, {
		/* parts end where segments end */
		.name = "tcp4_aligned_parts",
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 500,
		.linear = 500,
		.frags = { { 0, 1000 }, { 8, 500 }, { 16, 250 } },
	}, {
		/* one fragment beyond a page, data starts in its second page */
		.name = "tcp4_compound",
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1448,
		.frags = { { 5000, 30000 }, { 4097, 20000 } },
	}, {
		.name = "udp6_compound",
		.ipv6 = true,
		.udp = true,
		.mss = 8900,
		.frags = { { 1, 32767 }, { 8193, 30001 } },
	}, {
		.name = "tcp4_ip_options",
		.ip_opts = 8,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 900,
		.linear = 2000,
	}, {
		.name = "udp4_ip_options",
		.udp = true,
		.ip_opts = 40,
		.mss = 900,
		.frags = { { 0, 2000 } },
	}, {
		.name = "tcp4_all_options",
		.ip_opts = 40,
		.tcp_opts = 40,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 900,
		.frags = { { 0, 2000 } },
	}, {
		/* timestamps and three SACK blocks */
		.name = "tcp6_sack",
		.ipv6 = true,
		.tcp_opts = 12 + 28,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1400,
		.linear = 100,
		.frags = { { 0, 4000 } },
	}, {
		.name = "tcp4_psh",
		.tcp_flags = TCPHDR_ACK | TCPHDR_PSH,
		.mss = 100,
		.linear = 350,
	}, {
		.name = "tcp4_fin",
		.tcp_flags = TCPHDR_ACK | TCPHDR_FIN,
		.mss = 100,
		.linear = 350,
	}, {
		.name = "tcp4_urg_rst_ece",
		.tcp_flags = TCPHDR_ACK | TCPHDR_URG | TCPHDR_RST | TCPHDR_ECE,
		.mss = 100,
		.linear = 350,
	}, {
		.name = "tcp4_cwr",
		.tcp_flags = TCPHDR_ACK | TCPHDR_CWR,
		.gso_type = SKB_GSO_TCP_ECN,
		.mss = 100,
		.linear = 350,
	}, {
		.name = "tcp4_cwr_no_modifier",
		.tcp_flags = TCPHDR_ACK | TCPHDR_CWR,
		.mss = 100,
		.linear = 350,
	}, {
		.name = "tcp4_cwr_accecn",
		.tcp_flags = TCPHDR_ACK | TCPHDR_CWR | TCPHDR_ECE,
		.gso_type = SKB_GSO_TCP_ACCECN,
		.mss = 100,
		.linear = 350,
	}, {
		.name = "tcp6_cwr",
		.ipv6 = true,
		.tcp_flags = TCPHDR_ACK | TCPHDR_CWR,
		.gso_type = SKB_GSO_TCP_ECN,
		.mss = 100,
		.linear = 350,
	}, {
		.name = "tcp6_cwr_accecn",
		.ipv6 = true,
		.tcp_flags = TCPHDR_ACK | TCPHDR_CWR,
		.gso_type = SKB_GSO_TCP_ACCECN,
		.mss = 100,
		.linear = 350,
	}, {
		.name = "tcp4_id_wraps",
		.ip_id = 0xfffe,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 100,
		.linear = 450,
	}, {
		.name = "udp4_id_wraps",
		.udp = true,
		.ip_id = 0xffff,
		.mss = 100,
		.linear = 450,
	}, {
		.name = "tcp4_fixed_id",
		.ip_id = 0x1234,
		.gso_type = SKB_GSO_TCP_FIXEDID,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 100,
		.linear = 450,
	}, {
		.name = "tcp6_fixed_id",
		.ipv6 = true,
		.gso_type = SKB_GSO_TCP_FIXEDID,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 100,
		.linear = 450,
	}, {
		.name = "tcp4_seq_wraps",
		.seq = U32_MAX - 149,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 100,
		.linear = 450,
	}, {
		.name = "tcp4_zero_csum",
		.zero_csum = true,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 100,
		.linear = 450,
	}, {
		.name = "udp4_zero_csum",
		.udp = true,
		.zero_csum = true,
		.mss = 100,
		.linear = 450,
	}, {
		.name = "udp6_zero_csum",
		.ipv6 = true,
		.udp = true,
		.zero_csum = true,
		.mss = 101,
		.linear = 450,
	}, {
		/* one full segment and the shortest possible one */
		.name = "udp4_zero_csum_two",
		.udp = true,
		.zero_csum = true,
		.mss = 449,
		.linear = 450,
	}, {
		.name = "tcp4_mac_header",
		.mac_len = ETH_HLEN,
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 1000,
		.linear = 1100,
		.frags = { { 0, 2500 } },
	}, {
		.name = "udp6_mac_header",
		.mac_len = ETH_HLEN,
		.ipv6 = true,
		.udp = true,
		.mss = 1000,
		.frags = { { 0, 3500 } },
	}, {
		.name = "udp4_max_segments",
		.udp = true,
		.mss = 500,
		.frags = { { 0, 32000 }, { 0, 32000 } },
	}, {
		.name = "tcp4_64k",
		.tcp_flags = TSO_TEST_FLAGS,
		.tcp_opts = 12,
		.mss = 1364,
		.frags = { { 0, 32768 }, { 0, 32768 - 321 } },
	}, {
		.name = "tcp4_big",
		.tcp_flags = TSO_TEST_FLAGS,
		.tcp_opts = 12,
		.mss = 1364,
		.frags = { { 0, 32768 }, { 0, 32768 }, { 0, 32768 },
			   { 3, 21001 } },
	}, {
		.name = "tcp6_big",
		.ipv6 = true,
		.tcp_flags = TSO_TEST_FLAGS,
		.tcp_opts = 12,
		.mss = 1344,
		.frags = { { 0, 32768 }, { 0, 32768 }, { 0, 32768 },
			   { 3, 21001 } },
	}, {
		.name = "tcp4_large_mss",
		.tcp_flags = TSO_TEST_FLAGS,
		.mss = 60000,
		.frags = { { 0, 32768 }, { 0, 32768 }, { 0, 32768 } },
	},
};

KUNIT_ARRAY_PARAM_DESC(tso_test_geom, tso_test_geom, name);

static unsigned int tso_test_th_off(const struct tso_test_geom *g)
{
	return g->ip_opts + (g->ipv6 ? sizeof(struct ipv6hdr) :
				       sizeof(struct iphdr));
}

static unsigned int tso_test_hdr_len(const struct tso_test_geom *g)
{
	return tso_test_th_off(g) +
	       (g->udp ? sizeof(struct udphdr) :
			 sizeof(struct tcphdr) + g->tcp_opts);
}

static unsigned int tso_test_payload(const struct tso_test_geom *g)
{
	unsigned int len = g->linear, i;

	for (i = 0; i < TSO_TEST_FRAGS; i++)
		len += g->frags[i].size;

	return len;
}

static __sum16 tso_test_pseudo(const struct tso_test_geom *g, const void *nh,
			       unsigned int len, __wsum csum)
{
	const u8 proto = g->udp ? IPPROTO_UDP : IPPROTO_TCP;
	const struct ipv6hdr *ip6h = nh;
	const struct iphdr *iph = nh;

	if (g->ipv6)
		return csum_ipv6_magic(&ip6h->saddr, &ip6h->daddr, len, proto,
				       csum);

	return csum_tcpudp_magic(iph->saddr, iph->daddr, len, proto, csum);
}

static void tso_test_network_hdr(const struct tso_test_geom *g,
				 struct sk_buff *skb, unsigned int len)
{
	const u8 proto = g->udp ? IPPROTO_UDP : IPPROTO_TCP;
	struct ipv6_opt_hdr *opt;
	struct ipv6hdr *ip6h;
	struct iphdr *iph;

	if (!g->ipv6) {
		skb->protocol = htons(ETH_P_IP);
		iph = ip_hdr(skb);
		iph->version = 4;
		iph->ihl = (sizeof(*iph) + g->ip_opts) / 4;
		/* what exceeds the field is given by skb->len */
		iph->tot_len = htons(len > U16_MAX ? 0 : len);
		iph->id = htons(g->ip_id);
		iph->protocol = proto;
		return;
	}

	skb->protocol = htons(ETH_P_IPV6);
	ip6h = ipv6_hdr(skb);
	ip6h->version = 6;
	len -= sizeof(*ip6h);
	ip6h->payload_len = htons(len > U16_MAX ? 0 : len);
	ip6h->nexthdr = proto;
	if (g->ip_opts) {
		ip6h->nexthdr = NEXTHDR_DEST;
		opt = (struct ipv6_opt_hdr *)(ip6h + 1);
		opt->nexthdr = proto;
		opt->hdrlen = g->ip_opts / 8 - 1;
	}
}

/* An skb of geometry @g. All that is not given by it comes from @rnd. */
static struct sk_buff *tso_test_skb(struct kunit *test,
				    const struct tso_test_geom *g,
				    struct rnd_state *rnd)
{
	const unsigned int payload = tso_test_payload(g);
	const unsigned int hdr_len = tso_test_hdr_len(g);
	const unsigned int th_off = tso_test_th_off(g);
	const unsigned int len = g->mac_len + hdr_len + g->linear;
	unsigned int i, order;
	struct sk_buff *skb;
	struct page *page;
	__sum16 check;

	skb = alloc_skb(MAX_HEADER + len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, kunit_action_kfree_skb,
						  skb));

	skb_reserve(skb, MAX_HEADER);
	prandom_bytes_state(rnd, skb_put(skb, len), len);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, g->mac_len);
	skb_set_transport_header(skb, g->mac_len + th_off);
	skb_reset_mac_len(skb);

	for (i = 0; i < TSO_TEST_FRAGS && g->frags[i].size; i++) {
		const struct tso_test_frag *f = &g->frags[i];

		order = get_order(f->off + f->size);
		page = alloc_pages(GFP_KERNEL | __GFP_COMP, order);
		KUNIT_ASSERT_NOT_NULL(test, page);
		prandom_bytes_state(rnd, page_address(page) + f->off, f->size);
		skb_add_rx_frag(skb, i, page, f->off, f->size,
				PAGE_SIZE << order);
	}

	tso_test_network_hdr(g, skb, hdr_len + payload);

	/* the stack leaves the sum of the pseudo header */
	check = ~tso_test_pseudo(g, skb_network_header(skb),
				 hdr_len - th_off + payload, 0);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	if (g->udp) {
		udp_hdr(skb)->len = htons(hdr_len - th_off + payload);
		udp_hdr(skb)->check = check;
		skb->csum_offset = offsetof(struct udphdr, check);
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	} else {
		tcp_hdr(skb)->seq = htonl(g->seq);
		tcp_hdr(skb)->doff = (hdr_len - th_off) / 4;
		tcp_flag_byte(tcp_hdr(skb)) = g->tcp_flags;
		tcp_hdr(skb)->check = check;
		skb->csum_offset = offsetof(struct tcphdr, check);
		skb_shinfo(skb)->gso_type = g->ipv6 ? SKB_GSO_TCPV6 :
						      SKB_GSO_TCPV4;
	}
	skb_shinfo(skb)->gso_type |= g->gso_type;
	skb_shinfo(skb)->gso_size = g->mss;
	skb_shinfo(skb)->gso_segs = DIV_ROUND_UP(payload, g->mss);

	return skb;
}

/* The checksum of a finished segment, as it is found in the header. */
static __sum16 tso_test_check(const struct tso_test_geom *g, const u8 *nh)
{
	const unsigned int th_off = tso_test_th_off(g);

	return get_unaligned((__sum16 *)(nh + th_off +
					 (g->udp ?
					  offsetof(struct udphdr, check) :
					  offsetof(struct tcphdr, check))));
}

static struct sk_buff *tso_test_reference(struct kunit *test,
					  struct sk_buff *skb,
					  netdev_features_t features)
{
	struct sk_buff *copy, *segs;

	copy = pskb_copy(skb, GFP_KERNEL);
	if (!copy) {
		KUNIT_FAIL(test, "no memory");
		return NULL;
	}

	/* no feature for checksums: they are completed */
	segs = skb_gso_segment(copy, features);
	consume_skb(copy);
	if (IS_ERR_OR_NULL(segs)) {
		KUNIT_FAIL(test, "skb_gso_segment(): %pe", segs);
		return NULL;
	}

	return segs;
}

/* Change the payload so that the checksum of the first segment becomes 0. */
static void tso_test_zero_csum(struct kunit *test,
			       const struct tso_test_geom *g,
			       struct sk_buff *skb)
{
	u8 *payload = skb_network_header(skb) + tso_test_hdr_len(g);
	struct sk_buff *segs;
	__sum16 check;

	KUNIT_ASSERT_GE(test, g->linear, sizeof(check));
	memset(payload, 0, sizeof(check));

	segs = tso_test_reference(test, skb, 0);
	KUNIT_ASSERT_NOT_NULL(test, segs);
	check = tso_test_check(g, segs->data + g->mac_len);
	kfree_skb_list(segs);
	memcpy(payload, &check, sizeof(check));

	segs = tso_test_reference(test, skb, 0);
	KUNIT_ASSERT_NOT_NULL(test, segs);
	check = tso_test_check(g, segs->data + g->mac_len);
	kfree_skb_list(segs);
	KUNIT_ASSERT_EQ(test, (__force u16)check, g->udp ? 0xffff : 0);
}

static void tso_test_save(struct tso_test_bufs *bufs, const struct sk_buff *skb)
{
	const size_t head = skb_end_offset(skb) +
			    sizeof(struct skb_shared_info);

	memcpy(&bufs->old, skb, sizeof(*skb));
	memcpy(bufs->old_head, skb->head, min(head, sizeof(bufs->old_head)));
	if (skb_copy_bits(skb, 0, bufs->old_data, skb->len))
		memset(bufs->old_data, 0, sizeof(bufs->old_data));
}

/* Nothing has been written to the skb, its headers, its shared info and its
 * fragments.
 */
static void tso_test_unchanged(struct kunit *test, const struct sk_buff *skb)
{
	const size_t head = skb_end_offset(skb) +
			    sizeof(struct skb_shared_info);
	struct tso_test_bufs *bufs = test->priv;

	KUNIT_ASSERT_LE(test, head, sizeof(bufs->old_head));
	KUNIT_EXPECT_EQ(test, memcmp(&bufs->old, skb, sizeof(*skb)), 0);
	KUNIT_EXPECT_EQ(test, memcmp(bufs->old_head, skb->head, head), 0);
	KUNIT_EXPECT_EQ(test, skb_copy_bits(skb, 0, bufs->new_data, skb->len),
			0);
	KUNIT_EXPECT_EQ(test, memcmp(bufs->old_data, bufs->new_data, skb->len),
			0);
}

/* Let the cursor write its next segment and compare it with @seg. */
static bool tso_test_segment(struct kunit *test, const struct tso_test_geom *g,
			     struct tso_cursor *cur, const struct sk_buff *seg,
			     unsigned int i, unsigned int align)
{
	const unsigned int th_off = tso_test_th_off(g);
	const unsigned int len = seg->len - g->mac_len;
	struct tso_test_bufs *bufs = test->priv;
	u8 *dst = bufs->dst + TSO_TEST_GUARD + align;
	unsigned int ret, pos;

	ret = tso_cursor_seg_len(cur);
	if (ret != len) {
		KUNIT_FAIL(test, "segment %u: %u bytes announced, not %u", i,
			   ret, len);
		return false;
	}

	if (skb_copy_bits(seg, g->mac_len, bufs->ref, len)) {
		KUNIT_FAIL(test, "segment %u: unreadable", i);
		return false;
	}

	memset(bufs->dst, TSO_TEST_POISON,
	       TSO_TEST_GUARD + align + len + TSO_TEST_GUARD);
	ret = tso_cursor_copy(cur, dst);
	if (ret != len) {
		KUNIT_FAIL(test, "segment %u: %u bytes written, not %u", i, ret,
			   len);
		return false;
	}

	if (memcmp(dst, bufs->ref, len)) {
		for (pos = 0; dst[pos] == bufs->ref[pos]; pos++)
			;
		KUNIT_FAIL(test, "segment %u: byte %u is %02x, not %02x", i,
			   pos, dst[pos], bufs->ref[pos]);
		return false;
	}

	if (memchr_inv(bufs->dst, TSO_TEST_POISON, TSO_TEST_GUARD + align) ||
	    memchr_inv(dst + len, TSO_TEST_POISON, TSO_TEST_GUARD)) {
		KUNIT_FAIL(test, "segment %u: written out of bounds", i);
		return false;
	}

	/* both could have been given a wrong seed */
	if (tso_test_pseudo(g, bufs->ref, len - th_off,
			    csum_partial(bufs->ref + th_off, len - th_off,
					 0))) {
		KUNIT_FAIL(test, "segment %u: wrong checksum", i);
		return false;
	}

	return true;
}

static bool tso_test_compare(struct kunit *test, const struct tso_test_geom *g,
			     struct sk_buff *skb, netdev_features_t features,
			     unsigned int align)
{
	unsigned int n = DIV_ROUND_UP(tso_test_payload(g), g->mss), i = 0;
	struct sk_buff *segs, *seg;
	struct tso_cursor cur;
	bool ok = false;
	int ret;

	segs = tso_test_reference(test, skb, features);
	if (!segs)
		return false;

	tso_test_save(test->priv, skb);
	ret = tso_cursor_init(&cur, skb);
	if (ret) {
		KUNIT_FAIL(test, "refused: %d", ret);
		goto out;
	}

	for (seg = segs; seg; seg = seg->next, i++) {
		if (tso_cursor_segs(&cur) != n - i) {
			KUNIT_FAIL(test, "%u segments left, not %u",
				   tso_cursor_segs(&cur), n - i);
			goto out;
		}
		if (!tso_test_segment(test, g, &cur, seg, i, align))
			goto out;
	}

	KUNIT_EXPECT_EQ(test, i, n);
	KUNIT_EXPECT_EQ(test, tso_cursor_segs(&cur), 0);
	KUNIT_EXPECT_EQ(test, cur.left, 0);
	tso_test_unchanged(test, skb);
	ok = true;
out:
	kfree_skb_list(segs);
	return ok;
}

static void tso_test_skip_unsupported(struct kunit *test, bool ipv6)
{
	if (!IS_ENABLED(CONFIG_INET))
		kunit_skip(test, "needs CONFIG_INET");
	if (ipv6 && !IS_ENABLED(CONFIG_IPV6))
		kunit_skip(test, "needs CONFIG_IPV6");
}

static void tso_test_table(struct kunit *test)
{
	const struct tso_test_geom *g = test->param_value;
	struct rnd_state rnd;
	struct sk_buff *skb;
	unsigned int align;

	tso_test_skip_unsupported(test, g->ipv6);
	prandom_seed_state(&rnd, 1);
	skb = tso_test_skb(test, g, &rnd);
	if (g->zero_csum)
		tso_test_zero_csum(test, g, skb);

	for (align = 0; align < 8; align++) {
		if (!tso_test_compare(test, g, skb,
				      align & 1 ? NETIF_F_SG : 0, align))
			break;
	}
}

static unsigned int tso_test_below(struct rnd_state *rnd, unsigned int n)
{
	return prandom_u32_state(rnd) % n;
}

static unsigned int tso_test_random_mss(struct rnd_state *rnd)
{
	switch (tso_test_below(rnd, 4)) {
	case 0:
		return 1 + tso_test_below(rnd, 16);
	case 1:
		return 1 + tso_test_below(rnd, 200);
	case 2:
		return 1 + tso_test_below(rnd, 1500);
	}
	return 1 + tso_test_below(rnd, 9000);
}

/* Distribute @len bytes over the linear area and the fragments. */
static void tso_test_random_parts(struct rnd_state *rnd,
				  struct tso_test_geom *g, unsigned int len)
{
	unsigned int i;

	switch (tso_test_below(rnd, 4)) {
	case 0:
		g->linear = len;
		break;
	case 1:
		g->linear = tso_test_below(rnd, len);
		break;
	case 2:
		g->linear = tso_test_below(rnd, min(len, g->mss));
		break;
	}
	len -= g->linear;

	for (i = 0; len && i < TSO_TEST_FRAGS; i++) {
		struct tso_test_frag *f = &g->frags[i];

		f->size = 1 + tso_test_below(rnd, len);
		if (!tso_test_below(rnd, 3))
			f->size = min(len, 1 + tso_test_below(rnd, 8));
		if (!tso_test_below(rnd, 3))
			f->size = min(len, g->mss);
		f->size = min(f->size, SZ_32K);
		if (tso_test_below(rnd, 2))
			f->off = tso_test_below(rnd, 2 * PAGE_SIZE);
		len -= f->size;
	}

	/* what has found no place */
	g->linear += len;
}

static void tso_test_random_geom(struct rnd_state *rnd, struct tso_test_geom *g)
{
	const unsigned int max = tso_test_below(rnd, 4) ? 60000 : TSO_TEST_LEN;
	unsigned int len;

	memset(g, 0, sizeof(*g));
	g->name = "random";
	g->udp = !tso_test_below(rnd, 3);
	g->ipv6 = IS_ENABLED(CONFIG_IPV6) && tso_test_below(rnd, 2);
	if (!g->ipv6 && !tso_test_below(rnd, 4))
		g->ip_opts = 4 * tso_test_below(rnd, 11);
	if (!tso_test_below(rnd, 4))
		g->mac_len = ETH_HLEN;
	g->ip_id = prandom_u32_state(rnd);

	if (!g->udp) {
		g->tcp_opts = 4 * tso_test_below(rnd, 11);
		g->tcp_flags = prandom_u32_state(rnd);
		g->seq = prandom_u32_state(rnd);
		if (tso_test_below(rnd, 2))
			g->gso_type |= SKB_GSO_TCP_FIXEDID;
		if (tso_test_below(rnd, 2))
			g->gso_type |= SKB_GSO_TCP_ECN;
		else if (tso_test_below(rnd, 2))
			g->gso_type |= SKB_GSO_TCP_ACCECN;
	}

	g->mss = tso_test_random_mss(rnd);
	len = g->mss * (1 + tso_test_below(rnd, 24));
	switch (tso_test_below(rnd, 4)) {
	case 0:
		len += g->mss;
		break;
	case 1:
		len++;
		break;
	default:
		len += 1 + tso_test_below(rnd, g->mss);
	}
	/* 16 bits are enough for TCP only, where skb->len counts */
	len = min(len, g->udp ? 60000 : max);
	tso_test_random_parts(rnd, g, len);
}

static void tso_test_random(struct kunit *test)
{
	const u32 seed = TSO_TEST_SEED ?: get_random_u32();
	struct tso_test_geom g;
	struct rnd_state rnd;
	struct sk_buff *skb;
	unsigned int i;

	tso_test_skip_unsupported(test, false);
	kunit_info(test, "seed %u\n", seed);
	prandom_seed_state(&rnd, seed);

	for (i = 0; i < TSO_TEST_ROUNDS; i++) {
		tso_test_random_geom(&rnd, &g);
		skb = tso_test_skb(test, &g, &rnd);
		if (!tso_test_compare(test, &g, skb, i & 1 ? NETIF_F_SG : 0,
				      tso_test_below(&rnd, 8))) {
			KUNIT_FAIL(test, "round %u of seed %u, %u bytes of %u",
				   i, seed, g.mss, tso_test_payload(&g));
			return;
		}
		kunit_kfree_skb(test, skb);
	}
}

/* What the cursor must leave to skb_gso_segment() */

struct tso_test_refusal {
	const char *name;
	const struct tso_test_geom *geom;
	void (*spoil)(struct sk_buff *skb);
};

/* all payload in a fragment, so that headers can be moved out as well */
static const struct tso_test_geom tso_test_plain_tcp4 = {
	.tcp_flags = TCPHDR_ACK,
	.tcp_opts = 12,
	.mss = 1000,
	.frags = { { 0, 3500 } },
};

static const struct tso_test_geom tso_test_plain_tcp6 = {
	.ipv6 = true,
	.tcp_flags = TCPHDR_ACK,
	.tcp_opts = 12,
	.mss = 1000,
	.frags = { { 0, 3500 } },
};

static const struct tso_test_geom tso_test_plain_udp4 = {
	.udp = true,
	.mss = 1000,
	.frags = { { 0, 3500 } },
};

static const struct tso_test_geom tso_test_plain_udp6 = {
	.ipv6 = true,
	.udp = true,
	.mss = 1000,
	.frags = { { 0, 3500 } },
};

static const struct tso_test_geom tso_test_exthdr = {
	.ipv6 = true,
	.ip_opts = 8,
	.tcp_flags = TCPHDR_ACK,
	.mss = 1000,
	.frags = { { 0, 3500 } },
};

static void tso_test_nothing(struct sk_buff *skb)
{
}

static void tso_test_frag_list(struct sk_buff *skb)
{
	struct sk_buff *member = alloc_skb(100, GFP_KERNEL);

	if (!member)
		return;
	skb_put_zero(member, 100);
	skb_shinfo(skb)->frag_list = member;
	skb->len += member->len;
	skb->data_len += member->len;
	skb->truesize += member->truesize;
}

/* headers beyond the linear area: all that matters is where it ends */
static void tso_test_headlen(struct sk_buff *skb, unsigned int headlen)
{
	const unsigned int cut = skb_headlen(skb) - headlen;

	skb->tail -= cut;
	skb->len -= cut;
}

static void tso_test_no_ip(struct sk_buff *skb)
{
	tso_test_headlen(skb, skb_network_offset(skb) + 10);
}

static void tso_test_no_transport(struct sk_buff *skb)
{
	tso_test_headlen(skb, skb_transport_offset(skb) + 4);
}

static void tso_test_no_options(struct sk_buff *skb)
{
	tso_test_headlen(skb, skb_headlen(skb) - 1);
}

static void tso_test_encapsulation(struct sk_buff *skb)
{
	skb->encapsulation = 1;
}

static void tso_test_dodgy(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_type |= SKB_GSO_DODGY;
}

static void tso_test_partial(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_type |= SKB_GSO_PARTIAL;
}

static void tso_test_fraglist(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_type |= SKB_GSO_FRAGLIST;
}

static void tso_test_tunnel(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_type |= SKB_GSO_UDP_TUNNEL_CSUM;
}

static void tso_test_sctp(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_type = SKB_GSO_SCTP;
}

static void tso_test_ufo(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP;
}

static void tso_test_two_types(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_type |= SKB_GSO_UDP_L4;
}

static void tso_test_type_of_other_family(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_type ^= SKB_GSO_TCPV4 | SKB_GSO_TCPV6;
}

static void tso_test_by_frags(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_size = GSO_BY_FRAGS;
}

static void tso_test_not_gso(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_size = 0;
}

/* one segment only, which skb_gso_segment() takes for an error */
static void tso_test_one_segment(struct sk_buff *skb)
{
	skb_shinfo(skb)->gso_size = 3500;
}

static void tso_test_csum_none(struct sk_buff *skb)
{
	skb->ip_summed = CHECKSUM_NONE;
}

static void tso_test_csum_unnecessary(struct sk_buff *skb)
{
	skb->ip_summed = CHECKSUM_UNNECESSARY;
}

static void tso_test_csum_start(struct sk_buff *skb)
{
	skb->csum_start += 4;
}

static void tso_test_unreadable(struct sk_buff *skb)
{
	skb->unreadable = 1;
}

static void tso_test_other_ethertype(struct sk_buff *skb)
{
	skb->protocol = htons(ETH_P_8021Q);
}

static void tso_test_ip_version(struct sk_buff *skb)
{
	ip_hdr(skb)->version ^= 4 ^ 6;
}

static void tso_test_short_ihl(struct sk_buff *skb)
{
	ip_hdr(skb)->ihl = 4;
}

static void tso_test_other_ihl(struct sk_buff *skb)
{
	ip_hdr(skb)->ihl++;
}

static void tso_test_other_protocol4(struct sk_buff *skb)
{
	ip_hdr(skb)->protocol = IPPROTO_GRE;
}

static void tso_test_other_protocol6(struct sk_buff *skb)
{
	ipv6_hdr(skb)->nexthdr = IPPROTO_GRE;
}

static void tso_test_short_doff(struct sk_buff *skb)
{
	tcp_hdr(skb)->doff = 4;
}

#define TSO_TEST_REFUSAL(what, how)				\
	{							\
		.name = #what "_" #how,				\
		.geom = &tso_test_plain_ ## what,		\
		.spoil = tso_test_ ## how,			\
	}

static const struct tso_test_refusal tso_test_refusal[] = {
	{
		.name = "tcp6_exthdr",
		.geom = &tso_test_exthdr,
		.spoil = tso_test_nothing,
	},
	TSO_TEST_REFUSAL(tcp4, frag_list),
	TSO_TEST_REFUSAL(udp6, frag_list),
	TSO_TEST_REFUSAL(tcp4, no_ip),
	TSO_TEST_REFUSAL(tcp6, no_ip),
	TSO_TEST_REFUSAL(tcp4, no_transport),
	TSO_TEST_REFUSAL(tcp6, no_transport),
	TSO_TEST_REFUSAL(udp4, no_transport),
	TSO_TEST_REFUSAL(tcp4, no_options),
	TSO_TEST_REFUSAL(tcp6, no_options),
	TSO_TEST_REFUSAL(tcp4, encapsulation),
	TSO_TEST_REFUSAL(udp4, encapsulation),
	TSO_TEST_REFUSAL(tcp4, dodgy),
	TSO_TEST_REFUSAL(udp4, dodgy),
	TSO_TEST_REFUSAL(tcp4, partial),
	TSO_TEST_REFUSAL(tcp4, fraglist),
	TSO_TEST_REFUSAL(udp4, fraglist),
	TSO_TEST_REFUSAL(tcp4, tunnel),
	TSO_TEST_REFUSAL(tcp4, sctp),
	TSO_TEST_REFUSAL(udp4, ufo),
	TSO_TEST_REFUSAL(tcp4, two_types),
	TSO_TEST_REFUSAL(tcp4, type_of_other_family),
	TSO_TEST_REFUSAL(tcp6, type_of_other_family),
	TSO_TEST_REFUSAL(tcp4, by_frags),
	TSO_TEST_REFUSAL(udp4, by_frags),
	TSO_TEST_REFUSAL(tcp4, not_gso),
	TSO_TEST_REFUSAL(tcp4, one_segment),
	TSO_TEST_REFUSAL(udp6, one_segment),
	TSO_TEST_REFUSAL(tcp4, csum_none),
	TSO_TEST_REFUSAL(udp4, csum_unnecessary),
	TSO_TEST_REFUSAL(tcp4, csum_start),
	TSO_TEST_REFUSAL(tcp4, unreadable),
	TSO_TEST_REFUSAL(tcp4, other_ethertype),
	TSO_TEST_REFUSAL(tcp4, ip_version),
	TSO_TEST_REFUSAL(tcp6, ip_version),
	TSO_TEST_REFUSAL(tcp4, short_ihl),
	TSO_TEST_REFUSAL(tcp4, other_ihl),
	TSO_TEST_REFUSAL(tcp4, other_protocol4),
	TSO_TEST_REFUSAL(tcp6, other_protocol6),
	TSO_TEST_REFUSAL(tcp4, short_doff),
};

KUNIT_ARRAY_PARAM_DESC(tso_test_refusal, tso_test_refusal, name);

static void tso_test_refuse(struct kunit *test)
{
	const struct tso_test_refusal *t = test->param_value;
	struct tso_cursor cur;
	struct rnd_state rnd;
	struct sk_buff *skb;

	prandom_seed_state(&rnd, 1);
	skb = tso_test_skb(test, t->geom, &rnd);
	if (t->spoil != tso_test_nothing)
		KUNIT_ASSERT_EQ(test, tso_cursor_init(&cur, skb), 0);

	t->spoil(skb);
	tso_test_save(test->priv, skb);
	KUNIT_EXPECT_EQ(test, tso_cursor_init(&cur, skb), -EOPNOTSUPP);
	if (skb_frags_readable(skb))
		tso_test_unchanged(test, skb);
}

static int tso_test_init(struct kunit *test)
{
	test->priv = kvmalloc_obj(struct tso_test_bufs, GFP_KERNEL);

	return test->priv ? 0 : -ENOMEM;
}

static void tso_test_exit(struct kunit *test)
{
	kvfree(test->priv);
}

static struct kunit_case tso_test_cases[] = {
	KUNIT_CASE_PARAM(tso_test_table, tso_test_geom_gen_params),
	KUNIT_CASE_PARAM(tso_test_refuse, tso_test_refusal_gen_params),
	KUNIT_CASE_SLOW(tso_test_random),
	{ },
};

static struct kunit_suite tso_test_suite = {
	.name		= "tso_cursor",
	.init		= tso_test_init,
	.exit		= tso_test_exit,
	.test_cases	= tso_test_cases,
};

kunit_test_suite(tso_test_suite);

MODULE_DESCRIPTION("KUnit tests for the TSO cursor");
MODULE_LICENSE("GPL");
