/* Waiters are served first come, first served, and no thread can take a
 * token on its way to a waiter. */
#include <errno.h>

#include "threads.h"

enum { THREADS = 6 };

static kb_sem_t sem = KB_SEM_INIT(0);
static int order[THREADS], places, served, arrived;

static void *wait_turn(void *arg)
{
	int me = (int)(intptr_t)arg;

	test_add(&arrived, 1);
	CHECK_EQ(kb_sem_wait(&sem), 0);
	order[test_add(&places, 1) - 1] = me;
	test_add(&served, 1);
	return NULL;
}

static void body(void)
{
	struct worker w[THREADS];

	places = served = arrived = 0;
	for (int i = 0; i < THREADS; i++) {
		worker_start(&w[i], wait_turn, (void *)(intptr_t)i);
		test_reach(&arrived, i + 1);
		while (kb_sem_destroy(&sem) != EBUSY)
			kb_yield();
		kb_sleep(5 * TEST_MS);
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(kb_sem_post(&sem), 0);
		CHECK_EQ(kb_sem_trywait(&sem), EAGAIN);
		test_reach(&served, i + 1);
		CHECK_EQ(order[i], i);
	}
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
}

int main(void)
{
	test_both(body);
	return 0;
}
