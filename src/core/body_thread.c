/* core/body_thread.c - a kernel thread as the body of a VP. Contract in body_thread.h. */
#include "core/body_thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/option.h"
#include "core/body_process.h"
#include "core/preempt.h"
#include "core/spare.h"
#include "mem/heap_door.h"
#include "os/real.h"
#include "os/sys.h"
#include "os/tcb.h"

void kbi_body_native_tp(struct kbi_body *b)
{
#if KBI_HAVE_TP
	b->tp = kbi_tp_get();
#endif
	b->self_slot = &kbi_self_tls;
	b->heap = kbi_door_here();
	/* a process that is killed between the two has another number then, and who renumbers has not found it here */
	do
		a_store_rlx(&b->tid, (uint32_t)kbi_sys_gettid());
	while (kbi_unlikely(a_load_rlx(&b->tid) != (uint32_t)kbi_sys_gettid()));
}

void kbi_body_own_stack(struct kbi_san *s)
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

void kbi_body_agent(void *b)
{
	kbi_san_arrive(NULL);
	kbi_spare_life(b);
	__builtin_unreachable(); /* it is the leader's */
}

static void *body(void *arg)
{
	struct kbi_body *me = arg;

	kbi_tcb_leave_rseq();
	kbi_body_native_tp(me);
	me->signal_stack = kbi_preempt_alt_stack();
	kbi_body_own_stack(&me->san);
	kbi_spare_life(me);
	kbi_preempt_no_alt_stack(me->signal_stack);
	kbi_spare_drop(me);
	return NULL;
}

/* ---- signals ---------------------------------------------------------------------------------------- */

static sigset_t programs_mask, bodys_mask; /* constant once bodies run */
static bool masked;
bool kbi_body_open;

/* Signals of the program go to kernel threads that run its code with its mask; a body starts with all blocked
 * but the tick and the faults. Where kbi_body_open, kbi_spare_adopted opens it when it is known as a VP's. */
static void body_mask(sigset_t *old)
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

/* But for a signal that must be open where system calls raise it (os/libdispatch). */
static bool is_bodys(sigset_t mask)
{
	sigset_t bodys = bodys_mask;

	sigaddset(&mask, SIGSYS);
	sigaddset(&bodys, SIGSYS);
	return memcmp(&mask, &bodys, sizeof mask) == 0;
}

bool kbi_body_programs_mask(sigset_t *old)
{
	memset(old, 0, sizeof *old); /* sigemptyset need not write all of it */
	if (!masked || kbi_real.pthread_sigmask(SIG_BLOCK, NULL, old) || !is_bodys(*old))
		return false;
	kbi_real.pthread_sigmask(SIG_SETMASK, &programs_mask, NULL);
	return true;
}

void kbi_body_mask_again(const sigset_t *old)
{
	kbi_real.pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* fork on a body: the child is no body, and what it executes would start with signals blocked. Threads of the
 * drop-in have set their own mask. */
static void child(void)
{
	struct kbi_task *self = kbi_self_raw();
	sigset_t old;

	if (!self || !kbi_thread_of(self)->posix)
		kbi_body_programs_mask(&old);
}

void kbi_body_learn_masks(void)
{
	if (masked)
		return;
	body_mask(&programs_mask);
	kbi_real.pthread_sigmask(SIG_SETMASK, &programs_mask, &bodys_mask);
	if (kbi_body_open)
		bodys_mask = programs_mask;
	pthread_atfork(NULL, NULL, child);
	masked = true;
}

/* ---- start ------------------------------------------------------------------------------------------ */

/* libc puts static TLS into the stack and says EINVAL where it has no room; how large it is, we know only where
 * we make control blocks. */
int kbi_body_kernel_thread(void *(*fn)(void *), void *arg)
{
	size_t size = kbi_tcb_available ? KBI_AGENT_STACK + kbi_tcb_overhead() : 3 * KBI_AGENT_STACK;
	pthread_attr_t a;
	pthread_t id;
	int e;

	if (kbi_sys_from.processes)
		return kbi_process_start(fn, arg);
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	do {
		pthread_attr_setstacksize(&a, (size + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1));
		e = kbi_real.pthread_create(&id, &a, fn, arg);
		size *= 2;
	} while (e == EINVAL && size <= KBI_MOST_STACK);
	pthread_attr_destroy(&a);
	return e;
}

static int start(struct kbi_vp *vp)
{
	struct kbi_body *b = kbi_spare_record(!vp);
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
		body_mask(&old);
	}
	e = kbi_body_kernel_thread(body, b);
	kbi_real.pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e)
		kbi_spare_drop(b);
	return e;
}

int kbi_body_start(struct kbi_vp *vp)
{
	return start(vp);
}

int kbi_body_start_spare(void)
{
	return start(NULL);
}

int kbi_body_start_closed(void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int e;

	sigfillset(&all);
	kbi_real.pthread_sigmask(SIG_SETMASK, &all, &old);
	e = kbi_body_kernel_thread(fn, arg);
	kbi_real.pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e;
}
