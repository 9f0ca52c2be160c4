/* posix/posix kbi_posix_task: a thread is found by its pthread_t also while its child of vfork has
 * its place and waits for threads of the program: at a mutex, a semaphore, a condition or a
 * descriptor. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum way { MUTEX, SEMAPHORE, CONDITION, READ_LOCK, BARRIER, PIPE, SLEEP, WAYS };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int ends[2], opened;
static atomic_int in_child, let_go, asked;

static void nap(long ms)
{
	struct timespec t = { 0, ms * 1000000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* The child, in its parent's memory. */
static void waits(enum way w)
{
	char c;

	switch (w) {
	case MUTEX:
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		break;
	case SEMAPHORE:
		sem_wait(&sem);
		break;
	case CONDITION:
		pthread_mutex_lock(&mutex);
		while (!opened)
			pthread_cond_wait(&cond, &mutex);
		pthread_mutex_unlock(&mutex);
		break;
	case READ_LOCK:
		pthread_rwlock_rdlock(&lock);
		pthread_rwlock_unlock(&lock);
		break;
	case BARRIER:
		pthread_barrier_wait(&barrier);
		break;
	case PIPE:
		if (read(ends[0], &c, 1) != 1)
			_exit(1);
		break;
	default:
		while (!let_go)
			nap(5);
	}
	_exit(7);
}

static void *forks(void *arg)
{
	pid_t child = vfork();
	int status;

	if (child == 0) {
		in_child = 1;
		waits(*(enum way *)arg);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(WEXITSTATUS(status), 7);
	return arg;
}

static void holds(enum way w)
{
	opened = 0;
	in_child = let_go = asked = 0;
	if (w == MUTEX)
		pthread_mutex_lock(&mutex);
	if (w == READ_LOCK)
		pthread_rwlock_wrlock(&lock);
}

/* When the main thread has joined, or is at it. */
static void lets_go(enum way w)
{
	switch (w) {
	case MUTEX:
		pthread_mutex_unlock(&mutex);
		break;
	case SEMAPHORE:
		sem_post(&sem);
		break;
	case CONDITION:
		pthread_mutex_lock(&mutex);
		opened = 1;
		pthread_mutex_unlock(&mutex);
		pthread_cond_signal(&cond);
		break;
	case READ_LOCK:
		pthread_rwlock_unlock(&lock);
		break;
	case BARRIER:
		pthread_barrier_wait(&barrier);
		break;
	case PIPE:
		CHECK_EQ(write(ends[1], "x", 1), 1);
		break;
	default:
		let_go = 1;
	}
}

static void *holds_a_while(void *arg)
{
	enum way w = *(enum way *)arg;

	holds(w);
	let_go = -1;
	while (!asked)
		nap(1);
	nap(40);
	lets_go(w);
	return NULL;
}

static void one(enum way w)
{
	pthread_t caller, holder;
	void *result;

	let_go = 0;
	CHECK_EQ(pthread_create(&holder, NULL, holds_a_while, &w), 0);
	while (!let_go)
		nap(1);
	let_go = 0;
	CHECK_EQ(pthread_create(&caller, NULL, forks, &w), 0);
	while (!in_child)
		nap(1);
	nap(20);
	CHECK_EQ(pthread_kill(caller, 0), 0);
	CHECK_EQ(pthread_tryjoin_np(caller, &result), EBUSY);
	asked = 1;
	CHECK_EQ(pthread_join(caller, &result), 0);
	CHECK(result == &w);
	CHECK_EQ(pthread_join(holder, NULL), 0);
}

int main(void)
{
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
	CHECK_EQ(sem_init(&sem, 0, 0), 0);
	CHECK_EQ(pipe(ends), 0);
	for (int i = 0; i < 3; i++)
		for (int w = 0; w < WAYS; w++)
			one((enum way)w);
	return 0;
}
