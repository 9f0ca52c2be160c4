/* core/preempt: a fault in the tick's own handler comes to the program's handler of SIGSEGV, as any
 * other. The tick's frame still fits above a part of the stack that cannot be written, its
 * handler's do not.
 * matrix: run-only */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

enum { STACK = 1 << 20, ALTERNATE = 1 << 16, BELOW = 64 /* bytes under the tick's frame */, HOGS = 8, LONG = 60 /* s */ };
enum { STEP = 128 /* bytes */, SPINS = 20000000 /* longer than a quantum */ };

static char *stack;
static volatile uintptr_t frame_size;

static void here(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	frame_size = (uintptr_t)__builtin_frame_address(0);
}

/* It cannot return: the tick would not find its way. SI_KERNEL: the tick came in deeper down,
 * before mprotect had returned, and there was no room for its frame. */
static void faulted(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)stack;

	(void)sig;
	(void)context;
	_exit(at < STACK / 2 || info->si_code == SI_KERNEL ? 0 : 1);
}

/* The frames of raise() itself were counted with the signal's: computes a little deeper at each
 * call, for more than a quantum, until the tick's handler has no room. */
static __attribute__((noinline)) int go_deeper(int depth)
{
	volatile char room[STEP];

	for (volatile int i = 0; i < SPINS; i++)
		room[0] = 1;
	return depth > STACK / STEP ? 0 : go_deeper(depth + 1) + room[0];
}

/* Half of the stack cannot be written; this computes as far above it as a signal's frame is long,
 * and a little. */
static __attribute__((noinline)) void *computes(void *unused)
{
	uintptr_t sp, bottom = (uintptr_t)stack + STACK / 2;
	stack_t alternate = { .ss_sp = malloc(ALTERNATE), .ss_size = ALTERNATE };
	volatile char *room;

	CHECK(alternate.ss_sp != NULL);
	CHECK_EQ(sigaltstack(&alternate, NULL), 0);
	sp = (uintptr_t)__builtin_alloca(16);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK(frame_size < sp);
	room = __builtin_alloca(sp - bottom - (sp - frame_size) - BELOW);
	*room = 1;
	CHECK_EQ(mprotect(stack, STACK / 2, PROT_READ), 0);
	go_deeper(0);
	return unused;
}

/* Somebody waits for each virtual processor. */
static void *waits_for_it(void *unused)
{
	for (;;)
		__asm__ volatile("");
	return unused;
}

int main(void)
{
	struct sigaction usr = { .sa_sigaction = here, .sa_flags = SA_SIGINFO };
	struct sigaction segv = { .sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	pthread_attr_t a;
	pthread_t t;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("no quantum");
#endif
	CHECK_EQ(sigaction(SIGUSR1, &usr, NULL), 0);
	CHECK_EQ(sigaction(SIGSEGV, &segv, NULL), 0);
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstack(&a, stack, STACK), 0);
	CHECK_EQ(pthread_create(&t, &a, computes, NULL), 0);
	for (int i = 0; i < HOGS; i++)
		CHECK_EQ(pthread_create(&t, NULL, waits_for_it, NULL), 0);
	for (int i = 0; i < LONG * 1000; i++)
		usleep(1000);
	return 1;
}
