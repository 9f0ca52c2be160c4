/* kb_io_poll_source: memory words that a kernel thread writes, like a device, polled by the agents:
 * each thread gets its completion, once, in time; while no thread waits no VP polls. */
#include <errno.h>
#include <kochab/io.h>
#include <pthread.h>

#include "test.h"

enum { WAITERS = 32, ROUNDS = 60 };

/* A queue of a device: slots that it fills, one for each thread. */
static struct slot {
	uint64_t asked, answered; /* numbers */
	kb_io_completion_t c;
} slot[WAITERS];

static uint32_t stop;
static uint64_t looks;

static void poll_slots(kb_io_agent_t *agent, void *arg)
{
	struct slot *s = arg;
	static uint64_t seen[WAITERS];

	__atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < WAITERS; i++) {
		uint64_t n = __atomic_load_n(&s[i].answered, __ATOMIC_ACQUIRE);

		if (n != seen[i]) {
			seen[i] = n;
			kb_io_complete(agent, &s[i].c, (int64_t)n);
		}
	}
}

static void *device(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct timespec us = { 0, 20000 };

		for (unsigned i = 0; i < WAITERS; i++)
			__atomic_store_n(&slot[i].answered, __atomic_load_n(&slot[i].asked, __ATOMIC_ACQUIRE),
				__ATOMIC_RELEASE);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &us, NULL);
	}
	return arg;
}

static void *asks(void *arg)
{
	struct slot *s = arg;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		int64_t n;

		__atomic_store_n(&s->asked, i, __ATOMIC_RELEASE);
		CHECK_EQ(kb_io_await(&s->c, &n, KB_FOREVER), 0);
		CHECK_EQ(n, (int64_t)i);
		if (i % 16 == 0)
			kb_sleep(300000);
	}
	return NULL;
}

static void *waits(void *arg)
{
	int64_t n = 0;
	int e = kb_io_await(arg, &n, KB_FOREVER);

	return (void *)(intptr_t)(e ? -e : (int)n);
}

static void single(void)
{
	kb_io_completion_t c = KB_IO_COMPLETION_INIT;
	kb_thread_t t;
	pthread_t k;
	int64_t n;
	void *r;

	CHECK_EQ(kb_io_await(&c, &n, kb_now() + 1000000), ETIMEDOUT);
	kb_io_complete(NULL, &c, 5);
	CHECK_EQ(kb_io_await(&c, &n, KB_FOREVER), 0);
	CHECK_EQ(n, 5);
	CHECK_EQ(kb_thread_create(&t, NULL, waits, &c), 0);
	kb_sleep(1000000);
	kb_io_complete(NULL, &c, 6);
	CHECK_EQ(kb_thread_join(t, &r), 0);
	CHECK_EQ((intptr_t)r, 6);
	CHECK_EQ(kb_thread_create(&t, NULL, waits, &c), 0);
	kb_sleep(1000000);
	CHECK_EQ(kb_io_cancel(t), 0);
	CHECK_EQ(kb_thread_join(t, &r), 0);
	CHECK_EQ((intptr_t)r, -ECANCELED);
	CHECK_EQ(pthread_create(&k, NULL, waits, &c), 0);
	kb_sleep(1000000);
	kb_io_complete(NULL, &c, 7);
	CHECK_EQ(pthread_join(k, &r), 0);
	CHECK_EQ((intptr_t)r, 7);
}

int main(void)
{
	kb_thread_t t[WAITERS];
	uint64_t before;
	pthread_t k;

	CHECK_EQ(kb_init(), 0);
	single();
	CHECK_EQ(kb_io_poll_source(NULL, NULL), EINVAL);
	CHECK_EQ(kb_io_poll_source(poll_slots, slot), 0);
	CHECK_EQ(pthread_create(&k, NULL, device, NULL), 0);
	for (unsigned i = 0; i < WAITERS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, asks, &slot[i]), 0);
	for (unsigned i = 0; i < WAITERS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	kb_sleep(1000000);
	before = __atomic_load_n(&looks, __ATOMIC_RELAXED);
	kb_sleep(5000000);
	/* except polls that were about to begin when the last request was answered; continued polling
	 * would be hundreds */
	CHECK(__atomic_load_n(&looks, __ATOMIC_RELAXED) <= before + 4);
	CHECK_EQ(kb_io_poll_source_end(poll_slots, slot), 0);
	CHECK_EQ(kb_io_poll_source_end(poll_slots, slot), ENOENT);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(k, NULL), 0);
	return 0;
}
