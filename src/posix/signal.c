/* posix/signal.c - signals to lightweight threads and their masks, as far as this release goes.
 *
 * pthread_kill of a thread that runs goes to its kernel thread. One that is parked or ready gets a mark and
 * is woken; it raises the signal on its own kernel thread when it leaves the library, before anything else.
 * The mask is remembered per thread and set on the kernel thread when a thread comes back from a suspension
 * on one that has another; a signal for the process is taken by whatever kernel thread lets it through. The
 * runtime's tick is never blocked. Callers: programs; sync asks kbi_posix_stop_signal. */
#include "posix/posix.h"

#include <string.h>
#include <sys/syscall.h>

#include "core/preempt.h"
#include "core/vp.h"
#include "os/sys.h"

enum { MASK_BYTES = 8, SIGNALS = 64, LIBC_FIRST = 32, LIBC_LAST = 33 };

a32 kbi_signal_watch;
static uint64_t base_mask;            /* of threads that never set one: main's when the runtime started */
static a64 vp_mask[KBI_MAX_VPS];      /* the mask of each body, if known: */
static a32 vp_mask_known[KBI_MAX_VPS];

static inline uint64_t bit_of(int sig)
{
	return (uint64_t)1 << (sig - 1);
}

static uint64_t from_set(const sigset_t *set)
{
	uint64_t m;

	memcpy(&m, set, sizeof(m));
	return m;
}

static void to_set(sigset_t *set, uint64_t m)
{
	memset(set, 0, sizeof(*set));
	memcpy(set, &m, sizeof(m));
}

static uint64_t my_mask(void)
{
	return kbi_posix_me.has_mask ? kbi_posix_me.mask : base_mask;
}

/* ---- masks --------------------------------------------------------------------------------------- */

static void set_kernel_mask(uint64_t mask)
{
	mask &= ~(bit_of(KBI_TICK_SIGNAL) | bit_of(LIBC_FIRST) | bit_of(LIBC_LAST));
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_BYTES);
}

/* The kernel thread the caller is on gets the caller's mask. */
static void bring_mask(struct kbi_task *self)
{
	uint64_t mask = my_mask();
	unsigned vp;

	kbi_np_enter(self);
	vp = self->vp->id;
	if (!a_load_rlx(&vp_mask_known[vp]) || a_load_rlx(&vp_mask[vp]) != mask) {
		a_store_rlx(&vp_mask[vp], mask);
		a_store_rlx(&vp_mask_known[vp], 1);
		set_kernel_mask(mask);
	}
	kbi_np_leave(self);
}

void kbi_signal_start(void)
{
	if (kbi_vp_n)
		return;
	kbi_sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &base_mask, MASK_BYTES);
	if (kbi_sys_gettid() == getpid()) { /* this kernel thread becomes the first body */
		a_store_rlx(&vp_mask[0], base_mask);
		a_store_rlx(&vp_mask_known[0], 1);
	}
}

void kbi_signal_inherit(struct kbi_posix_thread *child, const sigset_t *given)
{
	if (given)
		child->mask = from_set(given);
	else if (kbi_posix_me.has_mask)
		child->mask = kbi_posix_me.mask;
	else
		return;
	child->has_mask = 1;
	a_store_rlx(&kbi_signal_watch, 1);
}

static uint64_t changed(int how, uint64_t old, uint64_t set)
{
	switch (how) {
	case SIG_BLOCK:
		return old | set;
	case SIG_UNBLOCK:
		return old & ~set;
	default:
		return set;
	}
}

uint64_t kbi_signal_mask(uint64_t mask)
{
	uint64_t before = my_mask();

	kbi_posix_me.mask = mask & ~(bit_of(SIGKILL) | bit_of(SIGSTOP) | bit_of(LIBC_FIRST) | bit_of(LIBC_LAST));
	kbi_posix_me.has_mask = 1;
	a_store_rlx(&kbi_signal_watch, 1);
	kbi_signal_resumed();
	return before;
}

KBI_POSIX_API int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	struct kbi_task *self = kbi_posix_light();
	uint64_t before;

	if (!self)
		return kbi_libc()->pthread_sigmask(how, set, old);
	before = my_mask();
	if (set && how != SIG_BLOCK && how != SIG_UNBLOCK && how != SIG_SETMASK)
		return EINVAL;
	if (set)
		kbi_signal_mask(changed(how, before, from_set(set)));
	if (old)
		to_set(old, before);
	return 0;
}

KBI_POSIX_API int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int e = pthread_sigmask(how, set, old);

	if (e == 0)
		return 0;
	errno = e;
	return -1;
}

/* ---- signals to a thread --------------------------------------------------------------------------- */

int kbi_posix_stop_signal(struct kbi_task *self)
{
	uint64_t pending = a_load_rlx(&kbi_posix_me.pending);

	(void)self;
	return kbi_unlikely(pending) && (pending & ~my_mask()) ? EINTR : 0;
}

static bool restarts(int sig)
{
	struct sigaction sa;

	if (sigaction(sig, NULL, &sa))
		return true;
	return sa.sa_handler == SIG_IGN || sa.sa_handler == SIG_DFL || (sa.sa_flags & SA_RESTART);
}

/* Its delivery runs a handler or ends the process; libc's own two do neither as far as the program sees. */
static bool acts(int sig)
{
	struct sigaction sa;

	if (sig == LIBC_FIRST || sig == LIBC_LAST || sigaction(sig, NULL, &sa) || sa.sa_handler == SIG_IGN)
		return false;
	return sa.sa_handler != SIG_DFL ||
	       !((bit_of(SIGCHLD) | bit_of(SIGURG) | bit_of(SIGWINCH) | bit_of(SIGCONT)) & bit_of(sig));
}

bool kbi_signal_waits(uint64_t mask)
{
	uint64_t there = 0;

	kbi_sys(SYS_rt_sigpending, &there, MASK_BYTES);
	/* acquire: partner is the release in mark */
	there = (there | a_load_acq(&kbi_posix_me.pending)) & ~mask & ~bit_of(KBI_TICK_SIGNAL);
	for (; there; there &= there - 1)
		if (acts(__builtin_ctzll(there) + 1))
			return true;
	return false;
}

static int raise_here(int sig)
{
	return (int)-kbi_sys(SYS_tgkill, getpid(), kbi_sys_gettid(), sig);
}

static int raise_here_with(int sig, uint64_t value)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = sig;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = (void *)(uintptr_t)value;
	return (int)-kbi_sys(SYS_rt_tgsigqueueinfo, getpid(), kbi_sys_gettid(), sig, &info);
}

/* The mark goes; true: it came with a value. */
static bool take_pending(int sig, uint64_t *value)
{
	struct kbi_posix_thread *me = &kbi_posix_me;

	a_and_acqrel(&me->pending, ~bit_of(sig));
	if (a_load_acq(&me->queued_signal) != (uint32_t)sig)
		return false;
	*value = a_load_rlx(&me->queued);
	/* release: partner is the acquire in queue_value */
	a_store_rel(&me->queued_signal, 0);
	return true;
}

/* The kernel delivers it before this returns: it is not blocked, and we stay on this kernel thread. */
static void deliver(int sig)
{
	uint64_t value;

	if (take_pending(sig, &value))
		raise_here_with(sig, value);
	else
		raise_here(sig);
}

int kbi_signal_take(const sigset_t *set, siginfo_t *info)
{
	uint64_t there = a_load_acq(&kbi_posix_me.pending) & from_set(set), value = 0;
	int sig;

	if (!there)
		return 0;
	sig = __builtin_ctzll(there) + 1;
	memset(info, 0, sizeof(*info));
	info->si_code = take_pending(sig, &value) ? SI_QUEUE : SI_TKILL;
	info->si_signo = sig;
	info->si_pid = getpid();
	info->si_uid = getuid();
	info->si_value.sival_ptr = (void *)(uintptr_t)value;
	return sig;
}

bool kbi_signal_resumed_slow(void)
{
	struct kbi_task *self = kbi_posix_light();
	int saved = errno;
	bool ends_call = false;
	uint64_t todo;

	if (!self)
		return false;
	bring_mask(self);
	/* acquire: partner is the release in mark */
	while ((todo = a_load_acq(&kbi_posix_me.pending) & ~my_mask())) {
		int sig = __builtin_ctzll(todo) + 1;

		ends_call |= !restarts(sig);
		deliver(sig);
	}
	errno = saved;
	return ends_call;
}

/* ---- sending --------------------------------------------------------------------------------------- */

/* The VP it runs on now, if the kernel thread of that does not block the signal, or NULL. */
static struct kbi_vp *lets_through(struct kb_thread *t, int sig)
{
	uint64_t st = a_load_acq(&t->task.state);
	unsigned vp = kbi_state_vp(st);

	if (kbi_state_kind(st) != KBI_TASK_RUNNING || !a_load_rlx(&vp_mask_known[vp]))
		return NULL;
	return a_load_rlx(&vp_mask[vp]) & bit_of(sig) ? NULL : kbi_vps[vp];
}

/* It runs where the signals of the program were never let through: it may block in the kernel there. The tick ends
 * such a call, and posix/again looks for the mark. */
static void nudge(struct kb_thread *t)
{
	uint64_t st = a_load_acq(&t->task.state);

	if (kbi_state_kind(st) == KBI_TASK_RUNNING && !a_load_rlx(&vp_mask_known[kbi_state_vp(st)]))
		kbi_preempt_send(kbi_vps[kbi_state_vp(st)]);
}

static void mark(struct kb_thread *t, struct kbi_posix_thread *r, int sig)
{
	a_store_rlx(&kbi_signal_watch, 1);
	/* release: partner is the acquire in kbi_signal_resumed_slow */
	a_or_acqrel(&r->pending, bit_of(sig));
	kbi_wait_wake(&t->task);
}

/* One value may be on its way to a thread. */
static int queue_value(struct kbi_posix_thread *r, int sig, uint64_t value)
{
	uint32_t none = 0;

	/* acquire: partner is the release in deliver */
	if (!a_cas_acq(&r->queued_signal, &none, SIGNALS + 1))
		return EAGAIN;
	a_store_rlx(&r->queued, value);
	a_store_rel(&r->queued_signal, (uint32_t)sig);
	return 0;
}

static int send(struct kb_thread *t, pthread_t id, int sig)
{
	struct kbi_vp *vp;

	if (sig < 0 || sig > SIGNALS || sig == LIBC_FIRST || sig == LIBC_LAST)
		return EINVAL;
	if (sig == 0)
		return 0;
	if (pthread_equal(id, pthread_self()))
		return raise_here(sig);
	vp = lets_through(t, sig);
	if (vp)
		return (int)-kbi_sys(SYS_tgkill, getpid(), a_load_rlx(&vp->tid), sig);
	mark(t, kbi_posix_record(id), sig);
	nudge(t);
	return 0;
}

KBI_POSIX_API int pthread_kill(pthread_t id, int sig)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);

	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_kill(id, sig);
	/* ended and not joined yet: nothing to do, as in libc */
	if (kbi_state_kind(a_load_acq(&t->task.state)) == KBI_TASK_DONE)
		return sig < 0 || sig > SIGNALS ? EINVAL : 0;
	return send(t, id, sig);
}

KBI_POSIX_API int pthread_sigqueue(pthread_t id, int sig, const union sigval value)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);
	int e;

	if (gone)
		return ESRCH;
	if (!t)
		return kbi_libc()->pthread_sigqueue(id, sig, value);
	if (sig <= 0 || sig > SIGNALS || sig == LIBC_FIRST || sig == LIBC_LAST)
		return EINVAL;
	if (pthread_equal(id, pthread_self()))
		return raise_here_with(sig, (uintptr_t)value.sival_ptr);
	e = queue_value(kbi_posix_record(id), sig, (uintptr_t)value.sival_ptr);
	if (e == 0)
		mark(t, kbi_posix_record(id), sig);
	return e;
}
