/* libc/return_hook, libc/context_frames: runs functions of libc's one instruction after the other.
 * At each instruction the reported place of the return address is the true place, or there is no
 * report. With a hook placed there, the function returns through it with its results, and an
 * unwinder still finds the caller.
 * matrix: none */
#define _GNU_SOURCE
#include "test.h"

#if !defined(__x86_64__) || !defined(__GLIBC__)
int main(void)
{
	SKIP("x86-64 with glibc");
}
#else

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <iconv.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <wchar.h>

#include "base/san.h"
#include "libc/context.h"
#include "libc/crash_libc.h"
#include "libc/return_hook.h"

enum { ARGS = 5, MOST = 60000, HOOKS = 10, STACK = 1 << 20 };

typedef void any(void);

/* ---- a caller that is neither libc's nor ours ------------------------------------------------ */

/* caller(fn, args): returns fn's result and traps each instruction of fn; keeps fn's xmm0 and
 * st(0). */
static const uint8_t code[] = {
	0x55, 0x48, 0x89, 0xe5,                   /* push %rbp; mov %rsp, %rbp */
	0x48, 0x83, 0xec, 0x10,                   /* sub $16, %rsp */
	0x49, 0x89, 0xfb, 0x49, 0x89, 0xf2,       /* mov %rdi, %r11; mov %rsi, %r10 */
	0x49, 0x8b, 0x3a, 0x49, 0x8b, 0x72, 0x08, /* mov (%r10), %rdi; mov 8(%r10), %rsi */
	/* 16: %rdx, 24: %rcx, 32: %r8 */
	0x49, 0x8b, 0x52, 0x10, 0x49, 0x8b, 0x4a, 0x18, 0x4d, 0x8b, 0x42, 0x20,
	0xb8, 0x01, 0x00, 0x00, 0x00,             /* mov $1, %eax */
	0x9c, 0x81, 0x0c, 0x24, 0x00, 0x01, 0x00, 0x00, 0x9d, /* pushf; orl $0x100, (%rsp); popf */
	0x41, 0xff, 0xd3,                         /* call *%r11 */
	0x9c, 0x81, 0x24, 0x24, 0xff, 0xfe, 0xff, 0xff, 0x9d, /* pushf; andl $~0x100, (%rsp); popf */
	0xc9, 0xc3,                               /* leave; ret */
};
static uint64_t (*caller)(any *fn, const uint64_t *args);

static void make_caller(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);

	CHECK(p != MAP_FAILED);
	memcpy(p, code, sizeof code);
	*(void **)&caller = p;
}

static bool is_caller(uintptr_t at)
{
	return at - (uintptr_t)caller < sizeof code;
}

/* ---- at each instruction --------------------------------------------------------------------- */

static uintptr_t *expected;  /* place of the return address at the function's first instruction */
static unsigned steps, told, place_at, placed, came, seen_caller;
static uintptr_t back;
static sigjmp_buf away;
static bool jumps, sends;
static unsigned came_before;
static int owner;

static bool frame(void *unused, uintptr_t at)
{
	(void)unused;
	seen_caller += is_caller(at);
	CHECK(!kbi_return_hook_is_door(at));
	return true;
}

static void place_hook(uintptr_t *slot)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	CHECK(kbi_return_hook(&owner, slot, here - STACK / 2, STACK));
	CHECK(*slot != back);
	placed++;
	seen_caller = 0;
	kbi_crash_frames(frame, NULL);
	CHECK_EQ(seen_caller, 1);
	if (jumps)
		siglongjmp(away, 1);
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *r = uc->uc_mcontext.gregs;
	uintptr_t *slot;

	(void)sig, (void)info;
	if (is_caller((uintptr_t)r[REG_RIP]))
		return;
	if (steps++ == 0) {
		expected = (uintptr_t *)r[REG_RSP];
		back = *expected;
	}
	if (placed || steps < place_at)
		return;
	slot = kbi_context_slot(uc);
	if (!slot)
		return;
	CHECK_EQ((uintptr_t)slot, (uintptr_t)expected);
	told++;
	if (place_at)
		place_hook(slot);
	if (placed || steps > MOST)
		r[REG_EFL] &= ~(greg_t)0x100;
}

/* As in the scheduler: a handler may change all registers except those that the kernel restores. */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig, (void)info;
	CHECK_EQ((uintptr_t)uc->uc_mcontext.gregs[REG_RIP], kbi_return_hook_place());
	seen_caller = 0;
	kbi_crash_frames(frame, NULL);
	CHECK_EQ(seen_caller, 1);
	__asm__ volatile("fninit; pcmpeqd %%xmm0, %%xmm0; pcmpeqd %%xmm1, %%xmm1" ::: "xmm0", "xmm1");
	came++;
}

static struct kbi_return_hook_signal asks(void)
{
	struct kbi_return_hook_signal s = { 0 };

	if (sends) {
		s.tid = (uint32_t)gettid();
		s.sig = SIGURG;
		s.pid = came_before++ % 2 ? (uint64_t)getpid() : 0;
	} else {
		came++;
	}
	return s;
}

/* ---- the functions --------------------------------------------------------------------------- */

static char out[4000], in[40], *ins, *outs;
static size_t n_in, n_out;
static wchar_t wide[100];
static struct tm tm;
static time_t when = 1700000000;
static char *end;
static iconv_t cd;

static void before(void)
{
	memset(out, 0, sizeof out);
	memset(&tm, 0, sizeof tm);
	tm.tm_year = 120;
	tm.tm_mday = 5;
	ins = in;
	outs = out;
	n_in = sizeof in;
	n_out = sizeof out;
}

#define A(x) (uint64_t)(uintptr_t)(x)
static struct row {
	const char *name;
	any *fn;
	uint64_t args[ARGS];
	/* the result differs each time; the result is a double, strtold's a long double */
	bool changes, real;
} rows[] = {
	{ "malloc", (any *)malloc, { 100 }, true, false },
	{ "large malloc", (any *)malloc, { 3000000 }, true, false },
	{ "calloc", (any *)calloc, { 10, 300 }, true, false },
	{ "realloc", (any *)realloc, { 0, 3000 }, true, false },
	{ "aligned_alloc", (any *)aligned_alloc, { 4096, 5000 }, true, false },
	{ "free", (any *)free, { 0 }, true, false },
	{ "strdup", (any *)strdup, { A("some text") }, true, false },
	{ "snprintf", (any *)snprintf, { A(out), 100, A("%d %s"), 12345, A("text") }, false, false },
	{ "snprintf of a real", (any *)snprintf, { A(out), 100, A("%.17g %d"), 5 }, false, false },
	{ "sscanf", (any *)sscanf, { A("12 3.5 abc"), A("%d %lf %s"), A(out), A(out + 100),
		A(out + 200) }, false, false },
	{ "strtod", (any *)strtod, { A("3.14159265358979323846e10"), A(&end) }, false, true },
	{ "strtold", (any *)strtold, { A("3.14159265358979323846e10"), A(&end) }, true, true },
	{ "strtoull", (any *)strtoull, { A("123456789012345"), A(&end), 0 }, false, false },
	{ "localtime_r", (any *)localtime_r, { A(&when), A(&tm) }, false, false },
	{ "mktime", (any *)mktime, { A(&tm) }, false, false },
	{ "strftime", (any *)strftime, { A(out), 100, A("%A %d %B %Y %c"), A(&tm) }, false, false },
	{ "iconv", (any *)iconv, { 0, A(&ins), A(&n_in), A(&outs), A(&n_out) }, false, false },
	{ "swprintf", (any *)swprintf, { A(wide), 100, A(L"%d %ls"), 5, A(L"text") }, false, false },
	{ "setlocale", (any *)setlocale, { LC_ALL, A("C") }, false, false },
	{ "fnmatch", (any *)fnmatch, { A("*a*b?[c-d]"), A("xxaxxbyd"), 0 }, false, false },
	{ "random", (any *)random, { 0 }, true, false },
	{ "strcoll", (any *)strcoll, { A("abc"), A("abd") }, false, false },
	{ "strerror_r", (any *)strerror_r, { ENOENT, A(out), 100 }, false, false },
	{ "getenv", (any *)getenv, { A("PATH") }, false, false },
};

/* Returns the last floating-point result if the row has one. */
static uint64_t call(const struct row *r, unsigned at, double *real)
{
	uint64_t args[ARGS], result;

	memcpy(args, r->args, sizeof args);
	if (r->fn == (any *)iconv)
		args[0] = A(cd);
	if (r->fn == (any *)free || r->fn == (any *)realloc)
		args[0] = A(malloc(2000));
	before();
	steps = told = placed = came = 0;
	place_at = at;
	if (r->fn == (any *)strtold) {
		*real = (double)((long double (*)(any *, const uint64_t *))(void *)caller)(r->fn, args);
		return 0;
	}
	result = ((uint64_t(*)(any *, const uint64_t *, double))(void *)caller)(r->fn, args, 0.1);
	__asm__ volatile("movsd %%xmm0, %0" : "=m"(*real));
	return result;
}

static void check(const struct row *r)
{
	double real = 0, first_real = 0;
	uint64_t first = call(r, 0, &first_real), result;
	unsigned n = steps, hits = told;
	static char text[sizeof out];

	memcpy(text, out, sizeof text);
	printf("%-20s %5u instructions, told at %u\n", r->name, n, hits);
	CHECK(n > 5);
	for (unsigned i = 0; i < HOOKS && hits; i++) {
		sends = i % 2;
		result = call(r, 1 + i * n / HOOKS, &real);
		CHECK(placed <= 1);
		CHECK_EQ(came, placed);
		CHECK(a_zero32_rlx(&kbi_return_hook_in_use));
		if (!r->changes)
			CHECK_EQ(result, first);
		if (r->real)
			CHECK(memcmp(&real, &first_real, sizeof real) == 0);
		CHECK(memcmp(text, out, sizeof text) == 0);
	}
}

/* These functions read or keep their return address. */
static void check_special(void)
{
	static const struct row special[] = {
		{ "dlsym", (any *)dlsym, { A(RTLD_DEFAULT), A("malloc") }, true, false },
		{ "dlopen", (any *)dlopen, { A("libc.so.6"), RTLD_NOW }, true, false },
		{ "getcontext", (any *)getcontext, { A(out) }, true, false },
		{ "_setjmp", (any *)_setjmp, { A(out) }, true, false },
		{ "bsearch", (any *)bsearch, { A(out), A(out), 0, 1, A(strcmp) }, true, false },
	};
	double real;

	for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
		call(&special[i], 0, &real);
		if (told)
			fprintf(stderr, "told in %s\n", special[i].name);
		CHECK(steps > 5 && told == 0);
	}
}

/* Code that jumps over a hook uses up no place for good. */
static void check_jumps(void)
{
	double real;

	jumps = true;
	for (volatile unsigned i = 0; i < 150; i++)
		if (sigsetjmp(away, 1) == 0)
			call(&rows[7], 100, &real);
	jumps = false;
	kbi_return_hook_forget(&owner);
	CHECK(a_zero32_rlx(&kbi_return_hook_in_use));
	check(&rows[7]);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	unsigned n = 0;

	if (KBI_SAN)
		SKIP("a sanitizer");
	make_caller();
	CHECK_EQ(sigaction(SIGTRAP, &sa, NULL), 0);
	sa.sa_sigaction = on_signal;
	CHECK_EQ(sigaction(SIGURG, &sa, NULL), 0);
	memset(in, 'a', sizeof in);
	cd = iconv_open("UTF-16LE", "UTF-8");
	CHECK(cd != (iconv_t)-1);
	kbi_context_learn();
	kbi_context_frames_learn();
	kbi_return_hook_asks = asks;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		check(&rows[i]);
		n += told > 0;
	}
	CHECK(n > 10);
	check_special();
	check_jumps();
	return 0;
}
#endif
