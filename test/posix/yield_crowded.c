/* posix/yield_crowded: there are more virtual processors than processors. A thread that waits by
 * sched_yield for a thread whose virtual processor has no processor gives it the processor. The
 * test counts calls and not time: without yield_crowded each waiting thread yields for a whole turn
 * of the kernel, some 100,000 times.
 * matrix: run-only vps=4 sched=rotator,lb2,steal */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "test.h"

enum { THREADS = 7, ROUNDS = 100, LIMIT = 4000 };

static atomic_int turn;
static atomic_long yields;

static void *waits(void *arg)
{
	long mine = 0;

	for (int i = 0; i < ROUNDS; i++) {
		while (atomic_load(&turn) != (int)(intptr_t)arg) {
			sched_yield();
			mine++;
		}
		atomic_store(&turn, ((int)(intptr_t)arg + 1) % THREADS);
	}
	atomic_fetch_add(&yields, mine);
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0); /* before there are virtual processors: theirs */
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waits, (void *)(intptr_t)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	printf("%ld calls for each step\n", atomic_load(&yields) / (THREADS * ROUNDS));
	CHECK(atomic_load(&yields) / (THREADS * ROUNDS) < LIMIT);
}
