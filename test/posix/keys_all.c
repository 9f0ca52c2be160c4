/* A program that has taken every key before its first thread: threads can still be made,
 * lightweight threads and kernel threads; each has values of its own in all keys, and destructors
 * run; a child whose main leaves by pthread_exit ends well. */
#define _GNU_SOURCE
#include "test.h"

#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = PTHREAD_KEYS_MAX, THREADS = 4 };

static pthread_key_t keys[MOST];
static int n_keys, destroyed;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void destroy(void *value)
{
	(void)value;
	pthread_mutex_lock(&m);
	destroyed++;
	pthread_mutex_unlock(&m);
}

static void *uses(void *arg)
{
	for (int i = 0; i < n_keys; i++) {
		CHECK(!pthread_getspecific(keys[i]));
		CHECK_EQ(pthread_setspecific(keys[i], (char *)arg + i + 1), 0);
	}
	sched_yield();
	for (int i = 0; i < n_keys; i++)
		CHECK(pthread_getspecific(keys[i]) == (char *)arg + i + 1);
	return NULL;
}

static void round_of(const pthread_attr_t *attr)
{
	pthread_t t[THREADS];
	static char place[THREADS][MOST + 1];

	destroyed = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], attr, uses, place[i]), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(destroyed, THREADS * (n_keys / 2));
}

static void *last(void *arg)
{
	usleep(10000);
	return arg;
}

int main(void)
{
	pthread_attr_t kernel;
	pthread_t t;
	int status;
	pid_t child;

	while (n_keys < MOST && pthread_key_create(&keys[n_keys], n_keys % 2 ? destroy : NULL) == 0)
		n_keys++;
	CHECK(n_keys > 1000);
	n_keys &= ~1;
	child = fork();
	if (child == 0) {
		CHECK_EQ(pthread_setspecific(keys[1], &child), 0);
		CHECK_EQ(pthread_create(&t, NULL, last, NULL), 0);
		pthread_exit(NULL);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	pthread_attr_init(&kernel);
	pthread_attr_setscope(&kernel, PTHREAD_SCOPE_SYSTEM);
	for (int i = 0; i < 3; i++) {
		round_of(NULL);
		round_of(&kernel);
	}
	CHECK_EQ(pthread_key_delete(keys[0]), 0);
	CHECK_EQ(pthread_key_create(&keys[0], NULL), 0);
	round_of(NULL);
	return 0;
}
