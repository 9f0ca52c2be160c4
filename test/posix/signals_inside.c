/* A handler that interrupted the library's own work waits for a thread. That thread runs all the
 * same, also on one virtual processor.
 * matrix: vps=1,2 sched=rotator,lb2,steal */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

enum { TIMES = 150 };

static int fd[2], waiting, count, over;

static void handler(int sig)
{
	int e = errno;
	char c = 0;

	(void)sig;
	__atomic_add_fetch(&waiting, 1, __ATOMIC_RELEASE);
	while (read(fd[0], &c, 1) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(c, 'x');
	__atomic_add_fetch(&count, 1, __ATOMIC_RELEASE);
	errno = e;
}

/* Ends each wait. It lets no signal through. */
static void *other(void *arg)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		for (int n = __atomic_exchange_n(&waiting, 0, __ATOMIC_ACQ_REL); n > 0; n--)
			CHECK_EQ(write(fd[1], "x", 1), 1);
		usleep(100);
	}
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

/* The library's functions, as close to each other as can be. */
static void work(sem_t *s, pthread_mutex_t *m)
{
	pthread_t t;

	for (int i = 0; i < 50; i++) {
		CHECK_EQ(pthread_mutex_lock(m), 0);
		CHECK_EQ(sem_post(s), 0);
		CHECK_EQ(pthread_mutex_unlock(m), 0);
		sched_yield();
		while (sem_wait(s))
			CHECK_EQ(errno, EINTR);
	}
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	sigset_t alarm;
	pthread_t t;
	sem_t s;

	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(sem_init(&s, 0, 0), 0);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &alarm, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, other, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &alarm, NULL), 0);
	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	for (int i = 0; __atomic_load_n(&count, __ATOMIC_ACQUIRE) < TIMES; i++) {
		struct itimerval soon = { .it_value = { 0, 20 + i * 37 % 300 } };

		CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
		work(&s, &m);
	}
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &alarm, NULL), 0);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
