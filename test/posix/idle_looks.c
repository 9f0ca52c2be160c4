/* A program that wakes up a few times a second is left alone in between: no part of the library
 * polls meanwhile.
 * body: thread (the switches of other processes are not counted) */
#include "looks.h"

#include <pthread.h>
#include <time.h>

enum { WAKES = 10, LOOKS = 25 }; /* for each wake; polling that never ends makes 40 */

static void *wake_up(void *unused)
{
	struct timespec pause = { 0, 200000000 };

	for (int i = 0; i < WAKES; i++)
		nanosleep(&pause, NULL);
	return unused;
}

static long looks_of_a_run(void)
{
	pthread_t t;
	long before = looks();

	CHECK_EQ(pthread_create(&t, NULL, wake_up, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return looks() - before;
}

int main(void)
{
	long n;

	looks_of_a_run();
	n = looks_of_a_run();
	printf("%ld\n", n);
	CHECK(n <= (long)WAKES * LOOKS);
	return 0;
}
