/* Threads get the properties that their attributes ask for: stack size and place, guard, scope,
 * name, affinity, scheduling. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *user_stack;
enum { USER_STACK = 256 * 1024 };

static void *in_stack(void *size)
{
	pthread_attr_t a;
	size_t got;
	void *low;
	char here;

	CHECK_EQ(pthread_getattr_np(pthread_self(), &a), 0);
	CHECK_EQ(pthread_attr_getstack(&a, &low, &got), 0);
	CHECK(&here > (char *)low && &here < (char *)low + got);
	CHECK_EQ(got, (size_t)size); /* control block and TLS are a part of the size */
	CHECK_EQ((uintptr_t)low % 4096, 0);
	*(volatile char *)low;
	CHECK_EQ(pthread_attr_destroy(&a), 0);
	return NULL;
}

static void *on_user_stack(void *arg)
{
	char here;

	pthread_attr_t a;
	size_t got, guard;
	void *low;

	CHECK(&here > user_stack && &here < user_stack + USER_STACK);
	CHECK_EQ(pthread_getattr_np(pthread_self(), &a), 0);
	CHECK_EQ(pthread_attr_getstack(&a, &low, &got), 0);
	CHECK(low == user_stack);
	CHECK_EQ(got, USER_STACK);
	CHECK_EQ(pthread_attr_getguardsize(&a, &guard), 0);
	CHECK_EQ(guard, 0);
	CHECK_EQ(pthread_attr_destroy(&a), 0);
	sched_yield();
	return arg;
}

static void *use_it_up(void *size)
{
	volatile char big[768 * 1024];

	for (size_t i = 0; i < sizeof(big); i += 4096)
		big[i] = 1;
	return size;
}

static void run(const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, a, fn, arg), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *by_default(void *arg)
{
	pthread_attr_t a;
	size_t size, guard;
	int scope, state;

	for (int own = 0; own < 2; own++) {
		CHECK_EQ(own ? pthread_getattr_np(pthread_self(), &a) : pthread_getattr_default_np(&a), 0);
		CHECK_EQ(pthread_attr_getstacksize(&a, &size), 0);
		CHECK_EQ(pthread_attr_getguardsize(&a, &guard), 0);
		CHECK_EQ(pthread_attr_getscope(&a, &scope), 0);
		CHECK_EQ(pthread_attr_getdetachstate(&a, &state), 0);
		CHECK_EQ(size, (1 << 20) + 4096);
		CHECK_EQ(guard, 3 * 4096);
		CHECK_EQ(scope, PTHREAD_SCOPE_SYSTEM);
		CHECK_EQ(state, PTHREAD_CREATE_JOINABLE);
		CHECK_EQ(pthread_attr_destroy(&a), 0);
	}
	return arg;
}

/* Sets the defaults, and resets them. */
static void defaults(void)
{
	pthread_attr_t before, a;

	CHECK_EQ(pthread_getattr_default_np(&before), 0);
	CHECK_EQ(pthread_getattr_default_np(&a), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, (1 << 20) + 4096), 0);
	CHECK_EQ(pthread_attr_setguardsize(&a, 3 * 4096), 0);
	CHECK_EQ(pthread_setattr_default_np(&a), 0);
	run(NULL, by_default, NULL);
	CHECK_EQ(pthread_setattr_default_np(&before), 0);
	pthread_attr_destroy(&a);
	pthread_attr_destroy(&before);
}

static void *named_frame(void *arg)
{
	char small[2000];

	snprintf(small, sizeof(small), "%p", arg);
	return arg;
}

static void stacks(void)
{
	pthread_attr_t a;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN - 1), EINVAL);
	CHECK_EQ(pthread_attr_setstacksize(&a, 1 << 20), 0);
	run(&a, in_stack, (void *)(1L << 20));
	run(&a, use_it_up, NULL);
	CHECK_EQ(pthread_attr_setstacksize(&a, 64 << 20), 0);
	run(&a, in_stack, (void *)(64L << 20));
	CHECK_EQ(pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN), 0);
	for (int i = 0; i < 10; i++)
		run(&a, named_frame, NULL);
	user_stack = mmap(NULL, USER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_EQ(pthread_attr_setstack(&a, user_stack, USER_STACK), 0);
	for (int i = 0; i < 10; i++)
		run(&a, on_user_stack, NULL);
	CHECK_EQ(pthread_attr_destroy(&a), 0);
}

static void *kernel_thread(void *arg)
{
	*(pid_t *)arg = (pid_t)syscall(SYS_gettid);
	usleep(1000);
	return arg;
}

static void scope(void)
{
	pthread_attr_t a;
	pthread_t t[3];
	pid_t tid[3];
	int s;
	void *r;

	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setscope(&a, 12345), EINVAL);
	CHECK_EQ(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM), 0);
	CHECK_EQ(pthread_attr_getscope(&a, &s), 0);
	CHECK_EQ(s, PTHREAD_SCOPE_SYSTEM);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t[i], &a, kernel_thread, &tid[i]), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_join(t[i], &r), 0);
		CHECK(r == &tid[i]);
		CHECK(tid[i] != getpid());
	}
	CHECK(tid[0] != tid[1] && tid[1] != tid[2]);
}

static void *named(void *arg)
{
	char name[16];

	CHECK_EQ(pthread_setname_np(pthread_self(), "a-worker"), 0);
	CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
	CHECK_EQ(strcmp(name, "a-worker"), 0);
	CHECK_EQ(pthread_setname_np(pthread_self(), "sixteen letters."), ERANGE);
	CHECK_EQ(pthread_getname_np(pthread_self(), name, 3), ERANGE);
	return arg;
}

static void *scheduled(void *arg)
{
	struct sched_param p = { 0 };
	cpu_set_t set, all;
	int policy = -1;
	clockid_t clock;
	struct timespec t;

	CHECK_EQ(pthread_getschedparam(pthread_self(), &policy, &p), 0);
	CHECK_EQ(policy, SCHED_OTHER);
	CHECK_EQ(p.sched_priority, 0);
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_OTHER, &p), 0);
	p.sched_priority = 1000;
	CHECK_EQ(pthread_setschedparam(pthread_self(), SCHED_FIFO, &p), EINVAL);
	CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof(all), &all), 0);
	CHECK(CPU_COUNT(&all) >= 1);
	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&set) == 0; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &set);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(set), &set), 0);
	CHECK_EQ(pthread_getaffinity_np(pthread_self(), sizeof(all), &all), 0);
	CHECK(CPU_EQUAL(&set, &all));
	CPU_ZERO(&set);
	CHECK_EQ(pthread_setaffinity_np(pthread_self(), sizeof(set), &set), EINVAL);
	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	CHECK_EQ(CPU_COUNT(&all), 1);
	CHECK_EQ(pthread_getcpuclockid(pthread_self(), &clock), 0);
	CHECK_EQ(clock_gettime(clock, &t), 0);
	return arg;
}

int main(void)
{
	cpu_set_t before, after;
	char name[16];

	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	stacks();
	defaults();
	scope();
	run(NULL, named, NULL);
	run(NULL, scheduled, NULL);
	CHECK_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
	CHECK(CPU_EQUAL(&before, &after));
	CHECK_EQ(pthread_setname_np(pthread_self(), "the-main"), 0);
	CHECK_EQ(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
	CHECK_EQ(strcmp(name, "the-main"), 0);
	return 0;
}
