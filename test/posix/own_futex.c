/* OpenMP's teams by libgomp's own entries: barriers, critical sections, nested teams, with more
 * threads than virtual processors. Their waits are futex calls of libgomp's own instructions, which
 * are taken over: the threads are lightweight, also if the program had made some before it loaded
 * libgomp, or made a team. With the option own_futex=0 they are kernel threads, and both kinds
 * work. With processes as virtual processors libgomp must have been there before the first thread:
 * the kernel's private futexes do not work between processes. */
#include "test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEAM = 40, ROUNDS = 200, OUTER = 4, INNER = 8, NESTED = 60 };

static struct {
	void (*parallel)(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
	void (*barrier)(void);
	void (*critical_start)(void);
	void (*critical_end)(void);
	void (*nest_lock)(void *);
	void (*nest_unlock)(void *);
	void (*init_nest_lock)(void *);
	int (*number)(void);
	void (*levels)(int);
	void (*dynamic)(int);
} omp;

static char lock[64] __attribute__((aligned(16))); /* an omp_nest_lock_t */
static int arrived[ROUNDS + 1], kernel_threads_seen;
static long in_critical, in_lock, inner;

static void member(void *unused)
{
	(void)unused;
	for (int i = 1; i <= ROUNDS; i++) {
		__atomic_add_fetch(&arrived[i], 1, __ATOMIC_RELAXED);
		omp.barrier();
		CHECK_EQ(__atomic_load_n(&arrived[i], __ATOMIC_RELAXED), TEAM);
		if (i == ROUNDS / 2 && omp.number() == 0)
			kernel_threads_seen = test_kernel_threads();
		omp.critical_start();
		in_critical++;
		omp.critical_end();
		omp.nest_lock(lock);
		omp.nest_lock(lock);
		in_lock++;
		omp.nest_unlock(lock);
		omp.nest_unlock(lock);
	}
}

static void count(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&inner, 1, __ATOMIC_RELAXED);
	omp.barrier();
}

static void outer(void *unused)
{
	(void)unused;
	for (int i = 0; i < NESTED / OUTER; i++)
		omp.parallel(count, NULL, INNER, 0);
}

static bool load(void)
{
	void *library = dlopen("libgomp.so.1", RTLD_NOW);

	if (!library)
		return false;
#define TAKE(field, name) \
	do { \
		void *p = dlsym(library, name); \
		CHECK(p != NULL); \
		memcpy(&omp.field, &p, sizeof p); \
	} while (0)
	TAKE(parallel, "GOMP_parallel");
	TAKE(barrier, "GOMP_barrier");
	TAKE(critical_start, "GOMP_critical_start");
	TAKE(critical_end, "GOMP_critical_end");
	TAKE(nest_lock, "omp_set_nest_lock");
	TAKE(nest_unlock, "omp_unset_nest_lock");
	TAKE(init_nest_lock, "omp_init_nest_lock");
	TAKE(number, "omp_get_thread_num");
	TAKE(levels, "omp_set_max_active_levels");
	TAKE(dynamic, "omp_set_dynamic");
	return true;
}

static void *nothing(void *arg)
{
	return arg;
}

static void make_a_thread(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* light: as many kernel threads as virtual processors need; else a kernel thread for each of the
 * team, at least. */
static int teams(bool light, bool threads_before)
{
	if (threads_before)
		make_a_thread();
	omp.init_nest_lock(lock);
	omp.dynamic(0);
	omp.levels(2);
	omp.parallel(member, NULL, TEAM, 0);
	CHECK_EQ(in_critical, (long)TEAM * ROUNDS);
	CHECK_EQ(in_lock, (long)TEAM * ROUNDS);
	omp.parallel(outer, NULL, OUTER, 0);
	CHECK_EQ(inner, (long)NESTED / OUTER * OUTER * INNER);
	if (light)
		CHECK(kernel_threads_seen < TEAM);
	else
		CHECK(kernel_threads_seen >= TEAM);
	return 0;
}

static void again(char **argv, const char *way, const char *option)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		setenv("KOCHAB_OWN_FUTEX", option, 1);
		execl("/proc/self/exe", argv[0], way, option, NULL);
		_exit(126);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
	const bool replaced_here =
#if defined(__x86_64__)
		true;
#else
		false;
#endif
	const char *process = getenv("KOCHAB_BODY");
	bool on_kochab = dlsym(RTLD_DEFAULT, "kb_version") != NULL;

	if (argc > 2) {
		if (!strcmp(argv[1], "loaded-late"))
			make_a_thread();
		CHECK(load());
		return teams(on_kochab && !strcmp(argv[2], "1"), !strcmp(argv[1], "threads-before"));
	}
	setenv("GOMP_SPINCOUNT", "100", 0); /* for the children, libgomp has read it here */
	if (!replaced_here || !load())
		return 77;
	again(argv, "first", "1");
	again(argv, "threads-before", "1");
	if (process && !strcmp(process, "process"))
		return 0;
	again(argv, "loaded-late", "1");
	again(argv, "first", "0");
	again(argv, "threads-before", "0");
	return 0;
}
