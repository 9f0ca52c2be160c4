/* The parking lot has the meaning of futex(2): compare, time out, bitsets,
 * order, counts, requeueing. */
#include <errno.h>

#include "sync/park.h"
#include "threads.h"

enum { THREADS = 6 };

static uint32_t word, other;
static int arrived, places, left, order[THREADS];

static void *sleep_any(void *arg)
{
	test_add(&arrived, 1);
	CHECK_EQ(kbi_park_wait(&word, 0, KBI_PARK_ANY, KBI_FOREVER), 0);
	order[test_add(&places, 1) - 1] = (int)(intptr_t)arg;
	test_add(&left, 1);
	return NULL;
}

static void *sleep_bits(void *arg)
{
	test_add(&arrived, 1);
	CHECK_EQ(kbi_park_wait(&word, 0, 1u << (intptr_t)arg, KBI_FOREVER), 0);
	order[test_add(&places, 1) - 1] = (int)(intptr_t)arg;
	test_add(&left, 1);
	return NULL;
}

static void line_up(struct worker *w, void *(*fn)(void *))
{
	arrived = places = left = 0;
	for (int i = 0; i < THREADS; i++) {
		worker_start(&w[i], fn, (void *)(intptr_t)i);
		test_reach(&arrived, i + 1);
		kb_sleep(5 * TEST_MS);
	}
}

static void join_all(struct worker *w)
{
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
}

static void alone(void)
{
	uint64_t at = kb_now() + 5 * TEST_MS;

	CHECK_EQ(kbi_park_wait(&word, 1, KBI_PARK_ANY, KBI_FOREVER), EAGAIN);
	CHECK_EQ(kbi_park_wait(&word, 0, 0, KBI_FOREVER), EINVAL);
	CHECK_EQ(kbi_park_wait(&word, 0, KBI_PARK_ANY, at), ETIMEDOUT);
	CHECK(kb_now() >= at);
	CHECK_EQ(kbi_park_wake(&word, 5, KBI_PARK_ANY), 0);
}

static void in_order(void)
{
	struct worker w[THREADS];

	line_up(w, sleep_any);
	CHECK_EQ(kbi_park_wake(&other, 99, KBI_PARK_ANY), 0);
	CHECK_EQ(kbi_park_wake(&word, 1, KBI_PARK_ANY), 1);
	test_reach(&left, 1);
	CHECK_EQ(order[0], 0);
	CHECK_EQ(kbi_park_wake(&word, 2, KBI_PARK_ANY), 2);
	test_reach(&left, 3);
	CHECK_EQ(kbi_park_wake(&word, 99, KBI_PARK_ANY), THREADS - 3);
	join_all(w);
}

static void by_bits(void)
{
	struct worker w[THREADS];

	line_up(w, sleep_bits);
	CHECK_EQ(kbi_park_wake(&word, 99, 1u << 3), 1);
	test_reach(&left, 1);
	CHECK_EQ(order[0], 3);
	CHECK_EQ(kbi_park_wake(&word, 99, 1u << 3), 0);
	CHECK_EQ(kbi_park_wake(&word, 99, KBI_PARK_ANY), THREADS - 1);
	join_all(w);
}

static void requeue(void)
{
	struct worker w[THREADS];
	uint32_t wrong = 7, right = 0;
	unsigned woken, moved;

	line_up(w, sleep_any);
	CHECK_EQ(kbi_park_requeue(&word, 1, &other, 2, &wrong, &woken, &moved), EAGAIN);
	CHECK_EQ(woken + moved, 0);
	CHECK_EQ(kbi_park_requeue(&word, 1, &other, 2, &right, &woken, &moved), 0);
	CHECK_EQ(woken, 1);
	CHECK_EQ(moved, 2);
	test_reach(&left, 1);
	CHECK_EQ(kbi_park_wake(&other, 99, KBI_PARK_ANY), 2);
	test_reach(&left, 3);
	CHECK_EQ(kbi_park_requeue(&word, 0, &word, 99, NULL, NULL, NULL), 0);
	CHECK_EQ(kbi_park_wake(&word, 99, KBI_PARK_ANY), THREADS - 3);
	join_all(w);
}

static void body(void)
{
	alone();
	in_order();
	by_bits();
	requeue();
}

int main(void)
{
	test_both(body);
	return 0;
}
