/* posix/yield_alone: a process that waits by sched_yield for a second process on its processor
 * gives that process the processor, although no thread of its own is ready, and whether or not it
 * has further threads. The test counts calls and not time: without yield_alone each turn takes as
 * many calls as a turn of the kernel lasts, some 10,000.
 * matrix: vps=1,2 sched=rotator,lb2,steal */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 200, LIMIT = 1000 };

static atomic_int *turn;
static sem_t over;

/* Calls a round. */
static long play(int mine)
{
	long yields = 0;

	for (int i = 0; i < ROUNDS; i++) {
		while (atomic_load(turn) != mine) {
			sched_yield();
			yields++;
		}
		atomic_store(turn, !mine);
	}
	return yields / ROUNDS;
}

static void *waits(void *arg)
{
	sem_wait(&over);
	return arg;
}

static void two_processes(void)
{
	pid_t child;
	int status;

	atomic_store(turn, 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(play(1) > LIMIT);
	CHECK(play(0) <= LIMIT);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(void)
{
	pthread_t t;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
	turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(turn != MAP_FAILED);
	two_processes();
	CHECK_EQ(sem_init(&over, 0, 0), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	two_processes();
	CHECK_EQ(sem_post(&over), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
