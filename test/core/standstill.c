/* core/standstill: a lock of libc's held over a call that suspends, in a program without the
 * drop-in: a thread that wants the lock keeps its virtual processor, and the lock's holder is
 * perhaps ready there for ever. A message says so, once. There is no message about a thread that
 * computes while threads are ready, or that waits in the kernel with no thread behind it.
 * body: thread
 * matrix: vps=1,2 sched=rotator */
#include <kochab/kochab.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "core/child.h"

enum { THREADS = 16, LONG_NS = 5000000000u };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *yields_with_lock(void *arg)
{
	pthread_mutex_lock(&lock);
	kb_yield();
	pthread_mutex_unlock(&lock);
	return arg;
}

static void *computes(void *arg)
{
	test_compute_ns(LONG_NS);
	return arg;
}

static void *unlocks_later(void *arg)
{
	pthread_mutex_lock(&lock);
	*(volatile bool *)arg = true;
	usleep(LONG_NS / 1000);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void run_all(void *(*fn)(void *), int n)
{
	kb_thread_t t[THREADS];

	for (int i = 0; i < n; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, fn, NULL), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

static void stands(void *arg)
{
	(void)arg;
	run_all(yields_with_lock, THREADS);
}

static void is_busy(void *arg)
{
	(void)arg;
	run_all(computes, 4);
}

static void waits_alone(void *arg)
{
	volatile bool locked = false;
	pthread_t p;

	(void)arg;
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(pthread_create(&p, NULL, unlocks_later, (void *)(uintptr_t)&locked), 0);
	while (!locked)
		usleep(1000);
	pthread_mutex_lock(&lock);
}

int main(void)
{
	static struct child still, busy, alone;
	const char *said;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	child_start(&still, stands, NULL);
	child_start(&busy, is_busy, NULL);
	child_start(&alone, waits_alone, NULL);
	CHECK(child_read(&still, "stands still", 60000));
	child_end(&busy, 120000);
	child_end(&alone, 120000);
	kill(still.pid, SIGKILL);
	child_end(&still, 10000);
	said = strstr(still.text, "stands still");
	CHECK(said && !strstr(said + 1, "stands still"));
	child_exited(&busy, 0);
	child_exited(&alone, 0);
	CHECK(!strstr(busy.text, "stands still"));
	CHECK(!strstr(alone.text, "stands still"));
	return 0;
}
