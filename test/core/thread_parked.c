/* core/thread: 100,000 threads parked at once, then woken and joined. */
#include <kochab/kochab.h>

#include "test.h"

enum { N = TEST_THREADS(100000) };

static kb_thread_t t[N];
static kb_sem_t gate;
static uint32_t there;

static void *parks(void *arg)
{
	__atomic_add_fetch(&there, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_sem_wait(&gate), 0);
	return arg;
}

int main(void)
{
	for (uintptr_t i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, parks, (void *)i), 0);
	while (__atomic_load_n(&there, __ATOMIC_RELAXED) < N)
		kb_sleep(1000000);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_sem_post(&gate), 0);
	for (uintptr_t i = 0; i < N; i++) {
		void *r;

		CHECK_EQ(kb_thread_join(t[i], &r), 0);
		CHECK_EQ((uintptr_t)r, i);
	}
	CHECK_EQ(kb_sem_value(&gate), 0);
	return 0;
}
