/* posix/signal_sent: threads that run for moments are sent a signal, while different threads on the
 * same kernel threads send themselves this signal all the time. Each thread gets its own signals. */
enum { LIVING = 2, RAISERS = 2, EACH = LIVING + RAISERS, ROUNDS = 20000, SECONDS = 20, ENOUGH = 10 /* seconds */ };
#include "each.h"

#include <time.h>

static void *lives(void *arg)
{
	takes_place(arg);
	while (!is_over())
		sched_yield();
	return arg;
}

/* Its handler has run when raise returns. */
static void *raises(void *arg)
{
	takes_place(arg);
	for (int n = 1; !is_over(); n++) {
		CHECK_EQ(raise(SIGUSR1), 0);
		CHECK_EQ(has_come(place), n);
		sched_yield();
	}
	return arg;
}

static void await(int i, int round)
{
	time_t end = time(NULL) + SECONDS;

	while (has_come(i) < round && time(NULL) < end)
		sched_yield();
	CHECK_EQ(has_come(i), round);
}

int main(void)
{
	time_t end = time(NULL) + ENOUGH;

	each_begins(LIVING, lives, raises);
	for (int round = 1; round <= ROUNDS && time(NULL) < end; round++)
		each_is_sent(LIVING, round, await);
	each_ends();
	return 0;
}
