/* Requests for notification: timers and message queues by SIGEV_SIGNAL, SIGEV_THREAD,
 * SIGEV_THREAD_ID and SIGEV_NONE, while threads wait and compute. Functions run on threads that use
 * the program's objects; signals reach the intended thread. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { TICKS = 5, VALUES = 16 };

static sem_t told;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int calls[VALUES], told_of[VALUES]; /* by value: of the one before a late one may still come */
static pthread_t signalled;
static __thread int own = 3;

static void function(union sigval v)
{
	CHECK_EQ(own, 3); /* a thread of its own */
	own = 4;
	errno = 0;
	pthread_mutex_lock(&m);
	calls[v.sival_int]++;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
}

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	signalled = pthread_self();
	__atomic_fetch_add(&told_of[info->si_value.sival_int], 1, __ATOMIC_RELAXED);
	sem_post(&told);
}

static timer_t timer(struct sigevent *e, long first_ns, long each_ns)
{
	struct itimerspec t = { { 0, each_ns }, { first_ns / 1000000000, first_ns % 1000000000 } };
	timer_t id;

	CHECK_EQ(timer_create(CLOCK_MONOTONIC, e, &id), 0);
	CHECK_EQ(timer_settime(id, 0, &t, NULL), 0);
	return id;
}

static int calls_of(int value)
{
	int n;

	pthread_mutex_lock(&m);
	n = calls[value];
	pthread_mutex_unlock(&m);
	return n;
}

static void wait_calls(int value, int n)
{
	pthread_mutex_lock(&m);
	while (calls[value] < n)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
}

static void *by_thread(void *arg)
{
	struct sigevent e = {
		.sigev_notify = SIGEV_THREAD, .sigev_notify_function = function, .sigev_value.sival_int = 11
	};
	int before = calls_of(11);
	timer_t id = timer(&e, 2000000, 3000000);
	(void)arg;

	wait_calls(11, before + TICKS);
	CHECK_EQ(timer_delete(id), 0);
	return NULL;
}

static void wait_told(int value, int n)
{
	while (__atomic_load_n(&told_of[value], __ATOMIC_RELAXED) < n)
		CHECK(sem_wait(&told) == 0 || errno == EINTR);
}

static void *by_id(void *arg)
{
	struct sigevent e = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 3, .sigev_value.sival_int = 12
	};
	timer_t id;
	(void)arg;

	e.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	id = timer(&e, 2000000, 3000000);
	for (int i = 1; i <= TICKS; i++) {
		wait_told(12, i);
		CHECK(pthread_equal(signalled, pthread_self()));
	}
	CHECK_EQ(timer_delete(id), 0);
	return NULL;
}

static void *by_process(void *arg)
{
	struct sigevent e = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3, .sigev_value.sival_int = 13
	};
	struct sigevent nothing = { .sigev_notify = SIGEV_NONE };
	int before = __atomic_load_n(&told_of[13], __ATOMIC_RELAXED);
	timer_t id = timer(&e, 2000000, 3000000), silent = timer(&nothing, 900000000000, 0);
	struct itimerspec left;
	(void)arg;

	wait_told(13, before + TICKS);
	CHECK_EQ(timer_gettime(silent, &left), 0);
	CHECK(left.it_value.tv_nsec > 0 || left.it_value.tv_sec > 0);
	CHECK_EQ(timer_delete(silent), 0);
	CHECK_EQ(timer_delete(id), 0);
	return NULL;
}

static void *by_queue(void *arg)
{
	struct sigevent thread = {
		.sigev_notify = SIGEV_THREAD, .sigev_notify_function = function, .sigev_value.sival_int = 14
	};
	struct sigevent signal = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3, .sigev_value.sival_int = 15
	};
	struct mq_attr a = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	char name[32], text[16];
	mqd_t q;
	(void)arg;

	snprintf(name, sizeof(name), "/kb-events-%d", (int)getpid());
	q = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &a);
	if (q == (mqd_t)-1)
		return (void *)1;
	mq_unlink(name);
	CHECK_EQ(mq_notify(q, &thread), 0);
	CHECK(mq_notify(q, &signal) == -1 && errno == EBUSY);
	CHECK_EQ(mq_send(q, "one", 4, 0), 0);
	wait_calls(14, 1);
	CHECK_EQ(mq_receive(q, text, sizeof(text), NULL), 4);
	CHECK_EQ(mq_notify(q, &signal), 0);
	CHECK_EQ(mq_send(q, "two", 4, 0), 0);
	wait_told(15, 1);
	CHECK_EQ(mq_receive(q, text, sizeof(text), NULL), 4);
	CHECK_EQ(mq_notify(q, &thread), 0);
	CHECK_EQ(mq_notify(q, NULL), 0);
	mq_close(q);
	return NULL;
}

static void *computes(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

static void in_thread(void *(*fn)(void *))
{
	pthread_t t;
	void *skipped;

	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	CHECK_EQ(pthread_join(t, &skipped), 0);
	if (skipped)
		printf("no message queues here\n");
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	int stop = 0;
	pthread_t t;

	sem_init(&told, 0, 0);
	CHECK_EQ(sigaction(SIGRTMIN + 3, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, computes, &stop), 0);
	in_thread(by_thread);
	in_thread(by_id);
	in_thread(by_process);
	in_thread(by_queue);
	by_thread(NULL);
	by_process(NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
