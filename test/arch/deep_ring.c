/* A thousand contexts pass a token round a ring, a hundred times. Each context adds its number. */
#include "arch_test.h"

enum { CONTEXTS = 1000, ROUNDS = 100, SMALL_STACK = 32 * 1024 };

static struct kbi_ctx ctx[CONTEXTS], home;
static uint64_t token, expected;

static void run(void *arg)
{
	unsigned self = (unsigned)(uintptr_t)arg, next = (self + 1) % CONTEXTS;

	for (unsigned round = 0; round < ROUNDS; round++) {
		bool last = round == ROUNDS - 1 && next == 0;

		CHECK_EQ(token, expected);
		token += self * (uint64_t)round;
		expected = token;
		kbi_ctx_switch(&ctx[self], last ? &home : &ctx[next], NULL, NULL);
	}
	CHECK(!"one round too many");
}

int main(void)
{
	char *stacks = malloc((size_t)CONTEXTS * SMALL_STACK);

	CHECK(stacks != NULL);
	for (unsigned i = 0; i < CONTEXTS; i++)
		kbi_ctx_make(&ctx[i], stacks + (size_t)i * SMALL_STACK, SMALL_STACK, run,
			     (void *)(uintptr_t)i);
	kbi_ctx_switch(&home, &ctx[0], NULL, NULL);
	CHECK_EQ(token, (uint64_t)(CONTEXTS - 1) * CONTEXTS / 2 * (ROUNDS - 1) * ROUNDS / 2);
	free(stacks);
	return 0;
}
