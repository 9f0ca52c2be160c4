/* libc/context.c - the interrupted instruction. Contract in context.h. */
#include "libc/context.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "libc/context_priv.h"
#include "os/fd.h"
#include "os/sys.h"

/* Defined by the linker: the ELF header in front of this module. */
extern const ElfW(Ehdr) __ehdr_start KBI_HIDDEN;

/* Defined by the linker: the bounds of the section that holds all code of libkochab.a. NULL: this
 * is another library. */
extern const char __start_kbi_text[] KBI_HIDDEN __attribute__((weak)),
	__stop_kbi_text[] KBI_HIDDEN __attribute__((weak));

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

/* ELF header of the added library, or NULL; constant once handlers run */
static const ElfW(Ehdr) *added;

void kbi_context_add(const void *ehdr)
{
	added = ehdr;
}

const void *kbi_context_added(void)
{
	return added;
}

static bool is_in_code(const ElfW(Ehdr) *e, uintptr_t at)
{
	uintptr_t base = (uintptr_t)e;
	const ElfW(Phdr) *p = (const void *)(base + e->e_phoff);

	/* addresses of a shared library are relative to its beginning, those of a program may be
	 * absolute */
	if (e->e_type != ET_DYN)
		base = 0;
	for (int i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X &&
			at - (base + p[i].p_vaddr) < p[i].p_memsz)
			return true;
	return false;
}

static uintptr_t libcs_low;
static size_t libcs_size;

void kbi_context_is_libcs(uintptr_t low, size_t size)
{
	libcs_low = low;
	libcs_size = size;
}

bool kbi_context_is_ours(uintptr_t at)
{
	if (at - libcs_low < libcs_size)
		return false;
	return is_in_code(&__ehdr_start, at) || (added && is_in_code(added, at));
}

/* ---- where a thread must not be left --------------------------------------------------------- */

enum { RANGES = 64 };

static struct range {
	uintptr_t low, size;
	bool ours;
} ranges[RANGES]; /* constant after kbi_context_learn */
static unsigned n_ranges;
static bool full;

static bool is_kochab(const char *path)
{
	return strstr(path, "/libkochab");
}

static bool is_delicate(const char *path)
{
	static const char *const names[] = { "ld-linux", "ld64", "ld-musl", "ld.so", "ld-2.", "libc.",
		"libc-", "libpthread", "libdl", "librt.", "libkochab", "libasan", "libtsan",
					     "libubsan", "liblsan", "libgcc_s", "libnss", "libresolv" };
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	for (size_t i = 0; i < kbi_countof(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static int add_delicate_range(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || !is_delicate(info->dlpi_name))
			continue;
		full |= n_ranges == RANGES;
		if (!full)
			ranges[n_ranges++] = (struct range){ info->dlpi_addr + p->p_vaddr, p->p_memsz,
				is_kochab(info->dlpi_name) };
	}
	return 0;
}

void kbi_context_learn(void)
{
	n_ranges = 0;
	dl_iterate_phdr(add_delicate_range, NULL);
}

bool kbi_context_may_leave(uintptr_t at)
{
	if (full || n_ranges == 0 || kbi_context_is_ours(at) || at - libcs_low < libcs_size)
		return false; /* n_ranges 0: a static program, where libc may be anywhere */
	for (unsigned i = 0; i < n_ranges; i++)
		if (at - ranges[i].low < ranges[i].size)
			return false;
	return true;
}

/* ---- whose code ------------------------------------------------------------------------------ */

bool kbi_context_knows_code(void)
{
	return !full && n_ranges;
}

/* Returns the code of a shared library. */
static void code_of(const ElfW(Ehdr) *e, uintptr_t *low, size_t *size)
{
	const ElfW(Phdr) *p = (const void *)((uintptr_t)e + e->e_phoff);

	for (int i = 0; !*low && i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && e->e_type == ET_DYN) {
			*low = (uintptr_t)e + p[i].p_vaddr;
			*size = p[i].p_memsz;
		}
}

void kbi_context_library(uintptr_t *low, size_t *size)
{
	*low = (uintptr_t)__start_kbi_text;
	*size = (size_t)(__stop_kbi_text - __start_kbi_text);
	code_of(&__ehdr_start, low, size);
}

void kbi_context_added_code(uintptr_t *low, size_t *size)
{
	*low = *size = 0;
	if (added)
		code_of(added, low, size);
}

static bool is_library(uintptr_t at)
{
	if (__start_kbi_text)
		return at - (uintptr_t)__start_kbi_text < (uintptr_t)(__stop_kbi_text - __start_kbi_text);
	return kbi_context_is_ours(at);
}

enum kbi_context_code kbi_context_code(uintptr_t at)
{
	if (at - libcs_low < libcs_size)
		return KBI_CODE_LIBC;
	if (is_library(at))
		return KBI_CODE_OURS;
	for (unsigned i = 0; i < n_ranges; i++)
		if (at - ranges[i].low < ranges[i].size)
			return ranges[i].ours ? KBI_CODE_OURS : KBI_CODE_LIBC;
	return KBI_CODE_PROGRAM;
}

/* ---- places ---------------------------------------------------------------------------------- */

enum { NEAR = 128 /* bytes of a loop */, MOVING = 2 /* registers: a counter, a loaded value */ };

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

/* ---- answers of the kernel ------------------------------------------------------------------- */

/* Writes "/proc/N" and `back`. Calls only memcpy and strcpy. */
static void put_path(char *path, unsigned tid, const char *back)
{
	static const char front[] = "/proc/";
	char digits[16];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + tid % 10);
	while (tid /= 10);
	memcpy(path, front, sizeof front - 1);
	path += sizeof front - 1;
	while (n)
		*path++ = digits[--n];
	strcpy(path, back);
}

/* Reads the file /proc/<tid><back> as a string; "" if it cannot be read. */
static void read_proc_file(int tid, const char *back, char *text, size_t size)
{
	char path[40];
	KBI_FD_BRIEFLY();
	long fd, n;

	put_path(path, (unsigned)tid, back);
	text[0] = 0;
	fd = kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = kbi_sys(SYS_read, fd, text, size - 1);
	kbi_sys(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
}

static unsigned digit_value(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0') :
		c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 99;
}

/* Reads the next number, decimal or hexadecimal with 0x, and returns the rest of the text. */
static const char *parse_proc_number(const char *p, uint64_t *value)
{
	unsigned base = 10;

	while (*p == ' ')
		p++;
	if (p[0] == '0' && p[1] == 'x') {
		base = 16;
		p += 2;
	}
	for (*value = 0; digit_value(*p) < base; p++)
		*value = *value * base + digit_value(*p);
	return p;
}

/* Returns true if the thread waits for a page from userfaultfd. A signal releases this wait; waits
 * for a disk or a file system outside of calls it does not. */
static bool waits_for_page(int tid)
{
	char where[32];

	read_proc_file(tid, "/wchan", where, sizeof where);
	return strcmp(where, "handle_userfault") == 0;
}

/* Parses "202 0x1 0x2 0x3 0x4 0x5 0x6 0xSP 0xPC", "running", or "-1 0xSP 0xPC" for a sleep outside
 * of a call. */
void kbi_context_find_call(int tid, struct kbi_context_call *c)
{
	uint64_t nr, skipped;
	char text[256];
	const char *p = text;

	*c = (struct kbi_context_call){ .nr = KBI_CONTEXT_NO_CALL };
	read_proc_file(tid, "/syscall", text, sizeof text);
	if (digit_value(*p) <= 9) {
		p = parse_proc_number(parse_proc_number(p, &nr), &c->arg);
		for (int i = 0; i < 5; i++)
			p = parse_proc_number(p, &skipped);
		c->nr = (int64_t)nr;
	} else if (strncmp(p, "-1 ", 3) == 0 && waits_for_page(tid)) {
		p += 3;
		c->nr = KBI_CONTEXT_FAULT;
	} else {
		return;
	}
	parse_proc_number(parse_proc_number(p, &c->sp), &c->pc);
}

/* ---- going elsewhere ------------------------------------------------------------------------- */

#if defined(__x86_64__)
bool kbi_context_can_go(void)
{
	return true;
}

void kbi_context_go(void *context, void (*fn)(void *), void *arg, void *top)
{
	ucontext_t *uc = context;
	greg_t *g = uc->uc_mcontext.gregs;
	/* aligned as after a call */
	uintptr_t *sp = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)15) - 1;

	*sp = 0;
	g[REG_RIP] = (greg_t)(uintptr_t)fn;
	g[REG_RDI] = (greg_t)(uintptr_t)arg;
	g[REG_RSP] = (greg_t)(uintptr_t)sp;
	g[REG_RBP] = 0;
	g[REG_EFL] &= ~(greg_t)0x400; /* direction flag: forward */
	if (uc->uc_mcontext.fpregs) {
		uc->uc_mcontext.fpregs->swd = 0;
		uc->uc_mcontext.fpregs->ftw = 0;
	}
}
#elif defined(__aarch64__)
bool kbi_context_can_go(void)
{
	return true;
}

void kbi_context_go(void *context, void (*fn)(void *), void *arg, void *top)
{
	/* BTYPE: state after an indirect branch, which this is not */
	const unsigned long landing = 3 << 10;
	ucontext_t *uc = context;

	uc->uc_mcontext.pstate &= ~landing;
	uc->uc_mcontext.pc = (uintptr_t)fn;
	uc->uc_mcontext.regs[0] = (uintptr_t)arg;
	uc->uc_mcontext.sp = (uintptr_t)top & ~(uintptr_t)15;
	uc->uc_mcontext.regs[29] = uc->uc_mcontext.regs[30] = 0;
}
#else
bool kbi_context_can_go(void)
{
	return false;
}

void kbi_context_go(void *context, void (*fn)(void *), void *arg, void *top)
{
	(void)context;
	(void)fn;
	(void)arg;
	(void)top;
}
#endif

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
