/* libc/context_wrapper.c - tells whether a context is at the end of a function of libc that makes a
 * system call and nothing else, from the code that follows the call. Contract in context.h.
 * Callers: handlers. */
#include <string.h>
#include <ucontext.h>

#include "libc/context.h"

#if defined(__x86_64__)

/* Returns the length of an instruction that wrappers have between the system call and their return,
 * if it leaves the stack pointer unchanged: a test of the result, a jump to the code that sets
 * errno, the result 0. Returns 0 otherwise. */
static unsigned after_call(const uint8_t *p)
{
	static const struct {
		uint8_t n, code[3], size;
	} known[] = {
		{ 2, { 0x48, 0x3d }, 6 },       /* cmp $, %rax */
		{ 1, { 0x3d }, 5 },             /* cmp $, %eax */
		{ 1, { 0x73 }, 2 },             /* jae */
		{ 1, { 0x77 }, 2 },             /* ja */
		{ 2, { 0x0f, 0x83 }, 6 },       /* jae, far */
		{ 2, { 0x0f, 0x87 }, 6 },       /* ja, far */
		{ 2, { 0x31, 0xc0 }, 2 },       /* xor %eax, %eax */
		{ 2, { 0x85, 0xc0 }, 2 },       /* test %eax, %eax */
		{ 3, { 0x48, 0x85, 0xc0 }, 3 }, /* test %rax, %rax */
	};

	for (size_t i = 0; i < kbi_countof(known); i++)
		if (memcmp(p, known[i].code, known[i].n) == 0)
			return known[i].size;
	return 0;
}

static uintptr_t stub;
static unsigned lowered;

void kbi_context_stands_for(uintptr_t pc, unsigned bytes)
{
	stub = pc;
	lowered = bytes;
}

uintptr_t kbi_context_returns_to(const void *context)
{
	static const uint8_t call[] = { 0x0f, 0x05 };
	enum { RETURN = 0xc3, MOST = 5 };
	const ucontext_t *uc = context;
	const uint8_t *p = (const uint8_t *)kbi_context_at(uc);
	uintptr_t sp = (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];

	if (stub && (uintptr_t)p == stub) {
		p = *(const uint8_t *const *)sp;
		sp += lowered;
	}
	if (memcmp(p - sizeof call, call, sizeof call) != 0)
		return 0;
	for (unsigned i = 0, n; i < MOST && *p != RETURN; i++, p += n) {
		n = after_call(p);
		if (!n)
			return 0;
	}
	return *p == RETURN ? *(const uintptr_t *)sp : 0;
}

#elif defined(__aarch64__)

/* Returns true for instructions that wrappers have between the system call and their return: a test
 * of the result, a jump to the code that sets errno, the result 0. None of them writes the register
 * that holds the return address. */
static bool is_after_call(uint32_t code)
{
	static const struct {
		uint32_t mask, code;
	} known[] = {
		{ ~0u, 0xb13ffc1f },        /* cmn x0, #4095 */
		{ 0x7fffffff, 0x3140041f }, /* cmn x0 or w0, #4096 */
		{ 0xff00001f, 0x54000002 }, /* b.cs */
		{ 0xff00001f, 0x54000008 }, /* b.hi */
		{ ~0u, 0x52800000 },        /* mov w0, #0 */
	};

	for (size_t i = 0; i < kbi_countof(known); i++)
		if ((code & known[i].mask) == known[i].code)
			return true;
	return false;
}

uintptr_t kbi_context_returns_to(const void *context)
{
	enum { CALL = 0xd4000001, RETURN = 0xd65f03c0, MOST = 5, LINK = 30 };
	const ucontext_t *uc = context;
	const uint32_t *p = (const uint32_t *)kbi_context_at(uc);

	if (p[-1] != (uint32_t)CALL)
		return 0;
	for (unsigned i = 0; i < MOST && is_after_call(*p); i++)
		p++;
	return *p == (uint32_t)RETURN ? (uintptr_t)uc->uc_mcontext.regs[LINK] : 0;
}

#elif defined(__riscv)

/* Returns the length, in units of two bytes, of an instruction that wrappers have between the
 * system call and their return, as above; else 0. */
static unsigned after_call(const uint16_t *p)
{
	enum { LINK = 1 };
	const uint32_t target = p[0] >> 7 & 31, two = p[0] | (uint32_t)p[1] << 16;

	if ((two & 0x707f) == 0x6063) /* bltu */
		return 2;
	if (target == LINK)
		return 0;
	if ((p[0] & 0xf07f) == 0x707d || p[0] == 0x4501) /* lui target, -1; li a0, 0 */
		return 1;
	/* lui target, -1; sext.w target, a0 */
	return (two & 0xfffff07f) == 0xfffff037 || (two & 0xfffff07f) == 0x5001b ? 2 : 0;
}

uintptr_t kbi_context_returns_to(const void *context)
{
	enum { CALL = 0x73, RETURN = 0x8082, MOST = 5 };
	const ucontext_t *uc = context;
	const uint16_t *p = (const uint16_t *)kbi_context_at(uc);

	if (p[-2] != CALL || p[-1] != 0)
		return 0;
	for (unsigned i = 0, n; i < MOST && *p != RETURN; i++, p += n) {
		n = after_call(p);
		if (!n)
			return 0;
	}
	return *p == RETURN ? (uintptr_t)uc->uc_mcontext.__gregs[REG_RA] : 0;
}

#else

uintptr_t kbi_context_returns_to(const void *context)
{
	(void)context;
	return 0;
}

#endif
