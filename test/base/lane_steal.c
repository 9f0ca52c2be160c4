/* The list of tasks: the owner takes the newest record, thieves take the oldest. Each record is
 * taken once and is complete. The list wraps, and refuses records when full. First step by step,
 * then the owner against thieves, often for the last record. */
#include <pthread.h>

#include "base/lane.h"
#include "test.h"

enum { THIEVES = 2, RECORDS = 400000 };

static struct kbi_lane lane;
static a32 had[RECORDS + 1];
static a32 stop;

static void put(uintptr_t i)
{
	CHECK(kbi_lane_put(&lane, (void *)i, (void *)(i * 3), (void *)(i * 7)));
}

static uintptr_t whole(const struct kbi_record *r)
{
	uintptr_t i = (uintptr_t)r->word[0];

	CHECK_EQ((uintptr_t)r->word[1], i * 3);
	CHECK_EQ((uintptr_t)r->word[2], i * 7);
	return i;
}

static void steps(void)
{
	struct kbi_record r;

	CHECK(kbi_lane_is_empty(&lane));
	CHECK(kbi_lane_newest(&lane) == NULL);
	CHECK(!kbi_lane_steal(&lane, &r));
	for (uintptr_t i = 1; i <= 5; i++)
		put(i);
	CHECK(kbi_lane_newest(&lane) == (void *)35);
	CHECK(kbi_lane_steal(&lane, &r));
	CHECK_EQ(whole(&r), 1);
	CHECK(kbi_lane_take(&lane, &r, false));
	CHECK_EQ(whole(&r), 5);
	CHECK(kbi_lane_take(&lane, &r, true));
	CHECK_EQ(whole(&r), 4);
	CHECK(kbi_lane_steal(&lane, &r));
	CHECK_EQ(whole(&r), 2);
	CHECK(kbi_lane_take(&lane, &r, false));
	CHECK_EQ(whole(&r), 3);
	CHECK(kbi_lane_is_empty(&lane));
	CHECK(!kbi_lane_take(&lane, &r, true));
	CHECK(!kbi_lane_take(&lane, &r, false));
	CHECK(!kbi_lane_steal(&lane, &r));
}

static void fill(void)
{
	struct kbi_record r;

	for (uintptr_t i = 1; i <= KBI_LANE_SLOTS; i++)
		put(i);
	CHECK(!kbi_lane_put(&lane, NULL, NULL, NULL));
	CHECK(kbi_lane_steal(&lane, &r));
	CHECK_EQ(whole(&r), 1);
	put(KBI_LANE_SLOTS + 1);
	CHECK(!kbi_lane_put(&lane, NULL, NULL, NULL));
	for (uintptr_t i = KBI_LANE_SLOTS + 1; i > 1; i--) {
		CHECK(kbi_lane_take(&lane, &r, i % 2));
		CHECK_EQ(whole(&r), i);
	}
	CHECK(kbi_lane_is_empty(&lane));
}

static void have(const struct kbi_record *r)
{
	uintptr_t i = whole(r);

	CHECK(i >= 1 && i <= RECORDS);
	CHECK_EQ(a_add_rlx(&had[i], 1), 0);
}

static void *thief(void *arg)
{
	struct kbi_record r;
	uintptr_t n = 0;

	(void)arg;
	while (!a_load_rlx(&stop))
		if (kbi_lane_steal(&lane, &r)) {
			have(&r);
			n++;
		}
	return (void *)n;
}

static void race(void)
{
	uint64_t rnd = test_seed();
	uintptr_t next = 1, mine = 0, stolen = 0;
	struct kbi_record r;
	pthread_t t[THIEVES];
	void *n;

	for (int i = 0; i < THIEVES; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thief, NULL), 0);
	while (next <= RECORDS || !kbi_lane_is_empty(&lane)) {
		for (unsigned k = (unsigned)(test_rand(&rnd) >> 32) % 4; k && next <= RECORDS; k--)
			put(next++);
		for (unsigned k = (unsigned)(test_rand(&rnd) >> 32) % 4; k && kbi_lane_newest(&lane); k--)
			if (kbi_lane_take(&lane, &r, false)) {
				have(&r);
				mine++;
			}
	}
	a_store_rlx(&stop, 1);
	for (int i = 0; i < THIEVES; i++) {
		CHECK_EQ(pthread_join(t[i], &n), 0);
		stolen += (uintptr_t)n;
	}
	for (uintptr_t i = 1; i <= RECORDS; i++)
		CHECK_EQ(a_load_rlx(&had[i]), 1);
	CHECK_EQ(mine + stolen, RECORDS);
	printf("%lu of %d stolen\n", (unsigned long)stolen, (int)RECORDS);
}

int main(void)
{
	steps();
	fill();
	race();
	return 0;
}
