/* posix/signal_mask: a thread keeps a kernel thread of its own, because a timer sends signals to
 * its number. Its changes of its mask take effect at once, and signals that are sent to it arrive,
 * whichever signals it blocked when it got its kernel thread. Threads beside it compute, and let
 * the signal through. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { BUSY = 3, TIMES = 5, PERIOD_NS = 5000000 };

static pthread_t tester;
static atomic_int here, elsewhere, stop;

static void count(int sig)
{
	(void)sig;
	atomic_fetch_add(pthread_equal(pthread_self(), tester) ? &here : &elsewhere, 1);
}

static void mask(int how)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	CHECK_EQ(pthread_sigmask(how, &s, NULL), 0);
}

static timer_t make_timer(void)
{
	struct sigevent e;
	timer_t t;

	memset(&e, 0, sizeof e);
	e.sigev_notify = SIGEV_THREAD_ID;
	e.sigev_signo = SIGUSR1;
	e.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &e, &t), 0);
	return t;
}

static void set_timer(timer_t t, long ns)
{
	struct itimerspec it = { { 0, ns }, { 0, ns } };

	CHECK_EQ(timer_settime(t, 0, &it, NULL), 0);
}

static void check_timer(timer_t t)
{
	struct timespec some = { 0, 3 * PERIOD_NS };
	int before;

	set_timer(t, PERIOD_NS);
	nanosleep(&some, NULL);
	CHECK_EQ(atomic_load(&here), 0);
	mask(SIG_UNBLOCK);
	for (before = atomic_load(&here); atomic_load(&here) < before + TIMES;)
		;
	mask(SIG_BLOCK);
	before = atomic_load(&here);
	nanosleep(&some, NULL);
	CHECK_EQ(atomic_load(&here), before);
	set_timer(t, 0);
	mask(SIG_UNBLOCK); /* the last signal */
	mask(SIG_BLOCK);
}

/* Makes calls that let the signal through for their duration. */
static void check_calls(void)
{
	struct timespec long_time = { 100, 0 };
	int before = atomic_load(&here);
	sigset_t none, pending;

	sigemptyset(&none);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(atomic_load(&here), before);
	CHECK_EQ(sigpending(&pending), 0);
	CHECK_EQ(sigismember(&pending, SIGUSR1), 1);
	CHECK(sigsuspend(&none) == -1 && errno == EINTR);
	CHECK_EQ(atomic_load(&here), before + 1);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(atomic_load(&here), before + 1);
	CHECK(ppoll(NULL, 0, &long_time, &none) == -1 && errno == EINTR);
	CHECK_EQ(atomic_load(&here), before + 2);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	mask(SIG_UNBLOCK);
	CHECK_EQ(atomic_load(&here), before + 3);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(atomic_load(&here), before + 4);
}

static void check_wait(void)
{
	sigset_t usr;
	int sig = 0;

	mask(SIG_BLOCK);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(sigwait(&usr, &sig), 0);
	CHECK_EQ(sig, SIGUSR1);
}

static void *test(void *unused)
{
	timer_t t;

	tester = pthread_self();
	mask(SIG_BLOCK);
	t = make_timer();
	check_timer(t);
	check_calls();
	check_wait();
	CHECK_EQ(timer_delete(t), 0);
	CHECK_EQ(atomic_load(&elsewhere), 0);
	return unused;
}

static void *compute(void *unused)
{
	while (!atomic_load(&stop))
		;
	return unused;
}

int main(void)
{
	pthread_t t, busy[BUSY];

	CHECK(signal(SIGUSR1, count) != SIG_ERR);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_create(&busy[i], NULL, compute, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, test, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	atomic_store(&stop, 1);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_join(busy[i], NULL), 0);
	return 0;
}
