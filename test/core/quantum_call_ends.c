/* core/quantum, libc/context: if a thread was interrupted behind the system call of a function of
 * libc's that does nothing else, the function's return address is found. A signal to oneself comes
 * there. It is not found in a function that has more to do.
 * matrix: none
 * body: thread */
#include <signal.h>
#include <unistd.h>

#include "libc/context.h"
#include "test.h"

enum {
	NEAR = 64 /* bytes of code from a call to the code behind it */
};

static volatile uintptr_t returns_to;
static volatile int come;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	returns_to = kbi_context_returns_to(context);
	come++;
}

/* The address behind its call. */
static __attribute__((noinline)) uintptr_t here(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

static __attribute__((noinline)) uintptr_t sends_by_kill(pid_t me)
{
	volatile uintptr_t behind;

	CHECK_EQ(kill(me, SIGUSR1), 0);
	behind = here();
	return behind;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	uintptr_t behind;

#if defined(__SANITIZE_THREAD__)
	SKIP("its own functions stand before libc's");
#elif !defined(__GLIBC__) || !(defined(__x86_64__) || defined(__aarch64__) || \
	(defined(__riscv) && __riscv_xlen == 64))
	SKIP("this libc's functions, or this machine's, are not known");
#endif
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	behind = sends_by_kill(getpid());
	CHECK_EQ(come, 1);
	CHECK(returns_to < behind && behind - returns_to < NEAR);

	/* it restores the mask afterwards */
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(come, 2);
	CHECK_EQ(returns_to, 0);
	return 0;
}
