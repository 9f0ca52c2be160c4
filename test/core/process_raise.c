/* core/worker_thread: a signal that a thread sends to itself (raise, pthread_kill, abort) runs its
 * handler before the call returns, on whichever virtual processor the thread is; a signal that it
 * sends to the program (kill) runs it soon. With kernel threads only the first virtual processor
 * lets such signals through (kochab.h).
 * matrix: vps=1 sched=rotator */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <kochab/kochab.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 8, ROUNDS = 50 };

static volatile int handled[NSIG];
static jmp_buf out;

static void on_signal(int sig)
{
	__atomic_fetch_add(&handled[sig], 1, __ATOMIC_SEQ_CST);
}

static int now(int sig)
{
	return __atomic_load_n(&handled[sig], __ATOMIC_SEQ_CST);
}

/* More threads raise signals, too. */
static void *raises(void *arg)
{
	int sig = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		int before = now(sig);

		CHECK_EQ(i % 2 ? raise(sig) : pthread_kill(pthread_self(), sig), 0);
		CHECK(now(sig) > before);
		if (i % 3 == 0)
			kb_yield();
	}
	return NULL;
}

static void *sends(void *arg)
{
	int before = now(SIGTERM);

	(void)arg;
	CHECK_EQ(kill(getpid(), SIGTERM), 0);
	for (int i = 0; now(SIGTERM) == before && i < 20000; i++)
		usleep(1000);
	CHECK(now(SIGTERM) > before);
	return NULL;
}

static void leaves(int sig)
{
	on_signal(sig);
	longjmp(out, 1);
}

static void *aborts(void *arg)
{
	(void)arg;
	if (!setjmp(out))
		abort();
	CHECK_EQ(now(SIGABRT), 1);
	return NULL;
}

/* It may be blocked: then it waits until it is opened. */
static void *blocks(void *arg)
{
	int before = now(SIGHUP);
	sigset_t hup, old;

	(void)arg;
	sigemptyset(&hup);
	sigaddset(&hup, SIGHUP);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &hup, &old), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &hup, NULL), 0);
	CHECK_EQ(raise(SIGHUP), 0);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &hup, NULL), 0);
	CHECK_EQ(now(SIGHUP), before + 1);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	return NULL;
}

static void runs(unsigned n, void *(*fn)(void *), void *arg)
{
	kb_thread_t t[THREADS];

	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, fn, arg), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

int main(void)
{
	static const int signals[] = { SIGUSR1, SIGUSR2, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal };

#ifndef __GLIBC__
	SKIP("raise blocks all signals in musl, as a program may");
#elif !__GLIBC_PREREQ(2, 34)
	SKIP("raise blocks all signals in this libc, as a program may");
#endif
#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer puts handlers off");
#endif
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		CHECK_EQ(sigaction(signals[i], &sa, NULL), 0);
	sa.sa_handler = leaves;
	CHECK_EQ(sigaction(SIGABRT, &sa, NULL), 0);
	runs(THREADS, raises, (void *)SIGUSR1);
	CHECK_EQ(now(SIGUSR1), THREADS * ROUNDS);
	runs(1, sends, NULL);
	runs(1, blocks, NULL);
	runs(1, aborts, NULL);
	/* an action that is set later */
	CHECK(signal(SIGUSR2, SIG_IGN) == on_signal);
	CHECK_EQ(raise(SIGUSR2), 0);
	CHECK(signal(SIGUSR2, on_signal) == SIG_IGN);
	raises((void *)SIGUSR2);
	CHECK_EQ(now(SIGUSR2), ROUNDS);
	return 0;
}
