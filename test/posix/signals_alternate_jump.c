/* posix/signal_jump: a program that is compiled with _FORTIFY_SOURCE leaves its handlers by
 * __longjmp_chk, which refuses to jump to a lower address unless the thread is on its alternate
 * stack. Here that stack lies above the thread's own, in main and in threads, with handlers that
 * have let other threads run before they jump. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "test.h"

enum { THREADS = 8, JUMPS = 50, STACK = 65536 };

extern void __longjmp_chk(struct __jmp_buf_tag env[1], int value) __attribute__((weak, noreturn));
static __thread sigjmp_buf back;

static void jump(int sig)
{
	(void)sig;
	sched_yield();
	__longjmp_chk(back, 1);
}

static void *body(void *arg)
{
	void *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t s = { .ss_sp = memory, .ss_size = STACK };

	CHECK(memory != MAP_FAILED);
	CHECK_EQ(sigaltstack(&s, NULL), 0);
	for (volatile int i = 0; i < JUMPS; i++) {
		if (sigsetjmp(back, 1) == 0) {
			raise(SIGUSR1);
			CHECK(!"the handler returned");
		}
	}
	CHECK_EQ(sigaltstack(NULL, &s), 0);
	CHECK_EQ(s.ss_flags, 0);
	return arg;
}

int main(void)
{
	struct sigaction action = { .sa_handler = jump, .sa_flags = SA_ONSTACK };
	pthread_t thread[THREADS];

	if (!__longjmp_chk)
		SKIP("this libc has no __longjmp_chk");
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, body, NULL), 0);
	body(NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	return 0;
}
