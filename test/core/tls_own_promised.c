/* core/thread, mem/stack: a thread with TLS of its own gets its block when it first runs, so
 * thousands that run one after the other share few blocks, and a block that was promised is
 * there, whichever virtual processor runs the thread and whoever creates it: threads that wait,
 * that end at once, detached ones, and creators that are kernel threads. */
#include <pthread.h>
#include <stdlib.h>

#include <kochab/kochab.h>

#include "core/own_tls.h"
#include "test.h"

enum { MANY = 3000, WAVES = 4, PARKED = 300, CREATORS = 3, ROUNDS = 40 };

static __thread int mine;

static void *tell_block(void *arg)
{
	(void)arg;
	CHECK_EQ(mine, 0);
	mine = 1;
	return (void *)pthread_self();
}

static int order(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

static int distinct(uintptr_t *v, int n)
{
	int k = 0;

	qsort(v, (size_t)n, sizeof *v, order);
	for (int i = 0; i < n; i++)
		k += !i || v[i] != v[i - 1];
	return k;
}

static kb_attr_t own;

/* One wave: all are created before the first one is joined. Returns how many blocks they ran on. */
static int run_wave(void)
{
	static kb_thread_t t[MANY];
	static uintptr_t block[MANY];
	void *r;

	for (int i = 0; i < MANY; i++)
		CHECK_EQ(kb_thread_create(&t[i], &own, tell_block, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(kb_thread_join(t[i], &r), 0);
		block[i] = (uintptr_t)r;
	}
	return distinct(block, MANY);
}

static kb_sem_t gate, parked, gone;

static void *park(void *arg)
{
	int n = (int)(intptr_t)arg;

	CHECK_EQ(mine, 0);
	mine = n;
	kb_sem_post(&parked);
	kb_sem_wait(&gate);
	CHECK_EQ(mine, n);
	kb_sem_post(&gone);
	return NULL;
}

/* Threads that hold their blocks, beside threads that only come and go. */
static void park_some(void)
{
	kb_thread_t t;

	for (int i = 0; i < PARKED; i++) {
		CHECK_EQ(kb_thread_create(&t, &own, park, (void *)(intptr_t)(i + 1)), 0);
		CHECK_EQ(kb_thread_detach(t), 0);
	}
	for (int i = 0; i < PARKED; i++)
		kb_sem_wait(&parked);
	run_wave();
	for (int i = 0; i < PARKED; i++)
		kb_sem_post(&gate);
	for (int i = 0; i < PARKED; i++)
		kb_sem_wait(&gone);
}

static void *create_rounds(void *arg)
{
	kb_thread_t t[ROUNDS];
	void *r;

	(void)arg;
	for (int k = 0; k < ROUNDS; k++) {
		for (int i = 0; i < ROUNDS; i++)
			CHECK_EQ(kb_thread_create(&t[i], &own, tell_block, NULL), 0);
		for (int i = 0; i < ROUNDS; i++)
			CHECK_EQ(kb_thread_join(t[i], &r), 0);
	}
	kb_sem_post(&gone);
	return NULL;
}

static void create_everywhere(void)
{
	pthread_t outside[CREATORS];
	kb_thread_t inside[CREATORS];

	for (int i = 0; i < CREATORS; i++) {
		CHECK_EQ(pthread_create(&outside[i], NULL, create_rounds, NULL), 0);
		CHECK_EQ(kb_thread_create(&inside[i], &own, create_rounds, NULL), 0);
	}
	for (int i = 0; i < 2 * CREATORS; i++)
		kb_sem_wait(&gone); /* libc's join would keep the virtual processor */
	for (int i = 0; i < CREATORS; i++) {
		CHECK_EQ(pthread_join(outside[i], NULL), 0);
		CHECK_EQ(kb_thread_join(inside[i], NULL), 0);
	}
}

int main(void)
{
	int blocks = MANY;

	if (!own_tls_is_there())
		SKIP("threads with TLS of their own cannot be had here");
	CHECK_EQ(kb_attr_init(&own), 0);
	CHECK_EQ(kb_attr_settls(&own, KB_TLS_OWN), 0);
	CHECK_EQ(kb_sem_init(&gate, 0), 0);
	CHECK_EQ(kb_sem_init(&parked, 0), 0);
	CHECK_EQ(kb_sem_init(&gone, 0), 0);
	for (int i = 0; i < WAVES; i++) {
		blocks = run_wave();
		park_some();
	}
	create_everywhere();
	/* several virtual processors keep some hundred blocks each, so a creation may have to make
	 * its own */
	printf("%d threads ran on %d blocks\n", MANY, blocks);
	CHECK(blocks < (kb_vp_count() == 1 ? MANY / 4 : MANY));
	return 0;
}
