/* test/posix/turns.h - two threads that take turns: thread 0 does step 0 of a script, thread 1 step
 * 1, thread 0 step 2 ... For tests of functions that are not thread-safe: the same order of calls
 * at each run. */
#ifndef TEST_TURNS_H
#define TEST_TURNS_H

#include "libc_age.h"
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

static sem_t turn[2];
static void (*script)(int who, int step);

enum { STEPS = 6 };

static void *play(void *arg)
{
	int who = (int)(long)arg;

	for (int step = who; step < STEPS; step += 2) {
		CHECK_EQ(sem_wait(&turn[who]), 0);
		script(who, step);
		CHECK_EQ(sem_post(&turn[!who]), 0);
	}
	return NULL;
}

static void play_both(void (*s)(int, int))
{
	pthread_t t[2];

	script = s;
	CHECK_EQ(sem_init(&turn[0], 0, 1), 0);
	CHECK_EQ(sem_init(&turn[1], 0, 0), 0);
	for (long i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, play, (void *)i), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

#endif
