/* posix/signal_dispatcher: thread after thread sends real-time signals to one thread, or to the process
 * where only this thread has them unblocked. They come in the order in which they were sent,
 * whatever the thread does: it computes, waits, yields, is in a call that blocks in the kernel, or
 * has threads switched in beside it. The next signal may be sent at the moment when the kernel
 * brings the previous signal to a kernel thread that the thread has just left. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { SIGNALS = 3000, BUSY = 2, AHEAD = 16, WAYS = 2 };

static volatile int come, wrong, first_wrong;
static bool over;
static int tube[2];
static sem_t turn;
static pthread_t target;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_value.sival_int != come && wrong++ == 0)
		first_wrong = come;
	come++;
}

static bool is_over(void)
{
	return __atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

static void block(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
}

static void compute(int n)
{
	for (volatile int i = 0; i < n; i = i + 1)
		;
}

static void do_something(int what)
{
	char byte;

	switch (what % 5) {
	case 0:
		compute(2000);
		break;
	case 1:
		while (sem_trywait(&turn) == 0)
			;
		(void)!sem_wait(&turn);
		break;
	case 2:
		sched_yield();
		break;
	case 3:
		(void)!read(tube[0], &byte, 1);
		break;
	default:
		nanosleep(&(struct timespec){ 0, 1000 }, NULL);
	}
}

/* The only thread that lets the signals through. */
static void *takes(void *unused)
{
	for (int i = 0; !is_over(); i++)
		do_something(i);
	return unused;
}

static void send(int way, int value)
{
	union sigval v = { .sival_int = value };

	if (way == 0)
		CHECK_EQ(pthread_sigqueue(target, SIGRTMIN, v), 0);
	else
		CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1, v), 0);
}

static void *sends(void *way)
{
	block(SIGRTMIN);
	block(SIGRTMIN + 1);
	for (int i = 0; i < SIGNALS; i++) {
		while (i - come > AHEAD)
			sched_yield();
		send((int)(long)way, i);
		if (i % 3 == 0)
			CHECK_EQ(sem_post(&turn), 0);
		if (i % 7 == 0)
			CHECK_EQ(write(tube[1], "", 1), 1);
		if (i % 5 == 0)
			compute(i % 1000);
	}
	return NULL;
}

static void *computes(void *arg)
{
	block(SIGRTMIN);
	block(SIGRTMIN + 1);
	while (!is_over())
		compute(1000);
	return arg;
}

/* Until all have come; the awaited signal comes again and again. */
static void await_all(void)
{
	for (int ms = 0; come < SIGNALS && ms < 20000; ms++) {
		CHECK_EQ(sem_post(&turn), 0);
		CHECK_EQ(write(tube[1], "", 1), 1);
		usleep(1000);
	}
}

static void try(int way)
{
	pthread_t sender, other[BUSY];

	come = wrong = 0;
	__atomic_store_n(&over, false, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(&target, NULL, takes, NULL), 0);
	block(SIGRTMIN);
	block(SIGRTMIN + 1);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_create(&other[i], NULL, computes, NULL), 0);
	CHECK_EQ(pthread_create(&sender, NULL, sends, (void *)(long)way), 0);
	CHECK_EQ(pthread_join(sender, NULL), 0);
	await_all();
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	await_all();
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(sem_post(&turn), 0);
		CHECK_EQ(write(tube[1], "", 1), 1);
	}
	CHECK_EQ(pthread_join(target, NULL), 0);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_join(other[i], NULL), 0);
	if (wrong)
		fprintf(stderr, "way %d: %d of %d changed places, first %d\n", way, wrong, SIGNALS, first_wrong);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(come, SIGNALS);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigset_t none;

	sigfillset(&sa.sa_mask);
	sigemptyset(&none);
	CHECK_EQ(pipe(tube), 0);
	CHECK_EQ(sem_init(&turn, 0, 0), 0);
	CHECK_EQ(sigaction(SIGRTMIN, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGRTMIN + 1, &sa, NULL), 0);
	for (int way = 0; way < WAYS; way++) {
		CHECK_EQ(pthread_sigmask(SIG_SETMASK, &none, NULL), 0);
		try(way);
	}
	return 0;
}
