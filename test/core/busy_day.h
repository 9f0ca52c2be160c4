/* busy_day.h - an hour of everything in some hundred milliseconds, for runs under unusual options:
 * a ring of events, a contended mutex, sleepers, watchers, channel, computing threads, foreign
 * threads. */
#ifndef KB_TEST_BUSY_DAY_H
#define KB_TEST_BUSY_DAY_H

#include <kochab/kochab.h>
#include <pthread.h>

#include "core/own_tls.h"
#include "test.h"

enum { DAY_RING = 10, DAY_LAPS = 300, DAY_N = 8 };

static kb_event_t day_event[DAY_RING];
static kb_barrier_t day_ready;
static kb_mutex_t day_mutex;
static unsigned day_counter;
static uint32_t day_word;
static kb_chan_t *day_chan;
static uint64_t day_sum;

static void *day_ring(void *arg)
{
	uintptr_t i = (uintptr_t)arg;

	CHECK_EQ(kb_event_init(&day_event[i], NULL), 0);
	kb_barrier_wait(&day_ready);
	if (i == 0)
		kb_event_notify(&day_event[1], 1);
	for (unsigned lap = 0; lap < DAY_LAPS; lap++) {
		uint64_t v;

		CHECK_EQ(kb_event_wait(&day_event[i], &v), 0);
		CHECK_EQ(v, lap * DAY_RING + (i ? i : DAY_RING));
		if (i || lap + 1 < DAY_LAPS)
			kb_event_notify(&day_event[(i + 1) % DAY_RING], v + 1);
	}
	kb_barrier_wait(&day_ready);
	return NULL;
}

static void *day_counts(void *arg)
{
	for (unsigned i = 0; i < 2000; i++) {
		kb_mutex_lock(&day_mutex);
		day_counter++;
		if (i % 100 == 0)
			kb_yield();
		kb_mutex_unlock(&day_mutex);
	}
	return arg;
}

static void *day_sleeps(void *arg)
{
	for (unsigned i = 0; i < 20; i++) {
		uint64_t until = kb_now() + (uintptr_t)arg % 7 * 200000;

		kb_sleep_until(until);
		CHECK(kb_now() >= until);
	}
	return NULL;
}

static void *day_watches(void *arg)
{
	for (uint32_t was = 0; was < 10; was = __atomic_load_n(&day_word, __ATOMIC_ACQUIRE))
		CHECK_EQ(kb_watch32(&day_word, was, KB_FOREVER), 0);
	return arg;
}

static void *day_writes(void *arg)
{
	for (unsigned i = 0; i < 10; i++) {
		kb_sleep(1500000);
		__atomic_add_fetch(&day_word, 1, __ATOMIC_RELEASE);
	}
	return arg;
}

static void *day_sends(void *arg)
{
	for (uint64_t i = 1; i <= 500; i++)
		CHECK_EQ(kb_chan_send(day_chan, &i), 0);
	return arg;
}

static void *day_receives(void *arg)
{
	for (unsigned i = 0; i < 500; i++) {
		uint64_t v;

		CHECK_EQ(kb_chan_recv(day_chan, &v), 0);
		__atomic_add_fetch(&day_sum, v, __ATOMIC_RELAXED);
	}
	return arg;
}

static void *day_computes(void *arg)
{
	uint64_t end = test_now_ns() + 15000000;

	while (test_now_ns() < end)
		;
	return arg;
}

static inline void busy_day(void)
{
	static void *(*const role[])(void *) = { day_counts, day_sleeps, day_watches, day_sends,
		day_receives, day_computes };
	kb_thread_t t[DAY_RING + 6 * DAY_N + 1];
	unsigned n = 0;
	pthread_t p;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_barrier_init(&day_ready, DAY_RING), 0);
	CHECK_EQ(kb_chan_create(&day_chan, sizeof(uint64_t), 3), 0);
	for (uintptr_t i = 0; i < DAY_RING; i++)
		CHECK_EQ(kb_thread_create(&t[n++], NULL, day_ring, (void *)i), 0);
	for (uintptr_t i = 0; i < 6 * DAY_N; i++) {
		kb_attr_t a;

		kb_attr_init(&a);
		kb_attr_settls(&a, own_tls_or_light((enum kb_tls)(i / 6 % 2)));
		kb_attr_setvp(&a, i % 5 == 0 ? (int)i : -1);
		CHECK_EQ(kb_thread_create(&t[n++], &a, role[i % 6], (void *)i), 0);
	}
	CHECK_EQ(kb_thread_create(&t[n++], NULL, day_writes, NULL), 0);
	CHECK_EQ(pthread_create(&p, NULL, day_counts, NULL), 0);
	while (n > 0)
		CHECK_EQ(kb_thread_join(t[--n], NULL), 0);
	while (pthread_tryjoin_np(p, NULL))
		kb_sleep(1000000);
	CHECK_EQ(day_counter, (DAY_N + 1) * 2000);
	CHECK_EQ(day_sum, (uint64_t)DAY_N * 500 * 501 / 2);
	kb_chan_destroy(day_chan);
}

#endif
