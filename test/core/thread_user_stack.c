/* core/thread: threads on the program's own stacks, light and with own TLS; the memory is the
 * program's again after the join and leaves no trace in the runtime. */
#include <errno.h>
#include <kochab/kochab.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "core/own_tls.h"
#include "test.h"

enum { SIZE = 256 * 1024, N = 10 };

static __thread int own;

static void *body(void *arg)
{
	volatile char here[5000];
	uintptr_t low = (uintptr_t)arg, at = (uintptr_t)here;

	memset((char *)here, 7, sizeof here);
	CHECK(at >= low && at < low + SIZE);
	own++;
	kb_yield();
	kb_sleep(100000);
	CHECK_EQ(here[4999], 7);
	return arg;
}

/* Returns false with this libc. */
static bool once(enum kb_tls tls, size_t shift)
{
	char *stack[N];
	kb_thread_t t[N];
	int e;

	for (unsigned i = 0; i < N; i++) {
		kb_attr_t a;

		stack[i] = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(stack[i] != MAP_FAILED);
		kb_attr_init(&a);
		CHECK_EQ(kb_attr_settls(&a, own_tls_or_light(tls)), 0);
		CHECK_EQ(kb_attr_setstack(&a, stack[i] + shift, SIZE - 2 * shift), 0);
		e = kb_thread_create(&t[i], &a, body, stack[i]);
		if (e == ENOTSUP && tls == KB_TLS_OWN && i == 0) {
			CHECK_EQ(munmap(stack[i], SIZE), 0);
			return false;
		}
		CHECK_EQ(e, 0);
	}
	for (unsigned i = 0; i < N; i++) {
		void *r;

		CHECK_EQ(kb_thread_join(t[i], &r), 0);
		CHECK(r == stack[i]);
		CHECK_EQ(munmap(stack[i], SIZE), 0);
	}
	return true;
}

int main(void)
{
	bool both = true;

	for (int round = 0; round < 20; round++) {
		CHECK(once(KB_TLS_LIGHT, (size_t)round * 13));
		both = both && once(KB_TLS_OWN, (size_t)round * 13);
	}
	if (own_tls_is_there()) /* else light threads share it */
		CHECK_EQ(own, 0);
	return 0;
}
