// SPDX-License-Identifier: GPL-2.0
/*  OpenVPN data channel offload
 *
 *  KUnit tests for UDP GSO batching: what is in the records, what is in the
 *  skb that carries them, and who owns it.
 */

#include <crypto/aead.h>
#include <crypto/internal/aead.h>
#include <kunit/skbuff.h>
#include <kunit/test.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/net.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/checksum.h>
#include <net/gso.h>
#include <net/ip6_checksum.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "../ovpnpriv.h"
#include "../main.h"
#include "../crypto.h"
#include "../crypto_aead.h"
#include "../gso.h"
#include "../peer.h"
#include "../pktid.h"
#include "../proto.h"

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");

#define OVPN_GSO_TEST_KEY_ID	5
#define OVPN_GSO_TEST_PEER_ID	0x123456
#define OVPN_GSO_TEST_KEY_SIZE	32
#define OVPN_GSO_TEST_SEQ	(U32_MAX - 2000)
#define OVPN_GSO_TEST_NONE	UINT_MAX

/* what udp_tunnel6_xmit_skb() pushes without checking, and a link header */
#define OVPN_GSO_TEST_HEADROOM	(LL_MAX_HEADER + sizeof(struct ipv6hdr) + \
				 sizeof(struct udphdr))

#define OVPN_GSO_TEST_PART	SZ_32K
#define OVPN_GSO_TEST_PARTS	3

static const u8 ovpn_gso_test_key[OVPN_GSO_TEST_KEY_SIZE] =
	"0123456789abcdefghijklmnopqrstu";
static const u8 ovpn_gso_test_nonce_tail[OVPN_NONCE_TAIL_SIZE] = {
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88
};

enum ovpn_gso_test_source {
	/* segmented by the TSO cursor */
	OVPN_GSO_TEST_TCP4,
	OVPN_GSO_TEST_TCP6,
	OVPN_GSO_TEST_UDP4,
	OVPN_GSO_TEST_UDP6,
	/* segmented by skb_gso_segment() because of an extension header */
	OVPN_GSO_TEST_EXTHDR,
	/* finished packets in a list */
	OVPN_GSO_TEST_FRAGLIST,
};

/**
 * struct ovpn_gso_test_input - a GSO skb
 * @source: what it is
 * @mss: payload bytes of each segment but the last
 * @segs: number of segments
 * @last: payload bytes of the last segment, 0: as many as any other
 * @lens: fraglist: payload bytes of each segment, instead of @mss and @last
 */
struct ovpn_gso_test_input {
	enum ovpn_gso_test_source source;
	unsigned int mss;
	unsigned int segs;
	unsigned int last;
	const u16 *lens;
};

/**
 * struct ovpn_gso_test_ctx - state of a test
 * @peer: only its ID matters
 * @ks: a key
 * @batch: a batch with that key
 * @gso: the batching state
 * @segs: what skb_gso_segment() makes of an equal GSO skb
 * @seg: the first of these that has not been found in a record
 * @id: the next packet ID
 * @rec: one record
 * @ref: one segment
 */
struct ovpn_gso_test_ctx {
	struct ovpn_peer *peer;
	struct ovpn_crypto_key_slot *ks;
	struct ovpn_aead_batch batch;
	struct ovpn_gso gso;
	struct sk_buff *segs;
	const struct sk_buff *seg;
	u32 id;
	u8 rec[SZ_16K];
	u8 ref[SZ_16K];
};

/* A transform that fails once, and leaves all other work to the one of the
 * key.
 */
static struct {
	struct crypto_aead *real;
	unsigned int countdown;
} ovpn_gso_test_faulty;

static int ovpn_gso_test_faulty_encrypt(struct aead_request *req)
{
	struct crypto_aead *faulty = crypto_aead_reqtfm(req);
	int ret;

	if (!ovpn_gso_test_faulty.countdown--)
		return -EIO;

	aead_request_set_tfm(req, ovpn_gso_test_faulty.real);
	ret = crypto_aead_encrypt(req);
	aead_request_set_tfm(req, faulty);

	return ret;
}

static int ovpn_gso_test_faulty_decrypt(struct aead_request *req)
{
	return -EOPNOTSUPP;
}

static int ovpn_gso_test_faulty_setkey(struct crypto_aead *tfm, const u8 *key,
				       unsigned int keylen)
{
	return 0;
}

static struct aead_alg ovpn_gso_test_faulty_alg = {
	.encrypt	= ovpn_gso_test_faulty_encrypt,
	.decrypt	= ovpn_gso_test_faulty_decrypt,
	.setkey		= ovpn_gso_test_faulty_setkey,
	.ivsize		= OVPN_NONCE_SIZE,
	.maxauthsize	= OVPN_AUTH_TAG_SIZE,
	.base = {
		.cra_name		= "ovpn-kunit-faulty",
		.cra_driver_name	= "ovpn-kunit-faulty-generic",
		.cra_blocksize		= 1,
		.cra_module		= THIS_MODULE,
	},
};

KUNIT_DEFINE_ACTION_WRAPPER(ovpn_gso_test_free_aead, crypto_free_aead,
			    struct crypto_aead *);
KUNIT_DEFINE_ACTION_WRAPPER(ovpn_gso_test_release_sock, sock_release,
			    struct socket *);

/* Let the encryption of the record fail for which @countdown is 0. */
static void ovpn_gso_test_fail_at(struct kunit *test, unsigned int countdown)
{
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct crypto_aead *tfm;

	tfm = crypto_alloc_aead("ovpn-kunit-faulty", 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(tfm));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, ovpn_gso_test_free_aead,
						  tfm));
	KUNIT_ASSERT_EQ(test, 0, crypto_aead_setkey(tfm, ovpn_gso_test_key,
						    OVPN_GSO_TEST_KEY_SIZE));

	ovpn_gso_test_faulty.real = ctx->ks->encrypt;
	ovpn_gso_test_faulty.countdown = countdown;
	aead_request_set_tfm(ctx->batch.req, tfm);
}

/* GSO skbs */

static bool ovpn_gso_test_is_tcp(const struct ovpn_gso_test_input *in)
{
	return in->source == OVPN_GSO_TEST_TCP4 ||
	       in->source == OVPN_GSO_TEST_TCP6 ||
	       in->source == OVPN_GSO_TEST_EXTHDR;
}

static bool ovpn_gso_test_is_ipv6(const struct ovpn_gso_test_input *in)
{
	return in->source == OVPN_GSO_TEST_TCP6 ||
	       in->source == OVPN_GSO_TEST_UDP6 ||
	       in->source == OVPN_GSO_TEST_EXTHDR;
}

static bool ovpn_gso_test_uses_cursor(const struct ovpn_gso_test_input *in)
{
	return in->source != OVPN_GSO_TEST_EXTHDR &&
	       in->source != OVPN_GSO_TEST_FRAGLIST;
}

/* bytes before the transport header */
static unsigned int ovpn_gso_test_th_off(const struct ovpn_gso_test_input *in)
{
	unsigned int len = sizeof(struct iphdr);

	if (ovpn_gso_test_is_ipv6(in))
		len = sizeof(struct ipv6hdr);
	if (in->source == OVPN_GSO_TEST_EXTHDR)
		len += 8;

	return len;
}

/* bytes before the payload */
static unsigned int ovpn_gso_test_hdr_len(const struct ovpn_gso_test_input *in)
{
	return ovpn_gso_test_th_off(in) +
	       (ovpn_gso_test_is_tcp(in) ?
		sizeof(struct tcphdr) + TCPOLEN_TSTAMP_ALIGNED :
		sizeof(struct udphdr));
}

static unsigned int
ovpn_gso_test_payload(const struct ovpn_gso_test_input *in)
{
	return in->mss * (in->segs - 1) + (in->last ?: in->mss);
}

/* Fill in the headers, for @len bytes of payload. What is not set here is
 * random already.
 */
static void ovpn_gso_test_headers(const struct ovpn_gso_test_input *in,
				  struct sk_buff *skb, unsigned int len)
{
	const u8 proto = ovpn_gso_test_is_tcp(in) ? IPPROTO_TCP : IPPROTO_UDP;
	const unsigned int th_off = ovpn_gso_test_th_off(in);
	const unsigned int th_len = ovpn_gso_test_hdr_len(in) - th_off;
	struct ipv6_opt_hdr *opt;
	struct ipv6hdr *ip6h;
	struct iphdr *iph;
	__sum16 check;

	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, th_off);

	if (ovpn_gso_test_is_ipv6(in)) {
		skb->protocol = htons(ETH_P_IPV6);
		ip6h = ipv6_hdr(skb);
		ip6h->version = 6;
		ip6h->nexthdr = proto;
		ip6h->payload_len = htons(th_off - sizeof(*ip6h) + th_len +
					  len);
		if (in->source == OVPN_GSO_TEST_EXTHDR) {
			ip6h->nexthdr = NEXTHDR_DEST;
			opt = (struct ipv6_opt_hdr *)(ip6h + 1);
			opt->nexthdr = proto;
			opt->hdrlen = 0;
		}
		check = ~csum_ipv6_magic(&ip6h->saddr, &ip6h->daddr,
					 th_len + len, proto, 0);
	} else {
		skb->protocol = htons(ETH_P_IP);
		iph = ip_hdr(skb);
		iph->version = 4;
		iph->ihl = sizeof(*iph) / 4;
		iph->protocol = proto;
		iph->tot_len = htons(th_off + th_len + len);
		check = ~csum_tcpudp_magic(iph->saddr, iph->daddr,
					   th_len + len, proto, 0);
	}

	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	if (proto == IPPROTO_TCP) {
		tcp_hdr(skb)->doff = th_len / 4;
		tcp_hdr(skb)->seq = htonl(OVPN_GSO_TEST_SEQ);
		tcp_hdr(skb)->check = check;
		skb->csum_offset = offsetof(struct tcphdr, check);
	} else {
		udp_hdr(skb)->len = htons(th_len + len);
		udp_hdr(skb)->check = check;
		skb->csum_offset = offsetof(struct udphdr, check);
	}
}

static struct sk_buff *ovpn_gso_test_alloc(struct kunit *test,
					   const struct ovpn_gso_test_input *in,
					   unsigned int len,
					   struct rnd_state *rnd)
{
	const unsigned int hdr_len = ovpn_gso_test_hdr_len(in);
	struct sk_buff *skb;

	skb = alloc_skb(MAX_HEADER + hdr_len + len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, MAX_HEADER);
	prandom_bytes_state(rnd, skb_put(skb, hdr_len + len), hdr_len + len);

	return skb;
}

/* The same @in gives the same skb each time. */
static struct sk_buff *
ovpn_gso_test_fraglist(struct kunit *test, const struct ovpn_gso_test_input *in,
		       struct rnd_state *rnd)
{
	struct sk_buff *head = NULL, **next = NULL, *skb;
	unsigned int i, len;

	for (i = 0; i < in->segs; i++) {
		len = in->mss;
		if (in->lens)
			len = in->lens[i];
		else if (in->last && i == in->segs - 1)
			len = in->last;

		skb = ovpn_gso_test_alloc(test, in, len, rnd);
		ovpn_gso_test_headers(in, skb, len);
		KUNIT_ASSERT_EQ(test, skb_checksum_help(skb), 0);
		/* so GRO hands it on */
		skb->ip_summed = CHECKSUM_UNNECESSARY;

		if (!head) {
			head = skb;
			next = &skb_shinfo(head)->frag_list;
			continue;
		}

		skb_pull(skb, ovpn_gso_test_hdr_len(in));
		*next = skb;
		next = &skb->next;
		head->len += skb->len;
		head->data_len += skb->len;
		head->truesize += skb->truesize;
	}

	skb_shinfo(head)->gso_type = SKB_GSO_UDP_L4 | SKB_GSO_FRAGLIST;
	skb_shinfo(head)->gso_size = in->lens ? in->lens[0] : in->mss;

	return head;
}

static struct sk_buff *ovpn_gso_test_skb(struct kunit *test,
					 const struct ovpn_gso_test_input *in)
{
	unsigned int left, len, i;
	struct rnd_state rnd;
	struct sk_buff *skb;
	struct page *page;

	prandom_seed_state(&rnd, 1);

	if (in->source == OVPN_GSO_TEST_FRAGLIST) {
		skb = ovpn_gso_test_fraglist(test, in, &rnd);
		skb_shinfo(skb)->gso_segs = in->segs;
		return skb;
	}

	/* a few bytes in the linear area, so that a segment has both */
	left = ovpn_gso_test_payload(in);
	len = min(left, 33);
	skb = ovpn_gso_test_alloc(test, in, len, &rnd);
	ovpn_gso_test_headers(in, skb, left);
	left -= len;

	for (i = 0; left; i++) {
		KUNIT_ASSERT_LT(test, i, OVPN_GSO_TEST_PARTS);
		len = min(left, OVPN_GSO_TEST_PART);
		page = alloc_pages(GFP_KERNEL | __GFP_COMP,
				   get_order(OVPN_GSO_TEST_PART));
		KUNIT_ASSERT_NOT_NULL(test, page);
		prandom_bytes_state(&rnd, page_address(page), len);
		skb_add_rx_frag(skb, i, page, 0, len, OVPN_GSO_TEST_PART);
		left -= len;
	}

	switch (in->source) {
	case OVPN_GSO_TEST_TCP4:
		skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
		break;
	case OVPN_GSO_TEST_TCP6:
	case OVPN_GSO_TEST_EXTHDR:
		skb_shinfo(skb)->gso_type = SKB_GSO_TCPV6;
		break;
	default:
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	}
	skb_shinfo(skb)->gso_size = in->mss;
	skb_shinfo(skb)->gso_segs = in->segs;

	return skb;
}

/* Start to batch @skb, which was made from @in, and segment a twin of it. */
static void ovpn_gso_test_start(struct kunit *test,
				const struct ovpn_gso_test_input *in,
				struct sk_buff *skb, unsigned int size,
				unsigned int records)
{
	const struct ovpn_gso_limits limits = {
		.size = size,
		.records = records,
	};
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *twin;

	if (ovpn_gso_test_is_ipv6(in) && !IS_ENABLED(CONFIG_IPV6)) {
		kfree_skb(skb);
		kunit_skip(test, "needs CONFIG_IPV6");
	}

	twin = ovpn_gso_test_skb(test, in);
	ctx->segs = skb_gso_segment(twin, NETIF_F_SG);
	kfree_skb(twin);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(ctx->segs));
	ctx->seg = ctx->segs;

	KUNIT_ASSERT_TRUE(test, ovpn_gso_can_batch(skb));
	KUNIT_ASSERT_EQ(test, ovpn_gso_start(&ctx->gso, skb, &limits), 0);
	KUNIT_EXPECT_EQ(test, ctx->gso.use_cursor,
			ovpn_gso_test_uses_cursor(in));
	KUNIT_EXPECT_EQ(test, ovpn_gso_left(&ctx->gso), in->segs);
	KUNIT_EXPECT_FALSE(test, ovpn_gso_done(&ctx->gso));
}

static struct sk_buff *ovpn_gso_test_next(struct ovpn_gso_test_ctx *ctx)
{
	struct sk_buff *agg;

	/* as in ndo_start_xmit() */
	local_bh_disable();
	agg = ovpn_gso_next(&ctx->gso, &ctx->batch);
	local_bh_enable();

	return agg;
}

/* records */

static bool ovpn_gso_test_decrypt(struct ovpn_gso_test_ctx *ctx, u8 *rec,
				  unsigned int len)
{
	u8 iv[OVPN_NONCE_SIZE] __aligned(8);
	struct aead_request *req;
	struct scatterlist sg[3];
	DECLARE_CRYPTO_WAIT(wait);
	int ret;

	req = aead_request_alloc(ctx->ks->decrypt, GFP_KERNEL);
	if (!req)
		return false;

	memcpy(iv, rec + OVPN_OPCODE_SIZE, OVPN_NONCE_WIRE_SIZE);
	memcpy(iv + OVPN_NONCE_WIRE_SIZE, ovpn_gso_test_nonce_tail,
	       OVPN_NONCE_TAIL_SIZE);
	sg_init_table(sg, ARRAY_SIZE(sg));
	sg_set_buf(sg, rec, 8);
	sg_set_buf(sg + 1, rec + 24, len - 24);
	sg_set_buf(sg + 2, rec + 8, 16);
	aead_request_set_callback(req, CRYPTO_TFM_REQ_MAY_SLEEP,
				  crypto_req_done, &wait);
	aead_request_set_ad(req, 8);
	aead_request_set_crypt(req, sg, sg, len - 24 + 16, iv);
	ret = crypto_wait_req(crypto_aead_decrypt(req), &wait);
	aead_request_free(req);

	return !ret;
}

/* Plain bytes are those of the next segment. */
static void ovpn_gso_test_expect_segment(struct kunit *test, const u8 *data,
					 unsigned int len)
{
	struct ovpn_gso_test_ctx *ctx = test->priv;
	const struct sk_buff *seg = ctx->seg;

	KUNIT_ASSERT_NOT_NULL(test, seg);
	KUNIT_ASSERT_EQ(test, len, seg->len);
	KUNIT_ASSERT_EQ(test, skb_copy_bits(seg, 0, ctx->ref, len), 0);
	KUNIT_ASSERT_EQ(test, memcmp(data, ctx->ref, len), 0);
	ctx->seg = seg->next;
}

/* A record has the next packet ID and carries the next segment. */
static void ovpn_gso_test_expect_record(struct kunit *test,
					const struct sk_buff *agg,
					unsigned int off, unsigned int len)
{
	struct ovpn_gso_test_ctx *ctx = test->priv;
	u8 *rec = ctx->rec;

	KUNIT_ASSERT_LE(test, len, sizeof(ctx->rec));
	KUNIT_ASSERT_GT(test, len, 24);
	KUNIT_ASSERT_EQ(test, skb_copy_bits(agg, off, rec, len), 0);

	/* 5 bits opcode (DATA_V2), 3 bits key ID, peer ID, packet ID */
	KUNIT_EXPECT_EQ(test, rec[0], 9 << 3 | OVPN_GSO_TEST_KEY_ID);
	KUNIT_EXPECT_EQ(test, rec[1], 0x12);
	KUNIT_EXPECT_EQ(test, rec[2], 0x34);
	KUNIT_EXPECT_EQ(test, rec[3], 0x56);
	KUNIT_EXPECT_EQ(test, rec[4] << 24 | rec[5] << 16 | rec[6] << 8 |
			      rec[7], ctx->id);
	ctx->id++;

	KUNIT_ASSERT_TRUE(test, ovpn_gso_test_decrypt(ctx, rec, len));
	ovpn_gso_test_expect_segment(test, rec + 24, len - 24);
}

/* All that the outer stack relies on, whatever the input was. */
static void ovpn_gso_test_expect_skb(struct kunit *test,
				     const struct sk_buff *agg)
{
	unsigned int sum = 0, i;

	KUNIT_EXPECT_GE(test, skb_headroom(agg), OVPN_GSO_TEST_HEADROOM);
	KUNIT_EXPECT_EQ(test, skb_headlen(agg), 0);
	for (i = 0; i < skb_shinfo(agg)->nr_frags; i++)
		sum += skb_frag_size(&skb_shinfo(agg)->frags[i]);
	KUNIT_EXPECT_EQ(test, sum, agg->len);
	KUNIT_EXPECT_EQ(test, agg->data_len, agg->len);
	KUNIT_EXPECT_GE(test, agg->truesize,
			agg->len + SKB_TRUESIZE(OVPN_GSO_TEST_HEADROOM));

	KUNIT_EXPECT_FALSE(test, skb_has_frag_list(agg));
	KUNIT_EXPECT_EQ(test, skb_shinfo(agg)->flags, 0);
	KUNIT_EXPECT_FALSE(test, agg->encapsulation);
	KUNIT_EXPECT_FALSE(test, agg->pp_recycle);
	KUNIT_EXPECT_FALSE(test, skb_cloned(agg));
	KUNIT_EXPECT_FALSE(test, skb_shared(agg));
	KUNIT_EXPECT_NULL(test, agg->next);
	KUNIT_EXPECT_FALSE(test, skb_dst(agg));
}

/* Check an aggregate of @n records, or a plain skb if it is one. */
static void ovpn_gso_test_expect_agg(struct kunit *test,
				     const struct sk_buff *agg, unsigned int n)
{
	struct ovpn_gso_test_ctx *ctx = test->priv;
	const struct skb_shared_info *sh = skb_shinfo(agg);
	const skb_frag_t *frag = sh->frags;
	unsigned int pos = 0, rec_len, len;

	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(agg));
	KUNIT_EXPECT_EQ(test, ctx->gso.records, n);
	ovpn_gso_test_expect_skb(test, agg);

	if (n == 1) {
		KUNIT_EXPECT_EQ(test, sh->gso_size, 0);
		KUNIT_EXPECT_EQ(test, sh->gso_type, 0);
		KUNIT_EXPECT_EQ(test, sh->gso_segs, 0);
		rec_len = agg->len;
	} else {
		KUNIT_ASSERT_NOT_NULL(test, ctx->seg);
		KUNIT_EXPECT_EQ(test, sh->gso_size, ctx->seg->len + 24);
		KUNIT_EXPECT_EQ(test, sh->gso_type, SKB_GSO_UDP_L4);
		KUNIT_EXPECT_EQ(test, sh->gso_segs, n);
		rec_len = sh->gso_size;
		KUNIT_ASSERT_GT(test, rec_len, 24);
	}
	KUNIT_EXPECT_EQ(test, DIV_ROUND_UP(agg->len, rec_len), n);
	KUNIT_EXPECT_LE(test, agg->len, max(ctx->gso.limits.size, rec_len));
	KUNIT_EXPECT_LE(test, n, ctx->gso.limits.records);

	for (len = 0; len < agg->len; len += rec_len, n--) {
		const unsigned int l = min(rec_len, agg->len - len);

		if (pos == skb_frag_size(frag)) {
			frag++;
			pos = 0;
		}
		/* the cipher gets it in one piece */
		KUNIT_ASSERT_LE(test, pos + l, skb_frag_size(frag));
		ovpn_gso_test_expect_record(test, agg, len, l);
		pos += l;
	}
}

/* Turn all of a GSO skb into aggregates of as many records as @expect lists. */
static void ovpn_gso_test_expect_aggs(struct kunit *test, const u8 *expect)
{
	struct ovpn_gso_test_ctx *ctx = test->priv;
	unsigned int left = ovpn_gso_left(&ctx->gso);
	struct sk_buff *agg;

	for (; *expect; expect++) {
		KUNIT_ASSERT_FALSE(test, ovpn_gso_done(&ctx->gso));
		agg = ovpn_gso_test_next(ctx);
		ovpn_gso_test_expect_agg(test, agg, *expect);
		KUNIT_EXPECT_EQ(test, ctx->gso.dropped, 0);
		left -= *expect;
		KUNIT_EXPECT_EQ(test, ovpn_gso_left(&ctx->gso), left);
		consume_skb(agg);
	}

	KUNIT_EXPECT_TRUE(test, ovpn_gso_done(&ctx->gso));
	KUNIT_EXPECT_NULL(test, ctx->seg);
}

/* what is batched */

struct ovpn_gso_test_can_batch {
	const char *name;
	u32 gso_type;
	u16 gso_size;
	bool shared;
	bool unreadable;
	bool no_transport;
	bool expect;
};

static const struct ovpn_gso_test_can_batch ovpn_gso_test_can_batch[] = {
	{
		.name = "tcp4",
		.gso_type = SKB_GSO_TCPV4,
		.expect = true,
	}, {
		.name = "tcp6",
		.gso_type = SKB_GSO_TCPV6,
		.expect = true,
	}, {
		.name = "udp",
		.gso_type = SKB_GSO_UDP_L4,
		.expect = true,
	}, {
		.name = "tcp4_modifiers",
		.gso_type = SKB_GSO_TCPV4 | SKB_GSO_TCP_ECN |
			    SKB_GSO_TCP_FIXEDID,
		.expect = true,
	}, {
		.name = "udp_fraglist",
		.gso_type = SKB_GSO_UDP_L4 | SKB_GSO_FRAGLIST,
		.expect = true,
	}, {
		.name = "tcp_in_vxlan",
		.gso_type = SKB_GSO_TCPV4 | SKB_GSO_UDP_TUNNEL_CSUM,
		.expect = true,
	}, {
		.name = "sctp",
		.gso_type = SKB_GSO_SCTP,
		.gso_size = GSO_BY_FRAGS,
	}, {
		.name = "by_frags",
		.gso_type = SKB_GSO_UDP_L4,
		.gso_size = GSO_BY_FRAGS,
	}, {
		.name = "ufo",
		.gso_type = SKB_GSO_UDP,
	}, {
		.name = "no_type",
	}, {
		.name = "shared",
		.gso_type = SKB_GSO_TCPV4,
		.shared = true,
	}, {
		.name = "unreadable",
		.gso_type = SKB_GSO_TCPV4,
		.unreadable = true,
	}, {
		.name = "no_transport_header",
		.gso_type = SKB_GSO_TCPV4,
		.no_transport = true,
	},
};

KUNIT_ARRAY_PARAM_DESC(ovpn_gso_test_can_batch, ovpn_gso_test_can_batch, name);

static void ovpn_gso_test_batchable(struct kunit *test)
{
	const struct ovpn_gso_test_can_batch *t = test->param_value;
	struct sk_buff *skb;

	skb = kunit_zalloc_skb(test, 100, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_shinfo(skb)->gso_type = t->gso_type;
	skb_shinfo(skb)->gso_size = t->gso_size ?: 1000;
	if (!t->no_transport)
		skb_reset_transport_header(skb);
	if (t->shared)
		skb_get(skb);
	skb->unreadable = t->unreadable;

	KUNIT_EXPECT_EQ(test, ovpn_gso_can_batch(skb), t->expect);

	skb->unreadable = 0;
	if (t->shared)
		kfree_skb(skb);
}

/* geometry */

#define OVPN_GSO_TEST_REC_MSS	1364
/* IPv4, TCP with timestamps */
#define OVPN_GSO_TEST_REC_LEN	(24 + 20 + 32 + OVPN_GSO_TEST_REC_MSS)

struct ovpn_gso_test_geometry {
	const char *name;
	struct ovpn_gso_test_input in;
	unsigned int size;
	unsigned int records;
	const u8 *expect;
};

#define OVPN_GSO_TEST_EXPECT(...)	((const u8 []) { __VA_ARGS__, 0 })
#define OVPN_GSO_TEST_LENS(...)		((const u16 []) { __VA_ARGS__ })

static const struct ovpn_gso_test_geometry ovpn_gso_test_geometry[] = {
	{
		.name = "tcp4_one",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 10 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(10),
	}, {
		.name = "tcp6_one_short_tail",
		.in = { OVPN_GSO_TEST_TCP6, 1000, 10, 1 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(10),
	}, {
		.name = "udp4_one_short_tail",
		.in = { OVPN_GSO_TEST_UDP4, 1381, 10, 700 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(10),
	}, {
		.name = "udp6_one",
		.in = { OVPN_GSO_TEST_UDP6, 1380, 10 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(10),
	}, {
		.name = "exthdr_short_tail",
		.in = { OVPN_GSO_TEST_EXTHDR, 1000, 10, 3 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(10),
	}, {
		.name = "fraglist_short_tail",
		.in = { OVPN_GSO_TEST_FRAGLIST, 1000, 10, 3 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(10),
	}, {
		/* a full burst of TCP at the default MTU: 45 would fit */
		.name = "tcp4_even_split",
		.in = { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_REC_MSS, 47 },
		.size = 45 * OVPN_GSO_TEST_REC_LEN,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(24, 23),
	}, {
		.name = "tcp4_just_fits",
		.in = { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_REC_MSS, 45 },
		.size = 45 * OVPN_GSO_TEST_REC_LEN,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(45),
	}, {
		.name = "tcp4_one_byte_too_long",
		.in = { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_REC_MSS, 45 },
		.size = 45 * OVPN_GSO_TEST_REC_LEN - 1,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(23, 22),
	}, {
		.name = "udp4_max_records",
		.in = { OVPN_GSO_TEST_UDP4, 100, 128 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(128),
	}, {
		.name = "udp4_too_many_records",
		.in = { OVPN_GSO_TEST_UDP4, 100, 129 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(65, 64),
	}, {
		.name = "tcp4_by_records",
		.in = { OVPN_GSO_TEST_TCP4, 100, 20 },
		.size = 65000,
		.records = 8,
		.expect = OVPN_GSO_TEST_EXPECT(7, 7, 6),
	}, {
		.name = "exthdr_by_records",
		.in = { OVPN_GSO_TEST_EXTHDR, 100, 20 },
		.size = 65000,
		.records = 8,
		.expect = OVPN_GSO_TEST_EXPECT(7, 7, 6),
	}, {
		.name = "fraglist_by_records",
		.in = { OVPN_GSO_TEST_FRAGLIST, 100, 20 },
		.size = 65000,
		.records = 8,
		.expect = OVPN_GSO_TEST_EXPECT(7, 7, 6),
	}, {
		.name = "tcp4_single_last",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 3 },
		.size = 65000,
		.records = 2,
		.expect = OVPN_GSO_TEST_EXPECT(2, 1),
	}, {
		.name = "udp6_single_short_last",
		.in = { OVPN_GSO_TEST_UDP6, 1000, 3, 17 },
		.size = 65000,
		.records = 2,
		.expect = OVPN_GSO_TEST_EXPECT(2, 1),
	}, {
		.name = "fraglist_single_short_last",
		.in = { OVPN_GSO_TEST_FRAGLIST, 1000, 3, 17 },
		.size = 65000,
		.records = 2,
		.expect = OVPN_GSO_TEST_EXPECT(2, 1),
	}, {
		.name = "tcp4_one_by_one",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 4 },
		.size = 65000,
		.records = 1,
		.expect = OVPN_GSO_TEST_EXPECT(1, 1, 1, 1),
	}, {
		.name = "tcp4_size_for_none",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 3 },
		.size = 100,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(1, 1, 1),
	}, {
		/* a shorter record ends an aggregate */
		.name = "fraglist_short_between",
		.in = { OVPN_GSO_TEST_FRAGLIST, .segs = 6,
			.lens = OVPN_GSO_TEST_LENS(500, 500, 300, 500, 500,
						   200) },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(3, 3),
	}, {
		/* a longer one starts another */
		.name = "fraglist_growing",
		.in = { OVPN_GSO_TEST_FRAGLIST, .segs = 5,
			.lens = OVPN_GSO_TEST_LENS(300, 400, 500, 500, 501) },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(1, 1, 2, 1),
	}, {
		.name = "fraglist_shrinking",
		.in = { OVPN_GSO_TEST_FRAGLIST, .segs = 5,
			.lens = OVPN_GSO_TEST_LENS(500, 400, 300, 300, 200) },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(2, 3),
	}, {
		/* one record in each page */
		.name = "udp4_large_records",
		.in = { OVPN_GSO_TEST_UDP4, 8900, 7, 4001 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(7),
	}, {
		.name = "tcp4_tiny_records",
		.in = { OVPN_GSO_TEST_TCP4, 1, 100 },
		.size = 65000,
		.records = 128,
		.expect = OVPN_GSO_TEST_EXPECT(100),
	},
};

KUNIT_ARRAY_PARAM_DESC(ovpn_gso_test_geometry, ovpn_gso_test_geometry, name);

static void ovpn_gso_test_records(struct kunit *test)
{
	const struct ovpn_gso_test_geometry *t = test->param_value;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb;

	skb = ovpn_gso_test_skb(test, &t->in);
	ovpn_gso_test_start(test, &t->in, skb, t->size, t->records);
	ovpn_gso_test_expect_aggs(test, t->expect);
	ovpn_gso_finish(&ctx->gso, true);
}

/* one input of each kind, for what has to hold for all of them */

struct ovpn_gso_test_kind {
	const char *name;
	struct ovpn_gso_test_input in;
};

#define OVPN_GSO_TEST_SEGS	10
#define OVPN_GSO_TEST_MSS	700

static const struct ovpn_gso_test_kind ovpn_gso_test_kind[] = {
	{ "tcp4", { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_MSS, 10, 300 } },
	{ "tcp6", { OVPN_GSO_TEST_TCP6, OVPN_GSO_TEST_MSS, 10 } },
	{ "udp4", { OVPN_GSO_TEST_UDP4, OVPN_GSO_TEST_MSS, 10, 300 } },
	{ "udp6", { OVPN_GSO_TEST_UDP6, OVPN_GSO_TEST_MSS, 10 } },
	{ "exthdr", { OVPN_GSO_TEST_EXTHDR, OVPN_GSO_TEST_MSS, 10, 300 } },
	{ "fraglist", { OVPN_GSO_TEST_FRAGLIST, OVPN_GSO_TEST_MSS, 10, 300 } },
};

KUNIT_ARRAY_PARAM_DESC(ovpn_gso_test_kind, ovpn_gso_test_kind, name);

/* metadata */

static void ovpn_gso_test_set_meta(struct sk_buff *skb)
{
	skb->priority = 0x10002;
	__skb_set_sw_hash(skb, 0x12345678, true);
	skb_set_delivery_time(skb, 1234567, SKB_CLOCK_TAI);
#ifdef CONFIG_NETWORK_SECMARK
	skb->secmark = 77;
#endif
	skb_set_dst_pending_confirm(skb, 1);
	skb->ooo_okay = 1;

	/* of the inner packet alone */
	skb->mark = 99;
	skb->skb_iif = 42;
	skb_set_queue_mapping(skb, 3);
	__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), 5);
	memset(skb->cb, 0xff, sizeof(skb->cb));
}

static void ovpn_gso_test_expect_meta(struct kunit *test,
				      const struct sk_buff *skb, bool ooo_okay)
{
	KUNIT_EXPECT_EQ(test, skb->priority, 0x10002);
	KUNIT_EXPECT_EQ(test, skb->hash, 0x12345678);
	KUNIT_EXPECT_TRUE(test, skb->l4_hash);
	KUNIT_EXPECT_TRUE(test, skb->sw_hash);
	KUNIT_EXPECT_EQ(test, skb->tstamp, 1234567);
	KUNIT_EXPECT_EQ(test, (int)skb->tstamp_type, SKB_CLOCK_TAI);
#ifdef CONFIG_NETWORK_SECMARK
	KUNIT_EXPECT_EQ(test, skb->secmark, 77);
#endif
	KUNIT_EXPECT_TRUE(test, skb_get_dst_pending_confirm(skb));
	KUNIT_EXPECT_EQ(test, (bool)skb->ooo_okay, ooo_okay);
}

static void ovpn_gso_test_fields(struct kunit *test)
{
	const struct ovpn_gso_test_kind *t = test->param_value;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *agg;
	bool first = true;

	skb = ovpn_gso_test_skb(test, &t->in);
	ovpn_gso_test_set_meta(skb);
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
	while (!ovpn_gso_done(&ctx->gso)) {
		agg = ovpn_gso_test_next(ctx);
		KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(agg));
		ovpn_gso_test_expect_skb(test, agg);
		/* only the first one may still go to another queue */
		ovpn_gso_test_expect_meta(test, agg, first);
		first = false;

		/* nothing of the inner packet */
		KUNIT_EXPECT_EQ(test, agg->mark, 0);
		KUNIT_EXPECT_EQ(test, agg->skb_iif, 0);
		KUNIT_EXPECT_EQ(test, skb_get_queue_mapping(agg), 0);
		KUNIT_EXPECT_FALSE(test, skb_vlan_tag_present(agg));
		KUNIT_EXPECT_PTR_EQ(test, agg->sk, NULL);
		KUNIT_EXPECT_TRUE(test, !agg->destructor);
		KUNIT_EXPECT_EQ(test, skb_shinfo(agg)->tx_flags, 0);
		consume_skb(agg);
	}
	ovpn_gso_finish(&ctx->gso, true);
}

/* a segment that is taken out keeps the same, and its bytes */
static void ovpn_gso_test_fields_segment(struct kunit *test)
{
	const struct ovpn_gso_test_kind *t = test->param_value;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *seg;
	bool first = true;

	skb = ovpn_gso_test_skb(test, &t->in);
	ovpn_gso_test_set_meta(skb);
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
	while (!ovpn_gso_done(&ctx->gso)) {
		seg = ovpn_gso_next_segment(&ctx->gso);
		KUNIT_ASSERT_NOT_NULL(test, seg);
		if (t->in.source != OVPN_GSO_TEST_FRAGLIST) {
			ovpn_gso_test_expect_meta(test, seg, first);
			first = false;
		}
		KUNIT_EXPECT_EQ(test, seg->protocol, skb->protocol);
		KUNIT_EXPECT_EQ(test, skb_network_offset(seg), 0);
		KUNIT_EXPECT_FALSE(test, skb_is_gso(seg));
		KUNIT_EXPECT_NULL(test, seg->next);

		/* the per-record path completes it */
		if (seg->ip_summed == CHECKSUM_PARTIAL)
			KUNIT_ASSERT_EQ(test, skb_checksum_help(seg), 0);
		KUNIT_ASSERT_LE(test, seg->len, sizeof(ctx->rec));
		KUNIT_ASSERT_EQ(test, skb_copy_bits(seg, 0, ctx->rec, seg->len),
				0);
		ovpn_gso_test_expect_segment(test, ctx->rec, seg->len);
		consume_skb(seg);
	}
	KUNIT_EXPECT_NULL(test, ctx->seg);
	ovpn_gso_finish(&ctx->gso, true);
}

/* write ownership */

struct ovpn_gso_test_owner {
	const char *name;
	void (*destructor)(struct sk_buff *skb);
	int type;
	struct ovpn_gso_test_input in;
	/* the input is charged for its data only: the charge grows */
	bool dense;
};

static const struct ovpn_gso_test_owner ovpn_gso_test_owner[] = {
	{
		.name = "tcp_wfree",
		.destructor = tcp_wfree,
		.type = SOCK_STREAM,
		.in = { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_MSS, 10 },
	}, {
		.name = "tcp_wfree_dense",
		.destructor = tcp_wfree,
		.type = SOCK_STREAM,
		.in = { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_MSS, 10 },
		.dense = true,
	}, {
		.name = "tcp_wfree_list",
		.destructor = tcp_wfree,
		.type = SOCK_STREAM,
		.in = { OVPN_GSO_TEST_EXTHDR, OVPN_GSO_TEST_MSS, 10 },
	}, {
		.name = "tcp_wfree_list_dense",
		.destructor = tcp_wfree,
		.type = SOCK_STREAM,
		.in = { OVPN_GSO_TEST_EXTHDR, OVPN_GSO_TEST_MSS, 10 },
		.dense = true,
	}, {
		.name = "__sock_wfree",
		.destructor = __sock_wfree,
		.type = SOCK_STREAM,
		.in = { OVPN_GSO_TEST_TCP6, OVPN_GSO_TEST_MSS, 10 },
	}, {
		.name = "sock_wfree",
		.destructor = sock_wfree,
		.type = SOCK_DGRAM,
		.in = { OVPN_GSO_TEST_UDP4, OVPN_GSO_TEST_MSS, 10 },
	}, {
		.name = "sock_wfree_dense",
		.destructor = sock_wfree,
		.type = SOCK_DGRAM,
		.in = { OVPN_GSO_TEST_UDP6, OVPN_GSO_TEST_MSS, 10 },
		.dense = true,
	},
};

KUNIT_ARRAY_PARAM_DESC(ovpn_gso_test_owner, ovpn_gso_test_owner, name);

static struct sock *ovpn_gso_test_sock(struct kunit *test, int type)
{
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, 0, sock_create_kern(&init_net, PF_INET, type, 0,
						  &sock));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test,
						  ovpn_gso_test_release_sock,
						  sock));

	return sock->sk;
}

static struct sk_buff *
ovpn_gso_test_owned_skb(struct kunit *test,
			const struct ovpn_gso_test_owner *t, struct sock *sk)
{
	struct sk_buff *skb = ovpn_gso_test_skb(test, &t->in);

	if (t->dense)
		skb->truesize = SKB_TRUESIZE(skb->len);
	skb->sk = sk;
	skb->destructor = t->destructor;
	refcount_add(skb->truesize, &sk->sk_wmem_alloc);

	return skb;
}

static void ovpn_gso_test_expect_owner(struct kunit *test,
				       const struct ovpn_gso_test_owner *t,
				       const struct sk_buff *skb,
				       const struct sock *sk)
{
	KUNIT_EXPECT_PTR_EQ(test, skb->sk, sk);
	KUNIT_EXPECT_TRUE(test, skb->destructor == t->destructor);
}

/* The charge of the input stays until the last aggregate takes it over. No
 * destructor runs before an aggregate is freed.
 */
static void ovpn_gso_test_owner_agg(struct kunit *test)
{
	const struct ovpn_gso_test_owner *t = test->param_value;
	struct sock *sk = ovpn_gso_test_sock(test, t->type);
	const int start = refcount_read(&sk->sk_wmem_alloc);
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff_head aggs;
	struct sk_buff *skb, *agg;
	unsigned int input, sum = 0;

	__skb_queue_head_init(&aggs);
	skb = ovpn_gso_test_owned_skb(test, t, sk);
	input = skb->truesize;
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start + input);

	while (!ovpn_gso_done(&ctx->gso)) {
		ovpn_gso_test_expect_owner(test, t, skb, sk);
		KUNIT_EXPECT_EQ(test, skb->truesize, input);
		agg = ovpn_gso_test_next(ctx);
		KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(agg));
		__skb_queue_tail(&aggs, agg);
		ovpn_gso_test_expect_owner(test, t, agg, sk);
		sum += agg->truesize;
		if (!ovpn_gso_done(&ctx->gso))
			KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc),
					start + input + sum);
	}

	/* both signs of the correction are meant to be covered */
	KUNIT_EXPECT_EQ(test, input < sum, t->dense);

	KUNIT_EXPECT_PTR_EQ(test, skb->sk, NULL);
	KUNIT_EXPECT_TRUE(test, !skb->destructor);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start + sum);
	ovpn_gso_finish(&ctx->gso, true);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start + sum);

	while ((agg = __skb_dequeue(&aggs))) {
		sum -= agg->truesize;
		consume_skb(agg);
		KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc),
				start + sum);
	}
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start);
}

/* aggregates may be gone, as on loopback, before the next one is built */
static void ovpn_gso_test_owner_freed(struct kunit *test)
{
	const struct ovpn_gso_test_owner *t = test->param_value;
	struct sock *sk = ovpn_gso_test_sock(test, t->type);
	const int start = refcount_read(&sk->sk_wmem_alloc);
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *agg;
	unsigned int input;

	skb = ovpn_gso_test_owned_skb(test, t, sk);
	input = skb->truesize;
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
	while (!ovpn_gso_done(&ctx->gso)) {
		KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc),
				start + input);
		agg = ovpn_gso_test_next(ctx);
		KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(agg));
		consume_skb(agg);
	}
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start);
	ovpn_gso_finish(&ctx->gso, true);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start);
}

/* segments that are taken out are charged in the same way */
static void ovpn_gso_test_owner_segment(struct kunit *test)
{
	const struct ovpn_gso_test_owner *t = test->param_value;
	struct sock *sk = ovpn_gso_test_sock(test, t->type);
	const int start = refcount_read(&sk->sk_wmem_alloc);
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff_head segs;
	struct sk_buff *skb, *seg;
	unsigned int sum = 0;

	__skb_queue_head_init(&segs);
	skb = ovpn_gso_test_owned_skb(test, t, sk);
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
	seg = ovpn_gso_test_next(ctx);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(seg));
	__skb_queue_tail(&segs, seg);
	sum += seg->truesize;

	while (!ovpn_gso_done(&ctx->gso)) {
		seg = ovpn_gso_next_segment(&ctx->gso);
		KUNIT_ASSERT_NOT_NULL(test, seg);
		__skb_queue_tail(&segs, seg);
		ovpn_gso_test_expect_owner(test, t, seg, sk);
		sum += seg->truesize;
	}
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start + sum);
	ovpn_gso_finish(&ctx->gso, true);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start + sum);
	__skb_queue_purge(&segs);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start);
}

/* what is left is released with the input */
static void ovpn_gso_test_owner_rest(struct kunit *test)
{
	const struct ovpn_gso_test_owner *t = test->param_value;
	struct sock *sk = ovpn_gso_test_sock(test, t->type);
	const int start = refcount_read(&sk->sk_wmem_alloc);
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *agg;

	skb = ovpn_gso_test_owned_skb(test, t, sk);
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
	agg = ovpn_gso_test_next(ctx);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(agg));
	ovpn_gso_finish(&ctx->gso, false);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc),
			start + agg->truesize);
	consume_skb(agg);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start);
}

/* Ownership that is not write memory does not move to what leaves. */
static void ovpn_gso_test_no_wmem(struct kunit *test)
{
	const struct ovpn_gso_test_kind *t = test->param_value;
	struct sock *sk = ovpn_gso_test_sock(test, SOCK_DGRAM);
	const int start = refcount_read(&sk->sk_wmem_alloc);
	const int refs = refcount_read(&sk->sk_refcnt);
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *agg;

	skb = ovpn_gso_test_skb(test, &t->in);
	sock_hold(sk);
	skb->sk = sk;
	skb->destructor = sock_efree;
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
	while (!ovpn_gso_done(&ctx->gso)) {
		agg = ovpn_gso_test_next(ctx);
		KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(agg));
		KUNIT_EXPECT_PTR_EQ(test, agg->sk, NULL);
		KUNIT_EXPECT_TRUE(test, !agg->destructor);
		consume_skb(agg);
	}
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_refcnt), refs + 1);
	ovpn_gso_finish(&ctx->gso, true);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_refcnt), refs);
	KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start);
}

/* the input */

/* It is read until the end, and then it is gone. */
static void ovpn_gso_test_consumed(struct kunit *test)
{
	const struct ovpn_gso_test_kind *t = test->param_value;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct page *page = NULL;
	struct sk_buff *skb;

	skb = ovpn_gso_test_skb(test, &t->in);
	if (skb_shinfo(skb)->nr_frags) {
		page = skb_frag_page(&skb_shinfo(skb)->frags[0]);
		get_page(page);
		KUNIT_EXPECT_EQ(test, page_ref_count(page), 2);
	}

	ovpn_gso_test_start(test, &t->in, skb, 65000, 5);
	ovpn_gso_test_expect_aggs(test, OVPN_GSO_TEST_EXPECT(5, 5));
	ovpn_gso_finish(&ctx->gso, true);

	if (page) {
		KUNIT_EXPECT_EQ(test, page_ref_count(page), 1);
		put_page(page);
	}
}

struct ovpn_gso_test_zerocopy {
	struct ubuf_info ubuf;
	unsigned int complete;
	bool success;
};

static void ovpn_gso_test_zerocopy_complete(struct sk_buff *skb,
					    struct ubuf_info *ubuf,
					    bool success)
{
	struct ovpn_gso_test_zerocopy *zc;

	zc = container_of(ubuf, struct ovpn_gso_test_zerocopy, ubuf);
	zc->complete++;
	zc->success = success;
}

static const struct ubuf_info_ops ovpn_gso_test_zerocopy_ops = {
	.complete = ovpn_gso_test_zerocopy_complete,
};

/* A sender that asked for zerocopy learns, once, that data was copied. */
static void ovpn_gso_test_zerocopy(struct kunit *test)
{
	static const struct ovpn_gso_test_input in = {
		OVPN_GSO_TEST_UDP4, OVPN_GSO_TEST_MSS, OVPN_GSO_TEST_SEGS
	};
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct ovpn_gso_test_zerocopy zc = {
		.ubuf = {
			.ops = &ovpn_gso_test_zerocopy_ops,
			.refcnt = REFCOUNT_INIT(1),
			.flags = SKBFL_ZEROCOPY_FRAG,
		},
		.success = true,
	};
	struct sk_buff *skb;

	skb = ovpn_gso_test_skb(test, &in);
	skb_zcopy_set(skb, &zc.ubuf, NULL);
	ovpn_gso_test_start(test, &in, skb, 65000, 5);
	ovpn_gso_test_expect_aggs(test, OVPN_GSO_TEST_EXPECT(5, 5));
	KUNIT_EXPECT_EQ(test, zc.complete, 0);
	ovpn_gso_finish(&ctx->gso, true);
	KUNIT_EXPECT_EQ(test, zc.complete, 1);
	KUNIT_EXPECT_FALSE(test, zc.success);
}

/* the end of the packet ID space */

static void ovpn_gso_test_expect_segments(struct kunit *test, unsigned int n)
{
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *seg;

	KUNIT_EXPECT_EQ(test, ovpn_gso_left(&ctx->gso), n);
	for (; n; n--) {
		seg = ovpn_gso_next_segment(&ctx->gso);
		KUNIT_ASSERT_NOT_NULL(test, seg);
		if (seg->ip_summed == CHECKSUM_PARTIAL)
			KUNIT_ASSERT_EQ(test, skb_checksum_help(seg), 0);
		KUNIT_ASSERT_LE(test, seg->len, sizeof(ctx->rec));
		KUNIT_ASSERT_EQ(test, skb_copy_bits(seg, 0, ctx->rec, seg->len),
				0);
		ovpn_gso_test_expect_segment(test, ctx->rec, seg->len);
		consume_skb(seg);
		KUNIT_EXPECT_EQ(test, ovpn_gso_left(&ctx->gso), n - 1);
	}
	KUNIT_EXPECT_TRUE(test, ovpn_gso_done(&ctx->gso));
	KUNIT_EXPECT_NULL(test, ctx->seg);
}

/* A range that does not fit touches nothing: all that is left can still be
 * sent one by one.
 */
static void ovpn_gso_test_ids_end(struct kunit *test)
{
	const struct ovpn_gso_test_kind *t = test->param_value;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	atomic_t *seq_num = &ctx->ks->pid_xmit.seq_num;
	struct sk_buff *skb, *agg;

	ctx->id = U32_MAX - 8;
	atomic_set(seq_num, (int)ctx->id);

	skb = ovpn_gso_test_skb(test, &t->in);
	ovpn_gso_test_start(test, &t->in, skb, 65000, 5);
	agg = ovpn_gso_test_next(ctx);
	ovpn_gso_test_expect_agg(test, agg, 5);
	consume_skb(agg);

	/* four are left */
	KUNIT_ASSERT_PTR_EQ(test, ovpn_gso_test_next(ctx), ERR_PTR(-EAGAIN));
	KUNIT_EXPECT_EQ(test, ctx->gso.records, 0);
	KUNIT_EXPECT_EQ(test, ctx->gso.dropped, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(seq_num), -4);

	/* all have been given out */
	atomic_set(seq_num, 0);
	KUNIT_ASSERT_PTR_EQ(test, ovpn_gso_test_next(ctx), ERR_PTR(-ERANGE));
	KUNIT_EXPECT_EQ(test, ctx->gso.records, 0);
	KUNIT_EXPECT_EQ(test, ctx->gso.dropped, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(seq_num), 0);

	ovpn_gso_test_expect_segments(test, 5);
	ovpn_gso_finish(&ctx->gso, true);
}

/* The last aggregate may use the very last ID. */
static void ovpn_gso_test_ids_fit(struct kunit *test)
{
	const struct ovpn_gso_test_kind *t = test->param_value;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	atomic_t *seq_num = &ctx->ks->pid_xmit.seq_num;
	struct sk_buff *skb;

	ctx->id = U32_MAX - 9;
	atomic_set(seq_num, (int)ctx->id);
	skb = ovpn_gso_test_skb(test, &t->in);
	ovpn_gso_test_start(test, &t->in, skb, 65000, 5);
	ovpn_gso_test_expect_aggs(test, OVPN_GSO_TEST_EXPECT(5, 5));
	KUNIT_EXPECT_EQ(test, atomic_read(seq_num), 0);
	ovpn_gso_finish(&ctx->gso, true);
}

/* failures */

struct ovpn_gso_test_failure {
	const char *name;
	struct ovpn_gso_test_input in;
	/* the segment that is lost */
	unsigned int at;
	/* the packet ID of each aggregate, how many records it has, and whether
	 * it ends with the lost one
	 */
	struct {
		u32 id;
		unsigned int records;
		unsigned int dropped;
	} expect[4];
};

/* Each aggregate reserves IDs for half of what is left, which is never more
 * than six, and what it does not use remains unused.
 */
static const struct ovpn_gso_test_failure ovpn_gso_test_failure[] = {
	{
		.name = "tcp4_first",
		.in = { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_MSS, 10 },
		.at = 0,
		.expect = { { 1, 0, 1 }, { 6, 5 }, { 11, 4 } },
	}, {
		.name = "tcp4_second",
		.in = { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_MSS, 10, 9 },
		.at = 1,
		.expect = { { 1, 1, 1 }, { 6, 4 }, { 10, 4 } },
	}, {
		.name = "tcp4_middle",
		.in = { OVPN_GSO_TEST_TCP4, OVPN_GSO_TEST_MSS, 10 },
		.at = 3,
		.expect = { { 1, 3, 1 }, { 6, 6 } },
	}, {
		.name = "tcp6_end_of_first",
		.in = { OVPN_GSO_TEST_TCP6, OVPN_GSO_TEST_MSS, 10, 9 },
		.at = 4,
		.expect = { { 1, 4, 1 }, { 6, 5 } },
	}, {
		.name = "udp4_start_of_second",
		.in = { OVPN_GSO_TEST_UDP4, OVPN_GSO_TEST_MSS, 10 },
		.at = 5,
		.expect = { { 1, 5 }, { 6, 0, 1 }, { 11, 4 } },
	}, {
		.name = "udp6_last",
		.in = { OVPN_GSO_TEST_UDP6, OVPN_GSO_TEST_MSS, 10 },
		.at = 9,
		.expect = { { 1, 5 }, { 6, 4, 1 } },
	}, {
		.name = "udp4_short_last",
		.in = { OVPN_GSO_TEST_UDP4, OVPN_GSO_TEST_MSS, 10, 9 },
		.at = 9,
		.expect = { { 1, 5 }, { 6, 4, 1 } },
	}, {
		.name = "exthdr_first",
		.in = { OVPN_GSO_TEST_EXTHDR, OVPN_GSO_TEST_MSS, 10 },
		.at = 0,
		.expect = { { 1, 0, 1 }, { 6, 5 }, { 11, 4 } },
	}, {
		.name = "exthdr_second",
		.in = { OVPN_GSO_TEST_EXTHDR, OVPN_GSO_TEST_MSS, 10 },
		.at = 1,
		.expect = { { 1, 1, 1 }, { 6, 4 }, { 10, 4 } },
	}, {
		.name = "fraglist_first",
		.in = { OVPN_GSO_TEST_FRAGLIST, OVPN_GSO_TEST_MSS, 10, 9 },
		.at = 0,
		.expect = { { 1, 0, 1 }, { 6, 5 }, { 11, 4 } },
	}, {
		.name = "fraglist_last",
		.in = { OVPN_GSO_TEST_FRAGLIST, OVPN_GSO_TEST_MSS, 10, 9 },
		.at = 9,
		.expect = { { 1, 5 }, { 6, 4, 1 } },
	}, {
		/* in another fragment of the aggregate than the first */
		.name = "udp4_second_fragment",
		.in = { OVPN_GSO_TEST_UDP4, 8900, 6 },
		.at = 4,
		.expect = { { 1, 4, 1 }, { 7, 1 } },
	},
};

KUNIT_ARRAY_PARAM_DESC(ovpn_gso_test_failure, ovpn_gso_test_failure, name);

/* Records before the one that fails are sent, those behind it get new IDs. */
static void ovpn_gso_test_fail(struct kunit *test)
{
	const struct ovpn_gso_test_failure *t = test->param_value;
	unsigned int left = t->in.segs, dropped = 0, i, n, lost;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *agg;

	skb = ovpn_gso_test_skb(test, &t->in);
	ovpn_gso_test_start(test, &t->in, skb, 65000, 6);
	ovpn_gso_test_fail_at(test, t->at);

	for (i = 0; !ovpn_gso_done(&ctx->gso); i++) {
		KUNIT_ASSERT_LT(test, i, ARRAY_SIZE(t->expect));
		n = t->expect[i].records;
		lost = t->expect[i].dropped;
		ctx->id = t->expect[i].id;

		agg = ovpn_gso_test_next(ctx);
		KUNIT_ASSERT_FALSE(test, IS_ERR(agg));
		KUNIT_EXPECT_EQ(test, ctx->gso.records, n);
		if (n) {
			ovpn_gso_test_expect_agg(test, agg, n);
			consume_skb(agg);
		} else {
			KUNIT_EXPECT_PTR_EQ(test, agg, NULL);
		}

		KUNIT_EXPECT_EQ(test, ctx->gso.dropped, lost);
		if (lost)
			ctx->seg = ctx->seg->next;
		dropped += lost;
		left -= n + lost;
		KUNIT_EXPECT_EQ(test, ovpn_gso_left(&ctx->gso), left);
	}

	KUNIT_EXPECT_EQ(test, left, 0);
	KUNIT_EXPECT_EQ(test, dropped, 1);
	KUNIT_EXPECT_NULL(test, ctx->seg);
	ovpn_gso_finish(&ctx->gso, false);
}

/* The rest can go to the per-record path as well, as ovpn does it. */
static void ovpn_gso_test_fail_rest(struct kunit *test)
{
	const struct ovpn_gso_test_kind *t = test->param_value;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *agg;

	skb = ovpn_gso_test_skb(test, &t->in);
	ovpn_gso_test_start(test, &t->in, skb, 65000, 10);
	ovpn_gso_test_fail_at(test, 2);

	agg = ovpn_gso_test_next(ctx);
	ovpn_gso_test_expect_agg(test, agg, 2);
	consume_skb(agg);
	KUNIT_EXPECT_EQ(test, ctx->gso.dropped, 1);
	ctx->seg = ctx->seg->next;

	ovpn_gso_test_expect_segments(test, 7);
	ovpn_gso_finish(&ctx->gso, false);
}

/* A segment that can not be finished is lost in the same way. */
static void ovpn_gso_test_fail_copy(struct kunit *test)
{
	static const struct ovpn_gso_test_input in = {
		OVPN_GSO_TEST_FRAGLIST, OVPN_GSO_TEST_MSS, OVPN_GSO_TEST_SEGS
	};
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *agg, *seg;

	skb = ovpn_gso_test_skb(test, &in);
	ovpn_gso_test_start(test, &in, skb, 65000, 10);
	seg = ctx->gso.segs->next;
	seg->ip_summed = CHECKSUM_PARTIAL;
	seg->csum_start = skb_headroom(seg) + seg->len - 1;
	seg->csum_offset = 0;

	agg = ovpn_gso_test_next(ctx);
	ovpn_gso_test_expect_agg(test, agg, 1);
	consume_skb(agg);
	KUNIT_EXPECT_EQ(test, ctx->gso.dropped, 1);
	ctx->seg = ctx->seg->next;

	ovpn_gso_test_expect_segments(test, 8);
	ovpn_gso_finish(&ctx->gso, false);
}

/* Whatever is lost, the socket gets all of its memory back, and not before the
 * rest has left.
 */
static void ovpn_gso_test_fail_owner(struct kunit *test)
{
	const struct ovpn_gso_test_owner *t = test->param_value;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	unsigned int input, sum, at;
	struct sk_buff *skb, *agg;
	struct sk_buff_head aggs;
	struct sock *sk;
	int start;

	sk = ovpn_gso_test_sock(test, t->type);
	start = refcount_read(&sk->sk_wmem_alloc);
	__skb_queue_head_init(&aggs);

	for (at = 0; at < t->in.segs; at++) {
		skb = ovpn_gso_test_owned_skb(test, t, sk);
		input = skb->truesize;
		sum = 0;
		ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
		ovpn_gso_test_fail_at(test, at);

		while (!ovpn_gso_done(&ctx->gso)) {
			agg = ovpn_gso_test_next(ctx);
			KUNIT_ASSERT_FALSE(test, IS_ERR(agg));
			if (!agg)
				continue;
			__skb_queue_tail(&aggs, agg);
			ovpn_gso_test_expect_owner(test, t, agg, sk);
			sum += agg->truesize;
		}

		/* taken over, or still there if the last segment was lost */
		KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc),
				start + sum + (skb->sk ? input : 0));
		ovpn_gso_finish(&ctx->gso, false);
		KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc),
				start + sum);
		__skb_queue_purge(&aggs);
		KUNIT_EXPECT_EQ(test, refcount_read(&sk->sk_wmem_alloc), start);

		kfree_skb_list(ctx->segs);
		ctx->segs = NULL;
	}
}

/* TX timestamps */

struct ovpn_gso_test_tstamp {
	const char *name;
	struct ovpn_gso_test_input in;
	/* TCP: the byte that the request is about */
	unsigned int byte;
	/* the aggregate that carries the request, of 4, 3 and 3 records */
	unsigned int agg;
	/* the record that fails */
	unsigned int fail_at;
};

static const struct ovpn_gso_test_tstamp ovpn_gso_test_tstamp[] = {
	{
		.name = "tcp4_first_byte",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 10 },
		.byte = 0,
		.agg = 0,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		.name = "tcp4_end_of_first",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 10 },
		.byte = 3999,
		.agg = 0,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		.name = "tcp4_start_of_second",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 10 },
		.byte = 4000,
		.agg = 1,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		.name = "tcp6_last_byte",
		.in = { OVPN_GSO_TEST_TCP6, 1000, 10 },
		.byte = 9999,
		.agg = 2,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		.name = "exthdr_end_of_first",
		.in = { OVPN_GSO_TEST_EXTHDR, 1000, 10 },
		.byte = 3999,
		.agg = 0,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		.name = "exthdr_start_of_second",
		.in = { OVPN_GSO_TEST_EXTHDR, 1000, 10 },
		.byte = 4000,
		.agg = 1,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		.name = "exthdr_last_byte",
		.in = { OVPN_GSO_TEST_EXTHDR, 1000, 10 },
		.byte = 9999,
		.agg = 2,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		.name = "udp4",
		.in = { OVPN_GSO_TEST_UDP4, 1000, 10 },
		.agg = 0,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		.name = "udp6",
		.in = { OVPN_GSO_TEST_UDP6, 1000, 10 },
		.agg = 0,
		.fail_at = OVPN_GSO_TEST_NONE,
	}, {
		/* what is lost does not leave */
		.name = "tcp4_lost",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 10 },
		.byte = 5500,
		.agg = OVPN_GSO_TEST_NONE,
		.fail_at = 5,
	}, {
		.name = "exthdr_lost",
		.in = { OVPN_GSO_TEST_EXTHDR, 1000, 10 },
		.byte = 5500,
		.agg = OVPN_GSO_TEST_NONE,
		.fail_at = 5,
	}, {
		.name = "tcp4_before_lost",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 10 },
		.byte = 4500,
		.agg = 1,
		.fail_at = 5,
	}, {
		.name = "tcp4_behind_lost",
		.in = { OVPN_GSO_TEST_TCP4, 1000, 10 },
		.byte = 6500,
		.agg = 2,
		.fail_at = 5,
	},
};

KUNIT_ARRAY_PARAM_DESC(ovpn_gso_test_tstamp, ovpn_gso_test_tstamp, name);

/* A request for a timestamp goes with the data that it is about. */
static void ovpn_gso_test_timestamp(struct kunit *test)
{
	const struct ovpn_gso_test_tstamp *t = test->param_value;
	const u8 flags = SKBTX_SW_TSTAMP | SKBTX_SCHED_TSTAMP;
	const u32 key = OVPN_GSO_TEST_SEQ + t->byte;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *agg;
	unsigned int i;

	skb = ovpn_gso_test_skb(test, &t->in);
	skb_shinfo(skb)->tx_flags |= flags;
	skb_shinfo(skb)->tskey = key;
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);
	ovpn_gso_test_fail_at(test, t->fail_at);

	for (i = 0; !ovpn_gso_done(&ctx->gso); i++) {
		agg = ovpn_gso_test_next(ctx);
		KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(agg));
		KUNIT_EXPECT_EQ(test, skb_shinfo(agg)->tx_flags,
				i == t->agg ? flags : 0);
		KUNIT_EXPECT_EQ(test, skb_shinfo(agg)->tskey,
				i == t->agg ? key : 0);
		consume_skb(agg);
	}
	ovpn_gso_finish(&ctx->gso, t->fail_at == OVPN_GSO_TEST_NONE);
}

/* or with a segment that is taken out */
static void ovpn_gso_test_timestamp_segment(struct kunit *test)
{
	const struct ovpn_gso_test_tstamp *t = test->param_value;
	const u8 flags = SKBTX_SW_TSTAMP | SKBTX_SCHED_TSTAMP;
	const u32 key = OVPN_GSO_TEST_SEQ + t->byte;
	struct ovpn_gso_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *seg;
	unsigned int i;

	skb = ovpn_gso_test_skb(test, &t->in);
	skb_shinfo(skb)->tx_flags |= flags;
	skb_shinfo(skb)->tskey = key;
	ovpn_gso_test_start(test, &t->in, skb, 65000, 4);

	for (i = 0; !ovpn_gso_done(&ctx->gso); i++) {
		seg = ovpn_gso_next_segment(&ctx->gso);
		KUNIT_ASSERT_NOT_NULL(test, seg);
		KUNIT_EXPECT_EQ(test, skb_shinfo(seg)->tx_flags & flags,
				i == t->byte / 1000 ? flags : 0);
		if (i == t->byte / 1000)
			KUNIT_EXPECT_EQ(test, skb_shinfo(seg)->tskey, key);
		consume_skb(seg);
	}
	KUNIT_EXPECT_EQ(test, i, t->in.segs);
	ovpn_gso_finish(&ctx->gso, true);
}

static struct kunit_case ovpn_gso_test_cases[] = {
	KUNIT_CASE_PARAM(ovpn_gso_test_batchable,
			 ovpn_gso_test_can_batch_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_records,
			 ovpn_gso_test_geometry_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_fields, ovpn_gso_test_kind_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_fields_segment,
			 ovpn_gso_test_kind_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_owner_agg,
			 ovpn_gso_test_owner_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_owner_freed,
			 ovpn_gso_test_owner_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_owner_segment,
			 ovpn_gso_test_owner_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_owner_rest,
			 ovpn_gso_test_owner_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_no_wmem, ovpn_gso_test_kind_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_consumed, ovpn_gso_test_kind_gen_params),
	KUNIT_CASE(ovpn_gso_test_zerocopy),
	KUNIT_CASE_PARAM(ovpn_gso_test_ids_end, ovpn_gso_test_kind_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_ids_fit, ovpn_gso_test_kind_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_fail, ovpn_gso_test_failure_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_fail_rest,
			 ovpn_gso_test_kind_gen_params),
	KUNIT_CASE(ovpn_gso_test_fail_copy),
	KUNIT_CASE_PARAM(ovpn_gso_test_fail_owner,
			 ovpn_gso_test_owner_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_timestamp,
			 ovpn_gso_test_tstamp_gen_params),
	KUNIT_CASE_PARAM(ovpn_gso_test_timestamp_segment,
			 ovpn_gso_test_tstamp_gen_params),
	{ },
};

static int ovpn_gso_test_init(struct kunit *test)
{
	const struct ovpn_key_direction dir = {
		.cipher_key = ovpn_gso_test_key,
		.cipher_key_size = sizeof(ovpn_gso_test_key),
		.nonce_tail = ovpn_gso_test_nonce_tail,
		.nonce_tail_size = sizeof(ovpn_gso_test_nonce_tail),
	};
	const struct ovpn_key_config kc = {
		.cipher_alg = OVPN_CIPHER_ALG_AES_GCM,
		.key_id = OVPN_GSO_TEST_KEY_ID,
		.encrypt = dir,
		.decrypt = dir,
	};
	struct ovpn_gso_test_ctx *ctx;
	struct ovpn_crypto_key_slot *ks;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->peer = kunit_kzalloc(test, sizeof(*ctx->peer), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->peer);
	ctx->peer->tx_id = OVPN_GSO_TEST_PEER_ID;

	ks = ovpn_aead_crypto_key_slot_new(&kc);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ks));
	ctx->ks = ks;
	ctx->id = 1;
	test->priv = ctx;

	/* such a key is never batched */
	if (ks->encrypt_async)
		kunit_skip(test, "gcm(aes) is asynchronous here");

	KUNIT_ASSERT_EQ(test, ovpn_aead_batch_init(&ctx->batch, ctx->peer, ks),
			0);

	return 0;
}

static void ovpn_gso_test_exit(struct kunit *test)
{
	struct ovpn_gso_test_ctx *ctx = test->priv;

	if (!ctx)
		return;

	if (!IS_ERR(ctx->segs))
		kfree_skb_list(ctx->segs);
	ovpn_aead_batch_release(&ctx->batch);
	ovpn_crypto_key_slot_put(ctx->ks);
}

static int ovpn_gso_test_suite_init(struct kunit_suite *suite)
{
	return crypto_register_aead(&ovpn_gso_test_faulty_alg);
}

static void ovpn_gso_test_suite_exit(struct kunit_suite *suite)
{
	if (!suite->suite_init_err)
		crypto_unregister_aead(&ovpn_gso_test_faulty_alg);
}

static struct kunit_suite ovpn_gso_test_suite = {
	.name = "ovpn_gso",
	.suite_init = ovpn_gso_test_suite_init,
	.suite_exit = ovpn_gso_test_suite_exit,
	.init = ovpn_gso_test_init,
	.exit = ovpn_gso_test_exit,
	.test_cases = ovpn_gso_test_cases,
};

kunit_test_suite(ovpn_gso_test_suite);

MODULE_DESCRIPTION("KUnit tests for the UDP GSO batching of ovpn");
MODULE_LICENSE("GPL");
