/* posix/once: an initialiser in code without unwind tables (the Makefile compiles it so) is
 * cancelled or left by pthread_exit. The initialiser then counts as never begun, also when it runs
 * inside a second initialiser. All waiting threads go on, and one of them runs it. In the child of
 * fork an initialiser that another thread was running begins anew. */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { WAITERS = 8 };

static pthread_once_t once = PTHREAD_ONCE_INIT, outer = PTHREAD_ONCE_INIT, inner = PTHREAD_ONCE_INIT;
static pthread_once_t held = PTHREAD_ONCE_INIT, handled = PTHREAD_ONCE_INIT;
static int runs, in_outer, in_inner, in_held, cleanups, exits;
static int go[2];

static void wait_forever(void)
{
	for (;;)
		pause();
}

static void init(void)
{
	if (__atomic_fetch_add(&runs, 1, __ATOMIC_SEQ_CST) == 0)
		wait_forever();
}

static void init_inner(void)
{
	if (__atomic_fetch_add(&in_inner, 1, __ATOMIC_SEQ_CST) == 0)
		wait_forever();
}

static void init_outer(void)
{
	in_outer++;
	pthread_once(&inner, init_inner);
}

static void note(void *arg)
{
	(void)arg;
	cleanups++;
}

static void init_exits(void)
{
	pthread_cleanup_push(note, NULL);
	if (++exits < 4)
		pthread_exit(&exits);
	pthread_cleanup_pop(0);
}

static void init_held(void)
{
	char c;

	if (__atomic_fetch_add(&in_held, 1, __ATOMIC_SEQ_CST) == 0)
		CHECK_EQ(read(go[0], &c, 1), 1);
}

static void *call(void *arg)
{
	CHECK_EQ(pthread_once(&once, init), 0);
	CHECK_EQ(runs, 2);
	return arg;
}

static void *call_outer(void *arg)
{
	pthread_once(&outer, init_outer);
	return arg;
}

static void *call_exiting(void *arg)
{
	pthread_cleanup_push(note, NULL);
	pthread_once(&handled, init_exits);
	pthread_cleanup_pop(0);
	return arg;
}

static void *call_held(void *arg)
{
	pthread_once(&held, init_held);
	return arg;
}

static void await(const int *n)
{
	while (!__atomic_load_n(n, __ATOMIC_SEQ_CST))
		usleep(1000);
}

static void cancel(pthread_t t)
{
	void *result;

	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

static void others_go_on(void)
{
	pthread_t first, waiter[WAITERS];

	CHECK_EQ(pthread_create(&first, NULL, call, NULL), 0);
	await(&runs);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_create(&waiter[i], NULL, call, NULL), 0);
	usleep(2000);
	cancel(first);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_join(waiter[i], NULL), 0);
	CHECK_EQ(runs, 2);
	CHECK_EQ(pthread_once(&once, init), 0);
	CHECK_EQ(runs, 2);
}

static void nested(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, call_outer, NULL), 0);
	await(&in_inner);
	cancel(t);
	pthread_once(&outer, init_outer);
	pthread_once(&outer, init_outer);
	CHECK_EQ(in_outer, 2);
	CHECK_EQ(in_inner, 2);
}

static void exiting(void)
{
	for (int i = 1; i <= 5; i++) {
		pthread_t t;
		void *result;

		CHECK_EQ(pthread_create(&t, NULL, call_exiting, NULL), 0);
		CHECK_EQ(pthread_join(t, &result), 0);
		CHECK(result == (i < 4 ? &exits : NULL));
	}
	CHECK_EQ(exits, 4);
	CHECK_EQ(cleanups, 6);
}

static void forked(void)
{
	pthread_t t;
	int status;
	pid_t pid;

	CHECK_EQ(pipe(go), 0);
	CHECK_EQ(pthread_create(&t, NULL, call_held, NULL), 0);
	await(&in_held);
	pid = fork();
	if (pid == 0) {
		pthread_once(&held, init_held);
		_exit(in_held == 2 ? 0 : 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(write(go[1], "", 1), 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
	pthread_once(&held, init_held);
	CHECK_EQ(in_held, 1);
}

int main(void)
{
	others_go_on();
	nested();
	exiting();
	forked();
	return 0;
}
