/* x86-64: the x87 control word and the flush-to-zero bit of MXCSR are callee-saved in the ABI. The
 * exception flags belong to the context. */
#include "arch_test.h"

#ifdef __x86_64__
static struct kbi_ctx home, ctx;
enum { SINGLE_PRECISION = 0x007f, DEFAULT_FCW = 0x037f };
enum { DEFAULT_MXCSR = 0x1f80, FLUSH_TO_ZERO = 0x8000, INEXACT = 0x20 };

static uint16_t fcw(void)
{
	uint16_t v;

	__asm__ volatile("fnstcw %0" : "=m"(v));
	return v;
}

static void set_fcw(uint16_t v)
{
	__asm__ volatile("fldcw %0" ::"m"(v));
}

static void run(void *arg)
{
	(void)arg;
	set_fcw(SINGLE_PRECISION);
	__builtin_ia32_ldmxcsr(DEFAULT_MXCSR | FLUSH_TO_ZERO | INEXACT);
	for (;;) {
		kbi_ctx_switch(&ctx, &home, NULL, NULL);
		CHECK_EQ(fcw(), SINGLE_PRECISION);
		CHECK_EQ(__builtin_ia32_stmxcsr(), DEFAULT_MXCSR | FLUSH_TO_ZERO | INEXACT);
	}
}

int main(void)
{
#if !defined(KBI_FRAME_MXCSR)
	SKIP("the generic port keeps the rounding mode only");
#endif
	set_fcw(DEFAULT_FCW);
	__builtin_ia32_ldmxcsr(DEFAULT_MXCSR);
	kbi_ctx_make(&ctx, new_stack(), STACK_SIZE, run, NULL);
	for (int i = 0; i < 4; i++) {
		kbi_ctx_switch(&home, &ctx, NULL, NULL);
		CHECK_EQ(fcw(), DEFAULT_FCW);
		CHECK_EQ(__builtin_ia32_stmxcsr(), DEFAULT_MXCSR);
	}
	return 0;
}
#else
int main(void)
{
	SKIP("x86-64 only");
}
#endif
