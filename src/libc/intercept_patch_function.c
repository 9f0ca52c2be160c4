/* libc/intercept_patch_function.c - lengths of x86-64 instructions, and the number of a system
 * call. Contract in intercept_patch_function.h.
 * After Intel's manual, volume 2, appendix A: prefixes, an opcode of one of four maps, a byte that
 * names the operands and their addressing, and a constant. */
#include "libc/intercept_patch_function.h"

#include <string.h>

#include "libc/unwind_table.h"

enum { LONGEST = 15 };

/* ---- lengths --------------------------------------------------------------------------------- */

struct decoder {
	const uint8_t *p;
	bool wide;  /* REX.W: some constants have 64 bits */
	bool narrow; /* 0x66: constants of 16 bits instead of 32 */
	bool near;  /* 0x67: addresses of 32 bits */
};

static bool is_prefix(uint8_t b)
{
	static const uint8_t known[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0,
		0xf2, 0xf3 };

	return memchr(known, b, sizeof known);
}

static void skip_prefixes(struct decoder *d, const uint8_t *start)
{
	for (; d->p - start < LONGEST && is_prefix(*d->p); d->p++) {
		d->narrow |= *d->p == 0x66;
		d->near |= *d->p == 0x67;
	}
	if ((*d->p & 0xf0) == 0x40)
		d->wide = *d->p++ & 8;
}

/* Skips the byte that describes the operands, and the bytes behind it: an index, a distance. */
static void skip_operands(struct decoder *d)
{
	uint8_t modrm = *d->p++, mod = modrm >> 6, rm = modrm & 7, base = rm;

	if (mod == 3)
		return;
	if (rm == 4)
		base = *d->p++ & 7;
	if (mod == 1)
		d->p += 1;
	else if (mod == 2 || (mod == 0 && base == 5))
		d->p += 4;
}

static unsigned constant_size(const struct decoder *d)
{
	return d->narrow ? 2 : 4;
}

/* Reads the rows of the opcode map that repeat the same form eight times: arithmetic with two
 * operands. Returns false if op is not such an instruction. */
static bool is_arithmetic(uint8_t op, unsigned *bytes, bool *operands, const struct decoder *d)
{
	if (op >= 0x40)
		return false;
	*operands = (op & 7) < 4;
	*bytes = (op & 7) == 4 ? 1 : (op & 7) == 5 ? constant_size(d) : 0;
	return (op & 7) < 6;
}

/* Reads the map of one-byte opcodes. Sets the number of bytes of the constant and whether there are
 * operands. Returns false if op is not an instruction. */
static bool read_one_byte_op(struct decoder *d, uint8_t op, unsigned *bytes, bool *operands)
{
	uint8_t which = *d->p >> 3 & 7; /* selects the operation in a group of opcodes */

	*bytes = 0;
	*operands = false;
	if (is_arithmetic(op, bytes, operands, d))
		return true;
	switch (op) {
	case 0x50 ... 0x5f: case 0x90 ... 0x99: case 0x9b ... 0x9f: case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf: case 0xc3: case 0xc9: case 0xcb: case 0xcc: case 0xcf: case 0xd7:
	case 0xec ... 0xef: case 0xf1: case 0xf4: case 0xf5: case 0xf8 ... 0xfd: case 0x6c ... 0x6f:
		return true;
	case 0x63: case 0x84 ... 0x8f: case 0xd0 ... 0xd3: case 0xd8 ... 0xdf: case 0xfe: case 0xff:
		*operands = true;
		return true;
	case 0x68: case 0xa9:
		*bytes = constant_size(d);
		return true;
	case 0x69: case 0x81: case 0xc7:
		*operands = true;
		*bytes = constant_size(d);
		return true;
	case 0x6b: case 0x80: case 0x83: case 0xc0: case 0xc1: case 0xc6:
		*operands = true;
		*bytes = 1;
		return true;
	case 0x6a: case 0x70 ... 0x7f: case 0xa8: case 0xb0 ... 0xb7: case 0xcd:
	case 0xe0 ... 0xe7: case 0xeb:
		*bytes = 1;
		return true;
	case 0xa0 ... 0xa3:
		*bytes = d->near ? 4 : 8;
		return true;
	case 0xb8 ... 0xbf:
		*bytes = d->wide ? 8 : constant_size(d);
		return true;
	case 0xc2: case 0xca:
		*bytes = 2;
		return true;
	case 0xc8:
		*bytes = 3;
		return true;
	case 0xe8: case 0xe9:
		*bytes = 4;
		return true;
	case 0xf6: case 0xf7:
		*operands = true;
		*bytes = which > 1 ? 0 : op == 0xf6 ? 1 : constant_size(d);
		return true;
	default:
		return false;
	}
}

/* Reads the map behind 0x0f. */
static void read_two_byte_op(uint8_t op, unsigned *bytes, bool *operands)
{
	*bytes = 0;
	*operands = true;
	switch (op) {
	case 0x05 ... 0x09: case 0x0b: case 0x0e: case 0x30 ... 0x37: case 0x77: case 0xa0 ... 0xa2:
	case 0xa8 ... 0xaa:
	case 0xc8 ... 0xcf:
		*operands = false;
		break;
	case 0x80 ... 0x8f:
		*operands = false;
		*bytes = 4;
		break;
	case 0x0f: case 0x70 ... 0x73: case 0xa4: case 0xac: case 0xba: case 0xc2: case 0xc4 ... 0xc6:
		*bytes = 1;
		break;
	default:
		break;
	}
}

/* Skips a VEX or EVEX instruction: the map's number, an opcode, operands, and in map 3 a byte of
 * constant; maps 1 and 3. */
static void skip_vector(struct decoder *d, unsigned map)
{
	uint8_t op = *d->p++;
	unsigned bytes = map == 3;
	bool operands = true;

	if (map == 1)
		read_two_byte_op(op, &bytes, &operands);
	if (operands)
		skip_operands(d);
	d->p += bytes;
}

static bool skip_if_vector(struct decoder *d)
{
	const uint8_t *p = d->p;

	if (*p != 0xc4 && *p != 0xc5 && *p != 0x62)
		return false;
	d->p += *p == 0xc5 ? 2 : *p == 0xc4 ? 3 : 4;
	skip_vector(d, *p == 0xc5 ? 1 : p[1] & (*p == 0xc4 ? 31 : 7));
	return true;
}

static bool skip_opcode(struct decoder *d)
{
	unsigned bytes;
	bool operands;
	uint8_t op = *d->p++;

	if (op == 0x0f) {
		op = *d->p++;
		if (op == 0x38 || op == 0x3a) {
			d->p++;
			skip_operands(d);
			d->p += op == 0x3a;
			return true;
		}
		read_two_byte_op(op, &bytes, &operands);
	} else if (!read_one_byte_op(d, op, &bytes, &operands)) {
		return false;
	}
	if (operands)
		skip_operands(d);
	d->p += bytes;
	return true;
}

unsigned kbi_intercept_patch_length(const uint8_t *p)
{
	struct decoder d = { .p = p };

	skip_prefixes(&d, p);
	if (!skip_if_vector(&d) && !skip_opcode(&d))
		return 0;
	return d.p - p <= LONGEST ? (unsigned)(d.p - p) : 0;
}

/* ---- where a function begins ----------------------------------------------------------------- */

const uint8_t *kbi_intercept_patch_function(const void *table, const uint8_t *at)
{
	const struct kbi_unwind_table *t = table;
	int64_t i = kbi_unwind_table_is_known(t) ? kbi_unwind_table_find(t, (uintptr_t)at) : -1;

	return i < 0 ? NULL : (const uint8_t *)t + t->pair[i].from;
}

/* ---- the number ------------------------------------------------------------------------------ */

/* registers that a call may change: rax, rcx, rdx, rsi, rdi, r8 to r11 */
enum { REGISTERS = 16, RAX = 0, LOST = 0x0fc7 };

struct tracker {
	int64_t value[REGISTERS]; /* -1: not known */
	bool tested;              /* the instruction before was test %eax,%eax */
};

static void forget_registers(struct tracker *t, unsigned registers)
{
	for (unsigned i = 0; i < REGISTERS; i++)
		if (registers >> i & 1)
			t->value[i] = -1;
}

/* An instruction without its prefixes: the opcode, and the registers of its operands. */
struct parts {
	const uint8_t *op;
	unsigned reg, rm;
	bool pair; /* rm is a register, not memory */
};

static struct parts split_instruction(const uint8_t *p)
{
	uint8_t rex = (*p & 0xf0) == 0x40 ? *p++ : 0, modrm = p[*p == 0x0f ? 2 : 1];

	return (struct parts){ p, (unsigned)((modrm >> 3 & 7) | (rex & 4) << 1),
		(unsigned)((modrm & 7) | (rex & 1) << 3),
			       modrm >= 0xc0 };
}

/* Follows a constant that the instruction loads or copies. Returns false if it does neither. */
static bool track_load(struct tracker *t, const struct parts *i)
{
	uint32_t constant;

	if (*i->op == 0x31 && i->pair && i->reg == i->rm)
		t->value[i->rm] = 0;
	else if (*i->op == 0x89 && i->pair)
		t->value[i->rm] = t->value[i->reg];
	else if (*i->op == 0x8b && i->pair)
		t->value[i->reg] = t->value[i->rm];
	else if (*i->op == 0xc7 && i->pair) {
		memcpy(&constant, i->op + 2, 4);
		t->value[i->rm] = constant;
	} else
		return false;
	return true;
}

/* As track_load, for mov $imm32,%r32 and pop, which have their register in the opcode. */
static bool track_short_load(struct tracker *t, const struct parts *i, bool high)
{
	uint32_t constant;

	memcpy(&constant, i->op + 1, 4);
	if (*i->op >= 0xb8 && *i->op <= 0xbf)
		t->value[(*i->op & 7) + 8 * high] = constant;
	else if (*i->op >= 0x58 && *i->op <= 0x5f)
		t->value[(*i->op & 7) + 8 * high] = -1;
	else
		return false;
	return true;
}

/* Returns the registers that the instruction may change otherwise, as far as they matter here. */
static unsigned changed_registers(const struct parts *i)
{
	uint8_t op = *i->op;

	if (op == 0xe8 || (op == 0xff && (i->reg & 7) == 2))
		return LOST;
	if (op == 0x0f && i->op[1] == 0x05)
		return 1 << RAX;
	if (op == 0x0f)
		return (i->op[1] & 0xf0) == 0x40 || i->op[1] >= 0xa0 ? 1u << i->reg : 0;
	if (op == 0x8b || op == 0x8d || op == 0x63 || op == 0x69 || op == 0x6b ||
		(op < 0x38 && (op & 7) > 1 && (op & 7) < 4))
		return 1u << i->reg;
	if ((op < 0x38 && (op & 7) > 3) || op == 0x98 || (op == 0xf7 && (i->reg & 7) > 3))
		return 1 << RAX;
	if (i->pair && (op < 0x38 || op == 0xc1 || op == 0xd1 || op == 0xd3 || op == 0xf7 ||
		op == 0x88 || op == 0xff || ((op == 0x81 || op == 0x83) && (i->reg & 7) != 7)))
		return 1u << i->rm;
	return 0;
}

static void follow_instruction(struct tracker *t, const uint8_t *p)
{
	bool narrow = false, tested = t->tested;
	struct parts i;

	for (; is_prefix(*p); p++)
		narrow |= *p == 0x66;
	i = split_instruction(p);
	t->tested = *i.op == 0x85 && i.op[1] == 0xc0;
	if (tested && (*i.op == 0x75 || (*i.op == 0x0f && i.op[1] == 0x85)))
		t->value[RAX] = 0; /* jne */
	else if (narrow || !(track_short_load(t, &i, i.op != p && *p & 1) || track_load(t, &i)))
		forget_registers(t, changed_registers(&i));
}

/* ---- which code may move --------------------------------------------------------------------- */

/* Returns true for moves, loads of addresses and tests with operands that are not relative to the
 * code: the instruction does not depend on its address, does not jump, and does not move the stack
 * pointer. */
static bool is_movable(const uint8_t *p)
{
	static const uint8_t known[] = { 0x31, 0x81, 0x83, 0x85, 0x88, 0x89, 0x8b, 0x8d, 0xc6, 0xc7 },
			     after_0f[] = { 0x10, 0x11, 0x28, 0x29, 0x57, 0x6f, 0x7f, 0xb6, 0xb7, 0xd6, 0xef };
	enum { RSP = 4 };
	struct parts i;
	uint8_t modrm;

	while (is_prefix(*p))
		p++;
	i = split_instruction(p);
	if (*i.op >= 0xb8 && *i.op <= 0xbf)
		return true;
	if (*i.op == 0x0f ? !memchr(after_0f, i.op[1], sizeof after_0f) :
		!memchr(known, *i.op, sizeof known))
		return false;
	modrm = i.op[*i.op == 0x0f ? 2 : 1];
	return (modrm & 0xc7) != 5 && i.reg != RSP && !(i.pair && i.rm == RSP);
}

/* Returns true for mov or lea with an address relative to the code: its last four bytes can be
 * adjusted. */
static bool is_relative(const uint8_t *p)
{
	struct parts i = split_instruction(p);

	return (*i.op == 0x89 || *i.op == 0x8b || *i.op == 0x8d) && (i.op[1] & 0xc7) == 5;
}

/* Chooses the instructions that move. A jump takes three bytes more than the call has. */
static void choose_moved_code(struct kbi_intercept_site *s, const uint8_t *last,
	const uint8_t *before_last)
{
	enum { ENOUGH = 3 };
	unsigned one = (unsigned)(s->at - last),
		two = before_last ? (unsigned)(s->at - before_last) : 0;

	s->relative = is_relative(last);
	if (!is_movable(last) && !s->relative)
		return;
	if (one >= ENOUGH && one <= KBI_INTERCEPT_PATCH_BEFORE) {
		s->before = one;
		s->second = 0;
	} else if (one < ENOUGH && two >= ENOUGH && two <= KBI_INTERCEPT_PATCH_BEFORE &&
		is_movable(before_last)) {
		s->before = two;
		s->second = one;
	}
}

static bool is_wide(const uint8_t *p)
{
	while (is_prefix(*p))
		p++;
	return *p == 0xc4 || *p == 0xc5 || *p == 0x62;
}

bool kbi_intercept_patch_read(const uint8_t *from, struct kbi_intercept_site *s, long *nr)
{
	const uint8_t *last = NULL, *before_last = NULL;
	struct tracker t = { .tested = false };
	bool begins = false; /* an instruction begins at the first byte that is to move */

	forget_registers(&t, ~0u);
	*nr = -1;
	while (from < s->at) {
		unsigned n = kbi_intercept_patch_length(from);

		if (!n)
			return true;
		begins |= from == s->at - s->before;
		s->wide |= is_wide(from);
		follow_instruction(&t, from);
		before_last = last;
		last = from;
		from += n;
	}
	if (from != s->at)
		return false;
	*nr = (long)t.value[RAX];
	if (!begins) {
		s->before = 0;
		s->nr = -1;
	}
	if (!s->before && last)
		choose_moved_code(s, last, before_last);
	return true;
}
