/* core/quantum: with the option libcalls=patch a thread is also preempted on a coroutine's stack: a
 * thread that spins there until another thread has run on its virtual processor goes on, and finds
 * its own stack and its variables unchanged. Likewise in main, and in a handler on an alternate
 * stack. */
/* body: thread */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROUNDS = 10, THREADS = 3, STACK = 65536, PATIENCE = 200 };

struct spinner {
	ucontext_t back, coroutine;
	char *stack;
	int rounds;
};

static int asked, answered, stop;
static __thread struct spinner *mine;

static void spin(void)
{
	int me = __atomic_add_fetch(&asked, 1, __ATOMIC_RELEASE);

	while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) < me)
		;
}

static void *answers(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		__atomic_store_n(&answered, __atomic_load_n(&asked, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	return arg;
}

static void on_signal(int sig)
{
	(void)sig;
	spin();
}

static void coroutine(void)
{
	struct spinner *s = mine;
	volatile int here = s->rounds;

	CHECK((char *)&here >= s->stack && (char *)&here < s->stack + STACK);
	spin();
	CHECK_EQ(here, s->rounds);
	CHECK(mine == s);
	s->rounds++;
}

static void *spins(void *arg)
{
	struct spinner s = { .stack = malloc(STACK) };
	stack_t alternate = { .ss_sp = malloc(STACK), .ss_size = STACK };

	CHECK(s.stack != NULL && alternate.ss_sp != NULL);
	mine = &s;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(getcontext(&s.coroutine), 0);
		s.coroutine.uc_stack.ss_sp = s.stack;
		s.coroutine.uc_stack.ss_size = STACK;
		s.coroutine.uc_link = &s.back;
		makecontext(&s.coroutine, coroutine, 0);
		CHECK_EQ(swapcontext(&s.back, &s.coroutine), 0);
		CHECK_EQ(s.rounds, i + 1);
	}
	CHECK_EQ(sigaltstack(&alternate, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	alternate.ss_flags = SS_DISABLE;
	CHECK_EQ(sigaltstack(&alternate, NULL), 0);
	free(alternate.ss_sp);
	free(s.stack);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	pthread_t other, spinner[THREADS];

	(void)argc;
#if !defined(__x86_64__) || !defined(__GLIBC__)
	return 77;
#endif
	if (!getenv("KOCHAB_LIBCALLS")) {
		setenv("KOCHAB_LIBCALLS", "patch", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	alarm(PATIENCE);
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(pthread_create(&other, NULL, answers, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&spinner[i], NULL, spins, NULL), 0);
	spins(NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(spinner[i], NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(other, NULL), 0);
	return 0;
}
