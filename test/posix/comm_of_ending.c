/* posix/naming: threads write into the files `comm` of threads that end meanwhile. Each thread has
 * the name that was written for its number, or none, although another thread has its memory
 * afterwards. Where VPs are processes each sees its own name. */
#define _GNU_SOURCE
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WRITERS = 2, AT_ONCE = 8, ROUNDS = 40 };

static int number[AT_ONCE], over, written, named;

/* Returns true if the caller has its own name. */
static int is_named(void)
{
	char name[16] = "", own[16];

	snprintf(own, sizeof own, "t%d", gettid());
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	if (strcmp(name, own) != 0 && strcmp(name, "nobody") != 0)
		fprintf(stderr, "%s has the name \"%s\"\n", own, name);
	CHECK(strcmp(name, own) == 0 || strcmp(name, "nobody") == 0);
	return strcmp(name, own) == 0;
}

static void *lives(void *arg)
{
	int me = (int)(long)arg, turns = 1 + me * 5;

	__atomic_store_n(&number[me], gettid(), __ATOMIC_RELEASE);
	for (int i = 0; i < turns; i++) {
		is_named();
		if (i % 3 == 0)
			usleep(50);
		sched_yield();
	}
	if (is_named())
		__atomic_add_fetch(&named, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* The number may be unused by now: then there is no file, or no thread to be named. */
static void *writes(void *arg)
{
	unsigned i = (unsigned)(long)arg;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		int n = __atomic_load_n(&number[i++ % AT_ONCE], __ATOMIC_ACQUIRE), fd;
		char path[64], name[16];

		snprintf(path, sizeof path, "/proc/self/task/%d/comm", n);
		snprintf(name, sizeof name, "t%d", n);
		fd = n ? open(path, O_WRONLY) : -1;
		if (fd >= 0) {
			if (write(fd, name, strlen(name)) > 0)
				__atomic_add_fetch(&written, 1, __ATOMIC_RELAXED);
			close(fd);
		}
		usleep(1000);
	}
	return NULL;
}

int main(void)
{
	pthread_t writer[WRITERS], id[AT_ONCE];

	CHECK_EQ(prctl(PR_SET_NAME, "nobody"), 0);
	for (long i = 0; i < WRITERS; i++)
		CHECK_EQ(pthread_create(&writer[i], NULL, writes, (void *)i), 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (long i = 0; i < AT_ONCE; i++)
			CHECK_EQ(pthread_create(&id[i], NULL, lives, (void *)i), 0);
		for (int i = 0; i < AT_ONCE; i++)
			CHECK_EQ(pthread_join(id[i], NULL), 0);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < WRITERS; i++)
		CHECK_EQ(pthread_join(writer[i], NULL), 0);
	CHECK(written > 0 && named > 0);
	return 0;
}
