/* pthread_kill reaches the named thread, waiting or running. sem_wait and sleep are interrupted;
 * condition waits go on. A blocked signal waits until the thread unblocks it. pthread_sigqueue
 * brings its value; sigwait is tested. Every signal that can be handled is sent to further threads,
 * to the caller and in the child of fork. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static volatile int ready, go, handled, value;
static pthread_t target;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (pthread_equal(pthread_self(), target))
		handled++;
	else
		handled = -1000;
	if (sig == SIGUSR2)
		value = info->si_value.sival_int;
}

static void *in_sem(void *arg)
{
	ready = 1;
	CHECK_EQ(sem_wait(&s), -1);
	CHECK_EQ(errno, EINTR);
	CHECK_EQ(handled, 1);
	return arg;
}

static void *in_sleep(void *arg)
{
	struct timespec t = { 100, 0 }, left;

	ready = 1;
	CHECK_EQ(nanosleep(&t, &left), -1);
	CHECK_EQ(errno, EINTR);
	CHECK(left.tv_sec >= 98);
	return arg;
}

static void *in_cond(void *arg)
{
	pthread_mutex_lock(&m);
	ready = 1;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	pthread_mutex_unlock(&m);
	CHECK_EQ(handled, 1);
	return arg;
}

static void *yielding(void *arg)
{
	ready = 1;
	while (handled == 0)
		sched_yield();
	return arg;
}

static void *blocking(void *arg)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	ready = 1;
	while (!go)
		usleep(1000);
	usleep(5000);
	CHECK_EQ(handled, 0);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, &old), 0);
	CHECK_EQ(sigismember(&old, SIGUSR1), 1);
	CHECK_EQ(handled, 1);
	return arg;
}

static void *waiting(void *arg)
{
	sigset_t set;
	int sig = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	ready = 1;
	CHECK_EQ(sigwait(&set, &sig), 0);
	CHECK_EQ(sig, SIGUSR1);
	CHECK_EQ(handled, 0);
	return arg;
}

static void hit(void *(*fn)(void *), int queue)
{
	ready = go = handled = 0;
	CHECK_EQ(pthread_create(&target, NULL, fn, NULL), 0);
	while (!ready)
		sched_yield();
	usleep(20000);
	if (queue)
		CHECK_EQ(pthread_sigqueue(target, SIGUSR2, (union sigval){ .sival_int = 4711 }), 0);
	else
		CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
	usleep(5000);
	pthread_mutex_lock(&m);
	go = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	CHECK_EQ(pthread_join(target, NULL), 0);
	CHECK_EQ(handled, fn == waiting ? 0 : 1);
}

/* ---- every signal ---- */

static volatile int caught;

static void catches(int sig)
{
	caught = pthread_equal(pthread_self(), target) ? sig : -1;
}

static void *in_sem_restarted(void *arg)
{
	ready = 1;
	CHECK_EQ(sem_wait(&s), 0);
	return arg;
}

static void to_waiting(int sig)
{
	ready = caught = 0;
	CHECK_EQ(pthread_create(&target, NULL, in_sem_restarted, NULL), 0);
	while (!ready)
		sched_yield();
	sched_yield();
	CHECK_EQ(pthread_kill(target, sig), 0);
	while (!caught)
		sched_yield();
	CHECK_EQ(caught, sig);
	sem_post(&s);
	CHECK_EQ(pthread_join(target, NULL), 0);
}

static void to_self(int sig)
{
	target = pthread_self();
	caught = 0;
	CHECK_EQ(raise(sig), 0);
	CHECK_EQ(caught, sig);
	caught = 0;
	CHECK_EQ(kill(getpid(), sig), 0);
	CHECK_EQ(caught, sig);
}

static void in_child(int sig)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		caught = 0;
		raise(sig);
		_exit(caught == sig ? 0 : 1);
	}
	CHECK(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(status, 0);
}

static void every_signal(void)
{
	struct sigaction sa = { .sa_flags = SA_RESTART }, old;

	sa.sa_handler = catches;
	for (int sig = 1; sig < 32; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP || sig == SIGCHLD)
			continue;
		CHECK_EQ(sigaction(sig, &sa, &old), 0);
		to_waiting(sig);
		to_self(sig);
		if (sig == SIGURG || sig == SIGUSR1)
			in_child(sig);
		CHECK_EQ(sigaction(sig, &old, NULL), 0);
	}
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	sem_init(&s, 0, 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	for (int i = 0; i < 5; i++) {
		hit(in_sem, 0);
		hit(in_sleep, 0);
		hit(in_cond, 0);
		hit(yielding, 0);
		hit(blocking, 0);
		hit(waiting, 0);
		value = 0;
		hit(in_sem, 1);
		CHECK_EQ(value, 4711);
	}
	target = pthread_self();
	handled = 0;
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(handled, 2);
	CHECK_EQ(pthread_kill(pthread_self(), 0), 0);
	CHECK_EQ(pthread_kill(pthread_self(), 1000), EINVAL);
	every_signal();
	return 0;
}
