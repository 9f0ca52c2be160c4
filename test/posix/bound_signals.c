/* posix/signal_bound: a thread with an affinity of its own, and so with a kernel thread of its own,
 * waits for signals. sigtimedwait, sigwait, sigwaitinfo, sigsuspend and ppoll get signals, with
 * their values, that other threads, which block them, sent to the thread or to the program before
 * the call or during it. This also holds when the thread is on VPs again, and a signal that was
 * sent before waits for the thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "bind_self.h"
#include "test.h"

enum { ROUNDS = 20, VALUE = 7 };

enum how { TIMED, WAITS, INFO, SUSPENDS, POLLS, HOWS };

static pthread_t waiter;
static sem_t begun, over;
static sigset_t all;
static atomic_int handled, elsewhere;

static void handle(int sig)
{
	(void)sig;
	atomic_fetch_add(pthread_equal(pthread_self(), waiter) ? &handled : &elsewhere, 1);
}

static void check_info(const siginfo_t *info, int sig)
{
	CHECK_EQ(info->si_signo, sig);
	CHECK_EQ(info->si_pid, getpid());
	CHECK_EQ(info->si_code, sig == SIGUSR1 ? SI_USER : SI_QUEUE);
	if (sig != SIGUSR1)
		CHECK_EQ(info->si_value.sival_int, VALUE);
}

static void wait_by(enum how how, int sig)
{
	const struct timespec long_time = { 100, 0 };
	int before = atomic_load(&handled), got = 0;
	siginfo_t info;
	sigset_t none;

	sigemptyset(&none);
	switch (how) {
	case TIMED:
		CHECK_EQ(sigtimedwait(&all, &info, &long_time), sig);
		check_info(&info, sig);
		break;
	case INFO:
		CHECK_EQ(sigwaitinfo(&all, &info), sig);
		check_info(&info, sig);
		break;
	case WAITS:
		CHECK_EQ(sigwait(&all, &got), 0);
		CHECK_EQ(got, sig);
		break;
	case SUSPENDS:
		CHECK(sigsuspend(&none) == -1 && errno == EINTR);
		CHECK_EQ(atomic_load(&handled), before + 1);
		break;
	default:
		CHECK(ppoll(NULL, 0, &long_time, &none) == -1 && errno == EINTR);
		CHECK_EQ(atomic_load(&handled), before + 1);
	}
}

static int signal_of(int round)
{
	return round & 1 ? SIGRTMIN + 3 : SIGUSR1;
}

static void wait_by_all(void)
{
	for (int how = 0; how < HOWS; how++)
		for (int i = 0; i < ROUNDS; i++) {
			sem_post(&begun);
			wait_by(how, signal_of(i));
			sem_post(&over);
		}
}

static void *wait_each(void *unused)
{
	cpu_set_t before;

	waiter = pthread_self();
	CHECK_EQ(pthread_getaffinity_np(waiter, sizeof before, &before), 0);
	bind_self();
	wait_by_all();
	CHECK_EQ(pthread_kill(waiter, SIGUSR1), 0);
	CHECK_EQ(pthread_setaffinity_np(waiter, sizeof before, &before), 0);
	wait_by(WAITS, SIGUSR1);
	wait_by_all();
	return unused;
}

/* Sends no signal to the program while the waiter polls: VPs that are processes do not see a mask
 * that holds only during ppoll. */
static void send_signal(pthread_t to, enum how how, int round)
{
	union sigval value = { .sival_int = VALUE };
	int sig = signal_of(round);
	bool program = round & 2 && how != POLLS;

	if (round & 4)
		sched_yield();
	if (sig == SIGUSR1)
		CHECK_EQ(program ? kill(getpid(), sig) : pthread_kill(to, sig), 0);
	else
		CHECK_EQ(program ? sigqueue(getpid(), sig, value) : pthread_sigqueue(to, sig, value), 0);
}

int main(void)
{
	pthread_t t;

	sigemptyset(&all);
	sigaddset(&all, SIGUSR1);
	sigaddset(&all, SIGRTMIN + 3);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
	CHECK(signal(SIGUSR1, handle) != SIG_ERR);
	CHECK(signal(SIGRTMIN + 3, handle) != SIG_ERR);
	CHECK_EQ(sem_init(&begun, 0, 0), 0);
	CHECK_EQ(sem_init(&over, 0, 0), 0);
	CHECK_EQ(pthread_create(&t, NULL, wait_each, NULL), 0);
	for (int n = 0; n < 2 * HOWS * ROUNDS; n++) {
		CHECK_EQ(sem_wait(&begun), 0);
		send_signal(t, n / ROUNDS % HOWS, n % ROUNDS);
		CHECK_EQ(sem_wait(&over), 0);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(atomic_load(&elsewhere), 0);
	return 0;
}
