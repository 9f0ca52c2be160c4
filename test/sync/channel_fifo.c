/* Waiting receivers, and waiting senders, are served first come, first served. */
#include "threads.h"

enum { THREADS = 6 };

static kb_chan_t *ch;
static int arrived, places, finished, order[THREADS], values[THREADS];

static void *receive(void *arg)
{
	int me = (int)(intptr_t)arg;

	test_add(&arrived, 1);
	CHECK_EQ(kb_chan_recv(ch, &values[me]), 0);
	order[test_add(&places, 1) - 1] = me;
	test_add(&finished, 1);
	return NULL;
}

static void *send(void *arg)
{
	int me = (int)(intptr_t)arg;

	test_add(&arrived, 1);
	CHECK_EQ(kb_chan_send(ch, &me), 0);
	test_add(&finished, 1);
	return NULL;
}

/* Starts the threads in order, each asleep before the next starts. */
static void line_up(struct worker *w, void *(*fn)(void *))
{
	arrived = places = finished = 0;
	for (int i = 0; i < THREADS; i++) {
		worker_start(&w[i], fn, (void *)(intptr_t)i);
		test_reach(&arrived, i + 1);
		kb_sleep(5 * TEST_MS);
	}
}

static void receivers(size_t capacity)
{
	struct worker w[THREADS];

	CHECK_EQ(kb_chan_create(&ch, sizeof(int), capacity), 0);
	line_up(w, receive);
	for (int i = 0; i < THREADS; i++) {
		int v = 100 + i;

		CHECK_EQ(kb_chan_trysend(ch, &v), 0);
		test_reach(&finished, i + 1);
	}
	for (int i = 0; i < THREADS; i++) {
		worker_join(&w[i]);
		CHECK_EQ(order[i], i);
		CHECK_EQ(values[i], 100 + i);
	}
	kb_chan_destroy(ch);
}

static void senders(size_t capacity)
{
	struct worker w[THREADS];
	int v;

	CHECK_EQ(kb_chan_create(&ch, sizeof(int), capacity), 0);
	line_up(w, send);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(kb_chan_recv(ch, &v), 0);
		CHECK_EQ(v, i);
	}
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
	kb_chan_destroy(ch);
}

static void body(void)
{
	receivers(0);
	receivers(2);
	senders(0);
	senders(2);
}

int main(void)
{
	test_both(body);
	return 0;
}
