/* posix/signal kbi_signal_worker_of: a thread that keeps its kernel thread keeps its mask, also where
 * a signal comes at the end of its vfork, and the virtual processor that it had has no other kernel
 * thread yet. */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 400, AT_ONCE = 8 };

static void handler(int sig)
{
	(void)sig;
}

/* As the kernel has it, by the thread's own instruction. */
static uint64_t kernels_mask(void)
{
	uint64_t mask = 0;
#if defined(__x86_64__)
	register uint64_t *old __asm__("rdx") = &mask;
	register long size __asm__("r10") = sizeof mask;
	long r = SYS_rt_sigprocmask;

	__asm__ volatile("syscall" : "+a"(r) : "D"(SIG_BLOCK), "S"(0L), "r"(old), "r"(size) : "rcx", "r11", "memory");
	CHECK_EQ(r, 0);
#endif
	return mask;
}

static void *forks(void *unused)
{
	const uint64_t bits = 1ull << (SIGCHLD - 1) | 1ull << (SIGUSR1 - 1) | 1ull << (SIGTERM - 1);
	sigset_t set;
	pid_t child;

	CHECK(personality(PER_LINUX | ADDR_NO_RANDOMIZE) != -1);
	child = vfork();
	if (child == 0)
		_exit(0);
	CHECK(child > 0);
	CHECK_EQ(kernels_mask() & bits, 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	CHECK(!sigismember(&set, SIGCHLD) && !sigismember(&set, SIGUSR1));
	while (waitpid(child, NULL, 0) < 0)
		;
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t t[AT_ONCE];
	sigset_t chld;

	CHECK_EQ(sigaction(SIGCHLD, &sa, NULL), 0);
	for (int round = 0; round < THREADS / AT_ONCE; round++) {
		for (int i = 0; i < AT_ONCE; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, forks, NULL), 0);
		/* the signal is the threads' */
		sigemptyset(&chld);
		sigaddset(&chld, SIGCHLD);
		CHECK_EQ(pthread_sigmask(SIG_BLOCK, &chld, NULL), 0);
		for (int i = 0; i < AT_ONCE; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &chld, NULL), 0);
	}
	return 0;
}
