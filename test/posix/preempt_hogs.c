/* core/quantum: threads that compute without a call share the processors: none starves, a thread that naps comes back
 * soon, who spins for what another one is to do gets it. With more threads than virtual processors. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "test.h"

enum { HOGS = 12, SPINNERS = 6, RUN_NS = 500000000 };

static volatile int over;
static volatile uint64_t count[HOGS];

static void *hog(void *arg)
{
	volatile uint64_t *c = arg;

	while (!over)
		++*c;
	return NULL;
}

static void *naps(void *unused)
{
	static uint64_t naps_taken;

	(void)unused;
	while (!over) {
		usleep(1000);
		naps_taken++;
	}
	return (void *)(uintptr_t)naps_taken;
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
	uint64_t sum = 0, end = test_now_ns() + RUN_NS;
	void *n;

	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, hog, (void *)&count[i]), 0);
	CHECK_EQ(pthread_create(&napping, NULL, naps, NULL), 0);
	while (test_now_ns() < end)
		; /* a hog, too */
	over = 1;
	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_join(napping, &n), 0);
	CHECK((uintptr_t)n >= 4);
	for (int i = 0; i < HOGS; i++)
		sum += count[i];
	for (int i = 0; i < HOGS; i++) /* the machine has others to run as well: the bench measures fairness */
		CHECK(count[i] > sum / HOGS / 10);
	for (intptr_t i = 0; i < SPINNERS; i++)
		CHECK_EQ(pthread_create(&s[i], NULL, spins, (void *)i), 0);
	for (int i = 0; i < SPINNERS; i++)
		CHECK_EQ(pthread_join(s[i], NULL), 0);
	return 0;
}
