/* arch/generic/ctx.c - contexts in portable C: _setjmp and _longjmp switch; makecontext or a signal
 * handler on an alternate stack makes a context (Engelschall, "Portable Multithreading", USENIX
 * 2000).
 * Callers: core. Runs on the caller's stack. With a signal handler, kbi_ctx_make holds `making`
 * with signals blocked.
 *
 * kbi_ctx.sp points to a record: for a suspended context a local variable of its kbi_ctx_switch,
 * for a new context a struct at the top of its stack. The resumer stores `after` in the record of
 * the resumed context.
 * swapcontext could switch, too, but it asks the kernel for the signal mask each time (0.2-0.5 us);
 * _setjmp and _longjmp do not. So kbi_ctx_make prepares the entry once.
 * _longjmp across stacks is outside ISO C; libc's checked longjmp refuses it, hence the #undef.
 * TSan refuses it, too: generic and -fsanitize=thread exclude each other. */
#undef _FORTIFY_SOURCE
#include <fenv.h>
#include <setjmp.h>
#include <stdlib.h>

#include "arch/arch.h"
#include "base/atom.h"

enum { STACK_ALIGN = 64 };

struct record {
	jmp_buf regs;
	void *(*after)(void *);
	void *after_arg;
	int rounding;
};

struct first_record {
	struct record r;
	void (*entry)(void *);
	void *arg;
};

/* The rounding mode belongs to the thread. A program without libm cannot have changed it. */
#pragma weak fegetround
#pragma weak fesetround

static int rounding_get(void)
{
	return fegetround != NULL ? fegetround() : 0;
}

static void rounding_set(int mode)
{
	if (fesetround != NULL && fegetround != NULL && mode != fegetround())
		fesetround(mode);
}

KBI_NORETURN static void resume_context(struct record *r, void *(*after)(void *), void *arg)
{
	r->after = after;
	r->after_arg = arg;
	rounding_set(r->rounding);
	_longjmp(r->regs, 1);
}

static void run_after(struct record *r)
{
	if (r->after != NULL)
		r->after(r->after_arg);
}

KBI_NOINLINE void kbi_ctx_switch(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *),
				 void *arg)
{
	struct record r;

	r.rounding = rounding_get();
	save->sp = &r;
	if (_setjmp(r.regs) == 0)
		resume_context(load->sp, after, arg);
	run_after(&r);
}

void kbi_ctx_leave(struct kbi_ctx *load, void *(*after)(void *), void *arg)
{
	resume_context(load->sp, after, arg);
}

/* The DWARF number of the return address, on machines where it is known: `start_context`
 * declares that it has none, so that an unwinder stops there, before it reaches the frames above
 * (perhaps a signal frame). */
#if defined(__x86_64__)
#define RETURN_ADDRESS "16"
#elif defined(__aarch64__)
#define RETURN_ADDRESS "30"
#elif defined(__riscv) || defined(__loongarch__)
#define RETURN_ADDRESS "1"
#elif defined(__s390__) || defined(__arm__)
#define RETURN_ADDRESS "14"
#elif defined(__powerpc__)
#define RETURN_ADDRESS "65"
#elif defined(__i386__)
#define RETURN_ADDRESS "8"
#endif
#if defined(RETURN_ADDRESS) && defined(__GCC_HAVE_DWARF2_CFI_ASM)
#define NO_RETURN_ADDRESS() __asm__ volatile(".cfi_undefined " RETURN_ADDRESS)
#else
#define NO_RETURN_ADDRESS() kbi_compiler_barrier()
#endif

KBI_NORETURN KBI_NOINLINE static void start_context(struct first_record *f)
{
	NO_RETURN_ADDRESS();
	run_after(&f->r);
	f->entry(f->arg);
	abort();
}

static struct first_record *place_record(void *low, size_t size, void (*entry)(void *), void *arg)
{
	uintptr_t top = ((uintptr_t)low + size) & -(uintptr_t)STACK_ALIGN;
	struct first_record *f = (struct first_record *)((top - sizeof *f) & -(uintptr_t)STACK_ALIGN);

	f->entry = entry;
	f->arg = arg;
	f->r.rounding = rounding_get();
	return f;
}

#if KBI_GENERIC_SIGSTACK

#include <pthread.h>
#include <signal.h>

/* SIGURG: ignored by default, and rarely used. A SIGURG for another thread is lost while a context
 * is made. */
enum { MAKE_SIGNAL = SIGURG };

static a8 making; /* lock: the signal's action and `made` belong to the process */
static struct {
	struct first_record *record;
	pthread_t maker;
	volatile sig_atomic_t done;
} made;

static void on_make_signal(int sig)
{
	struct first_record *f = made.record;

	(void)sig;
	if (!pthread_equal(made.maker, pthread_self()) || made.done)
		return;
	made.done = 1;
	/* This frame stays intact when the handler returns: no code uses this stack until the first
	 * switch continues here. */
	if (_setjmp(f->r.regs) == 0)
		return;
	start_context(f);
}

/* Runs the handler on [low, f) and returns after it has run. Signals are blocked. */
static void run_handler_on(void *low, struct first_record *f)
{
	stack_t stack = {.ss_sp = low, .ss_size = (size_t)((char *)f - (char *)low)}, old_stack;
	struct sigaction act = {.sa_handler = on_make_signal, .sa_flags = SA_ONSTACK}, old_act;
	sigset_t all_but;

	sigfillset(&act.sa_mask);
	sigfillset(&all_but);
	sigdelset(&all_but, MAKE_SIGNAL);
	made.record = f;
	made.maker = pthread_self();
	made.done = 0;
	if (sigaltstack(&stack, &old_stack) != 0 || sigaction(MAKE_SIGNAL, &act, &old_act) != 0)
		abort();
	pthread_kill(made.maker, MAKE_SIGNAL);
	while (!made.done)
		sigsuspend(&all_but);
	sigaction(MAKE_SIGNAL, &old_act, NULL);
	if (old_stack.ss_flags & SS_DISABLE)
		old_stack = (stack_t){.ss_flags = SS_DISABLE, .ss_size = MINSIGSTKSZ};
	sigaltstack(&old_stack, NULL);
}

void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *), void *arg)
{
	struct first_record *f = place_record(stack_low, size, entry, arg);
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (a_xchg_acq(&making, 1)) /* pairs with the release below; orders `made` */
		kbi_cpu_relax();
	run_handler_on(stack_low, f);
	a_store_rel(&making, 0); /* pairs with the acquire in the loop above */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	c->sp = &f->r;
}

#else

#include <ucontext.h>

/* Enters the new stack. makecontext passes ints, so each pointer comes in two halves. */
static void enter_new_stack(unsigned record_high, unsigned record_low, unsigned back_high,
	unsigned back_low)
{
	uint64_t record = (uint64_t)record_high << 32 | record_low;
	uint64_t back = (uint64_t)back_high << 32 | back_low;
	struct first_record *f = (struct first_record *)(uintptr_t)record;

	if (_setjmp(f->r.regs) == 0)
		_longjmp(*(jmp_buf *)(uintptr_t)back, 1);
	start_context(f);
}

void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *), void *arg)
{
	struct first_record *f = place_record(stack_low, size, entry, arg);
	uint64_t record = (uintptr_t)f, back_to;
	ucontext_t u;
	jmp_buf back;

	c->sp = &f->r;
	back_to = (uintptr_t)&back;
	if (getcontext(&u) != 0)
		abort();
	u.uc_link = NULL;
	u.uc_stack.ss_sp = stack_low;
	u.uc_stack.ss_size = (size_t)((char *)f - (char *)stack_low);
	makecontext(&u, (void (*)(void))enter_new_stack, 4, (unsigned)(record >> 32),
		    (unsigned)record, (unsigned)(back_to >> 32), (unsigned)back_to);
	if (_setjmp(back) == 0)
		setcontext(&u);
}

#endif

/* Calls fn on the caller's stack: portable C cannot change the stack. */
void kbi_ctx_call_on(void *stack_high, void (*fn)(void *), void *arg)
{
	(void)stack_high;
	fn(arg);
}
