/* PTHREAD_SCOPE_SYSTEM under each value of option scope. A program into which this library was only
 * preloaded gets lightweight threads by default and with `process`, kernel threads with `asked`;
 * attributes return the value that was set. A lightweight thread that then asks for a real-time
 * policy gets it; with `process` the policy is only remembered. An affinity is obeyed in any case.
 * matrix: run-only */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 40 };

static pthread_barrier_t all;
static int kept; /* a thread of that scope gets a kernel thread when it asks for it */

static void *wait_for_all(void *arg)
{
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	return arg;
}

/* The kernel's answer for the kernel thread that the caller is on. */
static void kernels_word(const char *file, char *text, size_t size)
{
	FILE *f = fopen(file, "r");

	CHECK(f != NULL);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

static int kernels_processors(void)
{
	char text[8192], *at;
	int n = 0;

	kernels_word("/proc/thread-self/status", text, sizeof(text));
	at = strstr(text, "Cpus_allowed:");
	CHECK(at != NULL);
	for (at += 13; *at && *at != '\n'; at++)
		if (*at != '\t' && *at != ',')
			n += __builtin_popcountl(strtoul((char[]){ *at, '\0' }, NULL, 16));
	return n;
}

static int kernels_policy(void)
{
	char text[2048], *at;

	kernels_word("/proc/thread-self/stat", text, sizeof(text));
	at = strrchr(text, ')'); /* behind field 2; the policy is field 41 */
	CHECK(at != NULL);
	for (int field = 2; field < 41; field++) {
		at = strchr(at + 1, ' ');
		CHECK(at != NULL);
	}
	return atoi(at);
}

static cpu_set_t one_of(const cpu_set_t *all_of_them)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int i = 0; CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, all_of_them))
			CPU_SET(i, &one);
	return one;
}

static void *pin_oneself(void *arg)
{
	cpu_set_t before, one, after;
	int processors = kernels_processors();

	CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof(before), &before), 0);
	one = one_of(&before);
	CHECK_EQ(arg ? sched_setaffinity(gettid(), sizeof(one), &one) :
		       pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
	CHECK_EQ(kernels_processors(), 1);
	CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof(after), &after), 0);
	CHECK(CPU_EQUAL(&one, &after));
	/* and back */
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(before), &before), 0);
	CHECK_EQ(kernels_processors(), processors);
	return arg;
}

static void *be_real_time(void *arg)
{
	struct sched_param p = { .sched_priority = 1 };
	int e = pthread_setschedparam(pthread_self(), SCHED_FIFO, &p), policy = -1;

	if (e == EPERM)
		return arg;
	CHECK_EQ(e, 0);
	CHECK_EQ(kernels_policy(), kept ? SCHED_FIFO : SCHED_OTHER);
	CHECK_EQ(pthread_getschedparam(pthread_self(), &policy, &p), 0);
	CHECK_EQ(policy, SCHED_FIFO);
	p.sched_priority = 0;
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_OTHER, &p), 0);
	CHECK_EQ(kernels_policy(), SCHED_OTHER);
	return arg;
}

static void *be_made_pinned(void *arg)
{
	CHECK_EQ(kernels_processors(), 1);
	return arg;
}

static void *say_scope(void *arg)
{
	pthread_attr_t a;

	CHECK_EQ(pthread_getattr_np(pthread_self(), &a), 0);
	CHECK_EQ(pthread_attr_getscope(&a, arg), 0);
	pthread_attr_destroy(&a);
	return arg;
}

static void run(const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, a, fn, arg), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void each(pthread_attr_t *a)
{
	cpu_set_t set;
	int scope = -1;

	run(a, say_scope, &scope);
	CHECK_EQ(scope, PTHREAD_SCOPE_SYSTEM);
	run(a, pin_oneself, NULL);
	run(a, pin_oneself, &scope);
	run(a, be_real_time, NULL);
	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	set = one_of(&set);
	CHECK_EQ(pthread_attr_setaffinity_np(a, sizeof(set), &set), 0);
	run(a, be_made_pinned, NULL);
}

static void again(char *program, const char *scope)
{
	char *args[] = { program, (char *)(uintptr_t)scope, NULL };
	pid_t child = fork();
	int status;

	if (child == 0) { /* the environment is read when the process starts */
		setenv("KOCHAB_SCOPE", scope, 1);
		execv("/proc/self/exe", args);
		_exit(127);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "auto";
	int asked = strcmp(option, "asked") == 0;
	pthread_t t[THREADS];
	pthread_attr_t a;
	int scope, n;

	if (argc == 1) {
		again(argv[0], "asked");
		again(argv[0], "process");
	}
	kept = strcmp(option, "process") != 0;
	pthread_barrier_init(&all, NULL, THREADS + 1);
	pthread_attr_init(&a);
	CHECK_EQ(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM), 0);
	CHECK_EQ(pthread_attr_getscope(&a, &scope), 0);
	CHECK_EQ(scope, PTHREAD_SCOPE_SYSTEM);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], &a, wait_for_all, NULL), 0);
	pthread_barrier_wait(&all);
	n = test_kernel_threads();
	CHECK(asked ? n > THREADS : n < THREADS);
	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	each(&a);
	return 0;
}
