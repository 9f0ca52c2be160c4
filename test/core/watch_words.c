/* core/watch: words of both sizes, changed by a plain kernel thread without Kochab; deadlines;
 * words that have changed already; many watchers of a single word. */
#include <errno.h>
#include <kochab/kochab.h>
#include <pthread.h>
#include <unistd.h>

#include "test.h"

enum { N = 20 };

static uint32_t small;
static uint64_t large = 0x100000000ull;
static uint32_t seen;

static void *writer(void *arg)
{
	for (unsigned i = 1; i <= 20; i++) {
		usleep(2000);
		__atomic_store_n(&small, i, __ATOMIC_RELEASE);
		/* only the upper half changes */
		__atomic_store_n(&large, (uint64_t)(i + 1) << 32, __ATOMIC_RELEASE);
	}
	return arg;
}

static void *watches(void *arg)
{
	uint32_t was = 0;

	while (was < 20) {
		CHECK_EQ(kb_watch32(&small, was, KB_FOREVER), 0);
		CHECK(__atomic_load_n(&small, __ATOMIC_ACQUIRE) != was);
		was = __atomic_load_n(&small, __ATOMIC_ACQUIRE);
	}
	__atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
	return arg;
}

static void *watches_large(void *arg)
{
	uint64_t was = 0x100000000ull;

	while (was >> 32 < 21) {
		int e = kb_watch64(&large, was, kb_now() + 1000000);

		CHECK(e == 0 || e == ETIMEDOUT);
		CHECK(e || __atomic_load_n(&large, __ATOMIC_ACQUIRE) != was);
		was = __atomic_load_n(&large, __ATOMIC_ACQUIRE);
	}
	__atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
	return arg;
}

int main(void)
{
	kb_thread_t t[N];
	pthread_t p, f;
	uint32_t word = 5;
	uint64_t before;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_watch32(&word, 6, 0), 0);
	before = kb_now();
	CHECK_EQ(kb_watch32(&word, 5, before + 5000000), ETIMEDOUT);
	CHECK(kb_now() >= before + 5000000);
	CHECK_EQ(kb_watch32(&word, 5, 0), ETIMEDOUT);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, i % 2 ? watches : watches_large, NULL), 0);
	CHECK_EQ(pthread_create(&f, NULL, watches, NULL), 0);
	kb_sleep(3000000);
	CHECK_EQ(pthread_create(&p, NULL, writer, NULL), 0);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_join(f, NULL), 0);
	CHECK_EQ(pthread_join(p, NULL), 0);
	CHECK_EQ(seen, N + 1);
	return 0;
}
