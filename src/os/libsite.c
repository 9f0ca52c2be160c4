/* os/libsite.c - replaces system calls of libc and the loader. Contract in libsite.h.
 *
 * A site is the instruction `syscall`, two bytes; a jump takes five. So the instructions before it move to a stub, too: one
 * or two of few kinds, none of which says where it stands, or a single instruction whose distance to data is made right.
 * The stub ends with a jump behind the site.
 *
 *      mov $202,%eax          jmp stub                 stub: mov $202,%eax
 *      syscall         ->     nop, nop                       call to C
 *      next                   next                           jmp next
 *
 * A site is left alone if a jump may lead to one of the overwritten instructions but the first: each byte that could
 * begin a jump is taken for one. If its number is wanted, or not known and perhaps a futex call's, it gets a breakpoint,
 * a single byte, whose handler has it made. Calls of wanted or unknown number that are left then are counted and told.
 * The call goes to C, with every register kept that a system call keeps. Where
 * code may not be written to: os/libdispatch. */
#include "os/libsite.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "os/context.h"
#include "os/libcancel.h"
#include "os/libsite_code.h"
#include "os/libsite_function.h"
#include "os/libsite_jump.h"
#include "os/libsignal.h"
#include "os/libsite_unwind.h"
#include "os/libstub.h"
#include "os/libwant.h"
#include "os/newer.h"
#include "os/sys.h"
#include "os/trace.h"

#if defined(__x86_64__)

enum {
	MODULES = 8,
	CALL_BYTES = 35,       /* of put_call */
	LOWERED = 128,         /* by it: what lies below the stack pointer is libc's */
	CALL_AT = 5, CALL_END = 28,
	JUMP = 5,              /* bytes of a jump */
	STUB = 192,            /* bytes of one, at most */
	APART_BYTES = 37,      /* of put_apart */
	LAST = KBI_LIBSITE_JUMP_BYTES, /* so far behind a site code is read, at most */
	NEAR = 2048,           /* the number of a call stands that far before it, at most */
	FUTEX_NR = 202,
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
	kbi_libsite_call *call;
	int pid;
	struct kbi_libsite_counts *counts;
	struct kbi_libsite_jumps jumps; /* of the module that is looked at */
	uint8_t *stub, *stub_end;
	const uint8_t *back;   /* where the site's function goes on */
};

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

static void put_jump(struct run *r, const uint8_t *to)
{
	PUT(r, 0xe9);
	put32(r, (int32_t)(to - (r->stub + 4)));
}

/* lea -128(%rsp),%rsp; mov $call,%r11; mov $enter,%rcx; call *%rcx; lea 128(%rsp),%rsp: a system call loses rcx, r11. */
static void put_call(struct run *r)
{
	uintptr_t call = (uintptr_t)r->call, enter = (uintptr_t)kbi_libstub_enter;

	kbi_libsite_unwind_add(r->stub + CALL_AT, CALL_END - CALL_AT, LOWERED, r->back);
	PUT(r, 0x48, 0x8d, 0x64, 0x24, 0x80, 0x49, 0xbb);
	put(r, &call, 8);
	PUT(r, 0x48, 0xb9);
	put(r, &enter, 8);
	PUT(r, 0xff, 0xd1, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0);
}

/* The program counter of who is interrupted in the kernel lies at the call, or behind it. */
static void put_syscall(struct run *r)
{
	kbi_libsite_unwind_add(r->stub, 3, 0, r->back);
	PUT(r, 0x0f, 0x05);
}

/* With rax set goes where children are made whose caller waits for them. mov $kbi_libstub_child,%r11; mov (%r11),%r11;
 * mov $back,%rcx; jmp *(%rip). */
static void put_apart(struct run *r)
{
	uintptr_t child = (uintptr_t)&kbi_libstub_child, back = (uintptr_t)r->back, apart = (uintptr_t)kbi_libstub_apart;

	PUT(r, 0x49, 0xbb);
	put(r, &child, 8);
	PUT(r, 0x4d, 0x8b, 0x1b, 0x48, 0xb9);
	put(r, &back, 8);
	PUT(r, 0xff, 0x25, 0, 0, 0, 0);
	put(r, &apart, 8);
}

/* A copy of the process (no CLONE_VM, no stack of its own) goes to C. One with its memory for which it waits (CLONE_VFORK;
 * without CLONE_CHILD_CLEARTID, which is needed for that) is waited for by code of ours. Other processes become the
 * supervisor's. */
static void put_clone(struct run *r)
{
	PUT(r, 0x41, 0x89, 0xfb, 0x41, 0x81, 0xe3, 0, 0x41, 0x21, 0); /* mov %edi,%r11d; and $VM|VFORK|THREAD|CLEARTID,%r11d */
	PUT(r, 0x41, 0x81, 0xfb, 0, 0x41, 0, 0);                 /* cmp $VM|VFORK,%r11d */
	PUT(r, 0x75, APART_BYTES + 2, 0x31, 0xc0);               /* jne 0f; xor %eax,%eax */
	put_apart(r);                                            /* 0: */
	PUT(r, 0xf7, 0xc7, 0, 1, 0, 0);                          /* test $CLONE_VM,%edi */
	PUT(r, 0x75, CALL_BYTES + 7, 0x48, 0x85, 0xf6);          /* jnz 1f; test %rsi,%rsi */
	PUT(r, 0x75, CALL_BYTES + 2);                            /* jnz 1f */
	put_call(r);
	PUT(r, 0xeb, 28);                                        /* jmp 3f */
	PUT(r, 0xf7, 0xc7, 0, 1, 0, 0, 0x74, 14);                /* 1: test $CLONE_VM,%edi; jz 2f: ours */
	PUT(r, 0xf7, 0xc7, 0, 0, 1, 0, 0x75, 6);                 /* test $CLONE_THREAD,%edi; jnz 2f */
	PUT(r, 0x81, 0xcf, 0, 0x80, 0, 0);                       /* or $CLONE_PARENT,%edi */
	put_syscall(r);                                          /* 2: syscall; 3: */
	PUT(r, 0x90, 0x90, 0x90, 0x90);
}

/* libc keeps its return address in rdi meanwhile. */
static void put_vfork(struct run *r)
{
	PUT(r, 0xb8, 0x11, 0x41, 0, 0);                          /* mov $VM|VFORK|SIGCHLD,%eax */
	put_apart(r);
}

/* Its number is not known where the code is read: a table has the wanted numbers. For the rest the instruction stays where
 * it is, if there is room for a jump before it: libc's handler of cancellations looks for it there. */
static void put_unknown(struct run *r, bool stays)
{
	uintptr_t table = (uintptr_t)kbi_libwant_table();

	PUT(r, 0x48, 0x3d);                                      /* cmp $KBI_LIBWANT_MOST,%rax */
	put32(r, KBI_LIBWANT_MOST);
	PUT(r, 0x73, CALL_BYTES + 18, 0x49, 0xbb);               /* jae 1f; mov $table,%r11 */
	put(r, &table, 8);
	PUT(r, 0x49, 0x0f, 0xa3, 0x03, 0x73, CALL_BYTES + 2);    /* bt %rax,(%r11); jnc 1f */
	put_call(r);
	PUT(r, 0xeb, stays ? JUMP : 2);                          /* jmp 2f; 1: syscall, or a jump to it; 2: */
	if (stays)
		put_jump(r, r->back - 2);
	else
		put_syscall(r);
}

/* In the instruction put last, which ended at `end` where it was: the same data. Stubs are in reach of libc's. */
static void put_distance(struct run *r, const uint8_t *end)
{
	int32_t distance;

	memcpy(&distance, r->stub - sizeof distance, sizeof distance);
	distance += (int32_t)(end - r->stub);
	memcpy(r->stub - sizeof distance, &distance, sizeof distance);
}

static void put_stub(struct run *r, const struct kbi_libsite_site *s)
{
	bool stays = s->nr == -1 && s->before >= JUMP;
	uint8_t *start = r->stub;
	int32_t to;

	r->back = s->at + 2;
	put(r, s->at - s->before, s->before);
	if (s->relative)
		put_distance(r, s->at);
	switch (s->nr) {
	case SYS_getpid:
		PUT(r, 0xb8);
		put32(r, r->pid);
		break;
	case SYS_clone:
		put_clone(r);
		break;
	case SYS_vfork:
		put_vfork(r);
		break;
	case SYS_clone3: /* clone3: libc falls back to clone */
		PUT(r, 0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff);
		break;
	case -1:
		put_unknown(r, stays);
		break;
	default:
		put_call(r);
	}
	put_jump(r, s->at + 2);
	s->at[-(int)s->before] = 0xe9;
	to = (int32_t)(start - (s->at - s->before + JUMP));
	memcpy(s->at - s->before + 1, &to, 4);
	memset(s->at - s->before + JUMP, 0x90, s->before + (stays ? 0 : 2) - JUMP);
	kbi_libcancel_stub(r->back, start, r->stub);
}

/* ---- traps ---------------------------------------------------------------------------------------------------- */

enum { TRAPS = 64 };

static struct {
	unsigned n;
	uintptr_t at[TRAPS];
	kbi_libsite_call *call;
} traps;

static bool is_trap(uintptr_t at)
{
	for (unsigned i = 0; i < traps.n; i++)
		if (traps.at[i] == at)
			return true;
	return false;
}

/* Who stands behind one has not got its signal: the handler goes on behind the call, one byte further on. */
static unsigned raises(uintptr_t at, long unmade)
{
	(void)unmade;
	return is_trap(at - 1);
}

/* The call is made when the handler has returned, as at other sites. */
static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (info->si_code <= 0 || !is_trap((uintptr_t)g[REG_RIP] - 1)) {
		kbi_libsignal_others(sig, info, context, 1);
		return;
	}
	g[REG_RCX] = g[REG_RIP] + 1;
	g[REG_R11] = (greg_t)(uintptr_t)traps.call;
	g[REG_RIP] = (greg_t)(uintptr_t)kbi_libstub_call;
}

/* ---- sites ---------------------------------------------------------------------------------------------------- */

/* A number that is not known may be that of a futex call if that is loaded somewhere before. */
static bool may_be_futex(const struct module *m, const struct kbi_libsite_site *s)
{
	static const uint8_t number[4] = { FUTEX_NR, 0, 0, 0 };
	const uint8_t *low = s->at - m->from > NEAR ? s->at - NEAR : m->from;

	return memmem(low, (size_t)(s->at - low), number, sizeof number);
}

/* A breakpoint is as long as one byte of the instruction: jumps to it do no harm. */
static void trap(struct run *r, const struct kbi_libsite_site *s)
{
	r->counts->trapped++;
	if (!r->replace || traps.n == TRAPS)
		return;
	traps.at[traps.n++] = (uintptr_t)s->at;
	s->at[0] = 0xcc;
	s->at[1] = 0x90;
}

static void pass_over(struct run *r, const struct module *m, const struct kbi_libsite_site *s, long nr)
{
	struct kbi_libsite_counts *c = r->counts;
	struct kbi_libsite_passed p = { (uintptr_t)s->at - m->base, m->path, (int)nr };

	if (c->passed < KBI_LIBSITE_NAMED)
		c->first[c->passed] = p;
	if (nr != SYS_rt_sigprocmask && c->grave++ == 0)
		c->first_grave = p;
	c->passed++;
	c->children += kbi_libwant_makes_child(nr);
}

static void replace(struct run *r, const struct kbi_libsite_site *s)
{
	r->counts->replaced++;
	if (r->replace && r->stub + STUB <= r->stub_end)
		put_stub(r, s);
}

/* No jump can stand there. */
static void leave(struct run *r, const struct module *m, const struct kbi_libsite_site *s, long nr)
{
	if (nr < 0 ? kbi_libsite_is_exit(s->at) : !kbi_libwant_is(nr))
		return;
	if (nr < 0 ? may_be_futex(m, s) : kbi_libwant_may_trap(nr))
		trap(r, s);
	else
		pass_over(r, m, s, nr);
}

static bool is_jumped_into(const struct run *r, const struct kbi_libsite_site *s)
{
	return kbi_libsite_is_jumped_to(&r->jumps, s->at) || kbi_libsite_is_jumped_to(&r->jumps, s->at - s->second);
}

/* Where the code right before it does not tell the number, the function is read from its beginning; but the number
 * that it tells may be that of a single way of several that lead here, so the stub looks at the register. */
static void look_at(struct run *r, const struct module *m, uint8_t *at)
{
	struct kbi_libsite_site s = { .at = at };
	const uint8_t *from;
	long nr = -1;

	kbi_libsite_understand(&s);
	r->counts->seen++;
	if (s.before && s.nr >= 0 && !kbi_libwant_is(s.nr))
		return;
	from = kbi_libsite_function(m->functions, at);
	if (from && from >= m->from && !kbi_libsite_read(from, &s, &nr)) {
		r->counts->seen--;
		return;
	}
	if (s.nr >= 0)
		nr = s.nr;
	if (s.before && !is_jumped_into(r, &s) && (s.nr >= 0 || !kbi_libwant_makes_child(nr)))
		replace(r, &s);
	else
		leave(r, m, &s, nr);
}

static void look_at_bytes(struct run *r, const struct module *m, uint8_t *p)
{
	if (p[0] == 0x0f && p[1] == 0x05)
		look_at(r, m, p);
}

static void look_at_module(struct run *r, const struct module *m)
{
	uint8_t *p = m->from + KBI_LIBSITE_LOOK;

	kbi_libsite_find_jumps(&r->jumps, m->from, m->to);
	for (; p + 16 + LAST < m->to; p += 16)
		for (unsigned found = kbi_libsite_any_of_16(p, 0x0f, 0x0f, 0x0f); found; found &= found - 1)
			look_at_bytes(r, m, p + __builtin_ctz(found));
	for (; p + LAST < m->to; p++)
		look_at_bytes(r, m, p);
}

static bool is_libcs(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2", 6) || !strncmp(name, "libpthread", 10) ||
	       !strncmp(name, "librt.so", 8) || !strncmp(name, "librt-2", 7) || !strncmp(name, "ld-linux", 8) ||
	       !strncmp(name, "ld-2", 4) || !strncmp(name, "liburing.so", 11);
}

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct run *r = arg;
	const void *functions = NULL;

	(void)size;
	if (!is_libcs(info->dlpi_name))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			functions = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (unsigned i = 0; i < info->dlpi_phnum && r->modules < MODULES; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uint8_t *from = (uint8_t *)(info->dlpi_addr + h->p_vaddr);

		if (h->p_type == PT_LOAD && h->p_flags & PF_X)
			r->module[r->modules++] =
				(struct module){ from, from + h->p_memsz, functions, info->dlpi_name, info->dlpi_addr };
	}
	return 0;
}

static int look(struct run *r)
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
		look_at_module(r, &r->module[i]);
	kbi_sys(SYS_munmap, r->jumps.inner, bytes); /* not by libc's call, which leads to code that is not finished */
	return 0;
}

/* Counts only. */
static const char *usable(struct kbi_libsite_counts *c)
{
	struct run r = { .counts = c };

	*c = (struct kbi_libsite_counts){ 0 };
	if (look(&r))
		return "libc's system calls were not found";
	if (c->children)
		return "the code in which this libc makes processes is not understood";
	return c->trapped > TRAPS ? "too many system calls of this libc are in code that is not understood" : NULL;
}

static struct {
	unsigned n;
	struct module module[MODULES];
} libcs;

bool kbi_libsite_find(void)
{
	struct run r = { 0 };

	dl_iterate_phdr(find_module, &r);
	libcs.n = r.modules;
	memcpy(libcs.module, r.module, sizeof libcs.module);
	return libcs.n;
}

bool kbi_libsite_is_libcs(uintptr_t at)
{
	for (unsigned i = 0; i < libcs.n; i++)
		if (at - (uintptr_t)libcs.module[i].from < (uintptr_t)(libcs.module[i].to - libcs.module[i].from))
			return true;
	return false;
}

/* ---- replacing ---------------------------------------------------------------------------------------------------- */

/* Room for stubs in reach of a 32-bit jump from every module. */
static bool make_room(struct run *r, size_t bytes)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	for (unsigned i = 0; i < r->modules; i++) {
		low = (uintptr_t)r->module[i].from < low ? (uintptr_t)r->module[i].from : low;
		high = (uintptr_t)r->module[i].to > high ? (uintptr_t)r->module[i].to : high;
	}
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
		if (kbi_sys(SYS_mprotect, first_page(&r->module[i]), bytes_of_pages(&r->module[i]), protection))
			return false;
	return true;
}

static struct {
	unsigned n;
	struct module module[MODULES];
} changed;

/* The pages that were written to are this process's own; the file has the others. */
void kbi_libsite_undo(void)
{
	for (unsigned i = 0; i < changed.n; i++)
		kbi_sys(SYS_madvise, first_page(&changed.module[i]), bytes_of_pages(&changed.module[i]), MADV_DONTNEED);
	if (traps.n)
		kbi_libsignal_leave();
	kbi_trace_raises = NULL;
	changed.n = traps.n = 0;
}

void kbi_libsite_prepare(void)
{
	kbi_libsite_unwind_find();
}

int kbi_libsite_replace(kbi_libsite_call *call, int pid, struct kbi_libsite_counts *c, const char **why)
{
	struct run r = { .counts = c, .call = call, .pid = pid };
	size_t bytes;
	int e;

	*why = usable(c);
	if (*why)
		return ENOTSUP;
	dl_iterate_phdr(find_module, &r);
	bytes = ((size_t)c->replaced * STUB + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);
	*why = "there is no room for code near libc";
	if (!kbi_libsite_unwind_begin(2 * c->replaced) || !make_room(&r, bytes))
		return ENOTSUP;
	*why = "libc's code cannot be changed (mprotect)";
	if (!protect_modules(&r, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		protect_modules(&r, PROT_READ | PROT_EXEC);
		kbi_sys(SYS_munmap, r.stub, bytes);
		return ENOTSUP;
	}
	traps.call = call;
	if (c->trapped) {
		kbi_libsignal_take(SIGTRAP, on_trap, (const void *)(uintptr_t)kbi_libstub_return);
		kbi_trace_raises = raises;
	}
	r.replace = true;
	r.modules = 0;
	*c = (struct kbi_libsite_counts){ 0 };
	e = look(&r);
	changed.n = r.modules;
	memcpy(changed.module, r.module, sizeof changed.module);
	protect_modules(&r, PROT_READ | PROT_EXEC);
	kbi_sys(SYS_mprotect, r.stub_end - bytes, bytes, PROT_READ | PROT_EXEC);
	kbi_libsite_unwind_end();
	kbi_context_is_libcs((uintptr_t)r.stub_end - bytes, bytes);
	return e;
}

#else

bool kbi_libsite_find(void)
{
	return false;
}

bool kbi_libsite_is_libcs(uintptr_t at)
{
	(void)at;
	return false;
}

void kbi_libsite_undo(void)
{
}

void kbi_libsite_prepare(void)
{
}

int kbi_libsite_replace(kbi_libsite_call *call, int pid, struct kbi_libsite_counts *c, const char **why)
{
	(void)call, (void)pid;
	*c = (struct kbi_libsite_counts){ 0 };
	*why = "libc's system calls are not known on this machine";
	return ENOTSUP;
}

#endif
