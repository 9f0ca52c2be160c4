/* A signal wakes a thread that waited before it; a thread that begins to wait
 * later cannot take the signal. */
#include "threads.h"

enum { EARLY = 5 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static kb_cond_t cond = KB_COND_INIT;
static int waiting, woken_early, woken_late, stop;

static void *early(void *arg)
{
	(void)arg;
	kb_mutex_lock(&mutex);
	test_add(&waiting, 1);
	CHECK_EQ(kb_cond_wait(&cond, &mutex), 0);
	woken_early++;
	kb_mutex_unlock(&mutex);
	return NULL;
}

static void *late(void *arg)
{
	(void)arg;
	kb_mutex_lock(&mutex);
	test_add(&waiting, 1);
	CHECK_EQ(kb_cond_wait(&cond, &mutex), 0);
	woken_late++;
	CHECK(test_get(&stop));
	kb_mutex_unlock(&mutex);
	return NULL;
}

static int read_locked(int *n)
{
	int v;

	kb_mutex_lock(&mutex);
	v = *n;
	kb_mutex_unlock(&mutex);
	return v;
}

static void reach_locked(int *n, int value)
{
	uint64_t end = test_now_ns() + 20000ull * TEST_MS;

	while (read_locked(n) < value) {
		CHECK(test_now_ns() < end);
		kb_sleep(TEST_MS / 5);
	}
}

static void body(void)
{
	struct worker e[EARLY], l;

	waiting = woken_early = woken_late = stop = 0;
	for (int i = 0; i < EARLY; i++)
		worker_start(&e[i], early, NULL);
	reach_locked(&waiting, EARLY);
	for (int i = 1; i < EARLY; i++) {
		CHECK_EQ(kb_cond_signal(&cond), 0);
		reach_locked(&woken_early, i);
		kb_sleep(2 * TEST_MS);
		CHECK_EQ(read_locked(&woken_early), i);
	}
	/* the last signal is for the last early waiter, although another thread
	 * begins to wait right behind it */
	kb_mutex_lock(&mutex);
	CHECK_EQ(kb_cond_signal(&cond), 0);
	worker_start(&l, late, NULL);
	kb_mutex_unlock(&mutex);
	reach_locked(&woken_early, EARLY);
	reach_locked(&waiting, EARLY + 1);
	kb_sleep(2 * TEST_MS);
	CHECK_EQ(read_locked(&woken_late), 0);
	kb_mutex_lock(&mutex);
	test_put(&stop, 1);
	kb_mutex_unlock(&mutex);
	CHECK_EQ(kb_cond_signal(&cond), 0);
	for (int i = 0; i < EARLY; i++)
		worker_join(&e[i]);
	worker_join(&l);
	CHECK_EQ(kb_cond_destroy(&cond), 0);
}

int main(void)
{
	test_both(body);
	return 0;
}
