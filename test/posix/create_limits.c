/* posix/thread: pthread_create with scarce resources. With a limited address space: EAGAIN, and
 * existing threads go on; a thread that tries again and again gets a thread once other threads have
 * ended. With defaults that the program has set. pthread_getattr_np reports the processors; a set
 * without any of ours gives EINVAL. A mutex of libc's kinds that a condition wait has released
 * cannot be destroyed. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static void *nothing(void *arg)
{
	return arg;
}

static void one_thread(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void little_space(void)
{
	struct rlimit l = { 800 << 20, 800 << 20 };

	CHECK_EQ(setrlimit(RLIMIT_AS, &l), 0);
	one_thread();
}

/* ---- hardly any space ------------------------------------------------------------------------ */
enum { MOST = 200, MIB = 1 << 20 };
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int is_open, inside;
static size_t room;

static void *stays(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&door), 0);
	inside++;
	while (!is_open)
		CHECK_EQ(pthread_cond_wait(&opened, &door), 0);
	CHECK_EQ(pthread_mutex_unlock(&door), 0);
	return arg;
}

static size_t mapped(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void as_many_as_fit(void)
{
	static pthread_t t[MOST];
	int n = 0, e = 0;

	while (n < MOST && (e = pthread_create(&t[n], NULL, stays, NULL)) == 0)
		n++;
	CHECK(n == MOST || e == EAGAIN);
	CHECK_EQ(pthread_mutex_lock(&door), 0);
	is_open = 1;
	CHECK_EQ(pthread_cond_broadcast(&opened), 0);
	CHECK_EQ(pthread_mutex_unlock(&door), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(inside, n);
	inside = is_open = 0;
}

/* Fails twice; when there is space again, threads are made. */
static void hardly_any_space(void)
{
	struct rlimit before, l;

	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	l = before;
	l.rlim_cur = mapped() + room;
	CHECK_EQ(setrlimit(RLIMIT_AS, &l), 0);
	as_many_as_fit();
	as_many_as_fit();
	CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
	one_thread();
	as_many_as_fit();
}

/* ---- as soon as there is space --------------------------------------------------------------- */
enum { CREATORS = 2, MADE = 300 };
static int made, is_limited;

static void *tries_until_it_goes_well(void *arg)
{
	pthread_attr_t a;
	pthread_t t;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, 16 * MIB), 0);
	while (!__atomic_load_n(&is_limited, __ATOMIC_ACQUIRE))
		usleep(100);
	while (__atomic_load_n(&made, __ATOMIC_RELAXED) < MADE) {
		int e = pthread_create(&t, &a, nothing, NULL);

		CHECK(e == 0 || e == EAGAIN);
		__atomic_fetch_add(&made, e == 0, __ATOMIC_RELAXED);
	}
	return arg;
}

static void again_and_again(void)
{
	struct rlimit l = { .rlim_max = RLIM_INFINITY };
	pthread_t t[CREATORS];

	for (int i = 0; i < CREATORS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, tries_until_it_goes_well, NULL), 0);
	l.rlim_cur = mapped() + (size_t)256 * MIB;
	CHECK_EQ(setrlimit(RLIMIT_AS, &l), 0);
	__atomic_store_n(&is_limited, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < CREATORS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* ---- defaults -------------------------------------------------------------------------------- */
static int state;
static sigset_t mask;

static void *looks(void *arg)
{
	pthread_attr_t a;

	CHECK_EQ(pthread_getattr_np(pthread_self(), &a), 0);
	CHECK_EQ(pthread_attr_getdetachstate(&a, &state), 0);
	CHECK_EQ(pthread_attr_destroy(&a), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void defaults(void)
{
	pthread_attr_t a;
	sigset_t set;
	pthread_t t;
	int done = 0;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
#if __GLIBC_PREREQ(2, 32)
	CHECK_EQ(pthread_attr_setsigmask_np(&a, &set), 0);
#else
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &set, NULL), 0);
#endif
	CHECK_EQ(pthread_setattr_default_np(&a), 0);
	CHECK_EQ(pthread_create(&t, NULL, looks, &done), 0);
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		usleep(100);
	CHECK_EQ(state, PTHREAD_CREATE_DETACHED);
	CHECK_EQ(sigismember(&mask, SIGUSR1), 1);
}

static void *compares(void *arg)
{
	cpu_set_t mine, told;
	pthread_attr_t a;

	CHECK_EQ(pthread_getattr_np(pthread_self(), &a), 0);
	CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof mine, &mine), 0);
	CHECK_EQ(pthread_attr_getaffinity_np(&a, sizeof told, &told), 0);
	CHECK(CPU_EQUAL(&mine, &told));
	CHECK_EQ(pthread_attr_destroy(&a), 0);
	return arg;
}

static void processors(void)
{
	pthread_attr_t a;
	cpu_set_t none;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, compares, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CPU_ZERO(&none);
	CPU_SET(CPU_SETSIZE - 1, &none);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setaffinity_np(&a, sizeof none, &none), 0);
	CHECK_EQ(pthread_create(&t, &a, nothing, NULL), EINVAL);
}

/* ---- a mutex in a wait ----------------------------------------------------------------------- */
static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting, go;

static void *waits(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	waiting = 1;
	while (!go)
		CHECK_EQ(pthread_cond_wait(&cond, &mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	return arg;
}

static void mutex_of_a_waiter(void)
{
	pthread_mutexattr_t a;
	pthread_t t;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT), 0);
	CHECK_EQ(pthread_mutex_init(&mutex, &a), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	while (!waiting) {
		CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
		usleep(100);
		CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	}
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pthread_mutex_destroy(&mutex), EBUSY);
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	go = 1;
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pthread_cond_signal(&cond), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_mutex_destroy(&mutex), 0);
}

/* Runs fn in a process that has had no threads. */
static void in_child(void (*fn)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		fn();
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(void)
{
	in_child(little_space);
	for (room = 0; room <= 256u * MIB; room = room < MIB ? room + MIB / 4 : room * 2)
		in_child(hardly_any_space);
	in_child(again_and_again);
	in_child(defaults);
	in_child(processors);
	in_child(mutex_of_a_waiter);
	return 0;
}
