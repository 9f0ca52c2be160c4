/* core/thread: threads that yield in turns advance together: none starves, whatever their number and their
 * VPs. */
#include <kochab/kochab.h>

#include "test.h"

enum { N = 60 };

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

int main(void)
{
	kb_thread_t t[N];
	uint64_t sum = 0, least = UINT64_MAX;

	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, yields, &turns[i]), 0);
	kb_sleep(500000000);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	for (unsigned i = 0; i < N; i++) {
		sum += turns[i];
		least = turns[i] < least ? turns[i] : least;
	}
	if (least * 20 < sum / N)
		fprintf(stderr, "least %llu turns, %llu on average\n", (unsigned long long)least, (unsigned long long)sum / N);
	CHECK(least * 20 >= sum / N);
	return 0;
}
