/* threads.h - the same test with lightweight threads and with kernel threads that Kochab did not
 * create. A test's body starts workers; test_both runs it twice, and main takes part as a
 * lightweight thread. */
#ifndef KB_TEST_THREADS_H
#define KB_TEST_THREADS_H

#include <kochab/kochab.h>
#include <pthread.h>

#include "test.h"

enum { TEST_MS = 1000000 };

/* the workers: lightweight, kernel threads, or (test_each) both kinds in turn */
static int test_foreign;

struct worker {
	int foreign;
	kb_thread_t kb;
	pthread_t pt;
	void *(*fn)(void *);
	void *arg;
	/* so that main's virtual processor serves further threads until pthread_join is short */
	kb_sem_t ended;
};

static inline void *worker_body(void *arg)
{
	struct worker *w = arg;
	void *result = w->fn(w->arg);

	kb_sem_post(&w->ended);
	return result;
}

static inline void worker_start(struct worker *w, void *(*fn)(void *), void *arg)
{
	static int n;

	w->foreign = test_foreign == 2 ? __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED) % 2 : test_foreign;
	w->fn = fn;
	w->arg = arg;
	CHECK_EQ(kb_sem_init(&w->ended, 0), 0);
	if (w->foreign)
		CHECK_EQ(pthread_create(&w->pt, NULL, worker_body, w), 0);
	else
		CHECK_EQ(kb_thread_create(&w->kb, NULL, fn, arg), 0);
}

static inline void worker_join(struct worker *w)
{
	if (w->foreign) {
		CHECK_EQ(kb_sem_wait(&w->ended), 0);
		CHECK_EQ(pthread_join(w->pt, NULL), 0);
		return;
	}
	CHECK_EQ(kb_thread_join(w->kb, NULL), 0);
}

/* Starts and joins n workers with the same argument. */
static inline void workers_run(int n, void *(*fn)(void *), void *arg)
{
	struct worker *w = calloc((size_t)n, sizeof *w);

	CHECK(w != NULL);
	for (int i = 0; i < n; i++)
		worker_start(&w[i], fn, arg);
	for (int i = 0; i < n; i++)
		worker_join(&w[i]);
	free(w);
}

static inline void test_ways(int ways, void (*body)(void))
{
	CHECK_EQ(kb_init(), 0);
	for (test_foreign = 0; test_foreign < ways; test_foreign++)
		body();
}

static inline void test_both(void (*body)(void))
{
	test_ways(2, body);
}

/* Runs the body in both ways, and with both kinds together. */
static inline void test_each(void (*body)(void))
{
	test_ways(3, body);
}

/* Reads and writes a number in a word that further threads watch. */
static inline int test_get(int *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static inline void test_put(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline int test_add(int *word, int value)
{
	return __atomic_add_fetch(word, value, __ATOMIC_ACQ_REL);
}

/* Sleeps until the word is at least `value`; fails after 20 s. */
static inline void test_reach(int *word, int value)
{
	uint64_t end = test_now_ns() + 20000ull * TEST_MS;

	while (test_get(word) < value) {
		CHECK(test_now_ns() < end);
		kb_sleep(TEST_MS / 5);
	}
}

/* Returns a random generator for the calling worker. */
static inline uint64_t test_stream(void)
{
	static int n;

	return test_seed() * 0x9E3779B97F4A7C15ull +
		(uint64_t)test_add(&n, 1) * 0xD1B54A32D192ED03ull + 1;
}

#endif
