/* Posts from signal handlers that interrupt any code, the library at work on the same semaphore
 * included: no deadlock, no token lost or made up.
 * body: thread */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "threads.h"

enum { THREADS = 6, SIGNALS = 6000, TICK_NS = 20000 };

static kb_sem_t sem, idle;
static int from_handler, kept, stop, victim;

static void handler(int sig)
{
	int e = errno;

	(void)sig;
	if (test_get(&from_handler) < SIGNALS) {
		if (kb_sem_post(&sem) || kb_sem_post(&idle))
			abort();
		test_put(&stop, test_add(&from_handler, 1) >= SIGNALS);
	}
	errno = e;
}

#ifndef sigev_notify_thread_id /* glibc has no name for the field */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Sends signals to a kernel thread, at moments that the clock chooses. */
static timer_t pester(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct itimerspec tick = { { 0, TICK_NS }, { 0, TICK_NS } };
	timer_t t;

	ev.sigev_notify_thread_id = test_get(&victim);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &ev, &t), 0);
	CHECK_EQ(timer_settime(t, 0, &tick, NULL), 0);
	return t;
}

/* Unblocks signals: a kernel thread made by a virtual processor's may have
 * inherited its blocked signals. */
static void become_victim(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	test_put(&victim, (int)syscall(SYS_gettid));
}

static void *work(void *arg)
{
	uint64_t rnd = test_stream();

	if (arg)
		become_victim();
	while (!test_get(&stop)) {
		uint64_t r = test_rand(&rnd);
		int rc = r % 2 ? kb_sem_wait(&sem) : kb_sem_timedwait(&sem, kb_now() + r / 8 % 20000);

		if (rc)
			continue;
		if (r / 64 % 8 == 0)
			kb_yield();
		if (kb_sem_value(&sem) > 0)
			test_add(&kept, 1); /* the handlers' tokens end here: so there are waiters again */
		else
			CHECK_EQ(kb_sem_post(&sem), 0);
	}
	return NULL;
}

/* Waits in a thread that only handlers wake. */
static void *sleep_on(void *arg)
{
	(void)arg;
	while (!test_get(&stop))
		CHECK_EQ(kb_sem_wait(&idle), 0);
	return NULL;
}

/* The victim is the first virtual processor's kernel thread, or a foreign worker. */
static void run_workers(void)
{
	struct worker w[THREADS];
	timer_t t;

	test_put(&victim, test_foreign ? 0 : (int)getpid());
	worker_start(&w[0], sleep_on, NULL);
	for (int i = 1; i < THREADS; i++)
		worker_start(&w[i], work, test_foreign && i == 1 ? &victim : NULL);
	test_reach(&victim, 1);
	t = pester();
	for (int i = 1; i < THREADS; i++)
		worker_join(&w[i]);
	CHECK_EQ(timer_delete(t), 0);
	CHECK_EQ(kb_sem_post(&idle), 0);
	worker_join(&w[0]);
}

static void body(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	CHECK_EQ(kb_sem_init(&sem, 2), 0);
	CHECK_EQ(kb_sem_init(&idle, 0), 0);
	from_handler = kept = stop = 0;
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	run_workers();
	CHECK_EQ(kb_sem_value(&sem), 2 + from_handler - kept);
	CHECK_EQ(from_handler, SIGNALS);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
