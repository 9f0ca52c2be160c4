/* The first question about a CPU clock comes after threads have run for long. The asking thread's
 * clock contains nothing of the other threads' time, and from then on each thread's clock measures
 * its own work. */
#define _GNU_SOURCE
#include "cpu_time.h"

enum { N = 4 };

static pthread_barrier_t begun, asked;
static int64_t used[N];

static void *works(void *arg)
{
	long i = (long)arg;
	uint64_t until = test_now_ns() + 100 * MS;

	while (test_now_ns() < until)
		cpu_compute();
	/* a thread that has had many turns may be switched to in another way */
	for (int k = 0; k < 3000; k++)
		sched_yield();
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&asked);
	used[i] = -cpu_own();
	if (i == 0)
		cpu_use(60 * MS);
	used[i] += cpu_own();
	return NULL;
}

static void *asks(void *arg)
{
	CHECK(cpu_own() < 50 * MS);
	return arg;
}

int main(void)
{
	pthread_t t[N], first;

	pthread_barrier_init(&begun, NULL, N + 1);
	pthread_barrier_init(&asked, NULL, N + 1);
	for (long i = 0; i < N; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, works, (void *)i), 0);
	pthread_barrier_wait(&begun);
	CHECK_EQ(pthread_create(&first, NULL, asks, NULL), 0);
	CHECK_EQ(pthread_join(first, NULL), 0);
	pthread_barrier_wait(&asked);
	for (int i = 0; i < N; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK(used[0] >= 60 * MS);
	for (int i = 1; i < N; i++)
		CHECK(used[i] < 20 * MS);
	return 0;
}
