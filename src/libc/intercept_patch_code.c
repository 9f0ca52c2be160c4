/* libc/intercept_patch_code.c - reads code before a system call. Contract in
 * intercept_patch_code.h. Only instructions of few kinds are known; none of them depends on its own
 * address. */
#include "libc/intercept_patch_code.h"

#include <string.h>
#include <sys/syscall.h>

static bool is_register_pair(uint8_t modrm)
{
	return modrm >= 0xc0;
}

/* Returns the length of the operand behind the opcode for [base + disp8] without an index, or rsp +
 * disp8 with a following byte; 0: another operand. */
static unsigned memory_operand(const uint8_t *p)
{
	unsigned mod = p[0] >> 6, rm = p[0] & 7;

	if (mod == 1)
		return rm == 4 ? 3 : 2;
	return mod == 0 && rm != 4 && rm != 5 ? 1 : 0;
}

static bool is_rex(uint8_t b)
{
	return b >= 0x40 && b <= 0x4f;
}

/* Returns true if the n bytes at p are an instruction that may be moved. */
static bool is_movable(const uint8_t *p, unsigned n)
{
	if (n > 1 && is_rex(*p))
		p++, n--;
	switch (n) {
	case 2:
		return (*p == 0x89 || *p == 0x31 || *p == 0x8b || *p == 0xf7) &&
		       (is_register_pair(p[1]) || (*p == 0x8b && memory_operand(p + 1) == 1));
	case 3:
		if (*p == 0x8b)
			return memory_operand(p + 1) == 2;
		return (*p == 0x80 || *p == 0x83 || *p == 0xc1) && is_register_pair(p[1]);
	case 4: /* mov from or to the stack */
		return (*p == 0x8b || *p == 0x89) && memory_operand(p + 1) == 3;
	case 5:
		return *p >= 0xb8 && *p <= 0xbf;
	case 6:
		return (*p == 0x81 && is_register_pair(p[1])) || (*p == 0xc7 && is_register_pair(p[1]));
	case 7:
		return *p == 0xc7 && memory_operand(p + 1) == 2;
	default:
		return false;
	}
}

/* Returns true for movl $imm32,(reg), which has six bytes, too. */
static bool is_store(const uint8_t *p, unsigned n)
{
	if (n > 1 && is_rex(*p))
		p++, n--;
	return n == 6 && *p == 0xc7 && memory_operand(p + 1) == 1;
}

bool kbi_intercept_patch_is_number(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p + 1, 4);
	return *p == 0xb8 && v < 1024 && (p[-1] & 0xf9) != 0x41; /* else the register is r8 */
}

/* Returns true if the byte before p may be the instruction's first byte: a segment prefix, a size
 * prefix, or the escape to another map of opcodes. Without that byte it would be another
 * instruction. */
static bool may_begin_before(const uint8_t *p)
{
	static const uint8_t first[] = { 0x64, 0x65, 0x66, 0x67, 0x0f };

	return memchr(first, p[-1], sizeof first);
}

/* Returns the length of the instruction that ends at `end`: tries the load of a call's number
 * first, then the longest instruction that fits; 0: none. */
static unsigned last_instruction(const uint8_t *end)
{
	if (kbi_intercept_patch_is_number(end - 5))
		return 5;
	for (unsigned n = 8; n >= 2; n--)
		if (is_movable(end - n, n) || is_store(end - n, n))
			return may_begin_before(end - n) ? 0 : n;
	return 0;
}

void kbi_intercept_patch_understand(struct kbi_intercept_site *s)
{
	const uint8_t *p = s->at;
	unsigned n;

	s->nr = -1;
	s->before = s->second = 0;
	s->relative = false;
	while (p > s->at - 3) {
		n = last_instruction(p);
		if (!n || (unsigned)(s->at - p) + n > KBI_INTERCEPT_PATCH_BEFORE)
			return;
		s->second = (unsigned)(s->at - p);
		p -= n;
		if (n == 7 && p[0] == 0x48 && p[1] == 0xc7 && p[2] == 0xc0)
			s->nr = p[3]; /* rt_sigreturn, in the form that unwinders know */
		if (n == 5 && kbi_intercept_patch_is_number(p))
			s->nr = p[1] | p[2] << 8;
	}
	s->before = (unsigned)(s->at - p);
	if (s->nr < 0 && kbi_intercept_patch_is_number(p - 5))
		s->nr = p[-4] | p[-3] << 8;
}

bool kbi_intercept_patch_is_exit(const uint8_t *at)
{
	static const uint8_t group[5] = { 0xbe, SYS_exit_group, 0, 0, 0 },
		one[5] = { 0xba, SYS_exit, 0, 0, 0 };
	const uint8_t *low = at - KBI_INTERCEPT_PATCH_LOOK;

	return memmem(low, KBI_INTERCEPT_PATCH_LOOK, group, sizeof group) &&
		memmem(low, KBI_INTERCEPT_PATCH_LOOK, one, sizeof one);
}
