/* core/place: under option bind a program sees the same as without the option: all its processors,
 * in each thread, in kernel threads that it asks for and in children of every kind. An affinity
 * that it sets is obeyed. */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8 };

static cpu_set_t all;
static char *self;

static void check_all(void)
{
	cpu_set_t now;

	CHECK_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
	CHECK(CPU_EQUAL(&now, &all));
	CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof(now), &now), 0);
	CHECK(CPU_EQUAL(&now, &all));
}

static void check_child(pid_t child)
{
	int status;

	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void check_fork(void)
{
	pid_t child = fork();

	if (child == 0) {
		check_all();
		_exit(0);
	}
	check_child(child);
}

static void check_vfork(void)
{
	pid_t child = vfork();

	if (child == 0) {
		execl(self, self, "child", (char *)NULL);
		_exit(1);
	}
	check_child(child);
}

static void check_spawn(void)
{
	extern char **environ;
	char *argv[] = { self, "child", NULL };
	pid_t child;

	CHECK_EQ(posix_spawn(&child, self, NULL, NULL, argv, environ), 0);
	check_child(child);
}

static void check_system(void)
{
	char command[4200];

	snprintf(command, sizeof(command), "'%s' child", self);
	CHECK_EQ(system(command), 0);
}

static void *of_kernel(void *arg)
{
	check_all();
	return arg;
}

static void check_kernel_thread(void)
{
	pthread_attr_t a;
	pthread_t t;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM), 0);
	CHECK_EQ(pthread_create(&t, &a, of_kernel, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* Sets the affinity to each of the processors, and to all. */
static void check_set(void)
{
	cpu_set_t one, now;

	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(one), &one), 0);
		for (int k = 0; k < 20; k++) {
			CHECK_EQ(sched_getcpu(), i);
			sched_yield();
		}
		CHECK_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
		CHECK(CPU_EQUAL(&now, &one));
	}
	CHECK_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
	check_all();
}

static void *thread(void *arg)
{
	check_all();
	usleep(2000);
	check_all();
	check_set();
	check_fork();
	check_kernel_thread();
	check_vfork();
	check_spawn();
	check_system();
	return arg;
}

/* Takes the creator's processors; for a child, the environment names them. */
static void take_all(bool child)
{
	char text[2 * sizeof(all) + 1];

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	for (size_t i = 0; i < sizeof(all); i++)
		snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)&all)[i]);
	if (child)
		CHECK(strcmp(text, getenv("TEST_ALL")) == 0);
	CHECK_EQ(setenv("TEST_ALL", text, 1), 0);
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	self = argv[0];
	take_all(argc > 1);
	if (argc > 1)
		return 0;
	if (!getenv("KOCHAB_BIND")) {
		CHECK_EQ(setenv("KOCHAB_BIND", "cores", 1), 0);
		execv(self, argv);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, thread, NULL), 0);
	thread(NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	check_all();
	return 0;
}
