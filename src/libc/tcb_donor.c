/* libc/tcb_donor.c - a block built by libc (a "donor"). pthread_create on the slab makes control
 * block, TLS, vector and canary. The new kernel thread withdraws the block's addresses from the
 * kernel, saves its context in libc's start of the thread, and leaves by a bare exit. To end a
 * block, a new kernel thread goes on from that context, returns into libc and ends there as any
 * thread does.
 * Callers: tcb, tcb_layout. donor_main and revive_donor run on the slab. No locks; waits for
 * the kernel. */
#include "libc/tcb_priv.h"

#include "base/san.h"
#include "libc/asked.h"
#include "libc/broadcast.h"
#include "libc/real.h"
#include "os/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>

enum {
	EXIT_STACKS = 8,
	EXIT_STACK = 16 << 10, /* bytes: room for a signal of libc's own at the last moment */
	/* bytes below the frames, where a new kernel thread starts that goes on in them */
	REVIVE_BELOW = 4096,
	RSEQ_CPU_ID = 4,       /* offset of a field of struct rseq */
	RSEQ_UNREGISTER = 1,
	RSEQ_OFFERED = 27, /* AT_RSEQ_FEATURE_SIZE */
};

#if defined(__x86_64__)
#define RSEQ_SIGNATURE 0x53053053
#elif defined(__aarch64__)
#define RSEQ_SIGNATURE 0xd428bc00
#else
#define RSEQ_SIGNATURE 0xf1401073
#endif

extern const ptrdiff_t __rseq_offset __attribute__((weak)); /* glibc >= 2.35 */

#if defined(__SANITIZE_ADDRESS__)
#define KBI_NO_ASAN __attribute__((no_sanitize_address))
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KBI_NO_ASAN __attribute__((no_sanitize("address")))
#endif
#endif
#ifndef KBI_NO_ASAN
#define KBI_NO_ASAN
#endif
extern void __asan_unpoison_memory_region(const volatile void *from,
	size_t size) __attribute__((weak));

void (*kbi_tcb_donor_look)(struct kbi_tcb *t);

/* Stacks for a donor's last steps after it has saved its frames. Not on its own slab: valgrind
 * would take the switch for a call, and would then treat the frames as dead. */
static struct {
	a32 taken;
	bool told; /* valgrind knows the stack */
	char stack[EXIT_STACK] KBI_ALIGNED(16);
} exits[EXIT_STACKS];

/* acquire: pairs with the release in give_exit */
static uint8_t take_exit(void)
{
	for (unsigned n = 0;; n++) {
		for (unsigned i = 0; i < EXIT_STACKS; i++)
			if (!a_load_rlx(&exits[i].taken) && !a_xchg_acq(&exits[i].taken, 1))
				return (uint8_t)i;
		kbi_sys_yield_to_holder(n);
	}
}

/* release: the kernel thread that left on it has gone; pairs with the acquire in take_exit */
static void give_exit(uint8_t i)
{
	a_store_rel(&exits[i].taken, 0);
}

/* Returns true if libc has an rseq area. On machines where libc has none the offset is 0, where a
 * module's TLS begins. */
static bool has_rseq(void)
{
	return &__rseq_offset && __rseq_offset != 0;
}

/* Unregisters the rseq area of the block at tp, if libc has registered it; then the kernel has
 * written to it. The kernel wants the registered length: 32, or from glibc 2.40 on the length that
 * the kernel offers. libc's __rseq_size does not help: the drop-in overrides it. */
static void unregister_rseq(char *tp)
{
	static a32 said;
	char *area = tp + __rseq_offset;
	size_t i = 0;
	/* older kernels offer none, and getauxval then sets errno, which the block's first thread would
	 * find */
	int saved = errno;
	const unsigned offered = (unsigned)getauxval(RSEQ_OFFERED),
		lengths[] = { 32, (offered + 31) & ~31u };

	errno = saved;
	if (*(int32_t *)(area + RSEQ_CPU_ID) < 0)
		return;
	while (i < kbi_countof(lengths) && kbi_sys(SYS_rseq, area, lengths[i], RSEQ_UNREGISTER,
		RSEQ_SIGNATURE) != 0)
		i++;
	if (i == kbi_countof(lengths) && !a_xchg_rlx(&said, 1))
		kbi_asked_missed("restartable sequences",
			"the kernel does not take them back and goes on writing to the block of a thread that "
			"has moved; set GLIBC_TUNABLES=glibc.pthread.rseq=0");
	*(int32_t *)(area + RSEQ_CPU_ID) = -1; /* makes sched_getcpu ask the kernel */
}

/* Unregisters rseq: in a child made by another thread's fork the kernel would write to a block that
 * libc counts as free. */
void kbi_tcb_leave_rseq(void)
{
#if KBI_HAVE_TP
	if (has_rseq())
		unregister_rseq((char *)kbi_tp_get());
#endif
}

/* Withdraws the block of the calling kernel thread from the kernel. */
void kbi_tcb_leave_block(void)
{
	static a32 cleared;

#if KBI_HAVE_TP
	if (has_rseq())
		unregister_rseq((char *)kbi_tp_get());
#endif
	kbi_sys(SYS_set_robust_list, NULL, 3 * sizeof(long));
	kbi_sys(SYS_set_tid_address, &cleared.v_);
}

/* Withdraws the block from the kernel: after this kernel thread has gone nothing of the block may
 * be written or walked. */
static void forget_block(struct kbi_tcb *t)
{
	if (has_rseq())
		unregister_rseq((char *)t->tp);
	kbi_sys(SYS_set_robust_list, NULL, 3 * sizeof(long));
	kbi_sys(SYS_set_tid_address, &t->alive.v_);
}

/* Ends the kernel thread. The kernel stores 0 to `alive` and wakes: release to our acquire in
 * wait_gone. */
static void leave_kernel(void *unused)
{
	(void)unused;
	for (;;)
		kbi_sys(SYS_exit, 0);
}

static void make_exit(struct kbi_tcb *t, struct kbi_ctx *out)
{
	char *stack = exits[t->exit].stack;

	if (!exits[t->exit].told)
		kbi_san_stack(stack, stack + EXIT_STACK);
	exits[t->exit].told = true;
	kbi_ctx_make(out, stack, EXIT_STACK, leave_kernel, NULL);
}

static KBI_NO_ASAN void *donor_main(void *arg)
{
	struct kbi_tcb *t = arg;
	struct kbi_ctx out;

	t->tp = kbi_tp_get();
	t->pthread = (uintptr_t)kbi_real.pthread_self();
	if (kbi_tcb_donor_look)
		kbi_tcb_donor_look(t);
	forget_block(t);
	make_exit(t, &out);
	kbi_ctx_switch(&t->frames, &out, NULL, NULL);
	return NULL; /* when revived: libc ends the thread */
}

/* Waits for the exit of a kernel thread. Partner: the kernel's store of 0 at its exit. The kernel's
 * wake is not private. */
static void wait_gone(struct kbi_tcb *t)
{
	uint32_t v;

	while ((v = a_load_acq(&t->alive)) != 0)
		kbi_sys(SYS_futex, &t->alive.v_, FUTEX_WAIT, v, NULL);
}

/* Blocks all signals but libc's own two or three, which a donor must answer: from 32 to below
 * SIGRTMIN, the first of the program's. Blocked signals stay blocked: they may be pending. Returns
 * the mask before. */
static uint64_t block_signals(void)
{
	const uint64_t libcs = ((uint64_t)1 << (SIGRTMIN - 1)) - ((uint64_t)1 << 31),
		all = ~(libcs | kbi_broadcast_faults());
	uint64_t before = 0;

	kbi_sys(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	return before;
}

static void restore_signals(uint64_t mask)
{
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

static int create_donor(struct kbi_tcb *t)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = kbi_real.pthread_attr_setstack(&attr, t->slab_low, t->slab_size);
	if (!err)
		err = kbi_real.pthread_create(&thread, &attr, donor_main, t);
	pthread_attr_destroy(&attr);
	return err;
}

/* Sets the thread's own stack: all below the saved frames. */
static void measure_donor_stack(struct kbi_tcb *t)
{
	uintptr_t low = ((uintptr_t)t->slab_low + 15) & ~(uintptr_t)15;
	uintptr_t top = (uintptr_t)t->frames.sp & ~(uintptr_t)15;

	KBI_TCB_WRITTEN(t->slab_low, t->slab_size);
	t->stack_low = (char *)low;
	t->stack_size = top - low;
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(t->stack_low, t->stack_size);
}

int kbi_tcb_donor_make(struct kbi_tcb *t)
{
	uint64_t mask = block_signals();
	int err;

	a_store_rlx(&t->alive, 1);
	t->exit = take_exit();
	err = create_donor(t);
	if (!err)
		wait_gone(t);
	give_exit(t->exit);
	restore_signals(mask);
	if (!err)
		measure_donor_stack(t);
	return err;
}

/* Starts a kernel thread at begin(arg) in the block, on its stack below `top`. Returns its number,
 * or -1 with errno. */
static int clone_into(struct kbi_tcb *t, int (*begin)(void *arg), char *top, void *arg)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		CLONE_SYSVSEM |
			  CLONE_SETTLS | CLONE_CHILD_CLEARTID;

	a_store_rlx(&t->alive, 1);
	return kbi_real.clone(begin, top, flags, arg, NULL, t->tp, &t->alive.v_);
}

struct run {
	struct kbi_tcb *t;
	void (*fn)(void *arg);
	void *arg;
};

/* Runs on the new kernel thread. libc reads the kernel's number as long as it runs. */
static int run_block_thread(void *on_stack)
{
	struct run r = *(struct run *)on_stack;

	*kbi_tcb_tid_word(r.t) = (uint32_t)kbi_sys_gettid();
	r.fn(r.arg);
	*kbi_tcb_tid_word(r.t) = kbi_tcb_own_tid(r.t);
	leave_kernel(NULL);
	return 0;
}

int kbi_tcb_run(struct kbi_tcb *t, void (*fn)(void *arg), void *arg)
{
	char *top = (char *)((uintptr_t)(t->stack_low + t->stack_size - sizeof(struct run)) &
		~(uintptr_t)15);
	int saved = errno, tid;

	*(struct run *)(void *)top = (struct run){ t, fn, arg };
	tid = clone_into(t, run_block_thread, top, top);
	errno = saved;
	if (tid >= 0)
		return 0;
	a_store_rlx(&t->alive, 0);
	return EAGAIN;
}

/* Runs on a new kernel thread, in the block, on the free part of its stack. */
static KBI_NO_ASAN int revive_donor(void *arg)
{
	struct kbi_tcb *t = arg;

	*kbi_tcb_tid_word(t) = (uint32_t)kbi_sys_gettid();
	kbi_ctx_leave(&t->frames, NULL, NULL);
}

int kbi_tcb_donor_end(struct kbi_tcb *t)
{
	char *top = t->stack_low + t->stack_size - REVIVE_BELOW;
	int saved = errno, tid;
	uint64_t mask = block_signals();
	void *self = *kbi_tcb_self_word(t);

	KBI_TCB_WRITTEN(t->stack_low, t->stack_size);
	/* it runs on a kernel thread of its own, not on a virtual processor */
	*kbi_tcb_self_word(t) = NULL;
	tid = clone_into(t, revive_donor, top, t);
	if (tid >= 0)
		wait_gone(t);
	else
		*kbi_tcb_self_word(t) = self;
	restore_signals(mask);
	errno = saved;
	return tid < 0 ? EAGAIN : 0;
}
