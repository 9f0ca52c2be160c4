/* core/place: virtual processors on processors of the program's choice: kb_init_with, option bind,
 * kb_vp_bind. The kernel tells where they may run: also after a blocking call has given a virtual
 * processor another kernel thread, and while another thread binds it. Children of fork are not
 * bound, nor are threads and processes that the program makes between kb_blocking_begin and
 * kb_blocking_end: a native library does not learn of pthread_create and posix_spawn.
 * matrix: vps=1,2 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kochab/kochab.h>

enum { ROUNDS = 50, SLEEPERS = 3 };

static cpu_set_t all;
static int cpus[CPU_SETSIZE], n_cpus;
static bool over;

static bool runs_on(int cpu)
{
	cpu_set_t now;

	CHECK_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
	return cpu < 0 ? CPU_EQUAL(&now, &all) : CPU_COUNT(&now) == 1 && CPU_ISSET(cpu, &now) &&
	       sched_getcpu() == cpu;
}

static void *looks(void *arg)
{
	return (void *)(intptr_t)runs_on(*(int *)arg);
}

static void *blocks_and_looks(void *arg)
{
	CHECK_EQ(kb_blocking_begin(), 0);
	usleep(20000);
	CHECK_EQ(kb_blocking_end(), 0);
	return looks(arg);
}

static bool is_process(void)
{
	uint64_t body;

	CHECK_EQ(kb_option("body", &body), 0);
	return body;
}

static char allowed[1024]; /* the kernel's line of the processors of the program */

static void read_allowed(void)
{
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	do
		CHECK(fgets(allowed, sizeof(allowed), f));
	while (strncmp(allowed, "Cpus_allowed:", 13));
	allowed[strcspn(allowed, "\n")] = 0;
	fclose(f);
}

/* arg: an int, -1. */
static void *makes_kernel_thread_and_child(void *arg)
{
	static char name[] = "sh", option[] = "-c", compare[] = "grep -qxF \"$0\" /proc/self/status";
	char *const argv[] = { name, option, compare, allowed, NULL };
	pid_t child;
	pthread_t t;
	int status;
	void *right = &t;

	CHECK_EQ(kb_blocking_begin(), 0);
	if (!is_process()) {
		CHECK_EQ(pthread_create(&t, NULL, looks, arg), 0);
		CHECK_EQ(pthread_join(t, &right), 0);
	}
	CHECK_EQ(posix_spawn(&child, "/bin/sh", NULL, NULL, argv, environ), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(kb_blocking_end(), 0);
	CHECK_EQ(status, 0);
	CHECK(right);
	return arg;
}

static void start_on(kb_thread_t *t, int vp, void *(*fn)(void *), void *arg)
{
	kb_attr_t a;

	CHECK_EQ(kb_attr_init(&a), 0);
	CHECK_EQ(kb_attr_setvp(&a, vp), 0);
	CHECK_EQ(kb_thread_create(t, &a, fn, arg), 0);
}

/* Binds from a thread that blocks in the kernel, so that the virtual processor is another kernel
 * thread's, and from threads that run there meanwhile. */
static void check_place(int vp, int cpu)
{
	kb_thread_t t[3];
	void *right;

	for (int i = 0; i < 3; i++)
		start_on(&t[i], vp, i == 1 ? blocks_and_looks : looks, &cpu);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(kb_thread_join(t[i], &right), 0);
		CHECK(right);
	}
}

static void *sleeps_on(void *arg)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		kb_blocking_begin();
		usleep(50);
		kb_blocking_end();
	}
	return arg;
}

static void bind_while_bodies_change(void)
{
	kb_thread_t t[SLEEPERS];
	int cpu = -1;

	for (int i = 0; i < SLEEPERS; i++)
		start_on(&t[i], 0, sleeps_on, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		cpu = i % (n_cpus + 1) < n_cpus ? cpus[i % (n_cpus + 1)] : -1;
		CHECK_EQ(kb_vp_bind(0, cpu), 0);
		if (i % 16 == 0)
			kb_sleep(100000);
	}
	check_place(0, cpu);
	CHECK_EQ(kb_vp_bind(0, cpus[0]), 0);
	check_place(0, cpus[0]);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < SLEEPERS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	check_place(0, cpus[0]);
}

static void check_kernel_threads_and_children(void)
{
	int status, anywhere = -1;
	kb_thread_t t;
	kb_attr_t a;
	void *right;
	pid_t child;

	CHECK_EQ(kb_attr_init(&a), 0);
	CHECK_EQ(kb_attr_setscope(&a, KB_SCOPE_SYSTEM), 0);
	CHECK_EQ(kb_thread_create(&t, &a, looks, &anywhere), 0);
	CHECK_EQ(kb_thread_join(t, &right), 0);
	CHECK(right);
	child = fork();
	if (child == 0)
		_exit(!runs_on(-1));
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	makes_kernel_thread_and_child(&anywhere);
	start_on(&t, 0, makes_kernel_thread_and_child, &anywhere);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
}

/* "0,3", in reverse order, so that the result cannot come about by chance. */
static const char *list_of_processors(void)
{
	static char text[64 + 8 * CPU_SETSIZE];
	size_t n = (size_t)snprintf(text, sizeof(text), "spin-us=50 bind=");

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int i = CPU_SETSIZE - 1; i >= 0 && n_cpus < 64; i--)
		if (CPU_ISSET(i, &all)) {
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d", n_cpus ? "," : "", i);
			cpus[n_cpus++] = i;
		}
	return text;
}

int main(void)
{
	const char *options = list_of_processors();
	unsigned n;
	int at;

	read_allowed();
	CHECK_EQ(kb_init_with(NULL), EINVAL);
	CHECK_EQ(kb_init_with("spin-us=70 bind=0-"), EINVAL);
	CHECK_EQ(kb_init_with("no-such=1"), EINVAL);
	CHECK_EQ(kb_init_with("bind"), EINVAL);
	CHECK_EQ(kb_init_with(options), 0);
	CHECK_EQ(kb_init_with(options), EALREADY);
	n = kb_vp_count();
	if (getenv("KOCHAB_VPS")) /* the environment goes before; else as many as are in the list */
		CHECK_EQ(n, (unsigned)atoi(getenv("KOCHAB_VPS")));
	else
		CHECK_EQ(n, (unsigned)n_cpus);
	for (unsigned i = 0; i < n; i++) {
		CHECK_EQ(kb_vp_bound(i, &at), 0);
		CHECK_EQ(at, cpus[i % (unsigned)n_cpus]);
		check_place((int)i, at);
	}
	check_kernel_threads_and_children();
	CHECK_EQ(kb_vp_bind(n, 0), EINVAL);
	CHECK_EQ(kb_vp_bind(0, -2), EINVAL);
	CHECK_EQ(kb_vp_bind(0, 1 << 20), EINVAL);
	CHECK_EQ(kb_vp_bound(n, &at), EINVAL);
	CHECK_EQ(kb_vp_bind(0, -1), 0);
	CHECK_EQ(kb_vp_bound(0, &at), 0);
	CHECK_EQ(at, -1);
	check_place(0, -1);
	bind_while_bodies_change();
	check_kernel_threads_and_children();
	return 0;
}
