/* Many senders and receivers: each element arrives once, and each receiver gets the elements of a
 * sender in order; deadlines of some microseconds race with the hand-over, and an element whose
 * send timed out does not arrive. */
#include <errno.h>
#include <string.h>

#include "threads.h"

enum { SENDERS = 4, RECEIVERS = 4, EACH = 2500 };

struct element {
	int sender, number;
	char ballast[40];
};

static kb_chan_t *ch;
static int numbers, sending;
static char arrived[SENDERS][EACH];

static void *send(void *arg)
{
	uint64_t rnd = test_stream();
	struct element e = { .sender = test_add(&numbers, 1) - 1 };

	(void)arg;
	memset(e.ballast, e.sender, sizeof e.ballast);
	while (e.number < EACH) {
		uint64_t r = test_rand(&rnd);
		int rc = r % 3 == 0 ? kb_chan_timedsend(ch, &e, kb_now() + r / 8 % 10000)
				    : r % 3 == 1 ? kb_chan_trysend(ch, &e) : kb_chan_send(ch, &e);

		if (rc == 0)
			e.number++;
		else
			CHECK(rc == ETIMEDOUT || rc == EAGAIN);
	}
	if (test_add(&sending, -1) == 0)
		CHECK_EQ(kb_chan_close(ch), 0);
	return NULL;
}

static void *receive(void *arg)
{
	uint64_t rnd = test_stream();
	int last[SENDERS], rc;
	struct element e;

	(void)arg;
	memset(last, -1, sizeof last);
	do {
		uint64_t r = test_rand(&rnd);

		memset(&e, 0x77, sizeof e);
		rc = r % 3 == 0 ? kb_chan_timedrecv(ch, &e, kb_now() + r / 8 % 10000)
				: r % 3 == 1 ? kb_chan_tryrecv(ch, &e) : kb_chan_recv(ch, &e);
		if (rc)
			continue;
		CHECK(e.sender >= 0 && e.sender < SENDERS && e.number < EACH);
		CHECK_EQ(e.ballast[39], e.sender);
		CHECK(e.number > last[e.sender]);
		last[e.sender] = e.number;
		CHECK_EQ(__atomic_add_fetch(&arrived[e.sender][e.number], 1, __ATOMIC_RELAXED), 1);
	} while (rc != EPIPE);
	return NULL;
}

static void run(size_t capacity)
{
	struct worker s[SENDERS], r[RECEIVERS];

	CHECK_EQ(kb_chan_create(&ch, sizeof(struct element), capacity), 0);
	memset(arrived, 0, sizeof arrived);
	numbers = 0;
	sending = SENDERS;
	for (int i = 0; i < SENDERS; i++)
		worker_start(&s[i], send, NULL);
	for (int i = 0; i < RECEIVERS; i++)
		worker_start(&r[i], receive, NULL);
	for (int i = 0; i < SENDERS; i++)
		worker_join(&s[i]);
	for (int i = 0; i < RECEIVERS; i++)
		worker_join(&r[i]);
	for (int i = 0; i < SENDERS * EACH; i++)
		CHECK_EQ(arrived[i / EACH][i % EACH], 1);
	kb_chan_destroy(ch);
}

static void body(void)
{
	run(0);
	run(1);
	run(7);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
