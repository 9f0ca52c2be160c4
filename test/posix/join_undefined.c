/* matrix: run-only
 * Cases that libc leaves undefined, or hangs on in some versions: a second join of a thread returns
 * ESRCH, a second joiner gets EINVAL, an unknown clock EINVAL. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

static void *body(void *arg)
{
	return arg;
}

static sem_t go;

static void *wait_for_go(void *arg)
{
	sem_wait(&go);
	return arg;
}

static void *join_it(void *arg)
{
	CHECK_EQ(pthread_join(*(pthread_t *)arg, NULL), 0);
	return NULL;
}

static void two_joiners(void)
{
	struct timespec t = { 0, 0 }, bad = { 0, -1 };
	pthread_t waited, joiner;

	sem_init(&go, 0, 0);
	CHECK_EQ(pthread_create(&waited, NULL, wait_for_go, NULL), 0);
	CHECK_EQ(pthread_clockjoin_np(waited, NULL, 99, &t), EINVAL);
	CHECK_EQ(pthread_timedjoin_np(waited, NULL, &bad), EINVAL);
	CHECK_EQ(pthread_create(&joiner, NULL, join_it, &waited), 0);
	usleep(20000);
	CHECK_EQ(pthread_join(waited, NULL), EINVAL);
	sem_post(&go);
	CHECK_EQ(pthread_join(joiner, NULL), 0);
}

int main(void)
{
	pthread_t t, u;

	two_joiners();

	CHECK_EQ(pthread_create(&t, NULL, body, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), ESRCH);
	CHECK_EQ(pthread_detach(t), ESRCH);
	CHECK_EQ(pthread_kill(t, 0), ESRCH);
	CHECK_EQ(pthread_create(&t, NULL, body, NULL), 0);
	CHECK_EQ(pthread_create(&u, NULL, body, NULL), 0);
	CHECK_EQ(pthread_join(u, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_join(u, NULL), ESRCH);
	return 0;
}
