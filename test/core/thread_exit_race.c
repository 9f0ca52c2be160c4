/* core/thread: main's kb_thread_exit races the end of the last threads: some thread always notices
 * that all have ended. */
#include <kochab/kochab.h>

#include "core/child.h"

enum { CHILDREN = 60 };

static uint32_t go;

static void *ends(void *arg)
{
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		kb_yield();
	for (volatile uintptr_t i = (uintptr_t)arg; i > 0; i--)
		;
	return NULL;
}

static void race(void *arg)
{
	uint64_t rand = test_seed() + (uintptr_t)arg;
	kb_thread_t t;
	unsigned n = 1 + (unsigned)(test_rand(&rand) % 4);

	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_create(&t, NULL, ends, (void *)(uintptr_t)(test_rand(&rand) % 2000)), 0);
	kb_sleep(200000);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	for (volatile uint64_t i = test_rand(&rand) % 2000; i > 0; i--)
		;
	kb_thread_exit(NULL);
}

int main(void)
{
	static struct child c;

	for (uintptr_t i = 1; i <= CHILDREN; i++) {
		child_run(&c, race, (void *)i);
		child_exited(&c, 0);
	}
	return 0;
}
