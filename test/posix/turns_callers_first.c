/* core/turn: at a forced end of a turn a ready thread that is not known to compute is next, though
 * a thread that is known to compute was woken before it. Otherwise a thread that waits for events
 * has its turn after a round of threads that lock: a lock wakes these amid their work, and each
 * computes for a turn of its own. A round: the computing thread is known as computing (a tick has
 * ended its turn, or no second thread could have run), both threads wait, and a third thread wakes
 * both and spins. The third thread may lose its own turn between the two wake-ups, so only most
 * rounds count. On kernel threads the kernel decides; with a second virtual processor that is idle
 * (processes have two) the thread that was woken first runs there.
 * matrix: run-only vps=1 sched=rotator,rotator-paper,lb2,steal
 * body: thread */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "test.h"

enum { ROUNDS = 15 };

static sem_t computing_wakes, calling_wakes, both_wait, helps;
static atomic_int helped, first, ran;

/* Whichever of the two runs first. */
static void note(int me)
{
	int nobody = 0;

	atomic_compare_exchange_strong(&first, &nobody, me);
	atomic_fetch_add(&ran, 1);
}

static void *help(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(sem_wait(&helps), 0);
		atomic_store(&helped, i + 1);
	}
	return unused;
}

/* Only the tick lets the helper run. */
static void *compute(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(sem_post(&helps), 0);
		while (atomic_load(&helped) <= i)
			;
		CHECK_EQ(sem_post(&both_wait), 0);
		CHECK_EQ(sem_wait(&computing_wakes), 0);
		note(1);
	}
	return unused;
}

static void *call(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(sem_post(&both_wait), 0);
		CHECK_EQ(sem_wait(&calling_wakes), 0);
		note(2);
	}
	return unused;
}

int main(void)
{
	pthread_t t[3];
	int calling_first = 0;

	CHECK_EQ(sem_init(&computing_wakes, 0, 0), 0);
	CHECK_EQ(sem_init(&calling_wakes, 0, 0), 0);
	CHECK_EQ(sem_init(&both_wait, 0, 0), 0);
	CHECK_EQ(sem_init(&helps, 0, 0), 0);
	CHECK_EQ(pthread_create(&t[0], NULL, help, NULL), 0);
	CHECK_EQ(pthread_create(&t[1], NULL, compute, NULL), 0);
	CHECK_EQ(pthread_create(&t[2], NULL, call, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct timespec short_while = { 0, 1000000 };

		CHECK_EQ(sem_wait(&both_wait), 0);
		CHECK_EQ(sem_wait(&both_wait), 0);
		/* both have said that they are about to wait: they do when nobody else is ready */
		CHECK_EQ(nanosleep(&short_while, NULL), 0);
		atomic_store(&first, 0);
		atomic_store(&ran, 0);
		CHECK_EQ(sem_post(&computing_wakes), 0);
		CHECK_EQ(sem_post(&calling_wakes), 0);
		while (!atomic_load(&first))
			;
		calling_first += atomic_load(&first) == 2;
		while (atomic_load(&ran) < 2)
			;
	}
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	printf("in %d of %d rounds the calling thread runs first\n", calling_first, ROUNDS);
	CHECK(calling_first > ROUNDS / 2);
	return 0;
}
