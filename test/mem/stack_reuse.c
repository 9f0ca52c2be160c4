/* mem/stack: a thread created after another has ended runs on the same, still hot stack; a million short
 * threads need no more than a few. */
#include <kochab/kochab.h>

#include "test.h"

enum { N = 1000000 };

static uintptr_t low = UINTPTR_MAX, high;

static void *body(void *arg)
{
	uintptr_t at = (uintptr_t)__builtin_frame_address(0);

	low = at < low ? at : low;
	high = at > high ? at : high;
	return arg;
}

int main(void)
{
	CHECK_EQ(setenv("KOCHAB_VPS", "1", 1), 0);
	for (unsigned i = 0; i < N; i++) {
		kb_thread_t t;

		CHECK_EQ(kb_thread_create(&t, NULL, body, NULL), 0);
		CHECK_EQ(kb_thread_join(t, NULL), 0);
	}
	CHECK(high - low < 64u << 20);
	return 0;
}
