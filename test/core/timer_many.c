/* core/timer: tens of thousands of pending deadlines, most of which never come because their
 * waiters are woken. */
#include <errno.h>
#include <kochab/kochab.h>

#include "test.h"

enum { N = TEST_THREADS(20000) };

static kb_sem_t gate;
static uint32_t timed_out, woken;

static void *waits(void *arg)
{
	uint64_t rand = test_seed() + (uintptr_t)arg * 77 + 1, far = 3600000000000ull;
	uint64_t until = kb_now() + ((uintptr_t)arg % 4 ?
		far + test_rand(&rand) % far : test_rand(&rand) % 300000000);
	int e = kb_sem_timedwait(&gate, until);

	if (e == 0) {
		__atomic_add_fetch(&woken, 1, __ATOMIC_RELAXED);
	} else {
		CHECK_EQ(e, ETIMEDOUT);
		CHECK((uintptr_t)arg % 4 == 0);
		CHECK(kb_now() >= until);
		__atomic_add_fetch(&timed_out, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(void)
{
	static kb_thread_t t[N];
	uint32_t out, posts = N / 4 * 3;

	test_seed();
	for (uintptr_t i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, waits, (void *)i), 0);
	kb_sleep(150000000); /* in the middle of the near deadlines */
	for (unsigned i = 0; i < N / 4 * 3; i++)
		CHECK_EQ(kb_sem_post(&gate), 0);
	for (int i = 0; i < 300 && __atomic_load_n(&woken, __ATOMIC_RELAXED) < N / 4 * 3; i++)
		kb_sleep(10000000);
	CHECK_EQ(__atomic_load_n(&woken, __ATOMIC_RELAXED), N / 4 * 3);
	kb_sleep(200000000);
	out = __atomic_load_n(&timed_out, __ATOMIC_RELAXED);
	for (; posts < N - out; posts++)
		CHECK_EQ(kb_sem_post(&gate), 0);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	CHECK_EQ(woken + timed_out, N);
	/* a waiter may still have timed out between the count and the posts: its place alone is left
	 * over */
	CHECK_EQ(kb_sem_value(&gate), posts - woken);
	return 0;
}
