/* A thread that computes and never calls us does not keep the threads behind it waiting - ready,
 * due, woken, or watching threads - while another VP is idle. */
#include <kochab/kochab.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "test.h"

#define MS 1000000ull

/* The quantum is 10 ms. A loaded machine may take a hundred times that, but not until the hog gives
 * up: it computes until all threads behind it have run. */
enum { HOG_MS = 40000, LIMIT_MS = 30000 };

static uint32_t behind_it, hogging, word;
static uint64_t asked, delay[4];

static void *hog(void *arg)
{
	uint64_t end;

	kb_sleep((uintptr_t)arg * MS);
	end = test_now_ns() + HOG_MS * MS;
	__atomic_store_n(&hogging, 1, __ATOMIC_RELEASE);
	while (test_now_ns() < end && __atomic_load_n(&behind_it, __ATOMIC_RELAXED) > 0)
		;
	return NULL;
}

/* This thread has run, behind the hog. */
static void *ran(void *delay_out, uint64_t since)
{
	*(uint64_t *)delay_out = kb_now() - since;
	__atomic_sub_fetch(&behind_it, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *ready(void *arg)
{
	return ran(arg, asked);
}

/* Ready threads made by the hog itself just before it hogs. */
static void *hog_with_ready(void *arg)
{
	kb_thread_t t[3];

	behind_it = 3;
	asked = kb_now();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, ready, (uint64_t *)arg + i), 0);
	hog(NULL);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	return NULL;
}

/* Went to sleep on the hog's VP, free to run elsewhere. */
static void *due(void *arg)
{
	uint64_t until = kb_now() + 100 * MS;

	kb_sleep_until(until);
	return ran(arg, until);
}

static kb_sem_t sem;
static void *woken(void *arg)
{
	CHECK_EQ(kb_sem_wait(&sem), 0);
	return ran(arg, asked);
}

static void *watches(void *arg)
{
	CHECK_EQ(kb_watch32(&word, 0, KB_FOREVER), 0);
	return ran(arg, asked);
}

static void check(const char *what, uint64_t ns)
{
	if (ns > LIMIT_MS * MS)
		fprintf(stderr, "%s: %llu ms behind a computing thread\n", what,
			(unsigned long long)(ns / MS));
	CHECK(ns <= LIMIT_MS * MS);
}

/* On VP 1: the waiters, then the hog, so that the waiters lie in its domain; from a kernel thread,
 * which wakes. */
static void *outside(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&hogging, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(50000);
	asked = test_now_ns();
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	kb_sem_post(&sem);
	return NULL;
}

struct start {
	void *(*fn)(void *);
	uint64_t hog_after_ms;
};

/* Runs on VP 1, bound; the waiter starts here first. */
static void *leader(void *arg)
{
	const struct start *s = arg;
	kb_thread_t t;
	uint64_t d = 0;

	CHECK_EQ(kb_thread_create(&t, NULL, s->fn, &d), 0);
	hog((void *)(uintptr_t)s->hog_after_ms);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	delay[0] = d;
	return NULL;
}

static void behind(const char *what, void *(*fn)(void *), bool from_outside, uint64_t hog_after_ms)
{
	struct start s = { fn, hog_after_ms };
	kb_thread_t t;
	pthread_t p;
	kb_attr_t a;

	hogging = word = 0;
	behind_it = 1;
	kb_attr_init(&a);
	kb_attr_setvp(&a, 1);
	if (from_outside)
		CHECK_EQ(pthread_create(&p, NULL, outside, NULL), 0);
	CHECK_EQ(kb_thread_create(&t, &a, leader, &s), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	if (from_outside)
		CHECK_EQ(pthread_join(p, NULL), 0);
	check(what, delay[0]);
}

static inline void agent_stuck(void)
{
	kb_thread_t t;
	kb_attr_t a;

	CHECK_EQ(kb_init(), 0);
	kb_sleep(20 * MS);
	hog_with_ready(delay); /* main is a thread like any other */
	for (int i = 0; i < 3; i++)
		check("ready behind main", delay[i]);
	kb_attr_init(&a);
	kb_attr_setvp(&a, 1);
	CHECK_EQ(kb_thread_create(&t, &a, hog_with_ready, delay), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	for (int i = 0; i < 3; i++)
		check("ready", delay[i]);
	behind("due", due, false, 1);
	/* all sleep until the hog wakes up, and then no VP has looked until it hogs */
	behind("due, all were asleep", due, false, 60);
	behind("woken from outside", woken, true, 1);
	behind("woken from outside, all were asleep", woken, true, 60);
	behind("watching", watches, true, 1);
	behind("watching, all were asleep", watches, true, 60);
}
