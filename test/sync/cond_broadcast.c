/* A broadcast releases all waiters, each of which holds the mutex alone, whether the broadcast is
 * sent with or without the mutex. */
#include "threads.h"

enum { THREADS = 20, ROUNDS = 100 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static kb_cond_t cond = KB_COND_INIT;
static int round_no, arrived, inside;

static void *work(void *arg)
{
	(void)arg;
	kb_mutex_lock(&mutex);
	for (int r = 0; r < ROUNDS; r++) {
		arrived++;
		while (round_no == r) {
			CHECK_EQ(kb_cond_wait(&cond, &mutex), 0);
			CHECK_EQ(inside++, 0);
			if (r % 8 == 0)
				kb_yield();
			inside--;
		}
	}
	kb_mutex_unlock(&mutex);
	return NULL;
}

static void body(void)
{
	struct worker w[THREADS];

	round_no = arrived = 0;
	for (int i = 0; i < THREADS; i++)
		worker_start(&w[i], work, NULL);
	for (int r = 0; r < ROUNDS; r++) {
		for (;;) {
			kb_mutex_lock(&mutex);
			if (arrived == (r + 1) * THREADS)
				break;
			kb_mutex_unlock(&mutex);
			kb_sleep(TEST_MS / 20);
		}
		round_no++;
		if (r % 2)
			CHECK_EQ(kb_cond_broadcast(&cond), 0);
		kb_mutex_unlock(&mutex);
		if (r % 2 == 0)
			CHECK_EQ(kb_cond_broadcast(&cond), 0);
	}
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
	CHECK_EQ(kb_cond_destroy(&cond), 0);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

int main(void)
{
	test_both(body);
	return 0;
}
