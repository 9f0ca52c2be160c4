/* libc/intercept_patch_unwind.c - unwind tables made at run time. Contract in
 * intercept_patch_unwind.h. The tables are DWARF's call frame information, as in a file's
 * .eh_frame; x86-64. The frame of the code that replaces a call is like a caller's, but nobody has
 * called that code: its return address is a constant, not on the stack. All remaining registers are
 * unchanged. */
#include "libc/intercept_patch_unwind.h"

#include <dlfcn.h>
#include <string.h>

#include "os/sys.h"

enum {
	CIE = 24, FDE = 48,                                      /* bytes */
	RSP = 7, RETURN = 16,                                    /* DWARF's numbers of registers */
	NOP = 0, DEF_CFA = 0x0c, VAL_EXPRESSION = 0x16, OP_ADDR = 0x03,
};

static void (*make_known)(void *);
static uint8_t *table;
static unsigned used, room;

/* Finds the unwinder that libc loads for cancellation and that C++ programs use. */
void kbi_intercept_patch_unwind_find(void)
{
	void *unwinder = dlopen("libgcc_s.so.1", RTLD_NOW);

	make_known = unwinder ? (void (*)(void *))dlsym(unwinder, "__register_frame") : NULL;
}

bool kbi_intercept_patch_unwind_begin(unsigned most)
{
	static const uint8_t head[] = {
		CIE - 4, 0, 0, 0,          /* length of the rest */
		0, 0, 0, 0,                /* marks it as a CIE */
		1, 0, 1, 0x78, RETURN,     /* version, no augmentation, alignments 1 and -8 */
	};

	room = most;
	used = 0;
	table = kbi_sys_map(CIE + (size_t)most * FDE + 4);
	if (table)
		memcpy(table, head, sizeof head); /* the bytes behind are NOPs (0) */
	return table;
}

static uint8_t *put_unwind_bytes(uint8_t *p, const void *value, size_t n)
{
	memcpy(p, value, n);
	return p + n;
}

void kbi_intercept_patch_unwind_add(const uint8_t *from, size_t size, unsigned below,
	const uint8_t *back)
{
	uint8_t *start = table + CIE + (size_t)used * FDE, *p = start;
	uint32_t length = FDE - 4, to_cie = (uint32_t)(start + 4 - table);
	uint64_t range = size;

	if (used == room)
		return;
	used++;
	p = put_unwind_bytes(p, &length, 4);
	p = put_unwind_bytes(p, &to_cie, 4);
	p = put_unwind_bytes(p, &from, 8);
	p = put_unwind_bytes(p, &range, 8);
	p = put_unwind_bytes(p,
		(uint8_t[]){ DEF_CFA, RSP, (uint8_t)(below & 127) | 128, (uint8_t)(below >> 7) },
		4);
	p = put_unwind_bytes(p, (uint8_t[]){ VAL_EXPRESSION, RETURN, 9, OP_ADDR }, 4);
	put_unwind_bytes(p, &back, 8);
}

void kbi_intercept_patch_unwind_end(void)
{
	if (make_known)
		make_known(table);
}
