/* core/preempt kbi_preempt_apart: a thread with an alternate signal stack runs code whose stack
 * pointer is in memory below which nothing may be written, as code of some languages' compilers
 * does: no signal of the runtime writes there, the program's handlers run on the alternate stack,
 * and the remaining threads have their turns. */
/* timeout: 60 */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

enum { BYTES = 65536, MIDDLE = BYTES / 2, STEPS = 4000000, ROUNDS = 60, ALTERNATE = 32768, THREADS = 3 };

static atomic_int ended, handled, elsewhere;
static atomic_long beats;
static _Thread_local char *alternate;

static void handler(int sig)
{
	char here;

	(void)sig;
	handled++;
	if (alternate && (&here < alternate || &here >= alternate + ALTERNATE))
		elsewhere++;
}

/* Counts so far with the stack pointer there. */
static void count_at(char *sp, uint64_t steps)
{
#if defined(__x86_64__)
	__asm__ volatile("xchg %0, %%rsp\n1:\tsub $1, %1\n\tjnz 1b\n\txchg %0, %%rsp"
			 : "+r"(sp), "+r"(steps) : : "cc", "memory");
#elif defined(__aarch64__)
	uint64_t saved;

	__asm__ volatile("mov %2, sp\n\tmov sp, %0\n1:\tsubs %1, %1, #1\n\tb.ne 1b\n\tmov sp, %2"
			 : "+r"(sp), "+r"(steps), "=&r"(saved) : : "cc", "memory");
#else
	(void)sp;
	(void)steps;
	SKIP("not for this machine");
#endif
}

static void *counts(void *unused)
{
	static _Thread_local char memory[BYTES] __attribute__((aligned(64)));
	static _Thread_local char stack[ALTERNATE];
	stack_t s = { .ss_sp = stack, .ss_size = sizeof stack }, off = { .ss_flags = SS_DISABLE };

	alternate = stack;
	CHECK_EQ(sigaltstack(&s, NULL), 0);
	memset(memory, 0x5a, sizeof memory);
	for (int i = 0; i < ROUNDS; i++) {
		count_at(memory + MIDDLE, STEPS);
		for (int k = 0; k < BYTES; k++)
			CHECK_EQ(memory[k], 0x5a);
	}
	alternate = NULL;
	CHECK_EQ(sigaltstack(&off, NULL), 0);
	ended++;
	return unused;
}

static void *beats_meanwhile(void *unused)
{
	while (ended < THREADS + 1) {
		volatile int n = 0;

		for (int i = 0; i < 1000; i++)
			n = n + i;
		beats++;
	}
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK };
	struct itimerval every = { { 0, 7000 }, { 0, 7000 } }, off = { { 0, 0 }, { 0, 0 } };
	pthread_t id[THREADS], other;

	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&other, NULL, beats_meanwhile, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, counts, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
	counts(NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
	CHECK_EQ(pthread_join(other, NULL), 0);
	CHECK(handled > 0);
	CHECK_EQ(elsewhere, 0);
	CHECK(beats > 0);
	return 0;
}
