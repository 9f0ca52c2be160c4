/* core/worker_thread.c - a kernel thread as the worker of a VP. Contract in worker_thread.h. */
#include "core/worker_thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/option.h"
#include "core/place.h"
#include "core/preempt.h"
#include "core/process.h"
#include "core/process_stack.h"
#include "core/stock.h"
#include "core/worker_pool.h"
#include "libc/broadcast.h"
#include "libc/emulate.h"
#include "libc/real.h"
#include "libc/tcb.h"
#include "mem/heap_door.h"
#include "os/clone_attrs.h"
#include "os/sys.h"

/* C++'s runtime, if it is loaded: returns the place in the caller's TLS that tells which exceptions
 * are being handled, and how many are in flight. */
extern void *__cxa_get_globals(void) __attribute__((weak));

void kbi_worker_native_tp(struct kbi_worker *b)
{
	/* each thread of the drop-in has its own place */
	b->caught = __cxa_get_globals && !kbi_preempt_is_shared ? __cxa_get_globals() : NULL;
#if KBI_HAVE_TP
	b->tp = kbi_tp_get();
#endif
	b->self_slot = &kbi_self_tls;
	b->heap = kbi_door_here();
	/* a process that is killed between the two lines has another number then, and the renumbering
	 * has missed it here */
	do
		a_store_rlx(&b->tid, (uint32_t)kbi_sys_gettid());
	while (kbi_unlikely(a_load_rlx(&b->tid) != (uint32_t)kbi_sys_gettid()));
}

void kbi_worker_own_stack(struct kbi_san *s)
{
	pthread_attr_t a;
	void *low = NULL;
	size_t size = 0;

	if (KBI_SAN && pthread_getattr_np(pthread_self(), &a) == 0) {
		pthread_attr_getstack(&a, &low, &size);
		pthread_attr_destroy(&a);
	}
	kbi_san_adopt(s, low, size);
}

void kbi_worker_agent(void *b)
{
	kbi_san_arrive(NULL);
	kbi_worker_life(b);
	__builtin_unreachable(); /* the leader's life does not return */
}

static void *run_worker(void *arg)
{
	struct kbi_worker *me = arg;

	kbi_tcb_leave_rseq();
	kbi_worker_native_tp(me);
	me->signal_stack = kbi_preempt_alt_stack();
	kbi_worker_own_stack(&me->san);
	kbi_worker_life(me);
	kbi_preempt_no_alt_stack(me->signal_stack);
	kbi_worker_pool_drop(me);
	return NULL;
}

/* ---- signals --------------------------------------------------------------------------------- */

static sigset_t programs_mask, workers_mask; /* constant once workers run */
static bool masked;
bool kbi_worker_open;

/* Blocks all signals of a new worker but the tick and faults. The program's signals are for kernel
 * threads that run its code with its mask. Where kbi_worker_open is set, kbi_worker_adopted opens
 * the worker when it is known as a VP's. */
static void worker_mask(sigset_t *old)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, kbi_preempt_signal());
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	sigdelset(&set, SIGFPE);
	sigdelset(&set, SIGILL);
	sigdelset(&set, SIGABRT);
	sigdelset(&set, SIGTRAP);
	kbi_real.pthread_sigmask(SIG_SETMASK, &set, old);
}

/* Returns true if the mask is a worker's, SIGSYS aside: that must be open where system calls raise
 * it (libc/intercept_sud). */
static bool is_bodys(sigset_t mask)
{
	sigset_t bodys = workers_mask;

	sigaddset(&mask, SIGSYS);
	sigaddset(&bodys, SIGSYS);
	return memcmp(&mask, &bodys, sizeof mask) == 0;
}

bool kbi_worker_programs_mask(sigset_t *old)
{
	memset(old, 0, sizeof *old); /* sigemptyset need not write all of it */
	if (!masked || kbi_real.pthread_sigmask(SIG_BLOCK, NULL, old) || !is_bodys(*old))
		return false;
	kbi_real.pthread_sigmask(SIG_SETMASK, &programs_mask, NULL);
	return true;
}

void kbi_worker_mask_again(const sigset_t *old)
{
	kbi_real.pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* Runs in the child of fork on a worker: the child is no worker, and a program that it executes
 * would start with signals blocked. The drop-in's threads have set their own mask. */
static void restore_child_mask(void)
{
	struct kbi_task *self = kbi_self_raw();
	sigset_t old;

	if (!self || !kbi_thread_of(self)->posix)
		kbi_worker_programs_mask(&old);
}

/* ---- a thread's signals for itself, where workers are processes ----------------------------- */

/* Returns the kernel's word for the set. Signals that are open in every process of ours make no
 * difference. */
static uint64_t bits_of(const sigset_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof bits);
	return bits | kbi_broadcast_bit();
}

static struct kbi_worker *worker_of_caller(void)
{
	struct kbi_task *self = kbi_self_raw();

	return self ? kbi_worker_of_task(self) : NULL;
}

/* Learns of a new mask on this worker. A worker's own mask is put back by the code that has kept
 * it; a mask with more in it is the program's. */
static void on_mask_change(long how, const uint64_t *set)
{
	uint64_t bodys = bits_of(&workers_mask), new = *set | kbi_broadcast_bit();
	struct kbi_worker *b = worker_of_caller();

	if (!b)
		return;
	if (how != SIG_SETMASK)
		b->closed &= ~new;
	else if (new == bodys)
		b->closed = b->closes;
	else
		b->closed &= new & ~bodys ? 0 : new;
}

/* Raises sig and lets its handler run here, before the call returns. ppoll, because it restores the
 * mask whatever the program does about the signal. */
static long let_through(int sig)
{
	const struct timespec none = { 0, 0 };
	const uint64_t every = ~kbi_broadcast_bit();
	uint64_t before, mask;
	long e;

	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, &before, sizeof before);
	e = kbi_sys(SYS_tkill, kbi_sys_gettid(), sig);
	mask = before & ~((uint64_t)1 << (sig - 1));
	if (!e)
		kbi_sys(SYS_ppoll, NULL, 0, &none, &mask, sizeof mask);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
	return e;
}

/* Sends sig to the calling thread itself. libc asks for the kernel thread's number first: the
 * thread may have moved to another kernel thread since. */
static long on_raise_call(int tid, int sig)
{
	struct kbi_worker *b = worker_of_caller();

	if (!b || sig < 1 || sig > 64 || !kbi_worker_of_tid(tid))
		return kbi_sys(SYS_tkill, tid, sig);
	if (b->closed >> (sig - 1) & 1)
		return let_through(sig);
	return kbi_sys(SYS_tkill, kbi_sys_gettid(), sig);
}

void kbi_worker_learn_masks(void)
{
	if (masked)
		return;
	worker_mask(&programs_mask);
	kbi_real.pthread_sigmask(SIG_SETMASK, &programs_mask, &workers_mask);
	if (kbi_worker_open) {
		workers_mask = programs_mask;
	} else {
		kbi_emulate_masks = on_mask_change;
		kbi_emulate_raise = on_raise_call;
	}
	pthread_atfork(NULL, NULL, restore_child_mask);
	masked = true;
}

/* ---- start ----------------------------------------------------------------------------------- */

int (*kbi_worker_maker)(void *(*fn)(void *), void *arg, const sigset_t *mask);

/* Has another kernel thread make the new one, with the caller's mask: the caller has changed its
 * own kernel thread, and the new one would inherit that. */
static int made_by_other(void *(*fn)(void *), void *arg)
{
	sigset_t mask;

	kbi_real.pthread_sigmask(SIG_BLOCK, NULL, &mask);
	return kbi_worker_maker(fn, arg, &mask);
}

/* Keeps the new kernel thread unbound while its maker is bound. With musl it is bound, if it is
 * made after the start. */
static void leave_place(pthread_attr_t *a)
{
#ifdef __GLIBC__
	const struct kbi_cpus *all = kbi_place_programs();

	if (kbi_unlikely(all && all->bytes > 0))
		pthread_attr_setaffinity_np(a, (size_t)all->bytes,
			(const cpu_set_t *)(const void *)all->bits);
#else
	(void)a;
#endif
}

/* libc puts static TLS into the stack and returns EINVAL where it has no room; its size is known
 * here only where the runtime makes control blocks. */
int kbi_worker_kernel_thread(void *(*fn)(void *), void *arg)
{
	size_t size = kbi_tcb_available ? KBI_AGENT_STACK + kbi_tcb_overhead() : 3 * KBI_AGENT_STACK;
	pthread_attr_t a;
	pthread_t id;
	int e;

	if (kbi_unlikely(kbi_clone_attrs_kind()) && kbi_worker_maker)
		return made_by_other(fn, arg);
	if (kbi_sys_from.processes)
		return kbi_process_start(fn, arg);
	if ((!kbi_place_programs() || fn == run_worker) && kbi_stock_start(fn, arg))
		return 0;
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	leave_place(&a);
	do {
		pthread_attr_setstacksize(&a, (size + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1));
		e = kbi_real.pthread_create(&id, &a, fn, arg);
		size *= 2;
	} while (e == EINVAL && size <= KBI_MOST_STACK);
	pthread_attr_destroy(&a);
	return e;
}

static int start_worker(struct kbi_vp *vp, bool at_once)
{
	struct kbi_worker *b = kbi_worker_pool_record(!vp);
	static bool led;
	sigset_t old;
	int e;

	if (!b)
		return EAGAIN;
	b->vp = vp;
	/* the first process keeps the program's mask, as the first kernel thread does */
	b->leader = kbi_sys_from.processes && vp && vp->id == 0 && !led;
	if (b->leader) {
		led = true;
		kbi_real.pthread_sigmask(SIG_SETMASK, &programs_mask, &old);
	} else {
		worker_mask(&old);
	}
	b->closes = b->closed = b->leader ? 0 : bits_of(&workers_mask) & ~bits_of(&programs_mask);
	e = !at_once || (kbi_sys_from.processes && kbi_process_stack_kept()) ?
		kbi_worker_kernel_thread(run_worker, b) : kbi_stock_start(run_worker, b) ? 0 : EAGAIN;
	kbi_real.pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e)
		kbi_worker_pool_drop(b);
	return e;
}

int kbi_worker_start(struct kbi_vp *vp)
{
	return start_worker(vp, false);
}

int kbi_worker_start_idle(void)
{
	return start_worker(NULL, false);
}

int kbi_worker_start_idle_at_once(void)
{
	return start_worker(NULL, true);
}

int kbi_worker_start_closed(void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int e;

	sigfillset(&all);
	kbi_real.pthread_sigmask(SIG_SETMASK, &all, &old);
	e = kbi_worker_kernel_thread(fn, arg);
	kbi_real.pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e;
}
