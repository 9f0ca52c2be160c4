/* The child of fork has its caller's signal mask in the kernel, too, even if the caller had to wait
 * before the fork while threads were made, and threads with different masks ran on its virtual
 * processor: some wait for any signal. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 300, MAKERS = 2, WAITING = 3 };

static int over;

static void *wait_for_signals(void *arg)
{
	pause();
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void *make(void *arg)
{
	pthread_attr_t attr;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	for (size_t size = 64 * 1024; !__atomic_load_n(&over, __ATOMIC_RELAXED); size += 4096) {
		pthread_t t;

		CHECK_EQ(pthread_attr_setstacksize(&attr, size), 0);
		CHECK_EQ(pthread_create(&t, &attr, nothing, NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
		if (size > 1 << 20)
			size = 64 * 1024;
	}
	return arg;
}

/* Returns 0 if SIGQUIT and SIGUSR1 are open and SIGUSR2 is blocked. */
static int wrong(void)
{
	unsigned long mask = 0, bit = 1;

	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8))
		return 1;
	if (mask & (bit << (SIGQUIT - 1)) || mask & (bit << (SIGUSR1 - 1)))
		return 2;
	return mask & (bit << (SIGUSR2 - 1)) ? 0 : 3;
}

int main(void)
{
	pthread_t maker[MAKERS], t;
	sigset_t mine;

	for (int i = 0; i < WAITING; i++) {
		CHECK_EQ(pthread_create(&t, NULL, wait_for_signals, NULL), 0);
		CHECK_EQ(pthread_detach(t), 0);
	}
	sigemptyset(&mine);
	sigaddset(&mine, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &mine, NULL), 0);
	for (int i = 0; i < MAKERS; i++)
		CHECK_EQ(pthread_create(&maker[i], NULL, make, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(wrong());
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), 0);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < MAKERS; i++)
		CHECK_EQ(pthread_join(maker[i], NULL), 0);
	return 0;
}
