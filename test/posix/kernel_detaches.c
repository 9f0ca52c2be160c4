/* posix/kernel_threads: kernel threads, which a child of fork makes, detach themselves and end while
 * pthread_create returns in their creator: it does not touch their memory, which is gone. They are
 * also joined, started or not, and by a deadline. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3000, JOINED = 200, STACK = 64 << 20 /* more than libc keeps */ };

static void *nothing(void *arg)
{
	return arg;
}

static void *detaches(void *arg)
{
	CHECK_EQ(pthread_detach(pthread_self()), 0);
	return arg;
}

/* Retries: there may be too many for a moment. */
static void make(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	int e;

	while ((e = pthread_create(id, attr, fn, arg)) == EAGAIN)
		usleep(1000);
	CHECK_EQ(e, 0);
}

static void join(pthread_t id, int i)
{
	struct timespec t;
	void *result;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 60;
	CHECK_EQ(i % 2 ? pthread_join(id, &result) : pthread_timedjoin_np(id, &result, &t), 0);
	CHECK(result == (void *)(long)i);
}

static void makes_threads(int n)
{
	pthread_attr_t attr;
	pthread_t id;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, STACK), 0);
	CHECK_EQ(pthread_attr_setscope(&attr, PTHREAD_SCOPE_SYSTEM), 0);
	for (int i = 0; i < n; i++)
		make(&id, &attr, detaches, NULL);
	for (int i = 0; i < JOINED; i++) {
		make(&id, &attr, nothing, (void *)(long)i);
		join(id, i);
	}
}

int main(void)
{
	int status;
	pthread_t id;
	pid_t child;

	CHECK_EQ(pthread_create(&id, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(id, NULL), 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		makes_threads(THREADS);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	makes_threads(THREADS / 10);
	return 0;
}
