/* core/timer: a wake-up that comes with the deadline: exactly one of the two wins, and no wake-up
 * is lost. */
#include <errno.h>
#include <kochab/kochab.h>

#include "test.h"

enum { PAIRS = 8, ROUNDS = 1500 };

struct pair {
	kb_event_t there, back;
	uint64_t rand;
	uint64_t timeouts;
	kb_sem_t ready;
};

static void *notifies(void *arg)
{
	struct pair *p = arg;

	CHECK_EQ(kb_event_init(&p->back, NULL), 0);
	kb_sem_post(&p->ready);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		uint64_t v;

		kb_event_notify(&p->there, i);
		CHECK_EQ(kb_event_wait(&p->back, &v), 0);
		CHECK_EQ(v, i);
		for (volatile unsigned k = i % 512; k > 0; k--)
			;
	}
	return NULL;
}

static void *waits(void *arg)
{
	struct pair *p = arg;
	kb_thread_t t;

	CHECK_EQ(kb_event_init(&p->there, NULL), 0);
	CHECK_EQ(kb_thread_create(&t, NULL, notifies, p), 0);
	kb_sem_wait(&p->ready);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		uint64_t v;
		int e;

		while ((e = kb_event_timedwait(&p->there, &v, kb_now() + test_rand(&p->rand) % 3000)) ==
		    ETIMEDOUT)
			p->timeouts++;
		CHECK_EQ(e, 0);
		CHECK_EQ(v, i);
		kb_event_notify(&p->back, i);
	}
	CHECK_EQ(kb_event_try(&p->there, NULL), EAGAIN);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	return NULL;
}

int main(void)
{
	static struct pair p[PAIRS];
	kb_thread_t t[PAIRS];
	uint64_t timeouts = 0;

	for (unsigned i = 0; i < PAIRS; i++) {
		p[i].rand = test_seed() + i * 999 + 1;
		CHECK_EQ(kb_thread_create(&t[i], NULL, waits, &p[i]), 0);
	}
	for (unsigned i = 0; i < PAIRS; i++) {
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
		timeouts += p[i].timeouts;
	}
	/* every message came through exactly once, as it must; it was a race only if deadlines came
	 * too */
	if (timeouts == 0)
		SKIP("no deadline came before its message on this machine");
	return 0;
}
