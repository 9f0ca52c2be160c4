/* Threads with a real-time policy, given or inherited, run on kernel threads that have it. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "test.h"

struct seen {
	int policy, priority, kernel_policy, kernel_priority;
};

static void look(struct seen *s)
{
	struct sched_param p;

	pthread_getschedparam(pthread_self(), &s->policy, &p);
	s->priority = p.sched_priority;
	s->kernel_policy = sched_getscheduler(0);
	sched_getparam(0, &p);
	s->kernel_priority = p.sched_priority;
}

static pthread_mutex_t ceiling;

/* While it holds the mutex it has the mutex's priority. */
static void raised(void)
{
	struct sched_param before, p;

	sched_getparam(0, &before);
	CHECK_EQ(pthread_mutex_lock(&ceiling), 0);
	sched_getparam(0, &p);
	CHECK_EQ(p.sched_priority, 9);
	CHECK_EQ(pthread_mutex_unlock(&ceiling), 0);
	sched_getparam(0, &p);
	CHECK_EQ(p.sched_priority, before.sched_priority);
}

static void *child(void *arg)
{
	look(arg);
	raised();
	return NULL;
}

static void *parent(void *arg)
{
	pthread_t t;

	look(arg);
	CHECK_EQ(pthread_create(&t, NULL, child, (struct seen *)arg + 1), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return NULL;
}

static void is(const struct seen *s, int policy, int priority)
{
	CHECK_EQ(s->policy, policy);
	CHECK_EQ(s->priority, priority);
	CHECK_EQ(s->kernel_policy, policy);
	CHECK_EQ(s->kernel_priority, priority);
}

/* By attributes; its own child has it from it. */
static void given(void)
{
	struct sched_param p = { .sched_priority = 7 };
	struct seen s[2];
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&a, SCHED_RR);
	CHECK_EQ(pthread_attr_setschedparam(&a, &p), 0);
	CHECK_EQ(pthread_create(&t, &a, parent, s), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	is(&s[0], SCHED_RR, 7);
	is(&s[1], SCHED_RR, 7);
	pthread_attr_destroy(&a);
}

static void *plain(void *arg)
{
	(void)arg;
	CHECK_EQ(pthread_mutex_lock(&ceiling), EINVAL); /* it has no priority to raise */
	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
	return NULL;
}

static void from_main(void)
{
	struct sched_param p = { .sched_priority = 3 };
	struct seen s;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, plain, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_FIFO, &p), 0);
	CHECK_EQ(pthread_create(&t, NULL, child, &s), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	is(&s, SCHED_FIFO, 3);
}

static void make_ceiling(void)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT), 0);
	CHECK_EQ(pthread_mutexattr_setprioceiling(&a, 9), 0);
	CHECK_EQ(pthread_mutex_init(&ceiling, &a), 0);
}

int main(void)
{
	struct sched_param p = { .sched_priority = 1 }, old;

	sched_getparam(0, &old);
	if (sched_setscheduler(0, SCHED_FIFO, &p)) {
		puts("this user may not use real-time policies");
		return 77;
	}
	sched_setscheduler(0, SCHED_OTHER, &old);
	make_ceiling();
	given();
	from_main();
	return 0;
}
