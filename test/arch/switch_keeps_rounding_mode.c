/* The rounding mode belongs to the context: a context that rounds upward still does so after
 * contexts with different modes have run. A new context starts with the mode of its maker (POSIX
 * pthread_create). */
#include <fenv.h>

#include "arch_test.h"

static struct kbi_ctx home, ctx[2];
static int first_mode[2], afters;

static double third(void)
{
	volatile double one = 1.0, three = 3.0;

	return one / three;
}

static void *look(void *unused)
{
	afters++;
	return unused;
}

static void run(void *arg)
{
	unsigned self = (unsigned)(uintptr_t)arg;
	int mode = self == 0 ? FE_UPWARD : FE_DOWNWARD;
	double expected;

	first_mode[self] = fegetround();
	CHECK(fesetround(mode) == 0);
	expected = third();
	for (;;) {
		kbi_ctx_switch(&ctx[self], &home, look, NULL);
		CHECK(fegetround() == mode);
		CHECK(third() == expected);
	}
}

int main(void)
{
	double nearest = third();

	CHECK(fegetround() == FE_TONEAREST);
	kbi_ctx_make(&ctx[0], new_stack(), STACK_SIZE, run, (void *)0);
	if (fesetround(FE_TOWARDZERO) != 0)
		SKIP("this machine rounds one way only");
	kbi_ctx_make(&ctx[1], new_stack(), STACK_SIZE, run, (void *)1);
	CHECK(fesetround(FE_TONEAREST) == 0);
	for (int i = 0; i < 10; i++) {
		kbi_ctx_switch(&home, &ctx[i % 2], look, NULL);
		CHECK(fegetround() == FE_TONEAREST);
		CHECK(third() == nearest);
	}
	CHECK(first_mode[0] == FE_TONEAREST);
	CHECK(first_mode[1] == FE_TOWARDZERO);
	CHECK_EQ(afters, 20);
	return 0;
}
