/* entry finds its stack aligned as the ABI requires, for any bounds of the stack. It runs on the
 * given stack, and no byte outside [low, low + size) is written. */
#include <string.h>

#include "arch_test.h"

enum { GUARD = 256, GUARD_BYTE = 0x5A, STEPS = 70 };

static struct kbi_ctx home, ctx;
static unsigned char *low;
static size_t size;
static unsigned runs;

static void check_aligned(void *p, uintptr_t alignment)
{
	__asm__ volatile("" : "+r"(p)); /* otherwise the compiler believes its own promise */
	CHECK_EQ((uintptr_t)p % alignment, 0);
}

static void run(void *arg)
{
	_Alignas(16) char local[16];
	_Alignas(64) char wide[64];

	memset(local, 1, sizeof local); /* movaps, stp q: faults if the promise is wrong */
	memset(wide, 1, sizeof wide);
	check_aligned(local, 16);
	check_aligned(wide, 64);
#ifdef __x86_64__
	__asm__ volatile("movaps %%xmm0, %0" : "=m"(local));
#endif
	CHECK((unsigned char *)local >= low && (unsigned char *)local < low + size);
	CHECK(arg == low);
	runs++;
	kbi_ctx_leave(&home, NULL, NULL);
}

static void check_guard(const unsigned char *p)
{
	for (unsigned i = 0; i < GUARD; i++)
		CHECK_EQ(p[i], GUARD_BYTE);
}

int main(void)
{
	size_t all = STACK_SIZE + 2 * GUARD + 2 * STEPS;
	unsigned char *block = malloc(all);

	CHECK(block != NULL);
	for (unsigned i = 0; i < STEPS; i++) {
		memset(block, GUARD_BYTE, all);
		low = block + GUARD + i;
		size = STACK_SIZE + i * 7 % 13;
		kbi_ctx_make(&ctx, low, size, run, low);
		CHECK((unsigned char *)ctx.sp >= low && (unsigned char *)ctx.sp < low + size);
		kbi_ctx_switch(&home, &ctx, NULL, NULL);
		forget_stack(low, size);
		check_guard(low - GUARD);
		check_guard(low + size);
	}
	CHECK_EQ(runs, STEPS);
	free(block);
	return 0;
}
