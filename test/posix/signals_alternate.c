/* posix/signal_stack: handlers with SA_ONSTACK sleep, in threads with and without an alternate
 * stack. Each goes on with its own stack, whatever ran meanwhile on its processor. After a handler
 * is left by siglongjmp or unwound, its stack is free for the next signal. The smallest stack that
 * the kernel takes is accepted; a thread cannot change the stack that it runs on. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "test.h"

enum { THREADS = 6, SIGNALS = 60, STACK = 32768, FILL = 1500, JUMPS = 5 };
#ifdef __aarch64__
enum { LEAST = 5120 }; /* the kernel's */
#else
enum { LEAST = 2048 };
#endif

static __thread int id;
static __thread char *stack;
static int done;

static void check_place(const char *here)
{
	bool there = stack && here >= stack && here < stack + STACK;

	CHECK_EQ(there, stack != NULL);
}

static void sleeps(int sig)
{
	struct timespec nap = { .tv_nsec = 300000 };
	volatile char fill[FILL];
	int e = errno;

	(void)sig;
	check_place((char *)&nap);
	for (int i = 0; i < FILL; i++)
		fill[i] = (char)id;
	nanosleep(&nap, NULL);
	for (int i = 0; i < FILL; i++)
		CHECK_EQ(fill[i], id);
	__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
	errno = e;
}

static void *thread(void *arg)
{
	static char stacks[THREADS][STACK];
	struct timespec nap = { .tv_nsec = 100000 };
	stack_t s = { .ss_size = STACK }, none = { .ss_flags = SS_DISABLE };

	id = (int)(intptr_t)arg;
	if (id % 2) {
		stack = s.ss_sp = stacks[id];
		CHECK_EQ(sigaltstack(&s, NULL), 0);
	}
	while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < SIGNALS)
		nanosleep(&nap, NULL);
	CHECK_EQ(sigaltstack(&none, NULL), 0);
	return arg;
}

static void together(bool some_have_one)
{
	struct sigaction a = { .sa_handler = sleeps, .sa_flags = SA_ONSTACK };
	struct timespec nap = { .tv_nsec = 100000 };
	pthread_t t[THREADS];

	done = 0;
	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thread, (void *)(intptr_t)(some_have_one ? i : 2 * i)), 0);
	for (int i = 0; __atomic_load_n(&done, __ATOMIC_SEQ_CST) < SIGNALS; i++) {
		CHECK_EQ(pthread_kill(t[i % THREADS], SIGUSR1), 0);
		nanosleep(&nap, NULL);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* ---- handlers that do not return ------------------------------------------------------------- */
static sigjmp_buf out;

static void jumps(int sig)
{
	stack_t s = { 0 };

	(void)sig;
	check_place((char *)&s);
	CHECK_EQ(sigaltstack(NULL, &s), 0);
	CHECK_EQ(s.ss_flags & SS_ONSTACK, SS_ONSTACK);
	CHECK_EQ(sigaltstack(&s, NULL), -1);
	CHECK_EQ(errno, EPERM);
	siglongjmp(out, 1);
}

static void *jumper(void *arg)
{
	static char own[STACK];
	stack_t s = { .ss_sp = own, .ss_size = LEAST }, now;
	struct sigaction a = { .sa_handler = jumps, .sa_flags = SA_ONSTACK };

	CHECK_EQ(sigaltstack(&s, NULL), 0);
	s.ss_size = 100;
	CHECK_EQ(sigaltstack(&s, NULL), -1);
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(sigaltstack(NULL, &now), 0);
	CHECK_EQ(now.ss_size, LEAST);
	s.ss_size = STACK;
	CHECK_EQ(sigaltstack(&s, NULL), 0);
	stack = own;
	CHECK_EQ(sigaction(SIGUSR2, &a, NULL), 0);
	for (volatile int i = 0; i < JUMPS; i++)
		if (!sigsetjmp(out, 1)) {
			CHECK_EQ(raise(SIGUSR2), 0);
			CHECK(!"not come here");
		}
	return arg;
}

static void ends(int sig)
{
	(void)sig;
	check_place((char *)&sig);
	pthread_exit(&done);
}

static void *ender(void *arg)
{
	struct sigaction a = { .sa_handler = ends, .sa_flags = SA_ONSTACK };
	static char own[STACK];
	stack_t s = { .ss_sp = own, .ss_size = STACK };

	stack = own;
	CHECK_EQ(sigaltstack(&s, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &a, NULL), 0);
	CHECK_EQ(raise(SIGUSR2), 0);
	return arg;
}

static void alone(void *(*fn)(void *), void *expected)
{
	pthread_t t;
	void *result;

	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == expected);
}

int main(void)
{
	together(false);
	together(true);
	for (int i = 0; i < JUMPS; i++) {
		alone(jumper, NULL);
		alone(ender, &done);
	}
	return 0;
}
