/* A constructor makes threads, waits for them and leaves one running. */
#include "crowd.h"

#include <pthread.h>
#include <unistd.h>

static pthread_t left;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int n, in_main;

static void *count(void *arg)
{
	pthread_mutex_lock(&m);
	n++;
	pthread_mutex_unlock(&m);
	return arg;
}

static void *wait_for_main(void *arg)
{
	pthread_mutex_lock(&m);
	while (!in_main)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return arg;
}

__attribute__((constructor)) static void begin(void)
{
	crowd_run(count, 10);
	CHECK_EQ(pthread_create(&left, NULL, wait_for_main, &c), 0);
}

int main(void)
{
	void *r;

	CHECK_EQ(n, 10);
	pthread_mutex_lock(&m);
	in_main = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	CHECK_EQ(pthread_join(left, &r), 0);
	CHECK(r == &c);
	return 0;
}
