// SPDX-License-Identifier: GPL-2.0
/*  OpenVPN data channel offload
 *
 *  KUnit tests for the packet IDs of the transmitter: an ID that is given out
 *  twice is a nonce that is used twice.
 */

#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/sched/task.h>
#include <linux/udp.h>

#include "../ovpnpriv.h"
#include "../main.h"
#include "../pktid.h"

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");

#define OVPN_PKTID_TEST_UNSET	0xdeadbeef

/* Let the next ID be @id. After U32_MAX this is 0, which is not an ID. */
static void ovpn_pktid_test_set(struct ovpn_pktid_xmit *pid, u32 id)
{
	atomic_set(&pid->seq_num, (int)id);
}

static void ovpn_pktid_test_expect_next(struct kunit *test,
					struct ovpn_pktid_xmit *pid, u32 id)
{
	u32 got = OVPN_PKTID_TEST_UNSET;

	KUNIT_EXPECT_EQ(test, ovpn_pktid_xmit_next(pid, &got), 0);
	KUNIT_EXPECT_EQ(test, got, id);
}

static void ovpn_pktid_test_expect_range(struct kunit *test,
					 struct ovpn_pktid_xmit *pid, u32 n,
					 u32 first)
{
	u32 got = OVPN_PKTID_TEST_UNSET;

	KUNIT_EXPECT_EQ(test, ovpn_pktid_xmit_reserve(pid, n, &got), 0);
	KUNIT_EXPECT_EQ(test, got, first);
}

static void ovpn_pktid_test_expect_error(struct kunit *test,
					 struct ovpn_pktid_xmit *pid, u32 n,
					 int err)
{
	const int before = atomic_read(&pid->seq_num);
	u32 got = OVPN_PKTID_TEST_UNSET;

	KUNIT_EXPECT_EQ(test, ovpn_pktid_xmit_reserve(pid, n, &got), err);
	KUNIT_EXPECT_EQ(test, got, OVPN_PKTID_TEST_UNSET);
	KUNIT_EXPECT_EQ(test, atomic_read(&pid->seq_num), before);
}

/* no function gives anything out any more, however often it is called */
static void ovpn_pktid_test_expect_exhausted(struct kunit *test,
					     struct ovpn_pktid_xmit *pid)
{
	u32 got = OVPN_PKTID_TEST_UNSET;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		ovpn_pktid_test_expect_error(test, pid, 1, -ERANGE);
		ovpn_pktid_test_expect_error(test, pid, UDP_MAX_SEGMENTS,
					     -ERANGE);
		KUNIT_EXPECT_EQ(test, ovpn_pktid_xmit_next(pid, &got),
				-ERANGE);
		KUNIT_EXPECT_EQ(test, got, OVPN_PKTID_TEST_UNSET);
	}
}

static const u32 ovpn_pktid_test_sizes[] = {
	1, 2, 3, 45, 64, UDP_MAX_SEGMENTS - 1, UDP_MAX_SEGMENTS
};

static void ovpn_pktid_test_size_desc(const u32 *n, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u_ids", *n);
}

KUNIT_ARRAY_PARAM(ovpn_pktid_test_sizes, ovpn_pktid_test_sizes,
		  ovpn_pktid_test_size_desc);

/* a fresh key starts with 1, and nothing is left out between calls */
static void ovpn_pktid_test_start(struct kunit *test)
{
	const u32 n = *(const u32 *)test->param_value;
	struct ovpn_pktid_xmit pid;

	ovpn_pktid_xmit_init(&pid);
	ovpn_pktid_test_expect_range(test, &pid, n, 1);
	ovpn_pktid_test_expect_range(test, &pid, n, 1 + n);
	ovpn_pktid_test_expect_next(test, &pid, 1 + 2 * n);
	ovpn_pktid_test_expect_range(test, &pid, 1, 2 + 2 * n);
	ovpn_pktid_test_expect_range(test, &pid, n, 3 + 2 * n);
	ovpn_pktid_test_expect_next(test, &pid, 3 + 3 * n);
}

/* the counter is signed, the IDs are not */
static void ovpn_pktid_test_sign(struct kunit *test)
{
	const u32 n = *(const u32 *)test->param_value;
	struct ovpn_pktid_xmit pid;

	ovpn_pktid_test_set(&pid, INT_MAX);
	ovpn_pktid_test_expect_range(test, &pid, n, INT_MAX);
	ovpn_pktid_test_expect_range(test, &pid, n, (u32)INT_MAX + n);
	ovpn_pktid_test_expect_next(test, &pid, (u32)INT_MAX + 2 * n);
}

/* a range may end with the last ID */
static void ovpn_pktid_test_exact_fit(struct kunit *test)
{
	const u32 n = *(const u32 *)test->param_value;
	struct ovpn_pktid_xmit pid;

	ovpn_pktid_test_set(&pid, 0 - 2 * n);
	ovpn_pktid_test_expect_range(test, &pid, n, 0 - 2 * n);
	ovpn_pktid_test_expect_range(test, &pid, n, U32_MAX - n + 1);
	ovpn_pktid_test_expect_exhausted(test, &pid);
}

/* what is too little for a range is given out one by one */
static void ovpn_pktid_test_no_fit(struct kunit *test)
{
	const u32 n = *(const u32 *)test->param_value;
	struct ovpn_pktid_xmit pid;
	u32 id;

	for (id = 1 - n; id; id++) {
		ovpn_pktid_test_set(&pid, id);
		ovpn_pktid_test_expect_error(test, &pid, n, -EAGAIN);
	}

	ovpn_pktid_test_set(&pid, 1 - n);
	for (id = 1 - n; id; id++) {
		ovpn_pktid_test_expect_error(test, &pid, n, -EAGAIN);
		ovpn_pktid_test_expect_next(test, &pid, id);
	}
	ovpn_pktid_test_expect_exhausted(test, &pid);
}

/* or to those who want less */
static void ovpn_pktid_test_smaller(struct kunit *test)
{
	struct ovpn_pktid_xmit pid;

	ovpn_pktid_test_set(&pid, U32_MAX - 9);
	ovpn_pktid_test_expect_error(test, &pid, 11, -EAGAIN);
	ovpn_pktid_test_expect_range(test, &pid, 7, U32_MAX - 9);
	ovpn_pktid_test_expect_error(test, &pid, 4, -EAGAIN);
	ovpn_pktid_test_expect_range(test, &pid, 2, U32_MAX - 2);
	ovpn_pktid_test_expect_error(test, &pid, 2, -EAGAIN);
	ovpn_pktid_test_expect_next(test, &pid, U32_MAX);
	ovpn_pktid_test_expect_exhausted(test, &pid);
}

#define OVPN_PKTID_TEST_THREADS	4
#define OVPN_PKTID_TEST_IDS	2048
#define OVPN_PKTID_TEST_ROUNDS	200

struct ovpn_pktid_test_race {
	struct ovpn_pktid_xmit pid;
	/* the last IDs */
	DECLARE_BITMAP(used, OVPN_PKTID_TEST_IDS);
	unsigned int round;
	atomic_t waiting;
	atomic_t running;
	atomic_t twice;
	atomic_t wrong;
	struct completion done;
};

static bool ovpn_pktid_test_use(struct ovpn_pktid_test_race *race, u32 first,
				u32 n)
{
	u32 bit = first - (0 - OVPN_PKTID_TEST_IDS);

	for (; n; n--, bit++) {
		/* 0 or from a space that has wrapped around */
		if (bit >= OVPN_PKTID_TEST_IDS) {
			atomic_inc(&race->wrong);
			return false;
		}
		if (test_and_set_bit(bit, race->used))
			atomic_inc(&race->twice);
	}

	return true;
}

static int ovpn_pktid_test_thread(void *data)
{
	struct ovpn_pktid_test_race *race = data;
	struct rnd_state rnd;
	u32 first, n;
	int ret;

	/* all at once, with what the threads take different in each round */
	n = atomic_dec_return(&race->waiting);
	prandom_seed_state(&rnd, race->round * OVPN_PKTID_TEST_THREADS + n);
	while (atomic_read(&race->waiting))
		cond_resched();

	do {
		n = prandom_u32_state(&rnd) % (UDP_MAX_SEGMENTS + 1);
		ret = -EAGAIN;
		if (n)
			ret = ovpn_pktid_xmit_reserve(&race->pid, n, &first);
		if (ret == -EAGAIN) {
			n = 1;
			ret = ovpn_pktid_xmit_next(&race->pid, &first);
		}
		cond_resched();
	} while (!ret && ovpn_pktid_test_use(race, first, n));

	if (ret && ret != -ERANGE)
		atomic_inc(&race->wrong);
	if (atomic_dec_and_test(&race->running))
		complete(&race->done);

	return 0;
}

static bool ovpn_pktid_test_run_race(struct ovpn_pktid_test_race *race)
{
	struct task_struct *tasks[OVPN_PKTID_TEST_THREADS];
	unsigned int i, n;

	for (n = 0; n < ARRAY_SIZE(tasks); n++) {
		tasks[n] = kthread_create(ovpn_pktid_test_thread, race,
					  "ovpn_pktid/%u", n);
		if (IS_ERR(tasks[n]))
			break;
		get_task_struct(tasks[n]);
	}

	if (n == ARRAY_SIZE(tasks)) {
		for (i = 0; i < n; i++)
			wake_up_process(tasks[i]);
		wait_for_completion(&race->done);
	}

	for (i = 0; i < n; i++)
		kthread_stop_put(tasks[i]);

	return n == ARRAY_SIZE(tasks);
}

/* Ranges and single IDs compete for the end of the space: each ID is given out
 * once and none remains.
 */
static void ovpn_pktid_test_race(struct kunit *test)
{
	struct ovpn_pktid_test_race *race;

	race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, race);

	for (; race->round < OVPN_PKTID_TEST_ROUNDS; race->round++) {
		ovpn_pktid_test_set(&race->pid, 0 - OVPN_PKTID_TEST_IDS);
		bitmap_zero(race->used, OVPN_PKTID_TEST_IDS);
		atomic_set(&race->waiting, OVPN_PKTID_TEST_THREADS);
		atomic_set(&race->running, OVPN_PKTID_TEST_THREADS);
		init_completion(&race->done);

		KUNIT_ASSERT_TRUE(test, ovpn_pktid_test_run_race(race));

		KUNIT_ASSERT_EQ(test, atomic_read(&race->twice), 0);
		KUNIT_ASSERT_EQ(test, atomic_read(&race->wrong), 0);
		KUNIT_ASSERT_TRUE(test,
				  bitmap_full(race->used, OVPN_PKTID_TEST_IDS));
		ovpn_pktid_test_expect_exhausted(test, &race->pid);
	}
}

static struct kunit_case ovpn_pktid_test_cases[] = {
	KUNIT_CASE_PARAM(ovpn_pktid_test_start,
			 ovpn_pktid_test_sizes_gen_params),
	KUNIT_CASE_PARAM(ovpn_pktid_test_sign,
			 ovpn_pktid_test_sizes_gen_params),
	KUNIT_CASE_PARAM(ovpn_pktid_test_exact_fit,
			 ovpn_pktid_test_sizes_gen_params),
	KUNIT_CASE_PARAM(ovpn_pktid_test_no_fit,
			 ovpn_pktid_test_sizes_gen_params),
	KUNIT_CASE(ovpn_pktid_test_smaller),
	KUNIT_CASE_SLOW(ovpn_pktid_test_race),
	{ },
};

static struct kunit_suite ovpn_pktid_test_suite = {
	.name = "ovpn_pktid",
	.test_cases = ovpn_pktid_test_cases,
};

kunit_test_suite(ovpn_pktid_test_suite);

MODULE_DESCRIPTION("KUnit tests for the packet IDs of ovpn");
MODULE_LICENSE("GPL");
