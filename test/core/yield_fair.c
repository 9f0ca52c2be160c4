/* core/thread: threads that yield in turns advance together: none starves, whatever their number
 * and their VPs. Their progress depends on the time that the kernel gives to each VP's kernel
 * thread, too: where processors are scarce the parts are even in the long run only, so the test
 * looks again after longer and longer times. */
#include <kochab/kochab.h>
#include <stdbool.h>

#include "test.h"

enum { N = 60, FIRST_MS = 500, LAST_MS = 32000 };

static uint64_t turns[N];
static uint32_t stop;

static void *yields(void *arg)
{
	uint64_t *mine = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__atomic_store_n(mine, *mine + 1, __ATOMIC_RELAXED);
		kb_yield();
	}
	return NULL;
}

static bool advance_together(unsigned ms)
{
	uint64_t sum = 0, least = UINT64_MAX;

	for (unsigned i = 0; i < N; i++) {
		uint64_t n = __atomic_load_n(&turns[i], __ATOMIC_RELAXED);

		sum += n;
		least = n < least ? n : least;
	}
	if (least > 0 && least * 20 >= sum / N)
		return true;
	fprintf(stderr, "after %u ms: least %llu turns, %llu on average\n", ms,
		(unsigned long long)least,
		(unsigned long long)sum / N);
	return false;
}

int main(void)
{
	kb_thread_t t[N];
	unsigned ms = FIRST_MS;

	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, yields, &turns[i]), 0);
	kb_sleep(FIRST_MS * 1000000u);
	for (; !advance_together(ms); ms *= 2) {
		CHECK(ms < LAST_MS);
		kb_sleep(ms * (uint64_t)1000000);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	return 0;
}
