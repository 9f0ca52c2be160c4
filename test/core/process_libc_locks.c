/* core/process: lightweight threads, some with TLS of their own, make and join kernel threads
 * on a virtual processor that is a process. All of them wait for libc's lock of its stacks, and a
 * thread without TLS of its own keeps the virtual processor meanwhile: a thread that has left it,
 * and is woken by libc, must not have to wait for it while the lock is free.
 * matrix: none
 * body: thread (it chooses by itself)
 * timeout: 120 */
#include <kochab/kochab.h>
#include <pthread.h>
#include <stdlib.h>

#include "test.h"

enum { EACH = 6, SECONDS = 3 };

static uint64_t end;
static uint64_t made;

static void *nothing(void *arg)
{
	return arg;
}

static void *makes(void *arg)
{
	pthread_t t[3];

	while (test_now_ns() < end) {
		for (unsigned i = 0; i < 3; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, nothing, arg), 0);
		kb_yield();
		for (unsigned i = 0; i < 3; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
		__atomic_fetch_add(&made, 3, __ATOMIC_RELAXED);
	}
	return arg;
}

int main(void)
{
	kb_thread_t light[EACH], own[EACH];
	pthread_t kernel[EACH];
	kb_attr_t attr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_VPS", "1", 1);
	if (kb_init() != 0)
		SKIP("no processes as virtual processors here");
	end = test_now_ns() + SECONDS * 1000000000ull;
	kb_attr_init(&attr);
	CHECK_EQ(kb_attr_settls(&attr, KB_TLS_OWN), 0);
	for (unsigned i = 0; i < EACH; i++) {
		CHECK_EQ(kb_thread_create(&light[i], NULL, makes, NULL), 0);
		CHECK_EQ(kb_thread_create(&own[i], &attr, makes, NULL), 0);
		CHECK_EQ(pthread_create(&kernel[i], NULL, makes, NULL), 0);
	}
	for (unsigned i = 0; i < EACH; i++) {
		CHECK_EQ(kb_thread_join(light[i], NULL), 0);
		CHECK_EQ(kb_thread_join(own[i], NULL), 0);
		CHECK_EQ(pthread_join(kernel[i], NULL), 0);
	}
	printf("%llu kernel threads\n", (unsigned long long)made);
	return 0;
}
