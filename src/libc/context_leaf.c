/* libc/context_leaf.c - tells whether a context is in one of libc's functions for strings and
 * memory, and its caller. These functions take no lock and call nothing. A thread that copies or
 * clears much memory is hardly ever interrupted elsewhere. Contract in context.h.
 * Callers: handlers. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <ucontext.h>

#include "libc/context.h"
#include "os/sys.h"

/* at least the size of such a function; behind it lies another of them */
enum { LEAF_SIZE = 4096 };

typedef void code(void);

/* libc has a variant for this processor: the linker puts the variant's address here. */
static code *const leaves[] = {
	(code *)memset, (code *)memcpy,  (code *)memmove, (code *)memcmp,  (code *)memchr,
	(code *)strlen, (code *)strnlen, (code *)strchr, (code *)strrchr, (code *)strcmp,
	(code *)strncmp, (code *)strcpy, (code *)strncpy, (code *)strcasecmp, (code *)strncasecmp,
};

static bool is_leaf(uintptr_t at)
{
	for (size_t i = 0; i < kbi_countof(leaves); i++)
		if (at - (uintptr_t)leaves[i] < LEAF_SIZE)
			return true;
	return false;
}

#if defined(__x86_64__)

/* Asks the kernel whether memory is readable, because a fault here would end the program. The
 * kernel reads the mask before it rejects the operation NO_CHANGE. */
static bool can_read(uintptr_t eight_bytes)
{
	enum { NO_CHANGE = 99, MASK_BYTES = 8 };

	return kbi_sys(SYS_rt_sigprocmask, NO_CHANGE, eight_bytes, NULL, MASK_BYTES) == -EINVAL;
}

/* Tests for a relative call, and for a call by a register or memory. */
bool kbi_context_follows_call(uintptr_t at)
{
	enum { NEAR_CALL = 0xe8, BY_OPERAND = 0xff, LONGEST = 7, NEAR_SIZE = 5, PART = 0x38,
		CALL_PART = 0x10 };
	const uint8_t *p = (const uint8_t *)at;

	if (at < 8 || !can_read(at - 8))
		return false;
	if (p[-NEAR_SIZE] == NEAR_CALL)
		return true;
	for (int n = 2; n <= LONGEST; n++)
		if (p[-n] == BY_OPERAND && (p[-n + 1] & PART) == CALL_PART)
			return true;
	return false;
}

uintptr_t kbi_context_leaf_returns_to(const void *context)
{
	const ucontext_t *uc = context;
	uintptr_t to;

	if (!is_leaf(kbi_context_at(uc)))
		return 0;
	/* The return address is on top of the stack, because these functions of glibc and musl have no
	 * frame. In a function with a frame the thread is not left, unless the word on top of its stack
	 * happens to be such an address. */
	to = *(const uintptr_t *)uc->uc_mcontext.gregs[REG_RSP];
	return kbi_context_follows_call(to) ? to : 0;
}

#elif defined(__aarch64__)

uintptr_t kbi_context_leaf_returns_to(const void *context)
{
	enum { LINK = 30 };
	const ucontext_t *uc = context;

	return is_leaf(kbi_context_at(uc)) ? (uintptr_t)uc->uc_mcontext.regs[LINK] : 0;
}

#elif defined(__riscv)

uintptr_t kbi_context_leaf_returns_to(const void *context)
{
	const ucontext_t *uc = context;

	return is_leaf(kbi_context_at(uc)) ? (uintptr_t)uc->uc_mcontext.__gregs[REG_RA] : 0;
}

#else

uintptr_t kbi_context_leaf_returns_to(const void *context)
{
	(void)context;
	return 0;
}

#endif
