/* A program that locks all its memory, present and future, before it makes threads: only the memory
 * that threads need is locked, and not the memory reserved for as many threads as there may ever
 * be. */
#define _GNU_SOURCE
#include "crowd.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 4, MOST_KB = 200000 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static void *adds(void *arg)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&m);
		sum++;
		pthread_mutex_unlock(&m);
		sched_yield();
	}
	return arg;
}

/* Returns kB from /proc/self/status; -1: it does not say. */
static long in_status(const char *what)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, what, strlen(what)) == 0)
			kb = strtol(line + strlen(what), NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

int main(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		SKIP("no memory may be locked here");
	crowd_run(adds, THREADS);
	CHECK_EQ(sum, THREADS * 100);
	CHECK(in_status("VmLck:") < MOST_KB);
	CHECK(in_status("VmRSS:") < MOST_KB);
	return 0;
}
