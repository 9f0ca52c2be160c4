/* Signals race with time-outs of some microseconds. While an untimed waiter sleeps for which no
 * earlier signal can have been meant, a signal lets exactly one thread return 0: no signal is lost
 * to a waiter that times out. */
#include <errno.h>

#include "threads.h"

enum { PATIENT = 3, HASTY = 5, SIGNALS = 6000 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static kb_cond_t cond = KB_COND_INIT;
/* under mutex */
static int sleeping, sent, returned, stop;

static void *patient(void *arg)
{
	(void)arg;
	kb_mutex_lock(&mutex);
	while (!stop) {
		sleeping++;
		CHECK_EQ(kb_cond_wait(&cond, &mutex), 0);
		sleeping--;
		returned++;
	}
	kb_mutex_unlock(&mutex);
	return NULL;
}

static void *hasty(void *arg)
{
	uint64_t rnd = test_stream();
	int rc;

	(void)arg;
	kb_mutex_lock(&mutex);
	while (!stop) {
		rc = kb_cond_timedwait(&cond, &mutex, kb_now() + test_rand(&rnd) % 20000);
		if (rc == 0)
			returned++;
		else
			CHECK_EQ(rc, ETIMEDOUT);
	}
	kb_mutex_unlock(&mutex);
	return NULL;
}

static int outstanding(void)
{
	int n;

	kb_mutex_lock(&mutex);
	n = sent - returned;
	kb_mutex_unlock(&mutex);
	return n;
}

static void send_one(void)
{
	for (int sure = 0; !sure; kb_yield()) {
		kb_mutex_lock(&mutex);
		sure = sleeping > sent - returned;
		sent += sure;
		if (sure)
			kb_cond_signal(&cond);
		kb_mutex_unlock(&mutex);
	}
}

static void body(void)
{
	struct worker w[PATIENT + HASTY];
	uint64_t end;

	sleeping = sent = returned = stop = 0;
	for (int i = 0; i < PATIENT + HASTY; i++)
		worker_start(&w[i], i < PATIENT ? patient : hasty, NULL);
	for (int i = 0; i < (test_foreign ? SIGNALS / 4 : SIGNALS); i++)
		send_one();
	end = test_now_ns() + 20000ull * TEST_MS;
	while (outstanding() > 0) {
		CHECK(test_now_ns() < end);
		kb_sleep(TEST_MS);
	}
	CHECK_EQ(outstanding(), 0);
	kb_mutex_lock(&mutex);
	stop = 1;
	kb_cond_broadcast(&cond);
	kb_mutex_unlock(&mutex);
	for (int i = 0; i < PATIENT + HASTY; i++)
		worker_join(&w[i]);
	CHECK_EQ(kb_cond_destroy(&cond), 0);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
