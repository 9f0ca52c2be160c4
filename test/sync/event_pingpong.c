/* With a single notification under way at a time each message arrives exactly, whether the two
 * threads share a processor or not, and whether the waiter sleeps or runs. */
#include "threads.h"

enum { ROUNDS = 20000 };

static kb_event_t ping, pong;
static int ready;

static void *answer(void *arg)
{
	uint64_t rnd = test_stream(), v;

	(void)arg;
	CHECK_EQ(kb_event_init(&ping, NULL), 0);
	test_put(&ready, 1);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		if (test_rand(&rnd) % 16 == 0)
			kb_yield();
		CHECK_EQ(kb_event_wait(&ping, &v), 0);
		CHECK_EQ(v, i * 7);
		kb_event_notify(&pong, ~i);
	}
	return NULL;
}

static void *ask(void *arg)
{
	uint64_t rnd = test_stream(), v;

	(void)arg;
	CHECK_EQ(kb_event_init(&pong, NULL), 0);
	test_reach(&ready, 1);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		kb_event_notify(&ping, i * 7);
		if (test_rand(&rnd) % 16 == 0)
			kb_yield();
		CHECK_EQ(kb_event_wait(&pong, &v), 0);
		CHECK_EQ(v, ~i);
	}
	return NULL;
}

static void body(void)
{
	struct worker w[2];

	ready = 0;
	worker_start(&w[0], answer, NULL);
	worker_start(&w[1], ask, NULL);
	worker_join(&w[0]);
	worker_join(&w[1]);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
