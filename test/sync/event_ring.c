/* A ring of threads hands a number on by events; each thread adds 1. */
#include "threads.h"

enum { THREADS = 50, LAPS = 400 };

static kb_event_t event[THREADS];
static int ready;

static void *hop(void *arg)
{
	int me = (int)(intptr_t)arg;
	uint64_t v;

	CHECK_EQ(kb_event_init(&event[me], NULL), 0);
	test_add(&ready, 1);
	for (int lap = 0; lap < LAPS; lap++) {
		CHECK_EQ(kb_event_wait(&event[me], &v), 0);
		CHECK_EQ(v, (uint64_t)lap * THREADS + (uint64_t)me);
		if (me != THREADS - 1 || lap != LAPS - 1)
			kb_event_notify(&event[(me + 1) % THREADS], v + 1);
	}
	return NULL;
}

static void body(void)
{
	struct worker w[THREADS];

	ready = 0;
	for (int i = 0; i < THREADS; i++)
		worker_start(&w[i], hop, (void *)(intptr_t)i);
	test_reach(&ready, THREADS);
	kb_event_notify(&event[0], 0);
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
}

int main(void)
{
	test_both(body);
	return 0;
}
