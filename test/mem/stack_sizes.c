/* mem/stack: stacks of many different sizes, small ones first, can all be used to their last KiB; the number
 * of sizes in use is not limited. */
#include <kochab/kochab.h>
#include <string.h>

#include "core/own_tls.h"
#include "test.h"

static void use(size_t bytes)
{
	volatile char *p = __builtin_alloca(bytes);

	for (size_t i = 0; i < bytes; i += 1024)
		p[i] = 1;
}

static void *body(void *arg)
{
	use((size_t)arg - 6000);
	kb_yield();
	use((size_t)arg - 6000);
	return arg;
}

static void run(size_t size, enum kb_tls tls)
{
	kb_thread_t t[3];
	kb_attr_t a;
	void *r;

	kb_attr_init(&a);
	CHECK_EQ(kb_attr_setstacksize(&a, size), 0);
	CHECK_EQ(kb_attr_settls(&a, own_tls_or_light(tls)), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(kb_thread_create(&t[i], &a, body, (void *)size), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(kb_thread_join(t[i], &r), 0);
		CHECK(r == (void *)size);
	}
}

int main(void)
{
	uint64_t rand = test_seed();

	for (size_t size = KB_STACK_MIN; size < 512 * 1024; size += 4096)
		run(size, KB_TLS_LIGHT);
	for (size_t size = KB_STACK_MIN; size <= 32 << 20; size *= 2)
		for (int tls = 0; tls < 2; tls++)
			run(size, (enum kb_tls)tls);
	for (int i = 0; i < 300; i++)
		run(KB_STACK_MIN + test_rand(&rand) % (4 << 20), (enum kb_tls)(i % 2));
	return 0;
}
