/* sigtimedwait and sigwaitinfo report a signal of pthread_kill, raise or tgkill as SI_USER, as libc
 * does; a call by number reports the kernel's SI_TKILL. A handler sees SI_TKILL. */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static sem_t ready, go;
static volatile int code;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	code = info->si_code;
}

static void *waits(void *arg)
{
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	sem_post(&ready);
	sem_wait(&go);
	CHECK_EQ(sigtimedwait(&set, &info, &(struct timespec){ 0 }), SIGUSR1);
	CHECK_EQ(info.si_code, SI_USER);
	CHECK_EQ(info.si_pid, getpid());
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR1);
	CHECK_EQ(info.si_code, SI_USER);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(syscall(SYS_rt_sigtimedwait, &set, &info, NULL, 8), SIGUSR1);
	CHECK_EQ(info.si_code, SI_TKILL);
	CHECK_EQ(sigtimedwait(&set, &info, &(struct timespec){ 0 }), -1);
	CHECK_EQ(code, 0);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	pthread_t t;

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	sem_wait(&ready);
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	sem_post(&go);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(code, SI_TKILL);
	return 0;
}
