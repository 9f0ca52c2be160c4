/* Kernel threads with real-time priorities wait for one object: the thread with the highest
 * priority is next, in whatever order they came. Tested are mutexes, condition variables,
 * semaphores and readers-writer locks. A thread whose priority changes waits with its new priority. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 4 };
static const int come[THREADS] = { 5, 20, 10, 20 }; /* in this order, */
static const int go[THREADS] = { 1, 3, 2, 0 };      /* and these go on: of equals the first, */
static const int tie[THREADS] = { 3, 1, 2, 0 };     /* where all wake up at once the second, too: each has a processor */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static int signalled, order[THREADS], gone, tid[THREADS];

static void note(int i)
{
	int at = __atomic_load_n(&gone, __ATOMIC_RELAXED);

	order[at] = i;
	__atomic_store_n(&gone, at + 1, __ATOMIC_RELEASE);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* It sleeps in the kernel: so it waits. */
static int sleeps(int t)
{
	char path[64], state = 0;
	FILE *f;

	if (!t)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", t);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%*d %*s %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'S';
}

static void await_sleep(int i)
{
	while (!sleeps(__atomic_load_n(&tid[i], __ATOMIC_ACQUIRE)))
		nap();
}

/* What is waited for, how it is begun by main, and how main lets the first, or all of them, go on. */
struct object {
	const char *name;
	void (*wait)(int i);
	void (*begin)(void);
	void (*release)(void);
	int releases;
	const int *other; /* order that is right, too */
};

static void mutex_wait(int i)
{
	pthread_mutex_lock(&mutex);
	note(i);
	pthread_mutex_unlock(&mutex);
}

static void mutex_begin(void) { pthread_mutex_lock(&mutex); }
static void mutex_release(void) { pthread_mutex_unlock(&mutex); }

static void cond_wait(int i)
{
	pthread_mutex_lock(&mutex);
	while (!signalled)
		pthread_cond_wait(&cond, &mutex);
	signalled--;
	note(i);
	pthread_mutex_unlock(&mutex);
}

static void cond_release(void)
{
	pthread_mutex_lock(&mutex);
	signalled++;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
}

static void cond_release_all(void)
{
	pthread_mutex_lock(&mutex);
	signalled = THREADS;
	pthread_cond_broadcast(&cond);
	for (int i = 0; i < THREADS; i++)
		await_sleep(i); /* for the mutex now */
	pthread_mutex_unlock(&mutex);
}

static void sem_wait_one(int i)
{
	sem_wait(&sem);
	note(i);
}

static void sem_release(void) { sem_post(&sem); }

static void rwlock_wait(int i)
{
	pthread_rwlock_wrlock(&rwlock);
	note(i);
	pthread_rwlock_unlock(&rwlock);
}

static void rwlock_begin(void) { pthread_rwlock_wrlock(&rwlock); }
static void rwlock_release(void) { pthread_rwlock_unlock(&rwlock); }
static void nothing(void) {}

static const struct object objects[] = {
	{ "mutex", mutex_wait, mutex_begin, mutex_release, 1, go },
	{ "signals", cond_wait, nothing, cond_release, THREADS, go },
	{ "broadcast", cond_wait, nothing, cond_release_all, 1, tie },
	{ "semaphore", sem_wait_one, nothing, sem_release, THREADS, go },
	{ "rwlock", rwlock_wait, rwlock_begin, rwlock_release, 1, go },
};
static const struct object *object;

static void *body(void *arg)
{
	int i = (int)(long)arg;

	__atomic_store_n(&tid[i], gettid(), __ATOMIC_RELEASE);
	object->wait(i);
	return NULL;
}

static pthread_t start(int i)
{
	struct sched_param p = { .sched_priority = come[i] };
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&a, SCHED_FIFO);
	CHECK_EQ(pthread_attr_setschedparam(&a, &p), 0);
	tid[i] = 0;
	CHECK_EQ(pthread_create(&t, &a, body, (void *)(long)i), 0);
	pthread_attr_destroy(&a);
	await_sleep(i);
	return t;
}

static void wrong(const char *name)
{
	fprintf(stderr, "%s:", name);
	for (int i = 0; i < THREADS; i++)
		fprintf(stderr, " %d", order[i]);
	fprintf(stderr, "\n");
	test_fail(__FILE__, __LINE__, "they go on in the order of their priorities");
}

static void try(const struct object *o)
{
	pthread_t t[THREADS];

	object = o;
	gone = signalled = 0;
	o->begin();
	for (int i = 0; i < THREADS; i++)
		t[i] = start(i);
	for (int n = 1; n <= o->releases; n++) {
		o->release();
		while (__atomic_load_n(&gone, __ATOMIC_ACQUIRE) < (o->releases == 1 ? THREADS : n))
			nap();
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	if (memcmp(order, go, sizeof(go)) && memcmp(order, o->other, sizeof(go)))
		wrong(o->name);
}

static void *empty(void *arg) { return arg; }

int main(void)
{
	struct sched_param p = { .sched_priority = 1 }, old;
	pthread_t t;

	sched_getparam(0, &old);
	if (sched_setscheduler(0, SCHED_FIFO, &p)) {
		puts("this user may not use real-time policies");
		return 77;
	}
	sched_setscheduler(0, SCHED_OTHER, &old);
	CHECK_EQ(pthread_create(&t, NULL, empty, NULL), 0); /* so that main is a lightweight thread */
	CHECK_EQ(pthread_join(t, NULL), 0);
	sem_init(&sem, 0, 0);
	for (unsigned i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		try(&objects[i]);
	return 0;
}
