/* posix/signal_sigcancel: the context of a handler, on a thread that computes on a stack which it
 * has made itself. A signal that was sent while another thread had the processor comes as any does:
 * the stack pointer and the instruction in the context are those of the interrupted code, as
 * collectors need them that look at the stack from there, and the handler runs on the alternate
 * stack, or below the interrupted code. Of main, of another thread, and of a thread that has left a
 * handler by a jump of its own.
 * matrix: vps=1,2 sched=rotator,lb2,steal */
/* timeout: 60 */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { BYTES = 1 << 20, ALTERNATE = 65536, SENDERS = 2, SIGNALS = 40, BOTH = 2 };

extern const char __executable_start[], etext[];

static __thread char *stack, *alternate;
static __thread void *out[5]; /* for __builtin_setjmp */
static __thread volatile int handled[BOTH];
static __thread volatile bool leaves, computes;
static volatile uint64_t computed;
static struct {
	pthread_t who;
	int is_over;
} to;

static bool is_in(uintptr_t at, const char *memory, size_t bytes)
{
	return at - (uintptr_t)memory < bytes;
}

static uintptr_t interrupted(const ucontext_t *uc, uintptr_t *pc)
{
#if defined(__x86_64__)
	*pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	*pc = uc->uc_mcontext.pc;
	return uc->uc_mcontext.sp;
#else
	(void)uc;
	*pc = 0;
	return 0;
#endif
}

static void call_on(char *sp, void (*fn)(void))
{
#if defined(__x86_64__)
	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %0, %%rsp\n\tcall *%1\n\tmovq %%rbx, %%rsp"
			 : "+r"(sp), "+r"(fn)
			 :
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x19, sp\n\tmov sp, %0\n\tblr %1\n\tmov sp, x19"
			 : "+r"(sp), "+r"(fn)
			 :
			 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
			   "x16", "x17", "x18", "x19", "x30", "cc", "memory");
#else
	(void)sp;
	(void)fn;
	SKIP("not for this machine");
#endif
}

static void handler(int sig, siginfo_t *info, void *context)
{
	uintptr_t pc, sp = interrupted(context, &pc), here = (uintptr_t)__builtin_frame_address(0);

	CHECK_EQ(info->si_signo, sig);
	CHECK(is_in(sp, stack, BYTES));
	if (computes)
		CHECK(is_in(pc, __executable_start, (size_t)(etext - __executable_start)));
	if (sig == SIGUSR1)
		CHECK(is_in(here, alternate, ALTERNATE));
	else
		CHECK(is_in(here, stack, BYTES) && here < sp);
	handled[sig == SIGUSR1]++;
	if (leaves) {
		leaves = false;
		__builtin_longjmp(out, 1);
	}
}

/* Calls nobody. */
static void compute(void)
{
	handled[0] = handled[1] = 0;
	computes = true;
	while (handled[0] < SIGNALS || handled[1] < SIGNALS)
		for (int i = 0; i < 1000; i++)
			computed = computed * 7 + (uint64_t)i;
	computes = false;
}

static __attribute__((noinline)) void leave_a_handler(void)
{
	if (__builtin_setjmp(out))
		return;
	for (leaves = true; leaves;)
		computed = computed + 1;
	CHECK(!"come here");
}

static sigset_t both(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	return set;
}

/* Its signals are let through while it is on the stack. */
static void on_own_stack(void)
{
	sigset_t set = both();

	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	compute();
	leave_a_handler();
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	compute();
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
}

static void *sends(void *unused)
{
	volatile int n = 0;

	while (!__atomic_load_n(&to.is_over, __ATOMIC_ACQUIRE)) {
		CHECK_EQ(pthread_kill(to.who, SIGUSR1), 0);
		CHECK_EQ(pthread_kill(to.who, SIGUSR2), 0);
		for (int i = 0; i < 20000; i++)
			n = n + i;
	}
	return unused;
}

static void *takes(void *unused)
{
	stack_t s = { .ss_size = ALTERNATE }, off = { .ss_flags = SS_DISABLE };
	pthread_t t[SENDERS];

	stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	alternate = s.ss_sp = mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED && alternate != MAP_FAILED);
	CHECK_EQ(sigaltstack(&s, NULL), 0);
	to.who = pthread_self();
	to.is_over = 0;
	for (int i = 0; i < SENDERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, sends, NULL), 0);
	call_on(stack + BYTES, on_own_stack);
	__atomic_store_n(&to.is_over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < SENDERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(sigaltstack(&off, NULL), 0);
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	sigset_t set = both();
	pthread_t t;

	sa.sa_mask = set;
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	sa.sa_flags &= ~SA_ONSTACK;
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	takes(NULL);
	CHECK_EQ(pthread_create(&t, NULL, takes, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
