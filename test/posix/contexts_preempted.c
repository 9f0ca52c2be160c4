/* posix/ucontext, signal_action: a timer's handler switches contexts, which a scheduler's context
 * starts with the signal let through, and which end at any time. A handler interrupts the context
 * that was switched to, so the handler saves that context, and it goes on from there with its stack
 * and its registers; also if the signal was pending when the context began (with libc that signal
 * comes on the stack that is being left). In main and in a thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "test.h"

enum { N = 4, STARTS = 300, STACK = 65536, ROUNDS = 60000 };

static ucontext_t scheduler, context[N];
static char stack[N][STACK] __attribute__((aligned(64)));
static volatile int current = -1;
static bool over[N], pending;

static void on_tick(int sig)
{
	int is = current;

	(void)sig;
	if (pending)
		CHECK((char *)&is >= stack[is] && (char *)&is < stack[is] + STACK);
	if (is >= 0)
		CHECK_EQ(swapcontext(&context[is], &scheduler), 0);
}

static void body(int k, int rounds)
{
	volatile unsigned long there = (unsigned long)k;
	unsigned long here = (unsigned long)k;

	for (int i = 0; i < rounds; i++) {
		there = there * 25214903917 + 11;
		here = here * 25214903917 + 11;
		CHECK_EQ(there, here);
	}
	over[k] = true;
}

static void start(int k)
{
	CHECK_EQ(getcontext(&context[k]), 0);
	sigdelset(&context[k].uc_sigmask, SIGALRM);
	context[k].uc_stack.ss_sp = stack[k];
	context[k].uc_stack.ss_size = STACK;
	context[k].uc_link = &scheduler;
	over[k] = false;
	makecontext(&context[k], (void (*)(void))(void *)body, 2, k, ROUNDS + k * ROUNDS / 2);
}

/* Overwrites the stack below the caller's frame, which will soon be reused. */
static void spoil(void)
{
	volatile char there[8192];

	memset((char *)there, 0x5a, sizeof there);
}

static bool is_pending(void)
{
	sigset_t s;

	CHECK_EQ(sigpending(&s), 0);
	return sigismember(&s, SIGALRM);
}

static void take(int sig)
{
	sigset_t s;
	int got;

	sigemptyset(&s);
	sigaddset(&s, sig);
	CHECK_EQ(sigwait(&s, &got), 0);
}

static void begun_pending(void)
{
	if (!dlsym(RTLD_DEFAULT, "kb_thread_self"))
		return;
	pending = true;
	for (int n = 0; n < STARTS; n++) {
		start(0);
		CHECK_EQ(pthread_kill(pthread_self(), SIGALRM), 0);
		for (current = 0; !over[0];) {
			CHECK_EQ(swapcontext(&scheduler, &context[0]), 0);
			spoil();
		}
		current = -1;
	}
	pending = false;
}

static void *preempted(void *arg)
{
	struct itimerval each = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };

	begun_pending();
	CHECK_EQ(setitimer(ITIMER_REAL, &each, NULL), 0);
	for (int k = 0; k < N; k++)
		start(k);
	for (int n = 0; n < STARTS;) {
		for (int k = 0; k < N; k++) {
			if (is_pending())
				take(SIGALRM);
			current = k;
			CHECK_EQ(swapcontext(&scheduler, &context[k]), 0);
			current = -1;
			spoil();
			if (over[k]) {
				start(k);
				n++;
			}
		}
	}
	CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	sigset_t s;
	pthread_t t;

	sigemptyset(&s);
	sigaddset(&s, SIGALRM);
	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &s, NULL), 0);
	preempted(NULL);
	CHECK_EQ(pthread_create(&t, NULL, preempted, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
