/* os/context_again.c - a system call that a signal of ours has ended, and of which nobody knows which one it was: x86-64
 * writes the answer where the number was. But the kernel has told of other calls which instruction they were made by, and
 * where the code in front of that instruction loads the same number it is the same call. Each by itself would not do: an
 * instruction may make several calls, and what looks like a number may be the end of a longer instruction.
 * Contract in context.h. The table: one word a place, written by the lookout, read in handlers. */
#include <errno.h>
#include <string.h>

#include "base/atom.h"
#include "os/context.h"
#include "os/context_priv.h"
#include "os/newer.h"
#include "os/sys.h"

#if defined(__x86_64__)

enum { PLACES = 256, NUMBER_BITS = 10, NUMBERS = 1 << NUMBER_BITS, LOAD_SIZE = 5, BACK = 48, PAGE = 4096 };

static a64 places[PLACES]; /* a place and its call's number; 0: none */

static a64 *entry(uint64_t pc)
{
	return &places[(pc ^ pc >> 8) % PLACES];
}

void kbi_context_note_call(const struct kbi_context_call *c)
{
	if (c->nr >= 0 && c->nr < NUMBERS && c->pc < (uint64_t)1 << 48)
		a_store_rlx(entry(c->pc), c->pc << NUMBER_BITS | (uint64_t)c->nr);
}

/* ---- the code ---------------------------------------------------------------------------------------------------- */

/* The bytes of an operand in memory, or of a register, from its first on. */
static unsigned operand(const uint8_t *p)
{
	unsigned mod = p[0] >> 6, rm = p[0] & 7, sib = mod != 3 && rm == 4;

	if (mod == 0 && (rm == 5 || (sib && (p[1] & 7) == 5)))
		return 1 + sib + 4;
	return 1 + sib + (mod == 1) + (mod == 2) * 4;
}

/* The length of an instruction that loads a register other than rax, or writes to memory: compilers have these between the
 * number and the call. 0: another one. */
static unsigned loads_another(const uint8_t *code)
{
	const uint8_t *p = code;
	unsigned rex = (*p & 0xf0) == 0x40 ? *p++ : 0;
	bool to_rax, to_register = p[1] >= 0xc0;

	if ((*p & 0xf8) == 0xb8) { /* mov $, register */
		to_rax = *p == 0xb8 && !(rex & 1);
		return to_rax ? 0 : (unsigned)(p - code) + (rex & 8 ? 9 : 5);
	}
	switch (*p) {
	case 0x8b: /* mov to a register */
	case 0x63: /* the same, of four bytes */
	case 0x8d: /* lea */
		to_rax = !(p[1] & 0x38) && !(rex & 4);
		break;
	case 0x89: /* mov from one */
	case 0x31: /* xor */
	case 0xc7: /* mov $ */
		to_rax = to_register && !(p[1] & 7) && !(rex & 1);
		break;
	default:
		return 0;
	}
	return to_rax ? 0 : (unsigned)(p - code) + 1 + operand(p + 1) + (*p == 0xc7) * 4;
}

/* Is the number loaded at p, and nothing but the call's arguments from there to the call at `end`? */
static bool leads_to(const uint8_t *p, const uint8_t *end, uint32_t nr)
{
	unsigned n = LOAD_SIZE;

	if (*p != 0xb8 || memcmp(p + 1, &nr, sizeof nr) != 0)
		return false;
	for (p += n; p < end && n; p += n)
		n = loads_another(p);
	return p == end && n;
}

/* Of the code nothing is read in front of the page, where there may be none. */
static bool has_number(const uint8_t *call, uint32_t nr)
{
	uintptr_t room = (uintptr_t)call % PAGE;

	for (unsigned back = LOAD_SIZE; back <= BACK && back <= room; back++)
		if (leads_to(call - back, call, nr))
			return true;
	return false;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/* The kernel ends it with EINTR, whatever SA_RESTART says, and it has done nothing then. */
static bool is_ended(uint32_t nr)
{
	static const uint16_t ended[] = { SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait,
					  SYS_nanosleep, SYS_clock_nanosleep, SYS_pause, SYS_rt_sigsuspend, SYS_rt_sigtimedwait,
					  SYS_semop, SYS_semtimedop, SYS_msgsnd, SYS_msgrcv, SYS_futex, SYS_io_getevents,
					  SYS_io_pgetevents, SYS_epoll_pwait2, SYS_futex_waitv };

	for (size_t i = 0; i < kbi_countof(ended); i++)
		if (ended[i] == nr)
			return true;
	return false;
}

void kbi_context_make_any_again(void *context)
{
	const ucontext_t *uc = context;
	struct kbi_context_call c = { .arg = (uint64_t)FIRST(uc), .sp = (uint64_t)STACK(uc), .pc = (uint64_t)PLACE(uc) };
	uint64_t word = a_load_rlx(entry(c.pc));
	uint32_t nr = word % NUMBERS;

	/* right behind a call: that leaves its address there */
	if (ANSWER(uc) != -EINTR || REGISTERS(uc)[REG_RCX] != PLACE(uc) || word >> NUMBER_BITS != c.pc)
		return;
	if (!is_ended(nr) || !has_number((const uint8_t *)c.pc - CALL_SIZE, nr))
		return;
	c.nr = nr;
	kbi_context_make_again(context, &c);
}

#else

void kbi_context_note_call(const struct kbi_context_call *c)
{
	(void)c;
}

void kbi_context_make_any_again(void *context)
{
	(void)context;
}

#endif
