/* core/thread: a thread that makes and joins threads singly, and never waits for anything else,
 * does not delay due threads: a thread that naps for a millisecond wakes up between its joins, and
 * so does a thread that a kernel thread wakes; also where several threads do nothing else, and
 * could hand a processor to each other for ever. */
#include <kochab/kochab.h>
#include <pthread.h>
#include <unistd.h>

#include "test.h"

/* Each thread computes for so long, so the joins take 200 ms. */
enum { JOINS = 4000, WORK_NS = 50000, NAP_NS = 1000000, FEW = 3, JOINERS = 6 };

static uint32_t stop, naps, tokens;
static kb_sem_t sem;

static void *computes(void *arg)
{
	uint64_t end = test_now_ns() + WORK_NS;

	while (test_now_ns() < end)
		;
	return arg;
}

static void *naps_on(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		kb_sleep(NAP_NS);
		__atomic_add_fetch(&naps, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

static void *takes(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		CHECK_EQ(kb_sem_wait(&sem), 0);
		__atomic_add_fetch(&tokens, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

static void *gives(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		usleep(NAP_NS / 1000);
		CHECK_EQ(kb_sem_post(&sem), 0);
	}
	CHECK_EQ(kb_sem_post(&sem), 0);
	return arg;
}

static void join_many(void)
{
	kb_thread_t t;

	kb_yield();
	for (unsigned i = 0; i < JOINS; i++) {
		CHECK_EQ(kb_thread_create(&t, NULL, computes, NULL), 0);
		CHECK_EQ(kb_thread_join(t, NULL), 0);
	}
}

static void beside_a_napper(void)
{
	kb_thread_t napper;

	CHECK_EQ(kb_thread_create(&napper, NULL, naps_on, NULL), 0);
	join_many();
	CHECK(__atomic_load_n(&naps, __ATOMIC_RELAXED) >= FEW);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_thread_join(napper, NULL), 0);
}

static void beside_a_kernel_thread(void)
{
	kb_thread_t taker;
	pthread_t giver;

	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	CHECK_EQ(kb_sem_init(&sem, 0), 0);
	CHECK_EQ(kb_thread_create(&taker, NULL, takes, NULL), 0);
	CHECK_EQ(pthread_create(&giver, NULL, gives, NULL), 0);
	join_many();
	CHECK(__atomic_load_n(&tokens, __ATOMIC_RELAXED) >= FEW);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_thread_join(taker, NULL), 0);
	CHECK_EQ(pthread_join(giver, NULL), 0);
}

static void *nothing(void *arg)
{
	return arg;
}

static void *joins_on(void *arg)
{
	kb_thread_t t;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		CHECK_EQ(kb_thread_create(&t, NULL, nothing, NULL), 0);
		CHECK_EQ(kb_thread_join(t, NULL), 0);
	}
	return arg;
}

static void *stops_after_naps(void *arg)
{
	for (int i = 0; i < FEW; i++)
		kb_sleep(NAP_NS);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	return arg;
}

/* The test is that this ends: nothing else would stop them. */
static void among_joiners(void)
{
	kb_thread_t napper, t[JOINERS];

	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	CHECK_EQ(kb_thread_create(&napper, NULL, stops_after_naps, NULL), 0);
	for (int i = 0; i < JOINERS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, joins_on, NULL), 0);
	for (int i = 0; i < JOINERS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	CHECK_EQ(kb_thread_join(napper, NULL), 0);
}

int main(void)
{
	beside_a_napper();
	beside_a_kernel_thread();
	among_joiners();
	return 0;
}
