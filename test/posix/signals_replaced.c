/* sigaction while the signal comes to several threads: each handler runs with its own mask and
 * flags, never with the mask and flags of the previous or the next action. */
#define _GNU_SOURCE
#include "crowd.h"

#include <signal.h>
#include <unistd.h>

enum { RAISERS = 3, CHANGES = 4000 };

static volatile int over;
static volatile int wrong, ran[2];

/* Of the two signals that stand for the two actions' masks only its own is blocked. */
static void is_mine(int mine, int others, const siginfo_t *info)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	if (!sigismember(&now, mine) || sigismember(&now, others) || info->si_signo != SIGUSR1 ||
	    sigismember(&now, SIGUSR1) != (mine == SIGTTIN))
		__atomic_store_n(&wrong, 1 + sigismember(&now, mine) + 2 * sigismember(&now, others), __ATOMIC_RELAXED);
	__atomic_fetch_add(&ran[mine == SIGTTOU], 1, __ATOMIC_RELAXED);
}

static void one(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	is_mine(SIGTTIN, SIGTTOU, info);
}

static void other(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	is_mine(SIGTTOU, SIGTTIN, info);
}

static void set(int which)
{
	struct sigaction sa = { .sa_sigaction = which ? other : one }, before;

	sa.sa_flags = SA_SIGINFO | (which ? SA_NODEFER : SA_RESTART);
	sigemptyset(&sa.sa_mask);
	sigaddset(&sa.sa_mask, which ? SIGTTOU : SIGTTIN);
	CHECK_EQ(sigaction(SIGUSR1, &sa, &before), 0);
	if (before.sa_flags & SA_SIGINFO && before.sa_sigaction == one)
		CHECK(before.sa_flags & SA_RESTART && sigismember(&before.sa_mask, SIGTTIN) == 1);
}

static void *work(void *arg)
{
	if (!arg) {
		for (int i = 0; i < CHANGES || !ran[0] || !ran[1]; i++) {
			set(i % 2);
			if (i % 7 == 0) /* behind either action, in turns */
				sched_yield();
		}
		over = 1;
		return arg;
	}
	while (!over) {
		CHECK_EQ(raise(SIGUSR1), 0);
		sched_yield();
	}
	return arg;
}

int main(void)
{
	set(0);
	crowd_run(work, 1 + RAISERS);
	CHECK_EQ(wrong, 0);
	CHECK(ran[0] > 0 && ran[1] > 0);
	return 0;
}
