/* Virtual processors fall asleep and wake up all the time. At times a VP is alone, and uses mutexes
 * and condition variables without atomic operations; at times several VPs are awake. Threads
 * exclude each other all the same.
 * matrix: vps=1,2,4 sched=rotator,steal */
#include <kochab/kochab.h>
#include <stdlib.h>

#include "test.h"

enum { THREADS = 6, ROUNDS = 300, BURST = 40 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static kb_cond_t cond = KB_COND_INIT;
static long counter, signalled, seen;

static void add(void)
{
	long was;

	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	was = *(volatile long *)&counter;
	*(volatile long *)&counter = was + 1;
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
}

static void *work(void *arg)
{
	unsigned r = (unsigned)(uintptr_t)arg * 7919 + (unsigned)test_seed();

	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < BURST; k++)
			add();
		CHECK_EQ(kb_mutex_lock(&mutex), 0);
		signalled++;
		CHECK_EQ(kb_cond_signal(&cond), 0);
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
		r = r * 1103515245 + 12345;
		/* longer than a virtual processor polls here, so that it sleeps */
		if (r >> 16 & 1)
			kb_sleep((r >> 20 & 63) * 1000);
		else
			kb_yield();
	}
	return NULL;
}

static void *see(void *arg)
{
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	while (signalled < (long)THREADS * ROUNDS) {
		CHECK_EQ(kb_cond_wait(&cond, &mutex), 0);
		seen++;
	}
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	return arg;
}

int main(void)
{
	kb_thread_t t[THREADS], watcher;
	kb_attr_t a;

	test_seed(); /* before several threads ask for the seed */
	setenv("KOCHAB_SPIN_US", "1", 1);
	CHECK_EQ(kb_init(), 0);
	kb_attr_init(&a);
	CHECK_EQ(kb_thread_create(&watcher, NULL, see, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		/* some threads stay where they are, so that all virtual processors have work */
		kb_attr_setvp(&a, i % 2 ? (int)(i / 2 % kb_vp_count()) : -1);
		CHECK_EQ(kb_thread_create(&t[i], &a, work, (void *)(uintptr_t)i), 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	CHECK_EQ(kb_thread_join(watcher, NULL), 0);
	CHECK_EQ(counter, (long)THREADS * ROUNDS * BURST);
	printf("%ld wake-ups\n", seen);
	return 0;
}
