/* core/preempt.c - the tick and the overflow report. Contract in preempt.h. The tick's handler runs
 * on the interrupted thread's stack, on its VP, and acts only if that thread is outside the library
 * (np == 0). It restores errno; system calls restart where the kernel can restart them. */
#include "core/preempt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "core/run.h"
#include "core/single_threaded.h"
#include "core/wait.h"
#include "libc/context.h"
#include "libc/real.h"
#include "mem/heap_door.h"
#include "os/memory.h"
#include "os/signal_frame.h"
#include "os/sys.h"

enum { ROOM = 1536 }; /* bytes of stack that the tick's own frames may take */

void (*kbi_preempt_restart)(struct kbi_task *self, void *context);
void (*kbi_preempt_asked)(struct kbi_task *self, void *context);
void (*kbi_preempt_returns)(struct kbi_task *self, void *context);
bool kbi_preempt_is_shared;
void (*kbi_preempt_wished)(void);

void kbi_preempt_wish(void)
{
	if (kbi_preempt_wished)
		kbi_preempt_wished();
}

static void on_tick_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	kbi_preempt_tick(info, context);
}

/* Serves vp without counting the service: sysmon counts services as turns, and is to ask again
 * soon if the thread cannot be left here. */
static void service_vp(struct kbi_vp *vp)
{
	uint32_t left = a_load_rlx(&vp->countdown);

	kbi_run_service(vp, KBI_POLL_TICK);
	if (!kbi_preempt_asked)
		return;
	a_store_rlx(&vp->countdown, left);
	a_store_rlx(&vp->services, a_load_rlx(&vp->services) - 1);
}

/* Returns true if the handler has room on self's stack. A thread that is about to overflow its
 * stack must overflow in its own code: in the handler, with the library half done, the thread could
 * not be lost alone. A stack that is not the thread's own has room. The store touches the room at
 * once: if the program has made that memory unusable, a fault here is the right thread's; in the
 * middle of a switch the fault would be the next thread's. */
static bool has_tick_room(struct kbi_task *self)
{
	const struct kbi_stack *k = kbi_thread_of(self)->stack;
	char *at = __builtin_frame_address(0);

	if (!k)
		return true;
	if ((uintptr_t)at - (uintptr_t)k->low <= ROOM)
		return false;
	*(volatile char *)(at - ROOM) = 0;
	return true;
}

/* Runs where the interrupted thread may be switched away. */
static KBI_SWITCHER void handle_tick(int sig, siginfo_t *info, void *context)
{
	struct kbi_task *self = kbi_self_raw();
	int saved = errno;

	(void)sig;
	(void)info;
	if (self && self->vp)
		a_store_rlx(&self->vp->heard, a_load_rlx(&self->vp->heard) + 1);
	if (self && !has_tick_room(self))
		return;
	if (self && kbi_preempt_restart)
		kbi_preempt_restart(self, context);
	if (!self || !self->vp || a_load_rlx(&self->np) > 0 || a_load_rlx(&kbi_single_threaded.busy))
		return;
	kbi_np_enter(self);
	self->vp->n_ticks++;
	service_vp(self->vp);
	kbi_np_leave(self);
	if (kbi_unlikely(a_load_rlx(&self->vp->asked)) && kbi_preempt_asked)
		kbi_preempt_asked(self, context);
	errno = saved;
}

/* Fills the mask with all signals but SIGSEGV and SIGBUS: a fault in the handler is then reported
 * like any fault, while a blocked fault would end the program without a message. */
static void block_others(sigset_t *mask)
{
	sigfillset(mask);
	sigdelset(mask, SIGSEGV);
	sigdelset(mask, SIGBUS);
}

static aptr place; /* uintptr_t (uintptr_t sp); NULL: frames lie where threads are interrupted */

bool kbi_preempt_is_apart(void)
{
	/* acquire: partner is the release in kbi_preempt_apart */
	return a_load_acq(&place) != NULL;
}

static bool is_on_alt_stack(const stack_t *s, uintptr_t at)
{
	return at - (uintptr_t)s->ss_sp < s->ss_size;
}

bool kbi_preempt_settle(siginfo_t *info, void *context, kbi_signal_frame_handler *fn)
{
	const stack_t *apart = &((ucontext_t *)context)->uc_stack;
	uintptr_t sp = kbi_signal_frame_interrupted(context), top;
	/* acquire: as above */
	uintptr_t (*find)(uintptr_t) = (uintptr_t (*)(uintptr_t))(uintptr_t)a_load_acq(&place);

	if (kbi_likely(!find) || !is_on_alt_stack(apart, kbi_signal_frame_low(info, context)) ||
	    is_on_alt_stack(apart, sp))
		return true;
	top = find(sp);
	if (!top)
		return false;
	kbi_signal_frame_move(info, context, 0, top, fn);
	__builtin_unreachable(); /* there is room above 0 */
}

void kbi_preempt_tick(siginfo_t *info, void *context)
{
	if (kbi_preempt_is_wish(info)) {
		kbi_preempt_wish();
		return;
	}
	kbi_preempt_settle(info, context, handle_tick);
	handle_tick(info->si_signo, info, context);
}

void kbi_preempt_apart(uintptr_t (*find)(uintptr_t sp))
{
	struct sigaction sa;
	int sig = kbi_preempt_signal();

	/* release: partner is the acquire in kbi_preempt_is_apart and kbi_preempt_settle */
	a_store_rel(&place, (void *)(uintptr_t)find);
	if (kbi_real.sigaction(sig, NULL, &sa) ||
	    (sa.sa_sigaction != on_tick_signal && !kbi_preempt_is_shared) ||
	    sa.sa_handler == SIG_DFL || sa.sa_handler == SIG_IGN)
		return;
	sa.sa_flags |= SA_ONSTACK;
	block_others(&sa.sa_mask);
	kbi_real.sigaction(sig, &sa, NULL);
}

void kbi_preempt_send(struct kbi_vp *vp)
{
	int tid = (int)a_load_rlx(&vp->tid);

	/* its worker runs, and is not in a call that a signal would end */
	if (tid && !a_load_rlx(&vp->lent))
		kbi_sys_signal(tid, kbi_preempt_signal());
}

/* ---- faults ---------------------------------------------------------------------------------- */

bool (*kbi_preempt_contain)(int sig, siginfo_t *info, void *context);

static struct sigaction before[2]; /* SIGSEGV, SIGBUS: what the program had when we started */

static const struct sigaction *previous_action(int sig)
{
	return &before[sig == SIGBUS];
}

static bool has_default_action(int sig)
{
	const struct sigaction *old = previous_action(sig);

	return !(old->sa_flags & SA_SIGINFO) &&
	       (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN);
}

static void pass_fault_on(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *old = previous_action(sig);

	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(sig, info, context);
	} else if (!has_default_action(sig)) {
		old->sa_handler(sig);
	} else {
		/* the faulting instruction runs again and ends the process, as without Kochab */
		struct sigaction dfl = { .sa_handler = SIG_DFL };

		kbi_real.sigaction(sig, &dfl, NULL);
		kbi_memory_dump();
		if (info->si_code <= 0) /* it was sent: nothing faults again */
			kbi_sys(SYS_kill, kbi_sys(SYS_getpid), sig);
	}
}

aptr kbi_preempt_explain;

static void explain_bus_fault(uintptr_t address)
{
	/* acquire: partner is the release store in space/space.c */
	void (*fn)(uintptr_t) = (void (*)(uintptr_t))(uintptr_t)a_load_acq(&kbi_preempt_explain);

	if (fn)
		fn(address);
}

static void report_overflow(const siginfo_t *info)
{
	struct kbi_task *self = kbi_self_raw();
	struct kb_thread *t = self && self->vp ? kbi_thread_of(self) : NULL;
	size_t size = info->si_code > 0 ? kbi_stack_guard_hit((uintptr_t)info->si_addr) : 0;

	if (!size)
		return;
	if (t && t->stack && !t->user_stack)
		size = kbi_stack_class_size(t->stack->class);
	if (t && strcmp(t->name, KBI_PREEMPT_SERVER) == 0)
		kbi_sys_message("thread %s overflowed its %zu KiB stack: the option stack_size "
				"(KOCHAB_STACK_SIZE) gives all of them larger ones", t->name, size / 1024);
	else if (t && t->name[0])
		kbi_sys_message("thread %s overflowed its %zu KiB stack", t->name, size / 1024);
	else
		kbi_sys_message("thread #%u overflowed its %zu KiB stack",
				t ? t->task.index : 0, size / 1024);
}

void kbi_preempt_report(const siginfo_t *info)
{
	if (info->si_signo == SIGBUS && info->si_code > 0)
		explain_bus_fault((uintptr_t)info->si_addr);
	if (info->si_signo == SIGSEGV && info->si_code > 0)
		kbi_door_explain((uintptr_t)info->si_addr);
	report_overflow(info);
}

bool kbi_preempt_mends(const siginfo_t *info, const void *context)
{
	uintptr_t at = kbi_context_at(context);

	return info->si_signo == SIGSEGV && info->si_code == SEGV_ACCERR &&
	       at == (uintptr_t)info->si_addr &&
	       kbi_stack_follow_code(at);
}

static void on_fault_signal(int sig, siginfo_t *info, void *context)
{
	if (kbi_preempt_mends(info, context))
		return;
	if (!kbi_preempt_contain || !has_default_action(sig))
		kbi_preempt_report(info);
	else if (kbi_preempt_contain(sig, info, context))
		return;
	pass_fault_on(sig, info, context);
}

void *kbi_preempt_alt_stack(void)
{
	stack_t ss = { .ss_sp = kbi_sys_map(KBI_SIGNAL_STACK), .ss_size = KBI_SIGNAL_STACK };

	if (ss.ss_sp)
		kbi_sys(SYS_sigaltstack, &ss, NULL);
	return ss.ss_sp;
}

void kbi_preempt_no_alt_stack(void *stack)
{
	stack_t none = { .ss_flags = SS_DISABLE };

	if (!stack)
		return;
	kbi_sys(SYS_sigaltstack, &none, NULL);
	kbi_sys_unmap(stack, KBI_SIGNAL_STACK);
}

static int install_tick_handler(void)
{
	struct sigaction sa = { .sa_sigaction = on_tick_signal,
		.sa_flags = SA_SIGINFO | SA_RESTART }, old;
	int sig = kbi_preempt_signal();

	if (kbi_preempt_is_apart())
		sa.sa_flags |= SA_ONSTACK;
	block_others(&sa.sa_mask);
	kbi_real.sigaction(sig, NULL, &old);
	if (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN)
		return kbi_real.sigaction(sig, &sa, NULL) ? errno : 0;
	if (kbi_preempt_is_shared)
		return 0;
	kbi_sys_message("the program has a handler of %s, which the tick needs: "
			"the option tick_signal names another signal",
			sig == SIGURG ? "SIGURG" : "SIGWINCH");
	return EBUSY;
}

static int set_fault_handler(int sig)
{
	struct sigaction sa = { .sa_sigaction = on_fault_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	return kbi_real.sigaction(sig, &sa, NULL);
}

/* Installs our handler of a fault, but keeps a handler that the drop-in has taken over: that may
 * sleep, which is forbidden on the kernel thread's own stack. */
static void install_fault_handler(int sig)
{
	struct sigaction old;

	if (kbi_real.sigaction(sig, NULL, &old) || old.sa_sigaction == on_fault_signal)
		return;
	before[sig == SIGBUS] = old;
	if (!kbi_preempt_is_shared || has_default_action(sig))
		set_fault_handler(sig);
}

bool kbi_preempt_shows(int sig, struct sigaction *sa)
{
	if (sa->sa_sigaction != on_fault_signal)
		return false;
	*sa = before[sig == SIGBUS];
	return true;
}

int kbi_preempt_by_default(int sig)
{
	before[sig == SIGBUS] = (struct sigaction){ .sa_handler = SIG_DFL };
	return set_fault_handler(sig);
}

void kbi_preempt_watch_memory(void)
{
	struct sigaction old;

	if (!kbi_real.sigaction(SIGBUS, NULL, &old) && old.sa_handler == SIG_DFL)
		install_fault_handler(SIGBUS);
}

int kbi_preempt_setup(void)
{
	int e = install_tick_handler();

	if (e)
		return e;
	install_fault_handler(SIGSEGV);
	install_fault_handler(SIGBUS);
	return 0;
}
