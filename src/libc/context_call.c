/* libc/context_call.c - makes a system call again that a signal has interrupted. Contract in
 * context.h.
 * Callers: handlers. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "libc/context.h"
#include "libc/context_priv.h"
#include "os/sys.h"

/* ---- knowledge about a call ------------------------------------------------------------------ */

/* Marks, kept in a register that system calls overwrite: no code expects its value after a call,
 * and the next call erases the mark. */
/* this code caused the coming call to be made again */
#define MADE_AGAIN ((int64_t)0x6b6f63686162a6a1)
/* a handler of the program's ended the last call */
#define HANDLED ((int64_t)0x6b6f63686162a6a2)

#if defined(__x86_64__)
#define MARK(uc) (uc)->uc_mcontext.gregs[REG_RCX]

static void set_call_mark(ucontext_t *uc, int64_t what)
{
	MARK(uc) = what;
}

static bool is_handled(const ucontext_t *uc)
{
	return MARK(uc) == HANDLED;
}

/* Newer processors keep the register, so a mark may belong to a call of long ago: checks for the
 * call instruction. */
static bool is_at_call(const ucontext_t *uc)
{
	static const uint8_t code[CALL_SIZE] = { 0x0f, 0x05 };

	return memcmp((const void *)PLACE(uc), code, CALL_SIZE) == 0;
}

void kbi_context_handled(void *context)
{
	ucontext_t *uc = context;

	if (MARK(uc) == MADE_AGAIN && is_at_call(uc)) {
		PLACE(uc) += CALL_SIZE;
		ANSWER(uc) = -EINTR;
		set_call_mark(uc, HANDLED);
	} else if (ANSWER(uc) == -EINTR && MARK(uc) == PLACE(uc)) {
		/* after a call the register holds the address of the call */
		set_call_mark(uc, HANDLED);
	}
}
#else
void kbi_context_handled(void *context)
{
	(void)context;
}
#endif

#if defined(ANSWER) && !defined(MARK)
static void set_call_mark(ucontext_t *uc, int64_t what)
{
	(void)uc;
	(void)what;
}

static bool is_handled(const ucontext_t *uc)
{
	(void)uc;
	return false;
}
#endif

/* ---- a call that does not wait --------------------------------------------------------------- */

#if defined(__x86_64__)
bool kbi_context_has_yielded(const void *context)
{
	/* mov $, %eax; syscall */
	static const uint8_t code[] = { 0xb8, SYS_sched_yield, 0, 0, 0, 0x0f, 0x05 };
	enum { PAGE = 4096 };
	const ucontext_t *uc = context;

	return ANSWER(uc) == 0 && (uint64_t)PLACE(uc) % PAGE >= sizeof(code) &&
	       memcmp((const uint8_t *)PLACE(uc) - sizeof(code), code, sizeof(code)) == 0;
}
#else
bool kbi_context_has_yielded(const void *context)
{
	(void)context;
	return false;
}
#endif

/* ---- in a call ------------------------------------------------------------------------------- */

#if defined(ANSWER)
bool kbi_context_is_in_call(const void *context, const struct kbi_context_call *c)
{
	const ucontext_t *uc = context;

	if ((uint64_t)STACK(uc) != c->sp)
		return false;
	if (c->nr == KBI_CONTEXT_FAULT)
		return (uint64_t)PLACE(uc) == c->pc;
	if ((uint64_t)PLACE(uc) == c->pc - CALL_SIZE)
		return true;
	/* The first argument must be equal, too: the instruction may be in another call by now. */
	return (uint64_t)PLACE(uc) == c->pc && (int64_t)ANSWER(uc) == -EINTR && !is_handled(uc) &&
	       (ANSWER_HIDES_FIRST || (uint64_t)FIRST(uc) == c->arg);
}

void kbi_context_make_again(void *context, const struct kbi_context_call *c)
{
	ucontext_t *uc = context;

	if ((uint64_t)PLACE(uc) != c->pc || c->nr < 0)
		return;
	FIRST(uc) = (__typeof__(FIRST(uc)))c->arg;
	NUMBER(uc) = (__typeof__(NUMBER(uc)))c->nr;
	PLACE(uc) = (__typeof__(PLACE(uc)))(c->pc - CALL_SIZE);
	set_call_mark(uc, MADE_AGAIN);
}

/* ---- with a timeout -------------------------------------------------------------------------- */

#if defined(__x86_64__)

/* How a call takes its timeout: milliseconds in a register, or a pointer to a timespec. */
enum limit { NONE, MILLISECONDS, TIMESPEC };

/* Marks a timeout of a call made again, for the next interruption at this place: the kernel ignores
 * the upper half. */
#define AGAIN ((uint64_t)0x6b6f6368 << 32)

static enum limit limit_of_call(int64_t nr, const ucontext_t *uc, int *at)
{
	switch (nr) {
	case SYS_poll:
		*at = REG_RDX;
		return MILLISECONDS;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		*at = REG_R10;
		return MILLISECONDS;
	case SYS_nanosleep:
		*at = REG_RDI;
		return TIMESPEC;
	case SYS_clock_nanosleep:
		*at = REG_RDX;
		return uc->uc_mcontext.gregs[REG_RSI] & 1 ? NONE : TIMESPEC; /* TIMER_ABSTIME */
	case SYS_futex: /* FUTEX_WAIT; the other waits have an absolute time */
		*at = REG_R10;
		return (uc->uc_mcontext.gregs[REG_RSI] & 127) == 0 ? TIMESPEC : NONE;
	case SYS_rt_sigtimedwait:
		*at = REG_RDX;
		return TIMESPEC;
	case SYS_semtimedop:
		*at = REG_R10;
		return TIMESPEC;
	default:
		return NONE; /* no timeout, or the kernel writes the rest of it */
	}
}

static uint64_t ns_left_until(uint64_t deadline)
{
	uint64_t now = kbi_sys_now();

	return deadline > now ? deadline - now : 0;
}

static void limit_milliseconds(greg_t *limit, struct kbi_context_rest *r)
{
	uint64_t word = (uint64_t)*limit, ms;

	if ((int32_t)word < 0)
		return;
	if ((word & ~(uint64_t)UINT32_MAX) != AGAIN)
		r->deadline = kbi_sys_now() + (word & INT32_MAX) * 1000000;
	ms = (ns_left_until(r->deadline) + 999999) / 1000000;
	*limit = (greg_t)(AGAIN | ms);
}

static void limit_timespec(greg_t *limit, struct kbi_context_rest *r)
{
	const void *at = (const void *)(uintptr_t)*limit;
	struct timespec t;
	uint64_t left;

	if (!at)
		return;
	memcpy(&t, at, sizeof(t)); /* the program's timespec may be unaligned */
	if (at != &r->left && t.tv_sec < INT32_MAX)
		r->deadline = kbi_sys_now() + (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	else if (at != &r->left)
		return;
	left = ns_left_until(r->deadline);
	r->left = kbi_sys_timespec(left);
	*limit = (greg_t)(uintptr_t)&r->left;
}

static void limit_call(ucontext_t *uc, const struct kbi_context_call *c, struct kbi_context_rest *r)
{
	int at = 0;
	enum limit l = limit_of_call(c->nr, uc, &at);

	if (l == MILLISECONDS)
		limit_milliseconds(&uc->uc_mcontext.gregs[at], r);
	else if (l == TIMESPEC)
		limit_timespec(&uc->uc_mcontext.gregs[at], r);
}

#else

static void limit_call(ucontext_t *uc, const struct kbi_context_call *c, struct kbi_context_rest *r)
{
	(void)uc, (void)c, (void)r;
}

#endif

void kbi_context_go_on(void *context, const struct kbi_context_call *c, struct kbi_context_rest *r)
{
	ucontext_t *uc = context;

	if ((uint64_t)PLACE(uc) != c->pc)
		return; /* the kernel makes it again itself */
	kbi_context_make_again(uc, c);
	limit_call(uc, c, r);
}
#else
bool kbi_context_is_in_call(const void *context, const struct kbi_context_call *c)
{
	(void)context;
	(void)c;
	return false;
}

void kbi_context_make_again(void *context, const struct kbi_context_call *c)
{
	(void)context;
	(void)c;
}

void kbi_context_go_on(void *context, const struct kbi_context_call *c, struct kbi_context_rest *r)
{
	(void)context;
	(void)c;
	(void)r;
}
#endif
