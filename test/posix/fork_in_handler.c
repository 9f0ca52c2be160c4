/* A handler forks while its thread raises the signal, also if the signal was blocked and is
 * unblocked later, and wherever it interrupts threads that only yield, lock, post and wake each
 * other: the child returns from the handler, goes on as the thread did, uses locks and creates
 * threads, and ends well. A thread whose handler jumps out goes on, too. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 10, BUSY = 4, FORKS = 40, JUMPS = 200, EVERY_US = 500 };

static volatile int is_child;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void forker(int sig)
{
	pid_t pid = fork();
	(void)sig;

	CHECK(pid >= 0);
	if (pid == 0)
		is_child = 1;
}

static void *nothing(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return arg;
}

static void end_of_child(void)
{
	pthread_t t;

	if (!is_child)
		return;
	nothing(NULL);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	_exit(0);
}

static void *raises(void *arg)
{
	CHECK_EQ(raise(SIGUSR1), 0);
	end_of_child();
	return arg;
}

static void *lets_in(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK(!is_child);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	end_of_child();
	return arg;
}

static void one(void *(*fn)(void *))
{
	pthread_t t;
	int status;

	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(wait(&status) > 0);
	CHECK_EQ(status, 0);
}

/* ---- at any place ------------------------------------------------------------------------- */
static int interrupts, over;
static sem_t tokens;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t may_jump;

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)

static void forks_where_it_is(int sig)
{
	if (__atomic_add_fetch(&interrupts, 1, __ATOMIC_ACQ_REL) <= FORKS && !is_child)
		forker(sig);
}

static void jumps_from_where_it_is(int sig)
{
	(void)sig;
	if (may_jump && __atomic_add_fetch(&interrupts, 1, __ATOMIC_ACQ_REL))
		siglongjmp(back, 1);
}

static void *yields(void *arg)
{
	while (!is_child && !GET(over))
		sched_yield();
	end_of_child();
	return arg;
}

/* Makes only async-signal-safe calls, so that a jump out of them is defined. */
static void *yields_and_jumps(void *arg)
{
	sigsetjmp(back, 1);
	for (may_jump = 1; GET(interrupts) < JUMPS;) {
		CHECK_EQ(sem_post(&tokens), 0);
		sched_yield();
	}
	may_jump = 0;
	return arg;
}

static void *posts(void *arg)
{
	while (!is_child && !GET(over)) {
		CHECK_EQ(sem_post(&tokens), 0);
		while (sem_wait(&tokens))
			CHECK_EQ(errno, EINTR);
		CHECK_EQ(pthread_cond_signal(&cond), 0);
	}
	end_of_child();
	return arg;
}

static void every(unsigned us, void (*handler)(int))
{
	struct itimerval often = { { 0, us }, { 0, us } };
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
}

static void all_well(int children)
{
	int status;

	for (; children > 0; children--) {
		CHECK(wait(&status) > 0);
		CHECK_EQ(status, 0);
	}
}

/* Signals threads other than main, which the kernel would choose. */
static void storm(void *(*fn)(void *), int least, void (*handler)(int))
{
	pthread_t t[BUSY];
	sigset_t set;

	over = interrupts = 0;
	CHECK_EQ(sem_init(&tokens, 0, 1), 0);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, fn, NULL), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	every(EVERY_US, handler);
	while (GET(interrupts) < least)
		usleep(1000);
	every(0, SIG_IGN);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = forker };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (int i = 0; i < TURNS; i++) {
		one(raises);
		one(lets_in);
	}
	storm(yields, FORKS, forks_where_it_is);
	all_well(FORKS);
	storm(posts, FORKS, forks_where_it_is);
	all_well(FORKS);
	storm(yields_and_jumps, JUMPS, jumps_from_where_it_is);
	return 0;
}
