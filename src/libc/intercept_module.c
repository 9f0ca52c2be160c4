/* libc/intercept_module.c - contract in intercept_module.h.
 * A jump takes five bytes and the instruction of a call two: the last instruction before the call,
 * or the last two, move along, as in libc/intercept_patch, by the same readers of code. Either all
 * of a module's futex calls are understood, or none is replaced: a wait in the kernel would not be
 * found by a wake-up of ours.
 *
 *      mov %edx,%esi          jmp stub                 stub: mov %edx,%esi
 *      mov %r8d,%eax     ->   nop, nop...                    mov %r8d,%eax
 *      syscall                                               cmp $202,%eax; not equal: syscall;
 *                                                            equal: call to C
 *      next                   next                           jmp next
 *
 * The upper halves of vector registers are not kept, although a system call keeps them: a site in a
 * function that uses them counts as strange. */
#include "libc/intercept_module.h"

#include <link.h>
#include <sys/mman.h>

#include "libc/intercept_patch_code.h"
#include "libc/intercept_patch_function.h"
#include "libc/intercept_patch_jump.h"
#include "libc/intercept_patch_unwind.h"
#include "os/newer.h"
#include "os/sys.h"

#if defined(__x86_64__)

enum {
	SEGMENTS = 4,
	SITES = 256,
	LAST = KBI_INTERCEPT_PATCH_JUMP_BYTES, /* code is read at most so far behind a site */
};

struct segment {
	uint8_t *from, *to;
};

struct run {
	uintptr_t at;
	unsigned segments, sites;
	struct segment segment[SEGMENTS];
	const void *functions;  /* the table for unwinders, or NULL */
	struct kbi_intercept_site site[SITES];
	struct kbi_intercept_module_counts *counts;
	struct kbi_intercept_pen pen;
};

/* ---- sites ----------------------------------------------------------------------------------- */

/* Returns true for calls that show that the module also waits in another way than by futex. */
static bool is_other_wait(long nr)
{
	return nr == SYS_io_uring_setup || nr == SYS_io_uring_enter || nr == SYS_futex_waitv ||
		nr == SYS_futex_wait;
}

static bool is_strange(const struct kbi_intercept_jumps *j, const struct kbi_intercept_site *s)
{
	return !s->before || s->wide || kbi_intercept_patch_is_jumped_to(j, s->at) ||
		kbi_intercept_patch_is_jumped_to(j, s->at - s->second);
}

static void decide_own_site(struct run *r, const struct kbi_intercept_jumps *j, uint8_t *at)
{
	struct kbi_intercept_site s = { .at = at };
	const uint8_t *from = kbi_intercept_patch_function(r->functions, at);
	long nr = -1;

	kbi_intercept_patch_understand(&s);
	if (from && from >= j->from && !kbi_intercept_patch_read(from, &s, &nr))
		return;
	if (s.nr < 0)
		s.nr = nr;
	r->counts->waits += is_other_wait(s.nr);
	if (s.nr >= 0 && s.nr != KBI_INTERCEPT_PATCH_FUTEX)
		return;
	r->counts->futex++;
	if (!from || r->sites == SITES || is_strange(j, &s))
		r->counts->strange++;
	else
		r->site[r->sites++] = s;
}

static bool scan_segment(struct run *r, const struct segment *g)
{
	size_t bytes = (size_t)(g->to - g->from) / 8 + 1;
	struct kbi_intercept_jumps j = { .inner = kbi_sys_map(bytes) };

	if (!j.inner)
		return false;
	kbi_intercept_patch_find_jumps(&j, g->from, g->to);
	for (uint8_t *p = g->from + KBI_INTERCEPT_PATCH_LOOK; p + LAST < g->to; p++)
		if (p[0] == 0x0f && p[1] == 0x05)
			decide_own_site(r, &j, p);
	kbi_sys_unmap(j.inner, bytes);
	return true;
}

/* ---- the module ------------------------------------------------------------------------------ */

static int find_own_module(struct dl_phdr_info *info, size_t size, void *arg)
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

static bool scan_own_module(struct run *r)
{
	bool could = dl_iterate_phdr(find_own_module, r);

	for (unsigned i = 0; i < r->segments && could; i++)
		could = scan_segment(r, &r->segment[i]);
	return could;
}

static struct run *begin_site_run(uintptr_t at, struct kbi_intercept_module_counts *c)
{
	struct run *r = kbi_sys_map(sizeof *r);

	*c = (struct kbi_intercept_module_counts){ 0 };
	if (r) {
		r->at = at;
		r->counts = c;
	}
	return r;
}

static bool end_site_run(struct run *r, bool answer)
{
	kbi_sys_unmap(r, sizeof *r);
	return answer;
}

bool kbi_intercept_module_count(uintptr_t at, struct kbi_intercept_module_counts *c)
{
	struct run *r = begin_site_run(at, c);

	return r && end_site_run(r, scan_own_module(r));
}

/* ---- replacing ------------------------------------------------------------------------------- */

static bool protect_segments(const struct run *r, int protection)
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
	uintptr_t low = (uintptr_t)r->segment[0].from, high = (uintptr_t)r->segment[r->segments - 1].to;
	size_t bytes =
		((size_t)r->sites * KBI_INTERCEPT_PATCH_STUB + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);

	if (!kbi_intercept_patch_unwind_begin(2 * r->sites) ||
		!kbi_intercept_patch_make_room(&r->pen, low, high, bytes))
		return false;
	if (!protect_segments(r, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		protect_segments(r, PROT_READ | PROT_EXEC);
		kbi_sys(SYS_munmap, r->pen.stub, bytes);
		return false;
	}
	for (unsigned i = 0; i < r->sites; i++)
		kbi_intercept_patch_put(&r->pen, &r->site[i]);
	protect_segments(r, PROT_READ | PROT_EXEC);
	kbi_sys(SYS_mprotect, r->pen.end - bytes, bytes, PROT_READ | PROT_EXEC);
	kbi_intercept_patch_unwind_end();
	return true;
}

bool kbi_intercept_module_replace(uintptr_t at, kbi_intercept_call *call)
{
	struct kbi_intercept_module_counts c;
	struct run *r = begin_site_run(at, &c);

	if (!r)
		return false;
	r->pen = (struct kbi_intercept_pen){ .call = call, .futex_only = true };
	if (!scan_own_module(r) || !c.futex || c.strange || c.waits)
		return end_site_run(r, false);
	kbi_intercept_patch_unwind_find();
	return end_site_run(r, write_code(r));
}

#else

bool kbi_intercept_module_replace(uintptr_t at, kbi_intercept_call *call)
{
	(void)at, (void)call;
	return false;
}

bool kbi_intercept_module_count(uintptr_t at, struct kbi_intercept_module_counts *c)
{
	(void)at;
	*c = (struct kbi_intercept_module_counts){ 0 };
	return false;
}

#endif
