/* core/foreign: kernel threads that Kochab did not create lock, wait, notify, time out, create and
 * join beside lightweight threads. */
#include <errno.h>
#include <kochab/kochab.h>
#include <pthread.h>

#include "test.h"

enum { EACH = 4, TURNS = 2000 };

static kb_mutex_t mutex;
static kb_cond_t cond;
static unsigned counter, ping;

static void *counts(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(kb_mutex_lock(&mutex), 0);
		counter++;
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	}
	return arg;
}

/* Turn by turn: side 0 and 1. */
static void *plays(void *arg)
{
	unsigned side = (unsigned)(uintptr_t)arg;

	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	for (int i = 0; i < 500; i++) {
		while (ping % 2 != side)
			CHECK_EQ(kb_cond_wait(&cond, &mutex), 0);
		ping++;
		CHECK_EQ(kb_cond_signal(&cond), 0);
	}
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	return arg;
}

static kb_event_t event;
static kb_sem_t ready;

static void *notifies(void *arg)
{
	kb_sem_wait(&ready);
	kb_sleep(1000000);
	kb_event_notify(&event, (uint64_t)(uintptr_t)arg);
	return arg;
}

static void *adds_one(void *arg)
{
	return (char *)arg + 1;
}

static void *foreign(void *arg)
{
	uint64_t v, before;
	kb_thread_t t;
	void *r;

	CHECK(kb_thread_self() == NULL);
	CHECK_EQ(kb_vp_self(), -1);
	CHECK_EQ(kb_event_init(&event, NULL), 0);
	before = kb_now();
	CHECK_EQ(kb_event_timedwait(&event, &v, before + 3000000), ETIMEDOUT);
	CHECK(kb_now() >= before + 3000000);
	CHECK_EQ(kb_thread_create(&t, NULL, notifies, (void *)77), 0);
	kb_sem_post(&ready);
	CHECK_EQ(kb_event_wait(&event, &v), 0);
	CHECK_EQ(v, 77);
	CHECK_EQ(kb_thread_join(t, &r), 0);
	CHECK_EQ((uintptr_t)r, 77);
	for (uintptr_t i = 0; i < 200; i++) {
		CHECK_EQ(kb_thread_create(&t, NULL, adds_one, (void *)i), 0);
		CHECK_EQ(kb_thread_join(t, &r), 0);
		CHECK_EQ((uintptr_t)r, i + 1);
	}
	kb_yield();
	return arg;
}

static void both(void *(*fn)(void *), unsigned each)
{
	kb_thread_t t[EACH];
	pthread_t p[EACH];

	for (unsigned i = 0; i < each; i++) {
		CHECK_EQ(kb_thread_create(&t[i], NULL, fn, NULL), 0);
		CHECK_EQ(pthread_create(&p[i], NULL, fn, (void *)1), 0);
	}
	for (unsigned i = 0; i < each; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	for (unsigned i = 0; i < each; i++)
		while (pthread_tryjoin_np(p[i], NULL))
			kb_sleep(200000);
}

int main(void)
{
	pthread_t p;

	CHECK_EQ(kb_init(), 0);
	both(counts, EACH);
	CHECK_EQ(counter, 2 * EACH * TURNS);
	both(plays, 1);
	CHECK_EQ(ping, 1000);
	CHECK_EQ(pthread_create(&p, NULL, foreign, NULL), 0);
	while (pthread_tryjoin_np(p, NULL))
		kb_sleep(200000);
	return 0;
}
