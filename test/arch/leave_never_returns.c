/* kbi_ctx_leave gives up the old stack: `after` overwrites all of it and makes a new context on it,
 * which runs. No part of the old context is used again. */
#include <string.h>

#include "arch_test.h"

static struct kbi_ctx home, ctx;
static void *stack;
static unsigned lives;

static void run(void *arg);

static void *reuse(void *arg)
{
	CHECK(arg == &lives);
	forget_stack(stack, STACK_SIZE);
	memset(stack, 0xA5, STACK_SIZE);
	kbi_ctx_make(&ctx, stack, STACK_SIZE, run, arg);
	return NULL;
}

static void run(void *arg)
{
	CHECK(arg == &lives);
	lives++;
	kbi_ctx_leave(&home, reuse, arg);
}

int main(void)
{
	stack = new_stack();
	kbi_ctx_make(&ctx, stack, STACK_SIZE, run, &lives);
	for (unsigned i = 1; i <= 1000; i++) {
		kbi_ctx_switch(&home, &ctx, NULL, NULL);
		CHECK_EQ(lives, i);
	}
	return 0;
}
