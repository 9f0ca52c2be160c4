/* Close releases all waiting senders and receivers with EPIPE; no element is
 * received that was not sent. */
#include <errno.h>

#include "threads.h"

enum { THREADS = 6 };

static kb_chan_t *ch;
static int arrived, refused;

static void *receive(void *arg)
{
	int v;

	(void)arg;
	test_add(&arrived, 1);
	CHECK_EQ(kb_chan_recv(ch, &v), EPIPE);
	test_add(&refused, 1);
	return NULL;
}

static void *send(void *arg)
{
	int v = 5;

	(void)arg;
	test_add(&arrived, 1);
	CHECK_EQ(kb_chan_timedsend(ch, &v, kb_now() + 20000ull * TEST_MS), EPIPE);
	test_add(&refused, 1);
	return NULL;
}

static void close_on(void *(*fn)(void *), size_t capacity, int fill)
{
	struct worker w[THREADS];
	int v = 1;

	CHECK_EQ(kb_chan_create(&ch, sizeof v, capacity), 0);
	for (int i = 0; i < fill; i++)
		CHECK_EQ(kb_chan_trysend(ch, &v), 0);
	arrived = refused = 0;
	for (int i = 0; i < THREADS; i++)
		worker_start(&w[i], fn, NULL);
	test_reach(&arrived, THREADS);
	kb_sleep(5 * TEST_MS);
	CHECK_EQ(test_get(&refused), 0);
	CHECK_EQ(kb_chan_close(ch), 0);
	for (int i = 0; i < THREADS; i++)
		worker_join(&w[i]);
	CHECK_EQ(refused, THREADS);
	CHECK_EQ(kb_chan_length(ch), (size_t)fill);
	kb_chan_destroy(ch);
}

static void body(void)
{
	close_on(receive, 0, 0);
	close_on(receive, 4, 0);
	close_on(send, 0, 0);
	close_on(send, 2, 2);
}

int main(void)
{
	test_both(body);
	return 0;
}
