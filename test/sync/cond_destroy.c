/* A condition variable may be destroyed and its memory reused right after the broadcast that
 * releases its waiters, timed waiters included, although they have not returned yet; with sleepers
 * in it destroy returns EBUSY. */
#include <errno.h>
#include <string.h>

#include "threads.h"

enum { THREADS = 6, ROUNDS = 400 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static kb_cond_t *cond;
static int waiting, go;

static void *wait_for_it(void *arg)
{
	uint64_t rnd = test_stream();
	kb_cond_t *c = arg;

	kb_mutex_lock(&mutex);
	waiting++;
	while (!go) {
		if (test_rand(&rnd) % 2)
			kb_cond_wait(c, &mutex);
		else
			kb_cond_timedwait(c, &mutex, kb_now() + test_rand(&rnd) % 200000);
	}
	kb_mutex_unlock(&mutex);
	return NULL;
}

static void one_round(void)
{
	struct worker w[THREADS];

	CHECK_EQ(kb_cond_init(cond), 0);
	waiting = go = 0;
	for (int i = 0; i < THREADS; i++)
		worker_start(&w[i], wait_for_it, cond);
	for (;;) {
		kb_mutex_lock(&mutex);
		if (waiting == THREADS)
			break;
		kb_mutex_unlock(&mutex);
		kb_yield();
	}
	go = 1;
	CHECK_EQ(kb_cond_broadcast(cond), 0);
	CHECK_EQ(kb_cond_destroy(cond), 0);
	memset(cond, 0x5a, sizeof *cond);
	kb_mutex_unlock(&mutex);
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
	for (size_t k = 0; k < sizeof *cond; k++)
		CHECK_EQ(((unsigned char *)cond)[k], 0x5a);
}

static void *wait_once(void *arg)
{
	kb_mutex_lock(&mutex);
	waiting = 1;
	while (!go)
		kb_cond_wait(arg, &mutex);
	kb_mutex_unlock(&mutex);
	return NULL;
}

static void busy(void)
{
	struct worker w;

	CHECK_EQ(kb_cond_init(cond), 0);
	waiting = go = 0;
	worker_start(&w, wait_once, cond);
	for (;;) {
		kb_mutex_lock(&mutex);
		if (waiting)
			break;
		kb_mutex_unlock(&mutex);
		kb_yield();
	}
	CHECK_EQ(kb_cond_destroy(cond), EBUSY);
	go = 1;
	kb_cond_signal(cond);
	kb_mutex_unlock(&mutex);
	worker_join(&w);
	CHECK_EQ(kb_cond_destroy(cond), 0);
}

static void body(void)
{
	cond = malloc(sizeof *cond);
	CHECK(cond != NULL);
	for (int i = 0; i < ROUNDS; i++)
		one_round();
	busy();
	free(cond);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
