/* Two threads that take many short turns: their CPU times together are no more than the process's,
 * and are not 0. */
#define _GNU_SOURCE
#include "cpu_time.h"

#include <semaphore.h>

enum { TURNS = 100000 };

static sem_t turn[2];
static int64_t used[2];

static void compute(void)
{
	for (volatile int k = 0; k < 500; k++)
		;
}

/* Returns the time of a tenth of both threads' turns, without waiting. */
static int64_t a_tenth(void)
{
	int64_t before = cpu_own();

	for (int n = 0; n < 2 * TURNS / 10; n++)
		compute();
	return cpu_own() - before;
}

static void *plays(void *arg)
{
	long i = (long)arg;
	int64_t before = cpu_own();

	for (int n = 0; n < TURNS; n++) {
		sem_wait(&turn[i]);
		compute();
		sem_post(&turn[1 - i]);
	}
	used[i] = cpu_own() - before;
	return NULL;
}

int main(void)
{
	const char *body = getenv("KOCHAB_BODY");
	int64_t tenth = a_tenth(), before = cpu_of(CLOCK_PROCESS_CPUTIME_ID), all, sum;
	uint64_t since = test_now_ns();
	pthread_t t[2];

	sem_init(&turn[0], 0, 1);
	sem_init(&turn[1], 0, 0);
	for (long i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, plays, (void *)i), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	/* where VPs are processes this clock measures only one of them */
	all = body && body[0] == 'p' ? cpu_had(since) : cpu_of(CLOCK_PROCESS_CPUTIME_ID) - before;
	sum = used[0] + used[1];
	CHECK(sum <= all + all / 5 + 5 * MS);
	CHECK(sum >= 3 * tenth);
	CHECK(used[0] < 3 * used[1] + 10 * MS && used[1] < 3 * used[0] + 10 * MS);
	return 0;
}
