/* Many notifiers, and an owner that is sometimes asleep, sometimes running, sometimes timing out:
 * after a notification the owner always comes and sees all that was done before it; each message
 * was sent, and none comes twice. */
#include <errno.h>

#include "threads.h"

enum { NOTIFIERS = 4, ROUNDS = 5000 };

static kb_event_t event;
static int ready, number, posted[NOTIFIERS], seen[NOTIFIERS];
static char told[NOTIFIERS][ROUNDS + 1]; /* owner only */

/* Posts 1 .. ROUNDS. Waits at times until the owner has seen the newest message: that fails if a
 * notification was lost. */
static void *notify(void *arg)
{
	int me = test_add(&number, 1) - 1;
	uint64_t rnd = test_stream();

	(void)arg;
	for (int i = 1; i <= ROUNDS; i++) {
		test_put(&posted[me], i);
		kb_event_notify(&event, (uint64_t)me << 32 | (uint32_t)i);
		if (test_rand(&rnd) % 8 == 0 || i == ROUNDS) {
			uint64_t end = test_now_ns() + 20000ull * TEST_MS;

			while (test_get(&seen[me]) < i) {
				CHECK(test_now_ns() < end);
				kb_yield();
			}
		}
	}
	return NULL;
}

static int done(void)
{
	for (int i = 0; i < NOTIFIERS; i++)
		if (seen[i] < ROUNDS)
			return 0;
	return 1;
}

static void take(uint64_t message)
{
	uint32_t from = (uint32_t)(message >> 32), i = (uint32_t)message;

	CHECK(from < NOTIFIERS);
	CHECK(i >= 1 && i <= (uint32_t)test_get(&posted[from]));
	CHECK_EQ(told[from][i]++, 0);
	for (int k = 0; k < NOTIFIERS; k++)
		test_put(&seen[k], test_get(&posted[k]));
}

static int wait_somehow(uint64_t r, uint64_t *message)
{
	switch (r % 4) {
	case 0:
		return kb_event_timedwait(&event, message, kb_now() + r / 8 % 20000);
	case 1:
		return kb_event_try(&event, message);
	case 2:
		kb_yield();
		return kb_event_wait(&event, message);
	default:
		return kb_event_wait(&event, message);
	}
}

static void *own(void *arg)
{
	uint64_t rnd = test_stream(), message;

	(void)arg;
	CHECK_EQ(kb_event_init(&event, NULL), 0);
	test_put(&ready, 1);
	while (!done())
		if (wait_somehow(test_rand(&rnd), &message) == 0)
			take(message);
	return NULL;
}

static void body(void)
{
	struct worker w;

	ready = number = 0;
	for (int i = 0; i < NOTIFIERS; i++) {
		seen[i] = posted[i] = 0;
		for (int k = 0; k <= ROUNDS; k++)
			told[i][k] = 0;
	}
	worker_start(&w, own, NULL);
	test_reach(&ready, 1);
	workers_run(NOTIFIERS, notify, NULL);
	worker_join(&w);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
