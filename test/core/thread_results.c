/* core/thread: the result that a thread returns or exits with reaches its joiner, whichever of the
 * two is first. */
#include <kochab/kochab.h>

#include "test.h"

enum { N = 500 };

static void *returns(void *arg)
{
	return (char *)arg + 1;
}

static int deep(int n, void *arg)
{
	volatile char frame[64];

	frame[0] = (char)n;
	if (n == 0 && frame[0] == 0)
		kb_thread_exit((char *)arg + 2);
	return n < 0 ? n : deep(n - 1, arg) + frame[0];
}

static void *exits(void *arg)
{
	kb_yield();
	return (void *)(uintptr_t)deep(20, arg);
}

static void *sleeps(void *arg)
{
	kb_sleep(((uintptr_t)arg % 7) * 100000);
	return (char *)arg + 3;
}

/* Joins the thread that was created before it. */
static void *chain(void *arg)
{
	void *r;

	if (!arg)
		return NULL;
	CHECK_EQ(kb_thread_join(arg, &r), 0);
	return (void *)((uintptr_t)r + 1);
}

int main(void)
{
	static void *(*const fn[])(void *) = { returns, exits, sleeps };
	static kb_thread_t t[N];
	kb_thread_t last = NULL;
	void *r;

	for (uintptr_t i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, fn[i % 3], (void *)i), 0);
	for (uintptr_t i = 0; i < N; i++) {
		uintptr_t k = i * 7 % N;

		CHECK_EQ(kb_thread_join(t[k], &r), 0);
		CHECK_EQ((uintptr_t)r, k + k % 3 + 1);
	}
	for (unsigned i = 0; i < N; i++) {
		kb_thread_t now;

		CHECK_EQ(kb_thread_create(&now, NULL, chain, last), 0);
		last = now;
	}
	CHECK_EQ(kb_thread_join(last, &r), 0);
	CHECK_EQ((uintptr_t)r, N - 1);
	CHECK_EQ(kb_thread_create(&t[0], NULL, returns, NULL), 0);
	CHECK_EQ(kb_thread_join(t[0], NULL), 0); /* result not wanted */
	return 0;
}
