/* A thread that waits for a mutex that stays libc's, here a process-shared mutex, gets it when the
 * process's own thread unlocks it, not when a pause between two attempts happens to end: on a
 * single virtual processor, after a few turns of the unlocking thread. On several, and on kernel
 * threads, the number of turns depends on the kernel: the test only checks that the thread gets
 * it. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

/* After NAP_US the pauses have grown to their full length, 2 ms. */
enum { ROUNDS = 30, NAP_US = 20000, TURNS_MAX = 200 };

static pthread_mutex_t m;
static volatile int got;

static void *get(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	got = 1;
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return arg;
}

/* Returns how many turns of the caller the waiter needs. */
static long one_round(void)
{
	pthread_t t;
	long turns;

	got = 0;
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_create(&t, NULL, get, NULL), 0);
	usleep(NAP_US);
	CHECK_EQ(got, 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	for (turns = 0; !got; turns++)
		sched_yield();
	CHECK_EQ(pthread_join(t, NULL), 0);
	return turns;
}

int main(void)
{
	const char *vps = getenv("KOCHAB_VPS");
	pthread_mutexattr_t a;
	long worst = 0;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
	for (int i = 0; i < ROUNDS; i++) {
		long turns = one_round();

		worst = turns > worst ? turns : worst;
	}
	if (vps && strcmp(vps, "1") == 0)
		CHECK(worst <= TURNS_MAX);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
	return 0;
}
