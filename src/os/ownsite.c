/* os/ownsite.c - contract in ownsite.h. A jump takes five bytes and the instruction of a call two: one or two instructions
 * before it move along, as in os/libsite, whose readers of code decide which. All of a module's futex calls are understood,
 * or none is replaced: a wait that is the kernel's would not be found by a wake that is ours.
 *
 *      mov %edx,%esi          jmp stub                 stub: mov %edx,%esi
 *      mov %r8d,%eax     ->   nop, nop...                    mov %r8d,%eax
 *      syscall                                               cmp $202,%eax; not equal: syscall; equal: call to C
 *      next                   next                           jmp next
 *
 * The upper halves of vector registers are not kept, as a system call keeps them: a function that uses them is strange. */
#include "os/ownsite.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "os/libsite_code.h"
#include "os/libsite_function.h"
#include "os/libsite_unwind.h"
#include "os/libstub.h"
#include "os/newer.h"
#include "os/sys.h"

#if defined(__x86_64__)

enum {
	SEGMENTS = 4,
	SITES = 256,
	STUB = 128,            /* bytes of one, at most */
	LAST = 16,             /* so far behind a site code is read, at most */
	BODY = 35,             /* bytes of put_call */
	LOWERED = 128,         /* by it: what lies below the stack pointer is the function's */
	CALL_AT = 5, CALL_END = 28,
	JUMP = 5,              /* bytes of a jump */
	FUTEX_NR = 202,
};

struct segment {
	uint8_t *from, *to;
};

struct run {
	uintptr_t at;
	unsigned segments, sites;
	struct segment segment[SEGMENTS];
	const void *functions;  /* the table for unwinders, or NULL */
	struct kbi_libsite_site site[SITES];
	struct kbi_ownsite_counts *counts;
	kbi_ownsite_call *call;
	uint8_t *stub, *stub_end;
};

/* ---- sites --------------------------------------------------------------------------------------------------- */

/* VEX or EVEX: instructions that have registers of 256 bits and more. */
static bool is_wide(const uint8_t *p)
{
	return *p == 0xc4 || *p == 0xc5 || *p == 0x62;
}

static bool uses_wide_registers(const uint8_t *from, const uint8_t *to)
{
	unsigned n = 1;

	for (const uint8_t *p = from; p < to && n; p += n) {
		if (is_wide(p))
			return true;
		n = kbi_libsite_length(p);
	}
	return !n;
}

/* Calls of other numbers that tell of a module which waits in other ways, too. */
static bool is_wait(long nr)
{
	return nr == SYS_io_uring_setup || nr == SYS_io_uring_enter || nr == SYS_futex_waitv || nr == SYS_futex_wait;
}

static void look_at(struct run *r, const struct segment *g, uint8_t *at)
{
	struct kbi_libsite_site s = { .at = at };
	const uint8_t *from = kbi_libsite_function(r->functions, at);
	long nr = -1;

	kbi_libsite_understand(&s);
	if (from && from >= g->from && !kbi_libsite_read(from, &s, &nr))
		return;
	if (s.nr < 0)
		s.nr = nr;
	r->counts->waits += is_wait(s.nr);
	if (s.nr >= 0 && s.nr != FUTEX_NR)
		return;
	r->counts->futex++;
	if (!from || !s.before || uses_wide_registers(from, at) || r->sites == SITES)
		r->counts->strange++;
	else
		r->site[r->sites++] = s;
}

/* ---- jumps: each byte that could begin one is taken for one ------------------------------------------------------ */

static bool is_inside(const struct kbi_libsite_site *s, const uint8_t *target)
{
	return target == s->at || (s->second && target == s->at - s->second);
}

/* Sites are in the order of their addresses. */
static bool is_in_site(const struct run *r, const uint8_t *target)
{
	unsigned low = 0, high = r->sites;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (r->site[middle].at < target)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->sites && is_inside(&r->site[low], target);
}

static bool leads_into_site(const struct run *r, const uint8_t *p)
{
	int32_t far;

	if (*p == 0xeb || (*p >= 0x70 && *p <= 0x7f) || (*p >= 0xe0 && *p <= 0xe3))
		return is_in_site(r, p + 2 + (int8_t)p[1]);
	if (*p == 0xe8 || *p == 0xe9) {
		memcpy(&far, p + 1, 4);
		return is_in_site(r, p + 5 + far);
	}
	if (*p != 0x0f || (p[1] & 0xf0) != 0x80)
		return false;
	memcpy(&far, p + 2, 4);
	return is_in_site(r, p + 6 + far);
}

static void find_jumps(struct run *r)
{
	for (unsigned i = 0; i < r->segments; i++)
		for (const uint8_t *p = r->segment[i].from; p + 6 <= r->segment[i].to; p++)
			r->counts->strange += leads_into_site(r, p);
}

/* ---- the module ------------------------------------------------------------------------------------------------ */

static int find(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct run *r = arg;
	bool is_it = false;

	(void)size;
	r->segments = 0;
	r->functions = NULL;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uint8_t *from = (uint8_t *)(info->dlpi_addr + h->p_vaddr);

		if (h->p_type == PT_GNU_EH_FRAME)
			r->functions = from;
		if (h->p_type != PT_LOAD)
			continue;
		is_it |= r->at - (uintptr_t)from < h->p_memsz;
		if (h->p_flags & PF_X && r->segments < SEGMENTS)
			r->segment[r->segments++] = (struct segment){ from, from + h->p_memsz };
	}
	return is_it;
}

static bool look(struct run *r)
{
	if (!dl_iterate_phdr(find, r))
		return false;
	for (unsigned i = 0; i < r->segments; i++) {
		const struct segment *s = &r->segment[i];

		for (uint8_t *p = s->from + KBI_LIBSITE_LOOK; p + LAST < s->to; p++)
			if (p[0] == 0x0f && p[1] == 0x05)
				look_at(r, s, p);
	}
	if (r->sites)
		find_jumps(r);
	return true;
}

static struct run *begin(uintptr_t at, struct kbi_ownsite_counts *c)
{
	struct run *r = kbi_sys_map(sizeof *r);

	*c = (struct kbi_ownsite_counts){ 0 };
	if (r) {
		r->at = at;
		r->counts = c;
	}
	return r;
}

static bool end(struct run *r, bool answer)
{
	kbi_sys_unmap(r, sizeof *r);
	return answer;
}

bool kbi_ownsite_count(uintptr_t at, struct kbi_ownsite_counts *c)
{
	struct run *r = begin(at, c);

	return r && end(r, look(r));
}

/* ---- stubs ------------------------------------------------------------------------------------------------- */

static void put(struct run *r, const void *bytes, size_t n)
{
	memcpy(r->stub, bytes, n);
	r->stub += n;
}

#define PUT(r, ...) put(r, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put32(struct run *r, int32_t v)
{
	put(r, &v, sizeof v);
}

/* In the instruction put last, which ended at `end` where it was: the same data. */
static void put_distance(struct run *r, const uint8_t *end)
{
	int32_t distance;

	memcpy(&distance, r->stub - sizeof distance, sizeof distance);
	distance += (int32_t)(end - r->stub);
	memcpy(r->stub - sizeof distance, &distance, sizeof distance);
}

/* lea -128(%rsp),%rsp; mov $call,%r11; mov $enter,%rcx; call *%rcx; lea 128(%rsp),%rsp: a system call loses rcx, r11. */
static void put_call(struct run *r, const uint8_t *back)
{
	uintptr_t call = (uintptr_t)r->call, enter = (uintptr_t)kbi_libstub_enter;

	kbi_libsite_unwind_add(r->stub + CALL_AT, CALL_END - CALL_AT, LOWERED, back);
	PUT(r, 0x48, 0x8d, 0x64, 0x24, 0x80, 0x49, 0xbb);
	put(r, &call, 8);
	PUT(r, 0x48, 0xb9);
	put(r, &enter, 8);
	PUT(r, 0xff, 0xd1, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0);
}

static void put_stub(struct run *r, const struct kbi_libsite_site *s)
{
	uint8_t *start = r->stub, *jump = s->at - s->before;
	const uint8_t *back = s->at + 2;

	put(r, jump, s->before);
	if (s->relative)
		put_distance(r, s->at);
	PUT(r, 0x3d, FUTEX_NR, 0, 0, 0, 0x75, BODY + 2);       /* cmp $202,%eax; jne 1f */
	put_call(r, back);
	PUT(r, 0xeb, 2, 0x0f, 0x05, 0xe9);                     /* jmp 2f; 1: syscall; 2: jmp back */
	put32(r, (int32_t)(back - (r->stub + 4)));
	*jump = 0xe9;
	memcpy(jump + 1, &(int32_t){ (int32_t)(start - (jump + JUMP)) }, 4);
	memset(jump + JUMP, 0x90, s->before + 2 - JUMP);
}

/* ---- replacing ---------------------------------------------------------------------------------------------------- */

/* Room for stubs in reach of a 32-bit jump. */
static bool make_room(struct run *r, size_t bytes)
{
	uintptr_t low = (uintptr_t)r->segment[0].from, high = (uintptr_t)r->segment[r->segments - 1].to;

	high = (high + 0xffff) & ~(uintptr_t)0xffff;
	for (uintptr_t at = high; at < low + 0x60000000; at += 0x10000) {
		long p = kbi_sys(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				 -1, 0);

		if (p != (long)at)
			continue;
		r->stub = (uint8_t *)p;
		r->stub_end = r->stub + bytes;
		return true;
	}
	return false;
}

static bool protect(const struct run *r, int protection)
{
	for (unsigned i = 0; i < r->segments; i++) {
		uintptr_t from = (uintptr_t)r->segment[i].from & ~(uintptr_t)(KBI_PAGE - 1);
		uintptr_t to = ((uintptr_t)r->segment[i].to + KBI_PAGE - 1) & ~(uintptr_t)(KBI_PAGE - 1);

		if (kbi_sys(SYS_mprotect, from, to - from, protection))
			return false;
	}
	return true;
}

static bool write_code(struct run *r)
{
	size_t bytes = ((size_t)r->sites * STUB + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);

	if (!kbi_libsite_unwind_begin(r->sites) || !make_room(r, bytes))
		return false;
	if (!protect(r, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		protect(r, PROT_READ | PROT_EXEC);
		kbi_sys(SYS_munmap, r->stub, bytes);
		return false;
	}
	for (unsigned i = 0; i < r->sites; i++)
		put_stub(r, &r->site[i]);
	protect(r, PROT_READ | PROT_EXEC);
	kbi_sys(SYS_mprotect, r->stub_end - bytes, bytes, PROT_READ | PROT_EXEC);
	kbi_libsite_unwind_end();
	return true;
}

bool kbi_ownsite_replace(uintptr_t at, kbi_ownsite_call *call)
{
	struct kbi_ownsite_counts c;
	struct run *r = begin(at, &c);

	if (!r)
		return false;
	r->call = call;
	if (!look(r) || !c.futex || c.strange || c.waits)
		return end(r, false);
	kbi_libsite_unwind_find();
	return end(r, write_code(r));
}

#else

bool kbi_ownsite_replace(uintptr_t at, kbi_ownsite_call *call)
{
	(void)at, (void)call;
	return false;
}

bool kbi_ownsite_count(uintptr_t at, struct kbi_ownsite_counts *c)
{
	(void)at;
	*c = (struct kbi_ownsite_counts){ 0 };
	return false;
}

#endif
