/* core/agent: every VP gets work when many computing threads are created on a single VP. */
#include <kochab/kochab.h>

#include "test.h"

enum { N = 64, MS = 1000000 };

static uint32_t used[64];

static void *computes(void *arg)
{
	uint64_t end = test_now_ns() + 10 * MS;

	while (test_now_ns() < end)
		;
	__atomic_add_fetch(&used[kb_vp_self()], 1, __ATOMIC_RELAXED);
	return arg;
}

int main(void)
{
	kb_thread_t t[N];

	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, computes, NULL), 0);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	for (unsigned i = 0; i < kb_vp_count(); i++) {
		if (used[i] < N / kb_vp_count() / 8)
			fprintf(stderr, "VP %u ran %u of %u threads\n", i, used[i], N);
		CHECK(used[i] >= N / kb_vp_count() / 8);
	}
	return 0;
}
