/* core/contain.c - the end of a thread that crashed. Contract in contain.h.
 *
 * A signal handler finds the thread where it crashed, or where its process was killed
 * (core/supervisor). If that is outside the library and the thread holds no lock of libc's that has
 * no owner (libc/crash), then all that it leaves behind belongs to it, and every queue is whole.
 * The handler notes the event and returns to land_lost_thread, on a stack of its own, still as that
 * thread on its virtual processor. land_lost_thread gives back the thread's locks, calls the
 * program's hook, and ends the thread. Anywhere else the signal has its usual effect: it ends the
 * program, after a line that gives the reason. */
#include "core/contain.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <kochab/kochab.h>

#include "base/option.h"
#include "core/agent.h"
#include "core/foreign.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "core/single_threaded.h"
#include "core/supervisor.h"
#include "core/thread.h"
#include "core/wait.h"
#include "core/worker.h"
#include "libc/context.h"
#include "libc/crash.h"
#include "libc/crash_libc.h"
#include "libc/real.h"
#include "os/lock.h"
#include "os/memory.h"
#include "os/sys.h"
#include "sched/source.h"

enum { STACK = 262144, STACKS = 8, NOTES = 64, TRIES = 100 };

bool kbi_contain_on;
aptr kbi_contain_gives_up;

static aptr hook;               /* the program's */
static aptr stacks[STACKS];     /* to land on; a stack in use is not here */
static a32 lost;
static uint64_t ours;           /* signals that we handle; constant after setup */

/* Records of the threads that were lost last. */
static struct {
	a32 lock;
	uint32_t n;
	struct note {
		struct kb_thread *thread;
		struct kb_crash_info info;
	} note[NOTES];
} notes;

unsigned kbi_contain_lost(void)
{
	return a_load_rlx(&lost);
}

bool kbi_contain_ends_deadlock(void)
{
	return kbi_contain_lost() && !a_load_rlx(&hook) &&
	       kbi_options.on_crash == KBI_OPT_ON_CRASH_ABORT;
}

/* ---- records -------------------------------------------------------------------------------- */

/* Writes the record of t's crash. Called with the lock, which it releases. */
static void record_crash_locked(struct kb_thread *t, struct kb_crash_info *i)
{
	memcpy(i->name, t->name, sizeof i->name);
	notes.note[notes.n++ % NOTES] = (struct note){ t, *i };
	kbi_lock_leave(&notes.lock);
}

static void record_crash(struct kb_thread *t, struct kb_crash_info i,
	const struct kbi_crash_walk *w)
{
	i.frames = w->n;
	memcpy(i.frame, w->frame, w->n * sizeof *w->frame);
	kbi_lock_take(&notes.lock);
	record_crash_locked(t, &i);
}

static bool recall_crash(const struct kb_thread *t, struct kb_crash_info *i)
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
	struct kb_crash_info i;

	if (!recall_crash(t, &i))
		return ESRCH;
	*info = i;
	return 0;
}

void kb_on_crash(void (*fn)(kb_thread_t thread, const struct kb_crash_info *info))
{
	/* release: partner is the acquire in report_lost_thread; the data that fn uses is passed
	 * with it */
	a_store_rel(&hook, (void *)(uintptr_t)fn);
}

unsigned kb_crash_count(void)
{
	return kbi_contain_lost();
}

void kb_crash_counts(struct kb_crash_counts *c)
{
	struct kbi_supervisor_kills k = kbi_supervisor_kills();

	*c = (struct kb_crash_counts){ .lost = a_load_rlx(&lost), .bound = k.bound, .kills = k.kills,
				       .last_at = k.at, .last_ns = k.last, .longest_ns = k.longest };
}

/* ---- threads that look again and again ------------------------------------------------------- */

/* A lock that the program has made of a mutex and a condition variable has no holder that we know,
 * and a thread that wants the lock waits for a while at a time (an interpreter's global lock). It
 * cannot be known whether such a wait is for the lost thread, so a message is printed, and the
 * program is not ended. */
enum { IN_VAIN_NS = 1000000000, IN_VAIN_S = 10, IN_VAIN_TIMES = 10, OTHER_TURNS = 8 };

static struct {
	a32 lock, said;
	uint64_t since, turns, times; /* nothing else has happened since, ns; turns by then; waits in
	                               * vain since */
} vain;

static uint64_t all_turns(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < kbi_vp_n; i++)
		n += kbi_vp_turns(kbi_vps[i]);
	return n;
}

/* Returns true if other threads have had turns. A thread that waits in vain has two turns for each
 * wait, the first to begin the wait. */
static bool something_happens(uint64_t turns)
{
	return turns - vain.turns > 2 * vain.times + OTHER_TURNS || a_load_rlx(&kbi_source.waiting) ||
	       a_load_rlx(&kbi_agent_for_signals) || kbi_foreign_count() || kbi_handoff_away();
}

static bool is_long_enough(uint64_t now)
{
	return vain.times >= IN_VAIN_TIMES && now - vain.since >= (uint64_t)IN_VAIN_S * IN_VAIN_NS;
}

static void say_in_vain(const struct kb_thread *waiter)
{
	unsigned n = kbi_contain_lost();

	a_store_rlx(&vain.said, 1);
	kbi_sys_message("for %d s nothing has happened but waits whose time was over, as "
			"thread #%u's: perhaps a lost thread (there are %u) has a lock of the "
			"program's own, as interpreters have, and the others wait for ever",
			IN_VAIN_S, waiter->task.index, n);
}

/* Checks whether the program waits in vain. Under the lock. */
static void look_whether_in_vain(const struct kb_thread *waiter)
{
	uint64_t now = kbi_sys_now(), turns = all_turns();

	vain.times++;
	if (something_happens(turns)) {
		vain.since = now;
		vain.turns = turns;
		vain.times = 0;
	} else if (is_long_enough(now)) {
		say_in_vain(waiter);
	}
}

void kbi_contain_waited_in_vain(struct kbi_task *self)
{
	if (kbi_likely(!a_load_rlx(&lost)) || a_load_rlx(&vain.said) || a_load_rlx(&hook))
		return;
	kbi_np_enter(self);
	if (kbi_lock_try(&vain.lock)) {
		look_whether_in_vain(kbi_thread_of(self));
		kbi_lock_leave(&vain.lock);
	}
	kbi_np_leave(self);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void *take_stack(void)
{
	for (unsigned i = 0; i < STACKS; i++) {
		/* acquire: partner is the exchange in put_stack */
		void *s = a_load_rlx(&stacks[i]) ? a_xchg_acqrel(&stacks[i], NULL) : NULL;

		if (s)
			return s;
	}
	return kbi_sys_map(STACK);
}

/* Gives back a stack that nothing runs on any more. */
static void put_stack(void *s)
{
	for (unsigned i = 0; i < STACKS && s; i++)
		/* release: partner is the exchange in take_stack */
		s = a_xchg_acqrel(&stacks[i], s);
	if (s)
		kbi_sys_unmap(s, STACK);
}

static void print_lost_thread(const struct kb_thread *t, const struct kb_crash_info *i)
{
	const char *space = t->name[0] ? " " : "";

	if (i->signal == SIGKILL)
		kbi_sys_message("thread #%u%s%s is lost: its process was killed", t->task.index, space,
			t->name);
	else
		kbi_sys_message("thread #%u%s%s is lost: signal %d at %p, address %p", t->task.index, space,
				t->name,
				i->signal, kbi_sys_shown(i->frame[0]), kbi_sys_shown(i->address));
}

static void report_lost_thread(struct kb_thread *t)
{
	/* acquire: partner is the release in kb_on_crash */
	void *fn = a_load_acq(&hook);
	struct kb_crash_info i;

	if (!recall_crash(t, &i))
		return;
	if (fn)
		((void (*)(kb_thread_t, const struct kb_crash_info *))(uintptr_t)fn)(t, &i);
	else
		print_lost_thread(t, &i);
}

static void give_up_objects(struct kb_thread *t)
{
	void *fn = a_load_rlx(&kbi_contain_gives_up);

	if (fn)
		((void (*)(struct kb_thread *))(uintptr_t)fn)(t);
}

/* Ends the thread in its place, on another stack, outside np brackets. */
KBI_SWITCHER static void land_lost_thread(void *stack)
{
	struct kb_thread *t = kbi_thread_of(kbi_self_raw());

	a_add_rlx(&lost, 1);
	/* a lock of libc's list of streams may have to be waited for */
	kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
	kbi_crash_free_streams((void *)pthread_self());
	/* whatever blocking call it was in: on a virtual processor again */
	kbi_handoff_end_all(&t->task);
	if (t->posix && kbi_thread_hooks.lost)
		kbi_thread_hooks.lost(t);
	give_up_objects(t);
	report_lost_thread(t);
	kbi_handoff_end_all(&t->task);
	kbi_thread_lose(t, put_stack, stack);
}

/* ---- may it be lost -------------------------------------------------------------------------- */

/* Prepares the handler's return to land_lost_thread. Returns false if there is no memory. */
static bool prepare_landing(struct kb_thread *t, struct kb_crash_info i,
	const struct kbi_crash_walk *w, void *context)
{
	char *stack = take_stack();

	if (!stack)
		return false;
	t->lost = true;
	record_crash(t, i, w);
	kbi_context_go(context, land_lost_thread, stack, stack + STACK);
	return true;
}

static const char *why_not_here(const struct kb_thread *t, const void *context)
{
	if (kbi_context_is_on_signal_stack(context))
		return "it came in a signal handler";
	if (a_load_rlx(&t->task.np) || a_load_rlx(&kbi_single_threaded.busy))
		return "it came in the library";
	return NULL;
}

static const char *why_not(const struct kb_thread *t, const struct kbi_worker *b,
	const siginfo_t *info, const void *context)
{
	if (!b)
		return "it came on a kernel thread that is no virtual processor";
	if (info->si_code <= 0 && info->si_code != SI_TKILL)
		return "it was sent to the program";
	if (t->lost)
		return "its thread was lost already";
	if (t->is_main)
		return "it came in main";
	if (t->user_stack)
		return "its thread's stack is the program's own";
	return why_not_here(t, context);
}

static struct kb_thread *running_thread(void)
{
	struct kbi_task *self = kbi_self_raw();

	return self ? kbi_thread_of(self) : NULL;
}

/* Contains a crash. True: the handler returns to land_lost_thread. */
static bool contain_crash(int sig, siginfo_t *info, void *context)
{
	struct kb_thread *t = running_thread();
	struct kbi_worker *b = t ? kbi_worker_of_task(&t->task) : NULL;
	struct kb_crash_info i = { .signal = sig, .code = info->si_code,
		.address = info->si_code > 0 ? info->si_addr : NULL };
	void *frame[KB_CRASH_FRAMES];
	struct kbi_crash_walk w = { frame, kbi_countof(frame), 0 };
	const char *why;

	if (b && b->crash_guard)
		kbi_crash_give_up(b->crash_guard);
	kbi_preempt_report(info);
	why = why_not(t, b, info, context);
	if (!why)
		why = kbi_crash_look(context, info->si_code <= 0 ? KBI_CRASH_SENT : KBI_CRASH_FAULT, &w,
			&b->crash_guard);
	if (!why && prepare_landing(t, i, &w, context))
		return true;
	kbi_sys_message("signal %d at %p (address %p) ends the program: %s", sig,
			kbi_sys_shown((void *)kbi_context_at(context)), kbi_sys_shown(i.address),
			why ? why : "there is no memory");
	return false;
}

/* ---- a killed process ------------------------------------------------------------------------ */

static enum kbi_supervisor_loss end_for_lost_main(void)
{
	kbi_sys_message("main was running in a process that was killed: the program ends");
	return KBI_SUPERVISOR_ENDS;
}

static enum kbi_supervisor_loss lose_victim(struct kbi_victim *victim, void *context)
{
	struct kb_thread *t = running_thread();
	struct kbi_worker *b = t && t->task.vp ? kbi_worker_of_task(&t->task) : NULL;
	void *frame[KB_CRASH_FRAMES];
	struct kbi_crash_walk w = { frame, kbi_countof(frame), 0 };

	if (kbi_options.on_kill == KBI_OPT_ON_KILL_SPARE)
		return KBI_SUPERVISOR_DONE;
	/* no thread ran there; or the thread is in a blocking call, which is made again; or it has
	 * given up its processor since */
	if (!b || (victim->thread && (victim->thread != t || victim->turn != kbi_vp_turns(t->task.vp))))
		return KBI_SUPERVISOR_DONE;
	*victim = (struct kbi_victim){ t, kbi_vp_turns(t->task.vp) };
	if (t->lost || t->user_stack)
		return KBI_SUPERVISOR_DONE;
	if (b->crash_guard || why_not_here(t, context) ||
	    kbi_context_code(kbi_context_at(context)) != KBI_CODE_PROGRAM)
		return KBI_SUPERVISOR_LATER;
	if (t->is_main)
		return end_for_lost_main();
	if (kbi_crash_look(context, KBI_CRASH_ANYWHERE, &w, &b->crash_guard) ||
	    !prepare_landing(t, (struct kb_crash_info){ .signal = SIGKILL }, &w, context))
		return KBI_SUPERVISOR_LATER;
	return KBI_SUPERVISOR_DONE;
}

/* Records a loss; called by the supervisor. A process that has the lock may not be able to go on
 * without the supervisor: then nothing is recorded. */
static void record_killed_thread(struct kb_thread *t)
{
	struct kb_crash_info i = { .signal = SIGKILL };

	t->lost = true;
	for (unsigned n = 0; n < TRIES; n++) {
		if (kbi_lock_try(&notes.lock)) {
			record_crash_locked(t, &i);
			return;
		}
		kbi_sys_yield_to_holder(n);
	}
}

static unsigned bury_process(int pid)
{
	return kbi_thread_lose_system(pid, record_killed_thread);
}

/* ---- handlers -------------------------------------------------------------------------------- */

static void handle_crash_signal(int sig, siginfo_t *info, void *context)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	int saved = errno;

	if (contain_crash(sig, info, context))
		return;
	/* the instruction runs again, or abort raises the signal again, and the program ends as without
	 * Kochab */
	kbi_real.sigaction(sig, &dfl, NULL);
	kbi_memory_dump();
	if (info->si_code <= 0)
		kbi_sys(SYS_kill, kbi_sys(SYS_getpid), sig);
	errno = saved;
}

bool kbi_contain_handles(int sig)
{
	return ours >> (sig - 1) & 1;
}

void kbi_contain_setup(void)
{
	/* SIGSEGV and SIGBUS are core/preempt's */
	static const int signals[] = { SIGILL, SIGFPE, SIGABRT };
	struct sigaction sa = { .sa_sigaction = handle_crash_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER }, old;

	if (!kbi_options.contain)
		return;
	if (KBI_SAN || !kbi_crash_learn()) {
		kbi_sys_message("crashes are not contained (option contain): %s",
				KBI_SAN ? "not with sanitizers" : "not with this libc or on this machine");
		return;
	}
	kbi_contain_on = true;
	kbi_preempt_contain = contain_crash;
	kbi_supervisor_lose = lose_victim;
	kbi_supervisor_lose_bound = bury_process;
	for (unsigned i = 0; i < kbi_countof(signals); i++) {
		kbi_real.sigaction(signals[i], NULL, &old);
		if (old.sa_handler != SIG_DFL)
			continue;
		kbi_real.sigaction(signals[i], &sa, NULL);
		ours |= (uint64_t)1 << (signals[i] - 1);
	}
}
