/* Signals with siginfo, sent by system call numbers to threads known by their thread numbers, and
 * the limit of pending signals: rt_sigqueueinfo is for the process, rt_tgsigqueueinfo for the
 * thread, and tgkill of a real-time signal may return EAGAIN. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

static sem_t ready, go;
static pid_t tid;
static pthread_t handled_by;
static int said, seen;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK_EQ(info->si_signo, sig);
	CHECK_EQ(info->si_code, SI_QUEUE);
	handled_by = pthread_self();
	said = info->si_value.sival_int;
	__atomic_store_n(&seen, 1, __ATOMIC_RELEASE);
}

static void *waits(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	tid = (pid_t)syscall(SYS_gettid);
	sem_post(&ready);
	while (sem_wait(&go) && errno == EINTR)
		;
	return arg;
}

static siginfo_t saying(int value)
{
	siginfo_t i;

	memset(&i, 0, sizeof(i));
	i.si_code = SI_QUEUE;
	i.si_pid = getpid();
	i.si_uid = getuid();
	i.si_value.sival_int = value;
	return i;
}

static void await(int value)
{
	while (!__atomic_load_n(&seen, __ATOMIC_ACQUIRE))
		usleep(1000);
	CHECK_EQ(said, value);
	seen = 0;
}

static void limited(void)
{
	struct rlimit old, none;

	CHECK_EQ(getrlimit(RLIMIT_SIGPENDING, &old), 0);
	none = old;
	none.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), tid, SIGRTMIN + 1), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), tid, 0), 0);
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &old), 0);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), tid, SIGRTMIN + 1), 0);
}

int main(void)
{
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
	siginfo_t i = saying(7);
	pthread_t t;

	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	sem_wait(&ready);
	CHECK_EQ(syscall(SYS_rt_sigqueueinfo, tid, SIGUSR1, &i), 0);
	await(7);
	i = saying(8);
	CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SIGUSR1, &i), 0);
	await(8);
	CHECK(pthread_equal(handled_by, t));
	i.si_code = SI_TKILL;
	CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SIGUSR1, &i), -1);
	CHECK_EQ(errno, EPERM);
	i.si_code = SI_QUEUE;
	CHECK_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, 999, &i), -1);
	CHECK_EQ(errno, EINVAL);
	limited();
	sem_post(&go);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
