/* os/context.c - the interrupted instruction. Contract in context.h. */
#include "os/context.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

/* The linker's: the ELF header in front of this module. */
extern const ElfW(Ehdr) __ehdr_start KBI_HIDDEN;

/* The linker's: the section that the build puts all code of the library in. */
extern const char __start_kbi_text[] KBI_HIDDEN, __stop_kbi_text[] KBI_HIDDEN;

uintptr_t kbi_context_at(const void *context)
{
	const ucontext_t *uc = context;

#if defined(__x86_64__)
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)uc->uc_mcontext.pc;
#elif defined(__riscv)
	return (uintptr_t)uc->uc_mcontext.__gregs[REG_PC];
#else
	(void)uc;
	return 0;
#endif
}

static const ElfW(Ehdr) *added; /* or NULL */

void kbi_context_add(const void *ehdr)
{
	added = ehdr;
}

const void *kbi_context_added(void)
{
	return added;
}

static bool is_in(const ElfW(Ehdr) *e, uintptr_t at)
{
	uintptr_t base = (uintptr_t)e;
	const ElfW(Phdr) *p = (const void *)(base + e->e_phoff);

	/* a shared library's addresses count from its beginning, a program's may not */
	if (e->e_type != ET_DYN)
		base = 0;
	for (int i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && at - (base + p[i].p_vaddr) < p[i].p_memsz)
			return true;
	return false;
}

bool kbi_context_is_ours(uintptr_t at)
{
	return is_in(&__ehdr_start, at) || (added && is_in(added, at));
}

/* ---- where a thread must not be left --------------------------------------------------------------------------- */

enum { RANGES = 64 };

static struct range {
	uintptr_t low, size;
} ranges[RANGES]; /* constant once learnt */
static unsigned n_ranges;
static bool full;

static bool is_delicate(const char *path)
{
	static const char *const names[] = { "ld-linux", "ld64", "ld-musl", "ld.so", "ld-2.", "libc.", "libc-",
					     "libpthread", "libdl", "librt.", "libkochab", "libasan", "libtsan",
					     "libubsan", "liblsan", "libgcc_s", "libnss", "libresolv" };
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	for (size_t i = 0; i < kbi_countof(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static int add(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || !is_delicate(info->dlpi_name))
			continue;
		full |= n_ranges == RANGES;
		if (!full)
			ranges[n_ranges++] = (struct range){ info->dlpi_addr + p->p_vaddr, p->p_memsz };
	}
	return 0;
}

void kbi_context_learn(void)
{
	n_ranges = 0;
	dl_iterate_phdr(add, NULL);
}

static bool is_in_range(uintptr_t at)
{
	for (unsigned i = 0; i < n_ranges; i++)
		if (at - ranges[i].low < ranges[i].size)
			return true;
	return false;
}

bool kbi_context_may_leave(uintptr_t at)
{
	/* a static program: libc is anywhere in it */
	return !full && n_ranges && !kbi_context_is_ours(at) && !is_in_range(at);
}

bool kbi_context_is_library(uintptr_t at)
{
	return at - (uintptr_t)__start_kbi_text < (uintptr_t)(__stop_kbi_text - __start_kbi_text);
}

static struct range stubs;

void kbi_context_libcs(const void *from, size_t bytes)
{
	stubs = (struct range){ (uintptr_t)from, bytes };
}

bool kbi_context_is_delicate(uintptr_t at)
{
	return full || at - stubs.low < stubs.size || !n_ranges || kbi_context_is_library(at) || is_in_range(at);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* The kernel's answer, the call's number, its first argument; the length of the instruction; does the answer come where the
 * first argument was? */
#if defined(__x86_64__)
enum { CALL_SIZE = 2, ANSWER_HIDES_FIRST = 0 };
#define ANSWER(uc) (uc)->uc_mcontext.gregs[REG_RAX]
#define NUMBER(uc) (uc)->uc_mcontext.gregs[REG_RAX]
#define FIRST(uc) (uc)->uc_mcontext.gregs[REG_RDI]
#define STACK(uc) (uc)->uc_mcontext.gregs[REG_RSP]
#define PLACE(uc) (uc)->uc_mcontext.gregs[REG_RIP]
/* general ones only */
#define REGISTERS(uc) (uc)->uc_mcontext.gregs
#define N_REGISTERS 16
#elif defined(__aarch64__)
enum { CALL_SIZE = 4, ANSWER_HIDES_FIRST = 1 };
#define ANSWER(uc) (uc)->uc_mcontext.regs[0]
#define NUMBER(uc) (uc)->uc_mcontext.regs[8]
#define FIRST(uc) (uc)->uc_mcontext.regs[0]
#define STACK(uc) (uc)->uc_mcontext.sp
#define PLACE(uc) (uc)->uc_mcontext.pc
#define REGISTERS(uc) (uc)->uc_mcontext.regs
#define N_REGISTERS 31
#elif defined(__riscv)
enum { CALL_SIZE = 4, ANSWER_HIDES_FIRST = 1 };
#define ANSWER(uc) (uc)->uc_mcontext.__gregs[REG_A0]
#define NUMBER(uc) (uc)->uc_mcontext.__gregs[REG_A0 + 7]
#define FIRST(uc) (uc)->uc_mcontext.__gregs[REG_A0]
#define STACK(uc) (uc)->uc_mcontext.__gregs[REG_SP]
#define PLACE(uc) (uc)->uc_mcontext.__gregs[REG_PC]
/* the first is the PC */
#define REGISTERS(uc) ((uc)->uc_mcontext.__gregs + 1)
#define N_REGISTERS 31
#endif

/* ---- places -------------------------------------------------------------------------------------------------------- */

enum { NEAR = 128 /* bytes of a loop */, MOVING = 2 /* registers: a counter, what was loaded */ };

void kbi_context_place(const void *context, struct kbi_context_place *p)
{
	const ucontext_t *uc = context;

	memset(p, 0, sizeof *p);
	p->pc = kbi_context_at(uc);
#if defined(ANSWER)
	p->sp = (uintptr_t)STACK(uc);
	_Static_assert(N_REGISTERS <= KBI_CONTEXT_REGISTERS, "room for all");
	for (unsigned i = 0; i < N_REGISTERS; i++)
		p->r[i] = (uint64_t)REGISTERS(uc)[i];
#endif
}

bool kbi_context_is_near(const struct kbi_context_place *a, const struct kbi_context_place *b)
{
	unsigned moving = 0;

	if (!a->sp || a->sp != b->sp || (a->pc > b->pc ? a->pc - b->pc : b->pc - a->pc) >= NEAR)
		return false;
	for (unsigned i = 0; i < KBI_CONTEXT_REGISTERS; i++)
		moving += a->r[i] != b->r[i];
	return moving <= MOVING;
}

/* ---- going elsewhere ---------------------------------------------------------------------------------------------------- */

bool kbi_context_can_go(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

void kbi_context_go(void *context, void (*fn)(void *), void *arg, void *top)
{
	ucontext_t *uc = context;
	uintptr_t sp = (uintptr_t)top & ~(uintptr_t)15;

#if defined(__x86_64__)
	greg_t *g = uc->uc_mcontext.gregs;

	g[REG_RIP] = (greg_t)(uintptr_t)fn;
	g[REG_RDI] = (greg_t)(uintptr_t)arg;
	g[REG_RSP] = (greg_t)(sp - 8); /* as after a call */
	g[REG_RBP] = 0;
	*(uintptr_t *)(sp - 8) = 0;
	g[REG_EFL] &= ~(greg_t)0x400;  /* direction: forward */
	if (uc->uc_mcontext.fpregs) {
		uc->uc_mcontext.fpregs->swd = 0;
		uc->uc_mcontext.fpregs->ftw = 0;
	}
#elif defined(__aarch64__)
	uc->uc_mcontext.pc = (uintptr_t)fn;
	uc->uc_mcontext.regs[0] = (uintptr_t)arg;
	uc->uc_mcontext.sp = sp;
	uc->uc_mcontext.regs[29] = uc->uc_mcontext.regs[30] = 0;
#else
	(void)uc;
	(void)fn;
	(void)arg;
	(void)sp;
#endif
}

bool kbi_context_is_on_signal_stack(const void *context)
{
	const ucontext_t *uc = context;
#if defined(STACK)
	uintptr_t low = (uintptr_t)uc->uc_stack.ss_sp;

	if (low && (uintptr_t)STACK(uc) - low < uc->uc_stack.ss_size)
		return true;
#endif
	return uc->uc_stack.ss_flags & SS_ONSTACK;
}

/* ---- in a call ------------------------------------------------------------------------------------------------------- */

#if defined(ANSWER)
bool kbi_context_is_in_call(const void *context, const struct kbi_context_call *c)
{
	const ucontext_t *uc = context;

	if ((uint64_t)STACK(uc) != c->sp)
		return false;
	if ((uint64_t)PLACE(uc) == c->pc - CALL_SIZE)
		return true;
	/* the same instruction may be in another call by now, of other arguments: that is not the one */
	return (uint64_t)PLACE(uc) == c->pc && (int64_t)ANSWER(uc) == -EINTR &&
	       (ANSWER_HIDES_FIRST || (uint64_t)FIRST(uc) == c->arg);
}

void kbi_context_make_again(void *context, const struct kbi_context_call *c)
{
	ucontext_t *uc = context;

	if ((uint64_t)PLACE(uc) != c->pc)
		return;
	FIRST(uc) = (__typeof__(FIRST(uc)))c->arg;
	NUMBER(uc) = (__typeof__(NUMBER(uc)))c->nr;
	PLACE(uc) = (__typeof__(PLACE(uc)))(c->pc - CALL_SIZE);
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
#endif
