/* libc/context_again.c - makes a system call again that a signal of ours has ended and whose number
 * is lost: on x86-64 the result overwrites the number. But the kernel has told of other calls by
 * which instruction they were made; if the code in front of that instruction loads the noted
 * number, the call is identified. Both conditions are needed: an instruction may make several
 * calls, and bytes that look like a number may be the end of a longer instruction. Contract in
 * context.h.
 * The table has a word for each place; the system monitor writes it, handlers read it. */
#include <errno.h>
#include <string.h>

#include "base/atom.h"
#include "libc/context.h"
#include "libc/context_priv.h"
#include "os/newer.h"
#include "os/sys.h"

#if defined(__x86_64__)

enum { PLACES = 256, NUMBER_BITS = 10, NUMBERS = 1 << NUMBER_BITS, LOAD_SIZE = 5, BACK = 48,
	PAGE = 4096 };

/* address and number of a call; 0: none. Relaxed: the word is complete in itself. */
static a64 places[PLACES];

static a64 *entry_of_call(uint64_t pc)
{
	return &places[(pc ^ pc >> 8) % PLACES];
}

void kbi_context_note_call(const struct kbi_context_call *c)
{
	if (c->nr >= 0 && c->nr < NUMBERS && c->pc < (uint64_t)1 << 48)
		a_store_rlx(entry_of_call(c->pc), c->pc << NUMBER_BITS | (uint64_t)c->nr);
}

/* ---- the code -------------------------------------------------------------------------------- */

/* Returns the size in bytes of an operand in memory or in a register. */
static unsigned operand_size(const uint8_t *p)
{
	unsigned mod = p[0] >> 6, rm = p[0] & 7, sib = mod != 3 && rm == 4;

	if (mod == 0 && (rm == 5 || (sib && (p[1] & 7) == 5)))
		return 1 + sib + 4;
	return 1 + sib + (mod == 1) + (mod == 2) * 4;
}

/* Returns the length of an instruction that loads a register other than rax, or writes to memory:
 * compilers place such instructions between the number and the call. Returns 0 for any other
 * instruction. */
static unsigned other_load_length(const uint8_t *code)
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
	case 0x63: /* movslq to a register */
	case 0x8d: /* lea */
		to_rax = !(p[1] & 0x38) && !(rex & 4);
		break;
	case 0x89: /* mov from a register */
	case 0x31: /* xor */
	case 0xc7: /* mov $ */
		to_rax = to_register && !(p[1] & 7) && !(rex & 1);
		break;
	default:
		return 0;
	}
	return to_rax ? 0 : (unsigned)(p - code) + 1 + operand_size(p + 1) + (*p == 0xc7) * 4;
}

/* Returns true if the instruction at p loads the number and only loads of arguments follow up to
 * the call at `end`. */
static bool leads_to_call(const uint8_t *p, const uint8_t *end, uint32_t nr)
{
	unsigned n = LOAD_SIZE;

	if (*p != 0xb8 || memcmp(p + 1, &nr, sizeof nr) != 0)
		return false;
	for (p += n; p < end && n; p += n)
		n = other_load_length(p);
	return p == end && n;
}

/* Returns true if the code in front of the call loads the number. Does not read the preceding page,
 * which may not exist. */
static bool has_number(const uint8_t *call, uint32_t nr)
{
	uintptr_t room = (uintptr_t)call % PAGE;

	for (unsigned back = LOAD_SIZE; back <= BACK && back <= room; back++)
		if (leads_to_call(call - back, call, nr))
			return true;
	return false;
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Returns true if the kernel ends this call with EINTR in spite of SA_RESTART; such a call has had
 * no effect. */
static bool is_ended_call(uint32_t nr)
{
	static const uint16_t ended[] = { SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait,
		SYS_epoll_pwait, SYS_nanosleep, SYS_clock_nanosleep, SYS_pause, SYS_rt_sigsuspend,
		SYS_rt_sigtimedwait, SYS_semop, SYS_semtimedop, SYS_msgsnd, SYS_msgrcv, SYS_futex,
		SYS_io_getevents, SYS_io_pgetevents, SYS_epoll_pwait2, SYS_futex_waitv };

	for (size_t i = 0; i < kbi_countof(ended); i++)
		if (ended[i] == nr)
			return true;
	return false;
}

void kbi_context_make_any_again(void *context)
{
	const ucontext_t *uc = context;
	struct kbi_context_call c = { .arg = (uint64_t)FIRST(uc), .sp = (uint64_t)STACK(uc),
		.pc = (uint64_t)PLACE(uc) };
	uint64_t word = a_load_rlx(entry_of_call(c.pc));
	uint32_t nr = word % NUMBERS;

	/* rcx holds the address only right behind a call */
	if (ANSWER(uc) != -EINTR || REGISTERS(uc)[REG_RCX] != PLACE(uc) || word >> NUMBER_BITS != c.pc)
		return;
	if (!is_ended_call(nr) || !has_number((const uint8_t *)c.pc - CALL_SIZE, nr))
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
