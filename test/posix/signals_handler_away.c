/* posix/signal: while a thread sleeps in a handler, or is switched away there, more threads raise
 * this signal: each handles its own, before raise returns. The mask that the kernel has for the
 * handler is not theirs. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 6 };

static volatile int inside, over, spins;
static __thread volatile int raises, handled;

static void stays(int sig)
{
	(void)sig;
	CHECK(raises); /* it is nobody else's */
	handled++;
	__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
	while (!over)
		if (!spins)
			usleep(1000);
}

static void *raise_one(void *unused)
{
	raises = 1;
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	raises = 0;
	return unused;
}

static void round_of(int spinning)
{
	uint64_t end = test_now_ns() + 60 * 1000000000ull;
	pthread_t t[THREADS];

	inside = over = 0;
	spins = spinning;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, raise_one, NULL), 0);
	while (__atomic_load_n(&inside, __ATOMIC_RELAXED) < THREADS) {
		usleep(1000);
		CHECK(test_now_ns() < end);
	}
	over = 1;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

int main(void)
{
	CHECK(signal(SIGUSR1, stays) != SIG_ERR);
	round_of(0);
	round_of(1);
	return 0;
}
