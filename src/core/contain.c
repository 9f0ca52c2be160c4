/* core/contain.c - the end of a thread that crashed. Contract in contain.h.
 *
 * A signal handler finds the thread where it crashed, or where its process was killed. If it is outside the library and
 * holds no lock of libc's that has no owner (os/crash), then all that it leaves behind belongs to it or has its name on it,
 * and every queue is whole. The handler notes what happened and returns to `land`, on a stack of its own, still as that
 * thread on its virtual processor, which gives back what it held, tells the program's hook, and ends it.
 * Anywhere else the signal does what it does without us: it ends the program.
 * The thread's stack and descriptor are not used again before it is joined, the descriptor never: others may know them. */
#include "core/contain.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <kochab/kochab.h>

#include "base/option.h"
#include "base/san.h"
#include "core/body.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "core/solo.h"
#include "core/thread.h"
#include "core/wait.h"
#include "core/warden.h"
#include "os/context.h"
#include "os/crash.h"
#include "os/lock.h"
#include "os/real.h"
#include "os/sys.h"

enum { STACK = 65536, STACKS = 8, NOTES = 64 };

bool kbi_contain_on;

static aptr hook;               /* the program's */
static aptr stacks[STACKS];     /* to land on; those in use are not here */
static a32 lost;

/* What is known of those that were lost last. */
static struct {
	a32 lock;
	uint32_t n;
	struct note {
		struct kb_thread *thread;
		struct kb_crash_info info;
	} note[NOTES];
} notes;

/* ---- what happened ------------------------------------------------------------------------------------------------ */

static struct kb_crash_info note(struct kb_thread *t, int sig, const siginfo_t *info, void *const *frame, unsigned n)
{
	struct note *k;
	struct kb_crash_info i = { .signal = sig, .code = info ? info->si_code : 0, .frames = n };

	if (info && sig != SIGABRT)
		i.address = info->si_addr;
	memcpy(i.frame, frame, n * sizeof *frame);
	memcpy(i.name, t->name, sizeof i.name);
	kbi_lock_take(&notes.lock);
	k = &notes.note[notes.n++ % NOTES];
	*k = (struct note){ t, i };
	kbi_lock_leave(&notes.lock);
	return i;
}

static bool recall(const struct kb_thread *t, struct kb_crash_info *i)
{
	bool found = false;

	kbi_lock_take(&notes.lock);
	for (uint32_t k = notes.n; !found && k > 0 && k + NOTES > notes.n; k--) {
		const struct note *n = &notes.note[(k - 1) % NOTES];

		found = n->thread == t;
		if (found)
			*i = n->info;
	}
	kbi_lock_leave(&notes.lock);
	return found;
}

int kb_thread_crash_info(kb_thread_t t, struct kb_crash_info *info)
{
	if (!info)
		return EINVAL;
	return recall(t, info) ? 0 : ESRCH;
}

void kb_on_crash(void (*fn)(kb_thread_t thread, const struct kb_crash_info *info))
{
	/* release: partner is the acquire in tell; what it uses is there */
	a_store_rel(&hook, (void *)(uintptr_t)fn);
}

void kb_crash_counts(struct kb_crash_counts *c)
{
	struct kbi_warden_kills k = kbi_warden_kills();

	*c = (struct kb_crash_counts){ .lost = a_load_rlx(&lost), .bound = k.bound, .kills = k.kills,
				       .longest_ns = k.longest };
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static void *take_stack(void)
{
	for (unsigned i = 0; i < STACKS; i++) {
		void *s = a_load_rlx(&stacks[i]) ? a_xchg_acqrel(&stacks[i], NULL) : NULL;

		if (s)
			return s;
	}
	return kbi_sys_map(STACK);
}

/* Nobody runs on it any more. */
static void put_stack(void *s)
{
	for (unsigned i = 0; i < STACKS && s; i++)
		s = a_xchg_acqrel(&stacks[i], s);
	if (s)
		kbi_sys_unmap(s, STACK);
}

static void say(const struct kb_thread *t, const struct kb_crash_info *i)
{
	char name[32];

	if (t->name[0])
		memcpy(name, t->name, sizeof t->name);
	else
		memcpy(name, "without a name", 15);
	if (i->signal == SIGKILL)
		kbi_sys_message("thread #%u (%s) is lost: its process was killed", t->task.index, name);
	else
		kbi_sys_message("thread #%u (%s) is lost: signal %d at %p, address %p", t->task.index, name, i->signal,
				i->frame[0], i->address);
}

static void tell(struct kb_thread *t, const struct kb_crash_info *i)
{
	/* acquire: partner is the release in kb_on_crash */
	void *fn = a_load_acq(&hook);

	if (fn)
		((void (*)(kb_thread_t, const struct kb_crash_info *))(uintptr_t)fn)(t, i);
	else
		say(t, i);
}

struct kb_thread *kbi_contain_named(uint32_t name)
{
	uint32_t off = name - (uint32_t)(uintptr_t)kbi_descriptor_table.at;

	return off % sizeof(struct kb_thread) ? NULL : kbi_descriptor_at(off / sizeof(struct kb_thread));
}

/* Those that wait for something that it may have held: they look again. */
static void wake_waiters(struct kb_thread *t)
{
	t->lost = true;
	a_fence_sc(); /* partner: the one behind kbi_contain_wants */
	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++) {
		struct kbi_task *w = &kbi_descriptor_at(i)->task;

		if (kbi_contain_wanted(w))
			kbi_wait_wake(w);
	}
}

/* In the thread's place, on another stack, outside np brackets. */
static void land(void *stack)
{
	struct kb_thread *t = kbi_thread_of(kbi_self_raw());
	struct kb_crash_info i;

	/* it blocks no more: on a virtual processor again */
	if (!t->task.vp)
		kbi_handoff_end_all(&t->task);
	a_add_rlx(&lost, 1);
	kbi_crash_free_streams((void *)pthread_self());
	wake_waiters(t);
	if (recall(t, &i))
		tell(t, &i);
	kbi_thread_lose(t, put_stack, stack);
}

/* The handler returns to `land`. */
static bool go_down(struct kb_thread *t, int sig, const siginfo_t *info, void *context, void *const *frame, unsigned n)
{
	char *stack = take_stack();

	if (!stack)
		return false;
	note(t, sig, info, frame, n);
	kbi_context_go(context, land, stack, stack + STACK);
	return true;
}

/* ---- may it be lost --------------------------------------------------------------------------------------------------- */

/* Outside the library; threads of the drop-in and main have more that hangs on them. */
static bool may_be_lost(struct kb_thread *t)
{
	return (t->task.vp || t->body) && !t->lost && !t->is_main && !t->posix && !a_load_rlx(&t->task.np) && !a_load_rlx(&kbi_solo.busy);
}

static struct kb_thread *running(void)
{
	struct kbi_task *self = kbi_self_raw();

	return self ? kbi_thread_of(self) : NULL;
}

/* Says why the program ends. */
static bool cannot(int sig, const siginfo_t *info, const void *context, const char *why)
{
	kbi_sys_message("signal %d at %p (address %p) ends the program: %s", sig, (void *)kbi_context_at(context),
			sig == SIGABRT ? NULL : info->si_addr, why);
	return false;
}

static const char *why_not(struct kb_thread *t, const struct kbi_body *b, const void *context)
{
	if (!b)
		return "it came on a kernel thread that runs no thread";
	if (t->lost)
		return "a thread that was lost already";
	if (t->is_main)
		return "it came on main";
	if (kbi_context_is_on_signal_stack(context))
		return "it came in a signal handler";
	return may_be_lost(t) ? NULL : "it came in the library";
}

static bool contain(int sig, siginfo_t *info, void *context)
{
	struct kb_thread *t = running();
	struct kbi_body *b = t ? kbi_body_of_task(&t->task) : NULL;
	const char *why = why_not(t, b, context);
	void *frame[KB_CRASH_FRAMES];
	unsigned n;

	if (b && b->crash_guard)
		kbi_crash_give_up(b->crash_guard);
	if (why)
		return cannot(sig, info, context, why);
	n = kbi_crash_frames(context, frame, kbi_countof(frame), &b->crash_guard);
	if (!kbi_crash_may_leave(frame, n, true))
		return cannot(sig, info, context, "it came in libc or the loader, where locks without an owner may be held");
	return go_down(t, sig, info, context, frame, n) || cannot(sig, info, context, "there is no memory");
}

/* ---- a killed process -------------------------------------------------------------------------------------------------- */

static enum kbi_warden_loss main_is_lost(void)
{
	kbi_sys_message("main was running in a process that was killed: the program ends");
	return KBI_WARDEN_ENDS;
}

static enum kbi_warden_loss lose(struct kb_thread **victim, void *context)
{
	struct kb_thread *t = running();
	void *frame[KB_CRASH_FRAMES];
	struct kbi_body *b;
	unsigned n;

	/* no thread ran there; it is in a call that blocks, and is made again; or it has gone to sleep since */
	if (!t || !t->task.vp || (*victim && *victim != t))
		return KBI_WARDEN_DONE;
	*victim = t;
	b = kbi_body_of_task(&t->task);
	if (a_load_rlx(&t->task.np) || a_load_rlx(&kbi_solo.busy) || kbi_context_is_on_signal_stack(context) ||
	    kbi_context_is_delicate(kbi_context_at(context)) || b->crash_guard)
		return KBI_WARDEN_LATER;
	if (t->is_main)
		return main_is_lost();
	if (!may_be_lost(t))
		return KBI_WARDEN_DONE;
	n = kbi_crash_frames(context, frame, kbi_countof(frame), &b->crash_guard);
	if (!kbi_crash_may_leave(frame, n, false) || !go_down(t, SIGKILL, NULL, context, frame, n))
		return KBI_WARDEN_LATER;
	return KBI_WARDEN_DONE;
}

static void told(struct kb_thread *t)
{
	void *nothing = NULL;

	note(t, SIGKILL, NULL, &nothing, 0);
	wake_waiters(t);
}

static unsigned bury(int pid)
{
	return kbi_thread_lose_system(pid, told);
}

/* ---- handlers ---------------------------------------------------------------------------------------------------------- */

/* SIGSEGV and SIGBUS are core/preempt's. */
static const int signals[] = { SIGILL, SIGFPE, SIGABRT };

static void handler(int sig, siginfo_t *info, void *context)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	int saved = errno;

	if (contain(sig, info, context))
		return;
	/* the instruction runs again, or abort raises it again, and the program ends as without us */
	kbi_real.sigaction(sig, &dfl, NULL);
	if (info->si_code <= 0 && sig != SIGABRT)
		kbi_sys(SYS_kill, kbi_sys(SYS_getpid), sig);
	errno = saved;
}

void kbi_contain_setup(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER }, old;
	bool processes = kbi_options.body == KBI_OPT_BODY_PROCESS;

	if (KBI_SAN || kbi_options.contain == KBI_OPT_CONTAIN_NO || (kbi_options.contain == KBI_OPT_CONTAIN_AUTO && !processes) ||
	    !kbi_context_can_go())
		return;
	kbi_crash_learn();
	kbi_contain_on = true;
	kbi_warden_lose = lose;
	kbi_warden_bury = bury;
	kbi_preempt_contain = contain;
	for (unsigned i = 0; i < kbi_countof(signals); i++) {
		kbi_real.sigaction(signals[i], NULL, &old);
		if (old.sa_handler == SIG_DFL)
			kbi_real.sigaction(signals[i], &sa, NULL);
	}
}
