/* State that the kernel keeps for each kernel thread, used by threads: numbers, by which signals
 * find them; names by prctl; nice values, which are the thread's alone and stay with it over waits;
 * tracees; timers that signal a single thread. */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, TURNS = 50 };

static pthread_barrier_t all;
static int number[THREADS];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int turn, handled_by;
static pthread_t handled_on;

static int my_number(void)
{
	return (int)syscall(SYS_gettid);
}

static void handler(int sig)
{
	(void)sig;
	handled_by = my_number();
	handled_on = pthread_self();
}

static void *numbers(void *arg)
{
	int me = (int)(long)arg, first = number[me] = my_number();

	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		CHECK(i == me || number[i] != first);
	CHECK(first != getpid());
	for (int i = 0; i < TURNS; i++) {
		sched_yield();
		CHECK_EQ(my_number(), first);
	}
	return arg;
}

static void *tells(void *arg)
{
	*(int *)arg = my_number();
	return arg;
}

/* A program that lists threads by their numbers would take a new thread for an ended thread. */
static void numbers_are_not_used_again(void)
{
	enum { ONE_AFTER_THE_OTHER = 50 };
	int seen[ONE_AFTER_THE_OTHER];
	pthread_t t;

	for (int i = 0; i < ONE_AFTER_THE_OTHER; i++) {
		CHECK_EQ(pthread_create(&t, NULL, tells, &seen[i]), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
		for (int k = 0; k < i; k++)
			CHECK(seen[k] != seen[i]);
	}
}

static void *signals(void *arg)
{
	handled_by = 0;
	CHECK_EQ(syscall(SYS_tgkill, getpid(), my_number(), SIGUSR1), 0);
	CHECK_EQ(handled_by, my_number());
	CHECK(pthread_equal(handled_on, pthread_self()));
	errno = 0;
	CHECK_EQ(syscall(SYS_tgkill, getpid(), 1 << 30, 0), -1);
	CHECK_EQ(errno, ESRCH);
	return arg;
}

static void *names(void *arg)
{
	char name[16] = "";

	CHECK_EQ(prctl(PR_SET_NAME, "a name that is too long"), 0);
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK(strcmp(name, "a name that is ") == 0);
	CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
	CHECK(strcmp(name, "a name that is ") == 0);
	return arg;
}

/* A thread's nice value is its own, also after it has waited for main, whose value differs. */
static void *nice_one(void *arg)
{
	int before = getpriority(PRIO_PROCESS, 0);

	CHECK_EQ(setpriority(PRIO_PROCESS, arg ? (id_t)my_number() : 0, before + 3), 0);
	CHECK_EQ(getpriority(PRIO_PROCESS, (id_t)my_number()), before + 3);
	CHECK_EQ(syscall(SYS_getpriority, PRIO_PROCESS, my_number()), 20 - (before + 3));
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&m);
		turn++;
		pthread_cond_signal(&c);
		while (turn % 2)
			pthread_cond_wait(&c, &m);
		pthread_mutex_unlock(&m);
		CHECK_EQ(getpriority(PRIO_PROCESS, 0), before + 3);
	}
	return NULL;
}

static void play_with(void *how)
{
	int before = getpriority(PRIO_PROCESS, 0);
	pthread_t t;

	turn = 0;
	CHECK_EQ(pthread_create(&t, NULL, nice_one, how), 0);
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&m);
		while (turn % 2 == 0)
			pthread_cond_wait(&c, &m);
		turn++;
		pthread_cond_signal(&c);
		pthread_mutex_unlock(&m);
		CHECK_EQ(getpriority(PRIO_PROCESS, 0), before);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* Asks first, so that the thread has its kernel thread when it forks: that kernel thread is the
 * tracer of a child which asks to be traced. */
static void *traces(void *arg)
{
	int status = 0;
	pid_t child;

	CHECK_EQ(ptrace(PTRACE_CONT, getpid(), NULL, NULL), -1);
	child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(7);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status)) /* tracing is not allowed here */
		return arg;
	CHECK(WIFSTOPPED(status));
	for (int i = 0; i < TURNS; i++)
		sched_yield();
	if (ptrace(PTRACE_CONT, child, NULL, NULL) != 0)
		kill(child, SIGKILL); /* otherwise it would keep the test's output open */
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return arg;
}

static void *timer(void *arg)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	struct sigevent e = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	timer_t t;

	e._sigev_un._tid = my_number();
	handled_by = 0;
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &e, &t), 0);
	CHECK_EQ(timer_settime(t, 0, &soon, NULL), 0);
	for (int i = 0; i < 2000 && !__atomic_load_n(&handled_by, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	CHECK_EQ(handled_by, my_number());
	CHECK_EQ(timer_delete(t), 0);
	return arg;
}

/* A mutex of libc's knows its owner by the number that the thread had before, and a mutex that was
 * freed while it was held does no harm at the thread's end. */
static void *owner(void *arg)
{
	pthread_mutexattr_t a;
	pthread_mutex_t checks, *robust =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT), 0);
	CHECK_EQ(pthread_mutex_init(&checks, &a), 0);
	CHECK_EQ(pthread_mutex_lock(&checks), 0);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1), 0);
	CHECK_EQ(pthread_mutex_lock(&checks), EDEADLK);
	CHECK_EQ(pthread_mutex_unlock(&checks), 0);
	CHECK_EQ(pthread_mutex_lock(&checks), 0);
	CHECK_EQ(pthread_mutex_lock(&checks), EDEADLK);
	CHECK_EQ(pthread_mutex_unlock(&checks), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
	CHECK_EQ(pthread_mutex_init(robust, &a), 0);
	CHECK_EQ(pthread_mutex_lock(robust), 0);
	CHECK_EQ(munmap(robust, 4096), 0);
	return arg;
}

/* ---- a policy that the kernel refuses ----------------------------------------------------- */

/* Each thread asks for it: no thread keeps a kernel thread for it. */
static void *is_refused(void *arg)
{
	struct sched_param none = { .sched_priority = 0 };
	static int before;

	if (pthread_barrier_wait(&all) == PTHREAD_BARRIER_SERIAL_THREAD)
		before = test_kernel_threads();
	pthread_barrier_wait(&all);
	CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &none), -1);
	CHECK_EQ(errno, EINVAL);
	if (pthread_barrier_wait(&all) == PTHREAD_BARRIER_SERIAL_THREAD)
		CHECK(test_kernel_threads() < before + THREADS / 2);
	pthread_barrier_wait(&all);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_barrier_init(&all, NULL, THREADS), 0);
	CHECK_EQ(my_number(), getpid());
	crowd_run(numbers, THREADS);
	CHECK_EQ(my_number(), getpid());
	numbers_are_not_used_again();
	crowd_run(is_refused, THREADS);
	crowd_run(signals, 1);
	crowd_run(names, 2);
	play_with(NULL);
	play_with(&all);
	crowd_run(traces, 2);
	crowd_run(timer, 1);
	crowd_run(owner, 2);
	/* for threads made after kernel threads were kept, and for main, which keeps its own */
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1), 0);
	play_with(NULL);
	crowd_run(numbers, THREADS);
	return 0;
}
