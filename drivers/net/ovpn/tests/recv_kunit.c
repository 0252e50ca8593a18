// SPDX-License-Identifier: GPL-2.0
/*  OpenVPN data channel offload
 *
 *  KUnit tests for what is received: records are decrypted without a write to
 *  pages that others may share.
 */

#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <linux/udp.h>

#include "../ovpnpriv.h"
#include "../crypto.h"
#include "../crypto_aead.h"
#include "../io.h"
#include "../peer.h"
#include "../proto.h"
#include "../skb.h"
#include "../socket.h"
#include "../udp.h"

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");

#define OVPN_RECV_TEST_KEY_SIZE	32
#define OVPN_RECV_TEST_SEED	20261201
#define OVPN_RECV_TEST_PKTID	7
/* a long IPv6 header and UDP */
#define OVPN_RECV_TEST_OUTER	(40 + 24 + sizeof(struct udphdr))
#define OVPN_RECV_TEST_MAX	SZ_64K

static const u8 ovpn_recv_test_key[OVPN_RECV_TEST_KEY_SIZE] =
	"0123456789abcdefghijklmnopqrstu";
static const u8 ovpn_recv_test_nonce_tail[OVPN_NONCE_TAIL_SIZE] = {
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88
};

/**
 * struct ovpn_recv_test_case - how records lie in an skb
 * @desc: for the log
 * @len: length of the plaintext of each record
 * @head: how many bytes are in the linear area
 * @frag: bytes of each fragment, the last may be shorter, 0: no fragments
 * @off: offset of each fragment in its page
 * @records: number of records, 0: one
 * @last: length of the plaintext of the last one, 0: as all others
 */
struct ovpn_recv_test_case {
	const char *desc;
	unsigned int len;
	unsigned int head;
	unsigned int frag;
	unsigned int off;
	unsigned int records;
	unsigned int last;
};

static const struct ovpn_recv_test_case ovpn_recv_test_cases[] = {
	{ "linear", 1400, 1424, 0, 0 },
	{ "opcode in front", 1400, 4, 2000, 0 },
	{ "AAD and tag in front", 1400, 24, 2000, 0 },
	{ "payload too in front", 1400, 100, 2000, 0 },
	{ "all but one byte in front", 1400, 1423, 2000, 0 },
	{ "nothing in front", 1400, 0, 2000, 0 },
	{ "tag in two pieces", 1400, 13, 700, 3 },
	{ "odd pieces", 1399, 4, 91, 7 },
	{ "as many fragments as there can be", 1404, 4, 84, 1 },
	{ "one byte of payload", 1, 4, 21, 1 },
	{ "jumbo", 8900, 4, 4000, 90 },
	{ "two records", 1400, 0, 4000, 0, 2 },
	{ "many records", 1350, 0, 4000, 96, 40 },
	{ "the last one is short", 1350, 0, 4000, 96, 40, 1 },
	{ "odd records across fragments", 331, 9, 701, 5, 30, 17 },
};

KUNIT_ARRAY_PARAM_DESC(ovpn_recv_test, ovpn_recv_test_cases, desc);

/**
 * struct ovpn_recv_test_ctx - state of a test
 * @peer: only its ID matters
 * @ks: a key
 * @outer: the outer headers
 * @plain: what is to come out of all records, at the offset that it has in @rec
 * @rec: the records
 * @got: what came out
 */
struct ovpn_recv_test_ctx {
	struct ovpn_peer *peer;
	struct ovpn_crypto_key_slot *ks;
	u8 outer[OVPN_RECV_TEST_OUTER];
	u8 plain[OVPN_RECV_TEST_MAX];
	u8 rec[OVPN_RECV_TEST_MAX];
	u8 got[OVPN_RECV_TEST_MAX];
};

static unsigned int ovpn_recv_test_count(const struct ovpn_recv_test_case *c)
{
	return c->records ?: 1;
}

/* length of record @i */
static unsigned int ovpn_recv_test_size(const struct ovpn_recv_test_case *c,
					unsigned int i)
{
	if (i + 1 == ovpn_recv_test_count(c) && c->last)
		return c->last + OVPN_AEAD_OVERHEAD;

	return c->len + OVPN_AEAD_OVERHEAD;
}

/* length of all records */
static unsigned int ovpn_recv_test_total(const struct ovpn_recv_test_case *c)
{
	const unsigned int n = ovpn_recv_test_count(c) - 1;

	return n * ovpn_recv_test_size(c, 0) + ovpn_recv_test_size(c, n);
}

/* records of random bytes */
static void ovpn_recv_test_encrypt(struct kunit *test,
				   const struct ovpn_recv_test_case *c)
{
	const unsigned int total = ovpn_recv_test_total(c);
	struct ovpn_recv_test_ctx *ctx = test->priv;
	struct ovpn_aead_batch batch;
	struct rnd_state rnd;
	unsigned int i, len;
	u8 *rec;

	KUNIT_ASSERT_LE(test, total, OVPN_RECV_TEST_MAX);
	prandom_seed_state(&rnd, OVPN_RECV_TEST_SEED);
	prandom_bytes_state(&rnd, ctx->outer, sizeof(ctx->outer));
	prandom_bytes_state(&rnd, ctx->plain, total);
	memcpy(ctx->rec, ctx->plain, total);

	KUNIT_ASSERT_EQ(test, ovpn_aead_batch_init(&batch, ctx->peer, ctx->ks),
			0);
	for (i = 0; i < ovpn_recv_test_count(c); i++) {
		rec = ctx->rec + i * ovpn_recv_test_size(c, 0);
		len = ovpn_recv_test_size(c, i) - OVPN_AEAD_OVERHEAD;
		KUNIT_EXPECT_EQ(test, 0,
				ovpn_aead_batch_encrypt(&batch, rec, len,
							OVPN_RECV_TEST_PKTID +
							i));
	}
	ovpn_aead_batch_release(&batch);
}

/* put what is not in the linear area into fragments */
static void ovpn_recv_test_add_frags(struct kunit *test, struct sk_buff *skb,
				     const struct ovpn_recv_test_case *c)
{
	const unsigned int total = ovpn_recv_test_total(c);
	struct ovpn_recv_test_ctx *ctx = test->priv;
	unsigned int pos, size;
	struct page *page;
	int i = 0;

	for (pos = c->head; c->frag && pos < total; pos += size) {
		size = min(c->frag, total - pos);
		KUNIT_ASSERT_LT(test, i, MAX_SKB_FRAGS);
		page = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, page);
		memcpy(page_address(page) + c->off, ctx->rec + pos, size);
		skb_add_rx_frag(skb, i++, page, c->off, size, PAGE_SIZE);
	}
}

/* the records as UDP hands them over: data points to the first, headers are in
 * front of it
 */
static struct sk_buff *
ovpn_recv_test_skb(struct kunit *test, const struct ovpn_recv_test_case *c)
{
	struct ovpn_recv_test_ctx *ctx = test->priv;
	struct sk_buff *skb;

	skb = alloc_skb(NET_SKB_PAD + sizeof(ctx->outer) + c->head, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, NET_SKB_PAD);
	skb_reset_network_header(skb);
	skb_put_data(skb, ctx->outer, sizeof(ctx->outer));
	skb_set_transport_header(skb,
				 sizeof(ctx->outer) - sizeof(struct udphdr));
	__skb_pull(skb, sizeof(ctx->outer));
	skb_put_data(skb, ctx->rec, c->head);
	skb->protocol = htons(ETH_P_IPV6);
	ovpn_recv_test_add_frags(test, skb, c);
	skb_shinfo(skb)->gso_size = ovpn_recv_test_size(c, 0);

	return skb;
}

/* decrypt record @i as ovpn_recv() and ovpn_recv_gso() do */
static struct sk_buff *
ovpn_recv_test_decrypt(struct kunit *test, const struct ovpn_recv_test_case *c,
		       struct sk_buff *skb, unsigned int i, int expect)
{
	struct ovpn_recv_test_ctx *ctx = test->priv;
	struct sk_buff *dst;

	dst = ovpn_recv_target(skb, i * ovpn_recv_test_size(c, 0),
			       ovpn_recv_test_size(c, i));
	KUNIT_ASSERT_NOT_NULL(test, dst);
	KUNIT_EXPECT_PTR_EQ(test, ovpn_skb_cb(dst)->rx_src, skb);
	KUNIT_EXPECT_EQ(test, ovpn_aead_decrypt(ctx->peer, ctx->ks, dst),
			expect);
	KUNIT_EXPECT_EQ(test, ovpn_skb_cb(dst)->payload_offset,
			OVPN_AEAD_OVERHEAD);
	kfree(ovpn_skb_cb(dst)->crypto_tmp);
	consume_skb(ovpn_skb_cb(dst)->rx_src);

	return dst;
}

/* plaintext and headers of record @i */
static void ovpn_recv_test_expect(struct kunit *test,
				  const struct ovpn_recv_test_case *c,
				  const struct sk_buff *dst, unsigned int i)
{
	const unsigned int off = i * ovpn_recv_test_size(c, 0);
	const unsigned int len = ovpn_recv_test_size(c, i);
	struct ovpn_recv_test_ctx *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, dst->len, len);
	KUNIT_ASSERT_FALSE(test, skb_is_nonlinear(dst));
	KUNIT_EXPECT_EQ(test, dst->protocol, htons(ETH_P_IPV6));
	KUNIT_EXPECT_EQ(test, skb_network_offset(dst),
			-(int)sizeof(ctx->outer));
	KUNIT_EXPECT_EQ(test, skb_transport_offset(dst),
			-(int)sizeof(struct udphdr));
	KUNIT_EXPECT_MEMEQ(test, skb_network_header(dst), ctx->outer,
			   sizeof(ctx->outer));
	KUNIT_EXPECT_MEMEQ(test, dst->data, ctx->rec + off, OVPN_AEAD_OVERHEAD);
	KUNIT_EXPECT_MEMEQ(test, dst->data + OVPN_AEAD_OVERHEAD,
			   ctx->plain + off + OVPN_AEAD_OVERHEAD,
			   len - OVPN_AEAD_OVERHEAD);
}

/* Each record comes out right, and nothing was written that others can see. */
static void ovpn_recv_test_records(struct kunit *test)
{
	const struct ovpn_recv_test_case *c = test->param_value;
	const unsigned int total = ovpn_recv_test_total(c);
	struct ovpn_recv_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *dst;
	unsigned int i;

	ovpn_recv_test_encrypt(test, c);
	skb = ovpn_recv_test_skb(test, c);
	KUNIT_ASSERT_EQ(test, skb->len, total);

	for (i = 0; i < ovpn_recv_test_count(c); i++) {
		dst = ovpn_recv_test_decrypt(test, c, skb, i, 0);
		ovpn_recv_test_expect(test, c, dst, i);
		consume_skb(dst);
	}

	KUNIT_EXPECT_EQ(test, skb->len, total);
	KUNIT_EXPECT_FALSE(test, skb_shared(skb));
	KUNIT_ASSERT_EQ(test, skb_copy_bits(skb, 0, ctx->got, total), 0);
	KUNIT_EXPECT_MEMEQ(test, ctx->got, ctx->rec, total);
	consume_skb(skb);
}

/* The last record was tampered with, the others are none the worse for it. */
static void ovpn_recv_test_tampered(struct kunit *test)
{
	const struct ovpn_recv_test_case *c = test->param_value;
	const unsigned int n = ovpn_recv_test_count(c);
	struct ovpn_recv_test_ctx *ctx = test->priv;
	struct sk_buff *skb, *dst;
	unsigned int i;

	ovpn_recv_test_encrypt(test, c);
	ctx->rec[ovpn_recv_test_total(c) - 1] ^= 1;
	skb = ovpn_recv_test_skb(test, c);
	for (i = 0; i < n; i++) {
		dst = ovpn_recv_test_decrypt(test, c, skb, i,
					     i + 1 < n ? 0 : -EBADMSG);
		kfree_skb(dst);
	}
	consume_skb(skb);
}

/* Pages that a user can write to are copied, and so is what has no pages, or
 * other skbs.
 */
static void ovpn_recv_test_can_target(struct kunit *test)
{
	static const struct ovpn_recv_test_case c = {
		.len = 1400, .head = 4, .frag = 700,
	};
	struct sk_buff *skb, *member;

	skb = ovpn_recv_test_skb(test, &c);
	KUNIT_EXPECT_TRUE(test, ovpn_recv_can_target(skb));

	skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
	KUNIT_EXPECT_FALSE(test, ovpn_recv_can_target(skb));
	skb_shinfo(skb)->flags &= ~SKBFL_SHARED_FRAG;

	skb->unreadable = 1;
	KUNIT_EXPECT_FALSE(test, ovpn_recv_can_target(skb));
	skb->unreadable = 0;

	member = alloc_skb(0, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, member);
	skb_shinfo(skb)->frag_list = member;
	KUNIT_EXPECT_FALSE(test, ovpn_recv_can_target(skb));

	KUNIT_ASSERT_EQ(test, skb_linearize(skb), 0);
	KUNIT_EXPECT_FALSE(test, ovpn_recv_can_target(skb));
	kfree_skb(skb);
}

/* which packets are taken whole: length and header of each datagram */
struct ovpn_recv_test_op {
	const char *desc;
	unsigned int size;
	unsigned int last;
	/* of the first datagrams, the one in the middle, and the last one */
	u32 first;
	u32 middle;
	u32 end;
	bool same;
};

static const struct ovpn_recv_test_op ovpn_recv_test_ops[] = {
	{ "equal", 100, 100, 0x48000001, 0x48000001, 0x48000001, true },
	{ "shortest", 25, 25, 0x48000001, 0x48000001, 0x48000001, true },
	{ "last is short", 100, 25, 0x48000001, 0x48000001, 0x48000001, true },
	{ "last is too short", 100, 24, 0x48000001, 0x48000001, 0x48000001 },
	{ "last has no opcode", 100, 3, 0x48000001, 0x48000001, 0x48000001 },
	{ "all are too short", 24, 24, 0x48000001, 0x48000001, 0x48000001 },
	{ "another peer", 100, 100, 0x48000001, 0x48000002, 0x48000001 },
	{ "another key", 100, 100, 0x48000001, 0x49000001, 0x48000001 },
	{ "control in the middle", 100, 100, 0x48000001, 0x20000001,
	  0x48000001 },
	{ "control at the end", 100, 100, 0x48000001, 0x48000001, 0x20000001 },
};

KUNIT_ARRAY_PARAM_DESC(ovpn_recv_test_op, ovpn_recv_test_ops, desc);

#define OVPN_RECV_TEST_OPS	9

static void ovpn_recv_test_same_op(struct kunit *test)
{
	const struct ovpn_recv_test_op *o = test->param_value;
	const unsigned int total = (OVPN_RECV_TEST_OPS - 1) * o->size + o->last;
	struct sk_buff *skb;
	unsigned int i;
	__be32 op;

	skb = alloc_skb(sizeof(struct udphdr) + total + sizeof(op), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_zero(skb, sizeof(struct udphdr) + total);
	skb_shinfo(skb)->gso_size = o->size;

	for (i = 0; i < OVPN_RECV_TEST_OPS; i++) {
		op = htonl(i == OVPN_RECV_TEST_OPS - 1 ? o->end :
			   i == OVPN_RECV_TEST_OPS / 2 ? o->middle : o->first);
		memcpy(skb->data + sizeof(struct udphdr) + i * o->size, &op,
		       sizeof(op));
	}

	KUNIT_EXPECT_EQ(test, ovpn_udp_same_op(skb), o->same ? o->first : 0);
	kfree_skb(skb);
}

static struct kunit_case ovpn_recv_test_kunit_cases[] = {
	KUNIT_CASE_PARAM(ovpn_recv_test_records, ovpn_recv_test_gen_params),
	KUNIT_CASE_PARAM(ovpn_recv_test_tampered, ovpn_recv_test_gen_params),
	KUNIT_CASE(ovpn_recv_test_can_target),
	KUNIT_CASE_PARAM(ovpn_recv_test_same_op, ovpn_recv_test_op_gen_params),
	{ },
};

static int ovpn_recv_test_init(struct kunit *test)
{
	const struct ovpn_key_direction dir = {
		.cipher_key = ovpn_recv_test_key,
		.cipher_key_size = sizeof(ovpn_recv_test_key),
		.nonce_tail = ovpn_recv_test_nonce_tail,
		.nonce_tail_size = sizeof(ovpn_recv_test_nonce_tail),
	};
	const struct ovpn_key_config kc = {
		.cipher_alg = OVPN_CIPHER_ALG_AES_GCM,
		.encrypt = dir,
		.decrypt = dir,
	};
	struct ovpn_crypto_key_slot *ks;
	struct ovpn_recv_test_ctx *ctx;

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->peer = kunit_kzalloc(test, sizeof(*ctx->peer), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->peer);

	ks = ovpn_aead_crypto_key_slot_new(&kc);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ks));
	ctx->ks = ks;
	test->priv = ctx;

	if (ks->encrypt_async)
		kunit_skip(test, "gcm(aes) is asynchronous here");

	return 0;
}

static void ovpn_recv_test_exit(struct kunit *test)
{
	struct ovpn_recv_test_ctx *ctx = test->priv;

	if (ctx)
		ovpn_crypto_key_slot_put(ctx->ks);
}

static struct kunit_suite ovpn_recv_test_suite = {
	.name = "ovpn_recv",
	.init = ovpn_recv_test_init,
	.exit = ovpn_recv_test_exit,
	.test_cases = ovpn_recv_test_kunit_cases,
};

kunit_test_suite(ovpn_recv_test_suite);

MODULE_DESCRIPTION("KUnit tests for the receive path of ovpn");
MODULE_LICENSE("GPL");
