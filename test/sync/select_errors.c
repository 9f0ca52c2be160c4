/* Errors of select; a deadline of 0 does not wait; a closed channel is
 * ready with EPIPE; many cases. */
#include <errno.h>

#include "threads.h"

enum { MANY = 40 };

static kb_chan_t *ch;
static kb_event_t event;

static void *close_it(void *arg)
{
	(void)arg;
	kb_sleep(5 * TEST_MS);
	CHECK_EQ(kb_chan_close(ch), 0);
	return NULL;
}

static void *not_the_owner(void *arg)
{
	kb_select_case_t c = { KB_SELECT_EVENT, 0, NULL, &event, NULL };
	size_t chosen;

	(void)arg;
	CHECK_EQ(kb_select(&c, 1, 0, &chosen), EINVAL);
	return NULL;
}

static void refusals(void)
{
	kb_select_case_t c = { KB_SELECT_RECV, 0, NULL, NULL, NULL };
	size_t chosen;

	CHECK_EQ(kb_select(&c, 0, 0, &chosen), EINVAL);
	CHECK_EQ(kb_select(&c, 1, 0, &chosen), EINVAL);
	c.op = (enum kb_select_op)9;
	CHECK_EQ(kb_select(&c, 1, 0, &chosen), EINVAL);
	CHECK_EQ(kb_event_init(&event, NULL), 0);
	workers_run(1, not_the_owner, NULL);
}

static void many_cases(void)
{
	kb_select_case_t cases[MANY];
	struct worker w;
	size_t chosen = MANY;
	int v;
	uint64_t at = kb_now() + 5 * TEST_MS;

	CHECK_EQ(kb_chan_create(&ch, sizeof v, 0), 0);
	for (int i = 0; i < MANY; i++)
		cases[i] = (kb_select_case_t){ i % 2 ? KB_SELECT_RECV : KB_SELECT_SEND, -1, ch, NULL, &v };
	CHECK_EQ(kb_select(cases, MANY, 0, &chosen), ETIMEDOUT);
	CHECK_EQ(kb_select(cases, MANY, at, &chosen), ETIMEDOUT);
	CHECK(kb_now() >= at);
	worker_start(&w, close_it, NULL);
	CHECK_EQ(kb_select(cases, MANY, KB_FOREVER, &chosen), 0);
	CHECK(chosen < MANY);
	CHECK_EQ(cases[chosen].error, EPIPE);
	CHECK_EQ(kb_select(cases, MANY, KB_FOREVER, &chosen), 0);
	CHECK_EQ(cases[chosen].error, EPIPE);
	worker_join(&w);
	kb_chan_destroy(ch);
}

static void body(void)
{
	refusals();
	many_cases();
}

int main(void)
{
	test_both(body);
	return 0;
}
