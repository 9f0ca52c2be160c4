/* posix/signal_sent: many threads, which run for moments and sleep, are sent one signal in turn, as
 * by a garbage collector that stops the world. Each thread gets its own signal, also where several
 * signals come to one virtual processor at once. */
enum { EACH = 24, ROUNDS = 300, SECONDS = 20 };
#include "each.h"

static void *lives(void *arg)
{
	takes_place(arg);
	while (!is_over()) {
		if (place % 3 == 0)
			sched_yield();
		usleep(20 + 10 * (unsigned)place);
	}
	return arg;
}

static void await(int i, int round)
{
	for (int t = 0; t < SECONDS * 10000 && has_come(i) < round; t++)
		usleep(100);
	CHECK_EQ(has_come(i), round);
}

int main(void)
{
	each_begins(EACH, lives, NULL);
	for (int round = 1; round <= ROUNDS; round++)
		each_is_sent(EACH, round, await);
	each_ends();
	return 0;
}
