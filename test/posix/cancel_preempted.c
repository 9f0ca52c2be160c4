/* pthread_cancel of threads that compute and are asynchronous, beside threads that sleep for short
 * times. The end of the quantum has switched most of them away, and they end out of the tick's
 * handler. The next threads on their kernel threads get signals as before. */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 5, VICTIMS = 2, SLEEPERS = 3 };

static uint32_t computing, stop;

static void *computes(void *unused)
{
	(void)unused;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	__atomic_add_fetch(&computing, 1, __ATOMIC_RELAXED);
	for (;;)
		;
	return NULL;
}

/* Returns the signals that the caller's kernel thread blocks. */
static unsigned long long blocked(void)
{
	unsigned long long mask = 1;
	char line[256];
	FILE *f = fopen("/proc/thread-self/status", "r");

	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, "SigBlk:", 7) == 0)
			mask = strtoull(line + 7, NULL, 16);
	CHECK(f);
	fclose(f);
	return mask;
}

static void *sleeps(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		usleep(500);
	CHECK_EQ(blocked(), 0);
	return NULL;
}

int main(void)
{
	pthread_t t[SLEEPERS], victim[VICTIMS];

	for (int i = 0; i < ROUNDS; i++) {
		__atomic_store_n(&computing, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
		for (int k = 0; k < SLEEPERS; k++)
			CHECK_EQ(pthread_create(&t[k], NULL, sleeps, NULL), 0);
		for (int k = 0; k < VICTIMS; k++)
			CHECK_EQ(pthread_create(&victim[k], NULL, computes, NULL), 0);
		while (__atomic_load_n(&computing, __ATOMIC_RELAXED) < VICTIMS)
			usleep(1000);
		usleep(20000);
		for (int k = 0; k < VICTIMS; k++)
			CHECK_EQ(pthread_cancel(victim[k]), 0);
		for (int k = 0; k < VICTIMS; k++) {
			void *r;

			CHECK_EQ(pthread_join(victim[k], &r), 0);
			CHECK(r == PTHREAD_CANCELED);
			CHECK_EQ(blocked(), 0);
		}
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		for (int k = 0; k < SLEEPERS; k++)
			CHECK_EQ(pthread_join(t[k], NULL), 0);
	}
	return 0;
}
