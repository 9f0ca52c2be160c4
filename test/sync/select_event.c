/* Select over an event and a channel: both get through, and an event that was
 * not chosen stays pending. */
#include <errno.h>

#include "threads.h"

enum { ROUNDS = 3000 };

static kb_chan_t *ch;
static kb_event_t event;
static int ready, posted, from_event, from_channel;

static void *own(void *arg)
{
	uint64_t message;
	int v;
	kb_select_case_t cases[2] = {
		{ KB_SELECT_EVENT, -1, NULL, &event, &message },
		{ KB_SELECT_RECV, -1, ch, NULL, &v },
	};

	(void)arg;
	CHECK_EQ(kb_event_init(&event, NULL), 0);
	test_put(&ready, 1);
	while (from_event < ROUNDS || from_channel < ROUNDS) {
		size_t chosen;

		CHECK_EQ(kb_select(cases, 2, kb_now() + 20000ull * TEST_MS, &chosen), 0);
		if (chosen == 0) {
			CHECK((int)message <= test_get(&posted));
			test_put(&from_event, test_get(&posted));
		} else {
			CHECK_EQ(v, from_channel);
			from_channel++;
		}
	}
	return NULL;
}

static void *notify(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ROUNDS; i++) {
		test_put(&posted, i);
		kb_event_notify(&event, (uint64_t)i);
		if (i % 16 == 0 || i == ROUNDS)
			while (test_get(&from_event) < i)
				kb_yield();
	}
	return NULL;
}

static void *send(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(kb_chan_send(ch, &i), 0);
	return NULL;
}

static void body(void)
{
	struct worker w[3];

	ready = posted = from_event = from_channel = 0;
	CHECK_EQ(kb_chan_create(&ch, sizeof(int), 0), 0);
	worker_start(&w[0], own, NULL);
	test_reach(&ready, 1);
	worker_start(&w[1], notify, NULL);
	worker_start(&w[2], send, NULL);
	for (int i = 0; i < 3; i++)
		worker_join(&w[i]);
	kb_chan_destroy(ch);
}

int main(void)
{
	test_both(body);
	return 0;
}
