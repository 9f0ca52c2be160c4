/* core/quantum: threads that compute without a call share the virtual processors. No thread
 * starves, a thread that naps comes back soon, and a thread that spins for the work of a second
 * thread sees it done. There are more threads than virtual processors. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "test.h"

enum { HOGS = 12, SPINNERS = 6, NAPS = 4, LONG = 30 };

static volatile int over;
static volatile uint64_t count[HOGS];

static void *hog(void *arg)
{
	volatile uint64_t *c = arg;

	while (!over)
		++*c;
	return NULL;
}

static volatile uint64_t naps_taken;

static void *naps(void *unused)
{
	(void)unused;
	while (!over) {
		usleep(1000);
		naps_taken++;
	}
	return NULL;
}

/* Every thread has had a turn. The bench measures how fair the turns are: this machine may have
 * more programs to run. */
static int all_have_run(void)
{
	for (int i = 0; i < HOGS; i++)
		if (!count[i])
			return 0;
	return naps_taken >= NAPS;
}

/* Each waits for its turn by looking. */
static volatile int turn;

static void *spins(void *arg)
{
	for (int round = 0; round < 4; round++) {
		while (turn != round * SPINNERS + (int)(intptr_t)arg)
			;
		turn++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[HOGS], napping, s[SPINNERS];
	uint64_t end = test_now_ns() + LONG * 1000000000ull;

	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, hog, (void *)&count[i]), 0);
	CHECK_EQ(pthread_create(&napping, NULL, naps, NULL), 0);
	while (!all_have_run())
		CHECK(test_now_ns() < end); /* a hog, too */
	over = 1;
	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_join(napping, NULL), 0);
	for (intptr_t i = 0; i < SPINNERS; i++)
		CHECK_EQ(pthread_create(&s[i], NULL, spins, (void *)i), 0);
	for (int i = 0; i < SPINNERS; i++)
		CHECK_EQ(pthread_join(s[i], NULL), 0);
	return 0;
}
