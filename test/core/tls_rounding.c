/* core/run: the FP rounding mode belongs to an own-TLS thread and travels with it; a new thread has
 * its creator's; light threads always see the default. */
#include <fenv.h>
#include <kochab/kochab.h>

#include "core/own_tls.h"
#include "test.h"

enum { N = 24, ROUNDS = 200 };

static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST };
static uint32_t stop;

static void *inherits(void *arg)
{
	CHECK_EQ(fegetround(), *(const int *)arg);
	kb_yield();
	CHECK_EQ(fegetround(), *(const int *)arg);
	return NULL;
}

static void *near(void *arg)
{
	CHECK_EQ(fegetround(), FE_TONEAREST);
	kb_yield();
	CHECK_EQ(fegetround(), FE_TONEAREST);
	return arg;
}

static void *own(void *arg)
{
	const int *mode = arg;
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	CHECK_EQ(fesetround(*mode), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i % 16 == 0)
			kb_sleep(1000);
		else
			kb_yield();
		CHECK_EQ(fegetround(), *mode);
		if (i % 8)
			continue;
		kb_attr_settls(&a, i % 16 ? KB_TLS_OWN : KB_TLS_LIGHT);
		CHECK_EQ(kb_thread_create(&t, &a, i % 16 ? inherits : near, arg), 0);
		if (i % 32 == 0)
			kb_yield();
		CHECK_EQ(kb_thread_join(t, NULL), 0);
		CHECK_EQ(fegetround(), *mode);
	}
	return NULL;
}

static void *light(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		CHECK_EQ(fegetround(), FE_TONEAREST);
		kb_yield();
	}
	return arg;
}

int main(void)
{
	kb_thread_t t[N], l[6];
	kb_attr_t a;

	if (!own_tls_is_there())
		SKIP("threads with own TLS cannot be had here");
	kb_attr_init(&a);
	CHECK_EQ(kb_attr_settls(&a, KB_TLS_OWN), 0);
	for (unsigned i = 0; i < 6; i++)
		CHECK_EQ(kb_thread_create(&l[i], NULL, light, NULL), 0);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], &a, own, (void *)&modes[i % 4]), 0);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 6; i++)
		CHECK_EQ(kb_thread_join(l[i], NULL), 0);
	return 0;
}
