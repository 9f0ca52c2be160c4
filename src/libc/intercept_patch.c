/* libc/intercept_patch.c - replaces system calls of libc and the loader. Contract in
 * intercept_patch.h.
 *
 * A site is the instruction `syscall`, two bytes; a jump takes five. So the instructions before it
 * move to a stub, too: either the last or the last two, of few kinds that do not depend on their
 * address, or a single instruction with a distance to data that is adjusted. The stub ends with a
 * jump behind the site.
 *
 *      mov $202,%eax          jmp stub                 stub: mov $202,%eax
 *      syscall         ->     nop, nop                       call to C
 *      next                   next                           jmp next
 *
 * A site is left alone if a jump may lead to an overwritten instruction other than the first; each
 * byte that could begin a jump is taken for a jump. If the site's number is wanted, or not known
 * and perhaps a futex call's, a breakpoint of a single byte replaces the instruction, and the
 * breakpoint's handler has the call made. Calls of wanted or unknown number that are left then are
 * counted and reported. Where code may not be written to: libc/intercept_sud. */
#include "libc/intercept_patch.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "libc/context.h"
#include "libc/intercept_patch_code.h"
#include "libc/intercept_patch_function.h"
#include "libc/intercept_patch_jump.h"
#include "libc/intercept_patch_put.h"
#include "libc/intercept_signal.h"
#include "libc/intercept_patch_unwind.h"
#include "libc/intercept_stub.h"
#include "libc/intercept_wanted.h"
#include "os/newer.h"
#include "os/sys.h"
#include "os/trace.h"

#if defined(__x86_64__)

enum {
	MODULES = 8,
	LAST = KBI_INTERCEPT_PATCH_JUMP_BYTES, /* code is read at most so far behind a site */
	NEAR = 2048,           /* the load of a call's number stands at most so far before it */
};

struct module {
	uint8_t *from, *to;
	const void *functions; /* the table for unwinders, or NULL */
	const char *path;
	uintptr_t base;
};

struct run {
	struct module module[MODULES];
	unsigned modules;
	bool replace;
	struct kbi_intercept_pen pen;
	uintptr_t barrier;     /* with pen.futex_only: the beginning of pthread_barrier_wait */
	struct kbi_intercept_counts *counts;
	struct kbi_intercept_jumps jumps; /* of the module that is searched */
};

/* ---- traps ----------------------------------------------------------------------------------- */

enum { TRAPS = 64 };

static struct {
	unsigned n;
	uintptr_t at[TRAPS];
	kbi_intercept_call *call;
} traps;

static bool is_trap(uintptr_t at)
{
	for (unsigned i = 0; i < traps.n; i++)
		if (traps.at[i] == at)
			return true;
	return false;
}

/* For kbi_trace_raises: a tracee right behind a breakpoint has not got its signal yet. The handler
 * goes on behind the call, one byte further on. */
static unsigned bytes_behind_breakpoint(uintptr_t at, long unmade)
{
	(void)unmade;
	return is_trap(at - 1);
}

/* Handles a breakpoint. The call is made when the handler has returned, as at other sites. */
static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (info->si_code <= 0 || !is_trap((uintptr_t)g[REG_RIP] - 1)) {
		kbi_intercept_signal_others(sig, info, context, 1);
		return;
	}
	g[REG_RCX] = g[REG_RIP] + 1;
	g[REG_R11] = (greg_t)(uintptr_t)traps.call;
	g[REG_RIP] = (greg_t)(uintptr_t)kbi_intercept_stub_call;
}

/* ---- sites ----------------------------------------------------------------------------------- */

/* Returns true if a call of unknown number may be a futex call: that number is loaded somewhere
 * before. */
static bool may_be_futex(const struct module *m, const struct kbi_intercept_site *s)
{
	static const uint8_t number[4] = { KBI_INTERCEPT_PATCH_FUTEX, 0, 0, 0 };
	const uint8_t *low = s->at - m->from > NEAR ? s->at - NEAR : m->from;

	return memmem(low, (size_t)(s->at - low), number, sizeof number);
}

/* Sets a breakpoint. It covers one byte of the instruction, so jumps to the instruction do no
 * harm. */
static void set_breakpoint(struct run *r, const struct kbi_intercept_site *s)
{
	r->counts->trapped++;
	if (!r->replace || traps.n == TRAPS)
		return;
	traps.at[traps.n++] = (uintptr_t)s->at;
	s->at[0] = 0xcc;
	s->at[1] = 0x90;
}

static void pass_over(struct run *r, const struct module *m,
	const struct kbi_intercept_site *s, long nr)
{
	struct kbi_intercept_counts *c = r->counts;
	struct kbi_intercept_passed p = { (uintptr_t)s->at - m->base, m->path, (int)nr };

	if (c->passed < KBI_INTERCEPT_PATCH_NAMED)
		c->first[c->passed] = p;
	if (nr != SYS_rt_sigprocmask && c->grave++ == 0)
		c->first_grave = p;
	c->passed++;
	c->children += kbi_intercept_wanted_makes_child(nr);
}

static void replace_site(struct run *r, const struct kbi_intercept_site *s)
{
	r->counts->replaced++;
	if (r->replace && r->pen.stub + KBI_INTERCEPT_PATCH_STUB <= r->pen.end)
		kbi_intercept_patch_put(&r->pen, s);
}

/* Treats a site where no jump can stand: sets a breakpoint or counts the site. */
static void leave_site(struct run *r, const struct module *m,
	const struct kbi_intercept_site *s, long nr)
{
	if (nr < 0 ? kbi_intercept_patch_is_exit(s->at) : !kbi_intercept_wanted_is(nr))
		return;
	if (nr < 0 ? may_be_futex(m, s) : kbi_intercept_wanted_may_trap(nr))
		set_breakpoint(r, s);
	else
		pass_over(r, m, s, nr);
}

static bool is_jumped_into(const struct run *r, const struct kbi_intercept_site *s)
{
	return kbi_intercept_patch_is_jumped_to(&r->jumps, s->at) ||
		kbi_intercept_patch_is_jumped_to(&r->jumps, s->at - s->second);
}

/* Returns true for pthread_barrier_wait: a waiter there is found by wake-ups in the same
 * function. */
static bool is_barrier(const struct run *r, const uint8_t *function)
{
	return function && (uintptr_t)function == r->barrier;
}

/* nr: the number as far as the function's code tells it. */
static void
decide_futex_site(struct run *r, const struct module *m, struct kbi_intercept_site *s, long nr,
	const uint8_t *function)
{
	if (s->nr >= 0)
		nr = s->nr;
	if (nr != KBI_INTERCEPT_PATCH_FUTEX &&
		!(nr < 0 && !kbi_intercept_patch_is_exit(s->at) && may_be_futex(m, s))) return;
	if (is_barrier(r, function))
		return;
	if (s->before && !s->wide && !is_jumped_into(r, s))
		replace_site(r, s);
	else
		pass_over(r, m, s, nr);
}

/* Decides about the pair of bytes at `at`. If the code right before it does not tell the number,
 * the function is read from its beginning. That number may belong to a single way of several that
 * lead here, so the stub looks at the register. */
static void decide_site(struct run *r, const struct module *m, uint8_t *at)
{
	struct kbi_intercept_site s = { .at = at };
	const uint8_t *from;
	long nr = -1;

	kbi_intercept_patch_understand(&s);
	r->counts->seen++;
	if (s.before && s.nr >= 0 &&
		(r->pen.futex_only ? s.nr != KBI_INTERCEPT_PATCH_FUTEX : !kbi_intercept_wanted_is(s.nr)))
		return;
	from = kbi_intercept_patch_function(m->functions, at);
	if (from && from >= m->from && !kbi_intercept_patch_read(from, &s, &nr)) {
		r->counts->seen--;
		return;
	}
	if (r->pen.futex_only) {
		decide_futex_site(r, m, &s, nr, from);
		return;
	}
	if (s.nr >= 0)
		nr = s.nr;
	if (s.before && !is_jumped_into(r, &s) && (s.nr >= 0 || !kbi_intercept_wanted_makes_child(nr)))
		replace_site(r, &s);
	else
		leave_site(r, m, &s, nr);
}

static void scan_bytes(struct run *r, const struct module *m, uint8_t *p)
{
	if (p[0] == 0x0f && p[1] == 0x05)
		decide_site(r, m, p);
}

static void scan_module(struct run *r, const struct module *m)
{
	uint8_t *p = m->from + KBI_INTERCEPT_PATCH_LOOK;

	kbi_intercept_patch_find_jumps(&r->jumps, m->from, m->to);
	for (; p + 16 + LAST < m->to; p += 16)
		for (unsigned found = kbi_intercept_patch_any_of_16(p, 0x0f, 0x0f, 0x0f); found;
			found &= found - 1) scan_bytes(r, m, p + __builtin_ctz(found));
	for (; p + LAST < m->to; p++)
		scan_bytes(r, m, p);
}

static bool is_libc_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2", 6) ||
		!strncmp(name, "libpthread", 10) || !strncmp(name, "librt.so", 8) ||
		!strncmp(name, "librt-2", 7) || !strncmp(name, "ld-linux", 8) ||
		!strncmp(name, "ld-2", 4) || !strncmp(name, "liburing.so", 11);
}

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct run *r = arg;
	const void *functions = NULL;

	(void)size;
	if (!is_libc_path(info->dlpi_name))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			functions = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (unsigned i = 0; i < info->dlpi_phnum && r->modules < MODULES; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uint8_t *from = (uint8_t *)(info->dlpi_addr + h->p_vaddr);

		if (h->p_type == PT_LOAD && h->p_flags & PF_X)
			r->module[r->modules++] =
				(struct module){ from, from + h->p_memsz, functions, info->dlpi_name,
				info->dlpi_addr };
	}
	return 0;
}

static int scan_libc_modules(struct run *r)
{
	size_t most = 0, bytes;

	dl_iterate_phdr(find_module, r);
	for (unsigned i = 0; i < r->modules; i++)
		if ((size_t)(r->module[i].to - r->module[i].from) > most)
			most = (size_t)(r->module[i].to - r->module[i].from);
	if (!r->modules)
		return ENOTSUP;
	bytes = most / 8 + 1;
	r->jumps.inner = kbi_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, 0);
	if (!r->jumps.inner)
		return ENOMEM;
	for (unsigned i = 0; i < r->modules; i++)
		scan_module(r, &r->module[i]);
	/* not by libc's munmap, which leads to unfinished code */
	kbi_sys(SYS_munmap, r->jumps.inner, bytes);
	return 0;
}

/* Only counts. Returns why the code cannot be replaced, or NULL. */
static const char *why_not_patchable(const struct run *wanted)
{
	struct run r = { .counts = wanted->counts, .pen.futex_only = wanted->pen.futex_only,
		.barrier = wanted->barrier };
	struct kbi_intercept_counts *c = r.counts;

	*c = (struct kbi_intercept_counts){ 0 };
	if (scan_libc_modules(&r))
		return "libc's system calls were not found";
	if (r.pen.futex_only)
		return c->passed || !c->replaced ?
			"code of this libc in which it waits is not understood" : NULL;
	if (c->children)
		return "the code in which this libc makes processes is not understood";
	return c->trapped > TRAPS ?
		"too many system calls of this libc are in code that is not understood" : NULL;
}

static struct {
	unsigned n;
	struct module module[MODULES];
} libcs;

bool kbi_intercept_patch_find(void)
{
	struct run r = { 0 };

	dl_iterate_phdr(find_module, &r);
	libcs.n = r.modules;
	memcpy(libcs.module, r.module, sizeof libcs.module);
	return libcs.n;
}

bool kbi_intercept_patch_is_libcs(uintptr_t at)
{
	for (unsigned i = 0; i < libcs.n; i++)
		if (at - (uintptr_t)libcs.module[i].from <
			(uintptr_t)(libcs.module[i].to - libcs.module[i].from))
			return true;
	return false;
}

/* ---- replacing ------------------------------------------------------------------------------- */

/* Gets room for stubs in reach of a 32-bit jump from every module. */
static bool make_stub_room(struct run *r, size_t bytes)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	for (unsigned i = 0; i < r->modules; i++) {
		low = (uintptr_t)r->module[i].from < low ? (uintptr_t)r->module[i].from : low;
		high = (uintptr_t)r->module[i].to > high ? (uintptr_t)r->module[i].to : high;
	}
	return kbi_intercept_patch_make_room(&r->pen, low, high, bytes);
}

static uintptr_t first_page(const struct module *m)
{
	return (uintptr_t)m->from & ~(uintptr_t)(KBI_PAGE - 1);
}

static size_t bytes_of_pages(const struct module *m)
{
	return (((uintptr_t)m->to + KBI_PAGE - 1) & ~(uintptr_t)(KBI_PAGE - 1)) - first_page(m);
}

static bool protect_modules(const struct run *r, int protection)
{
	for (unsigned i = 0; i < r->modules; i++)
		if (kbi_sys(SYS_mprotect, first_page(&r->module[i]),
			bytes_of_pages(&r->module[i]), protection))
			return false;
	return true;
}

static struct {
	unsigned n;
	struct module module[MODULES];
} changed;

/* Drops the written pages: they are private copies of this process, and the file has the original
 * code. */
void kbi_intercept_patch_undo(void)
{
	for (unsigned i = 0; i < changed.n; i++)
		kbi_sys(SYS_madvise, first_page(&changed.module[i]), bytes_of_pages(&changed.module[i]),
			MADV_DONTNEED);
	if (traps.n)
		kbi_intercept_signal_leave();
	kbi_trace_raises = NULL;
	changed.n = traps.n = 0;
}

void kbi_intercept_patch_prepare(void)
{
	kbi_intercept_patch_unwind_find();
}

static int replace_all_sites(const struct run *wanted, const char **why)
{
	struct run r = *wanted;
	struct kbi_intercept_counts *c = r.counts;
	size_t bytes;
	int e;

	*why = why_not_patchable(wanted);
	if (*why)
		return ENOTSUP;
	dl_iterate_phdr(find_module, &r);
	bytes = (size_t)c->replaced * KBI_INTERCEPT_PATCH_STUB;
	bytes = (bytes + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);
	*why = "there is no room for code near libc";
	if (!kbi_intercept_patch_unwind_begin(2 * c->replaced) || !make_stub_room(&r, bytes))
		return ENOTSUP;
	*why = "libc's code cannot be changed (mprotect)";
	if (!protect_modules(&r, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		protect_modules(&r, PROT_READ | PROT_EXEC);
		kbi_sys(SYS_munmap, r.pen.stub, bytes);
		return ENOTSUP;
	}
	traps.call = r.pen.call;
	if (c->trapped) {
		kbi_intercept_signal_take(SIGTRAP, on_trap,
			(const void *)(uintptr_t)kbi_intercept_stub_return);
		kbi_trace_raises = bytes_behind_breakpoint;
	}
	r.replace = true;
	r.modules = 0;
	*c = (struct kbi_intercept_counts){ 0 };
	e = scan_libc_modules(&r);
	changed.n = r.modules;
	memcpy(changed.module, r.module, sizeof changed.module);
	protect_modules(&r, PROT_READ | PROT_EXEC);
	kbi_sys(SYS_mprotect, r.pen.end - bytes, bytes, PROT_READ | PROT_EXEC);
	kbi_intercept_patch_unwind_end();
	kbi_context_is_libcs((uintptr_t)r.pen.end - bytes, bytes);
	return e;
}

int kbi_intercept_patch_replace(kbi_intercept_call *call, int pid, struct kbi_intercept_counts *c,
	const char **why)
{
	return replace_all_sites(&(struct run){ .counts = c, .pen = { .call = call, .pid = pid } },
		why);
}

int kbi_intercept_patch_replace_futex(kbi_intercept_call *call, const void *barrier,
	struct kbi_intercept_counts *c, const char **why)
{
	const struct kbi_intercept_pen pen = { .call = call, .futex_only = true, .private_only = true };

	return replace_all_sites(
		&(struct run){ .counts = c, .pen = pen, .barrier = (uintptr_t)barrier }, why);
}

#else

bool kbi_intercept_patch_find(void)
{
	return false;
}

bool kbi_intercept_patch_is_libcs(uintptr_t at)
{
	(void)at;
	return false;
}

void kbi_intercept_patch_undo(void)
{
}

void kbi_intercept_patch_prepare(void)
{
}

int kbi_intercept_patch_replace(kbi_intercept_call *call, int pid, struct kbi_intercept_counts *c,
	const char **why)
{
	(void)call, (void)pid;
	*c = (struct kbi_intercept_counts){ 0 };
	*why = "libc's system calls are not known on this machine";
	return ENOTSUP;
}

int kbi_intercept_patch_replace_futex(kbi_intercept_call *call, const void *barrier,
	struct kbi_intercept_counts *c, const char **why)
{
	(void)barrier;
	return kbi_intercept_patch_replace(call, 0, c, why);
}

#endif
