/* core/quantum.c - preemption, and blocking calls that nobody has announced. Contract in quantum.h.
 *
 * The lookout looks twice a quantum at each busy VP. One that has not switched since the last look although something
 * waits for it is asked, by a word and the tick, for one of two things. If the kernel says that its body is in a system
 * call: to let the VP go, the thread stays in the call (core/handoff). Else: to switch. The handler does it where the
 * thread may be left, or nothing; then it is asked again soon.
 *
 * A thread may be left when it is outside the library (np == 0, and the instruction is not in our code), and not in
 * libc, the loader or a sanitizer, whose locks it may hold; on its own stack, with room for a frame.
 * Those that were switched away stand behind all others that are ready at the next quantum's end, so that a thread that
 * wakes up waits for one quantum and not for a round of computing ones.
 *
 * The tick ends some system calls that are not restarted: the handler knows from the lookout which call it was, and
 * has it made again. The handler runs on the interrupted thread's stack. */
#include "core/quantum.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/option.h"
#include "base/san.h"
#include "core/agent.h"
#include "core/body_thread.h"
#include "core/handoff.h"
#include "core/lookout.h"
#include "core/preempt.h"
#include "core/spare.h"
#include "core/yield.h"
#include "core/wait.h"
#include "os/context.h"
#include "os/sys.h"

enum {
	SOON = 200000,       /* ns until it is asked again */
	TRIES = 100,         /* so often, then once a look */
	QUIET = 100,         /* looks at nothing before the lookout may sleep for good */
	FRESH_FIRST = 1024,  /* ready tasks that are looked at for it */
	ROOM = 8192,         /* bytes of stack: what a signal frame and a switch take */
	MASK_BYTES = 8,
};

enum { ASKED_NOTHING, ASKED_SWITCH, ASKED_LEAVE };

/* ---- the lookout's side -------------------------------------------------------------------------------------- */

static struct seen {
	uint64_t turns, since;
	uint32_t tries;
	struct kbi_context_call call; /* that its body was in at the last try; nr -1: none */
} seen[KBI_MAX_VPS];
static uint32_t quiet;

static const struct kbi_context_call no_call = { .nr = -1 };

/* The system call that kernel thread tid is in, from the kernel; nr -1: none, or not told. */
static void find_call(int tid, struct kbi_context_call *c)
{
	char path[64], text[256];
	unsigned long long arg, sp, pc;
	long fd, n, nr;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
	fd = kbi_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	*c = no_call;
	if (fd < 0)
		return;
	n = kbi_sys(SYS_read, fd, text, sizeof text - 1);
	kbi_sys(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
	if (sscanf(text, "%ld %llx %*x %*x %*x %*x %*x %llx %llx", &nr, &arg, &sp, &pc) == 4 && nr >= 0)
		*c = (struct kbi_context_call){ .nr = nr, .arg = arg, .sp = sp, .pc = pc };
}

/* Still in the same call as at the last try, or still in none: one that came out of a call, or went into one, is let
 * be, for the next call might be one that the tick ends and that nobody knows. */
static bool is_steady(struct seen *s, const struct kbi_context_call *c)
{
	struct kbi_context_call before = s->call;

	s->call = *c;
	return s->tries > 0 && before.nr == c->nr && before.sp == c->sp && before.pc == c->pc && before.arg == c->arg;
}

/* True: look again soon. */
static bool ask(struct kbi_vp *vp, struct seen *s)
{
	int tid = (int)a_load_rlx(&vp->tid);
	struct kbi_body *b = tid ? kbi_body_of_tid(tid) : NULL;
	uint32_t what = ASKED_SWITCH;
	struct kbi_context_call c;

	if (!b)
		return false;
	find_call(tid, &c);
	if (!is_steady(s, &c))
		return ++s->tries < TRIES;
	if (c.nr >= 0) {
		/* our own calls are made where a VP may wait */
		if (kbi_context_is_ours(c.pc))
			return false;
		if (!kbi_handoff_has_spare())
			return true;
		what = ASKED_LEAVE;
		b->call = c;
	}
	/* release: partner is the acquire in asked */
	a_store_rel(&vp->asked, what);
	/* to the one that was looked at, though the VP may have another by now */
	kbi_sys(SYS_tgkill, getpid(), tid, KBI_TICK_SIGNAL);
	return ++s->tries < TRIES;
}

/* What a scheduler keeps in queues of its own is not seen from here. */
static bool has_work(struct kbi_vp *vp, uint64_t now)
{
	return !vp->plain || kbi_agent_has_work(vp, now);
}

/* It has switched since the last look. Where its body is is looked at already: then one more look is enough. */
static void begin(struct kbi_vp *vp, struct seen *s, uint64_t turns, uint64_t now)
{
	int tid = (int)a_load_rlx(&vp->tid);

	*s = (struct seen){ turns, now, 0, no_call };
	if (!tid || !has_work(vp, now))
		return;
	find_call(tid, &s->call);
	s->tries = 1;
}

static bool look_at(struct kbi_vp *vp, struct seen *s, uint64_t now, uint64_t half, bool *soon)
{
	uint64_t turns = kbi_vp_turns(vp);

	if (a_load_rlx(&vp->s->idle) != KBI_IDLE_BUSY)
		return false;
	if (turns != s->turns || a_load_rlx(&vp->lent)) {
		begin(vp, s, turns, now);
		return true;
	}
	if (now - s->since >= half - half / 8 && has_work(vp, now))
		*soon |= ask(vp, s);
	return true;
}

static uint64_t look(uint64_t now)
{
	uint64_t half = (uint64_t)kbi_options.quantum * 500;
	bool busy = false, soon = false;

	for (unsigned i = 0; i < kbi_vp_n; i++)
		busy |= look_at(kbi_vps[i], &seen[i], now, half, &soon);
	quiet = busy ? 0 : quiet + 1;
	if (quiet > QUIET)
		return UINT64_MAX;
	return soon && half > SOON ? SOON : half;
}

static bool any_busy(void)
{
	quiet = 0;
	return a_load_rlx(&kbi_vps[0]->s->idle_count) < kbi_vp_n;
}

/* ---- the handler's side ----------------------------------------------------------------------------------------- */

/* On its own stack, as far as we know that, and there is room. */
static bool has_room(const struct kb_thread *t, const ucontext_t *uc)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (uc->uc_stack.ss_flags & SS_ONSTACK)
		return false;
	if (!t->stack)
		return t->is_main;
	return here - (uintptr_t)t->stack->low < t->stack->size && here - (uintptr_t)t->stack->low > ROOM;
}

static bool is_fresh(const struct kbi_task *t)
{
	return !kbi_task_is(t, KBI_TASK_PREEMPTED);
}

/* Where the scheduler keeps tasks elsewhere, too: one turn of them all, until one comes that is fresh. */
static void fresh_next(struct kbi_vp *vp)
{
	struct kbi_task *t, *begin = NULL;

	kbi_vp_exchange(vp, KBI_POLL_SWITCH); /* a turn is what it counts by */
	for (unsigned n = 0; n < FRESH_FIRST && (t = kbi_vp_pop(vp)); n++) {
		if (is_fresh(t) || t == begin) {
			kbi_vp_enqueue(vp, t, true);
			return;
		}
		if (!begin)
			begin = t;
		kbi_vp_enqueue(vp, t, false);
	}
}

/* Ready tasks that were not switched away by force go to the front of vp's queue, in their order. */
static void fresh_first(struct kbi_vp *vp)
{
	struct kbi_pq *q = &vp->s->pq;
	struct kbi_task *t, *prev, *moved = NULL;
	unsigned n = 0;

	if (!vp->plain) {
		fresh_next(vp);
		return;
	}
	if (vp->first) {
		kbi_pq_prepend(q, vp->first);
		vp->first = NULL;
	}
	for (t = q->tail; t && t != moved && n < FRESH_FIRST; t = prev, n++) {
		prev = t->prev;
		if (!is_fresh(t))
			continue;
		kbi_pq_remove(q, t);
		kbi_pq_prepend(q, t);
		if (!moved)
			moved = t;
	}
}

/* A light thread comes back to the TLS block that it was interrupted with: its VP keeps it, and its body. */
static bool hold(struct kbi_task *self)
{
	if (self->tp)
		return false;
	self->vp->n_held++;
	if (kbi_task_is(self, KBI_TASK_BOUND))
		return false;
	kbi_thread_of(self)->bound = (uint16_t)self->vp->id;
	kbi_task_set(self, KBI_TASK_BOUND);
	return true;
}

static void let_go(struct kbi_task *self, bool bound)
{
	if (!self->tp)
		self->vp->n_held--;
	if (bound)
		kbi_task_clear(self, KBI_TASK_BOUND);
}

/* Its kernel thread gets the mask that the interrupted code had, for who runs next; back on another one, perhaps, the
 * context to return to gets that one's. */
static KBI_SWITCHER void switch_away(struct kbi_task *self, ucontext_t *uc)
{
	uint64_t all = ~(uint64_t)0, mask;
	bool bound;

	kbi_np_enter(self);
	fresh_first(self->vp);
	kbi_task_set(self, KBI_TASK_PREEMPTED);
	bound = hold(self);
	memcpy(&mask, &uc->uc_sigmask, sizeof mask);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_BYTES);
	kbi_yield_now();
	self = kbi_self_raw();
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, MASK_BYTES);
	memcpy(&uc->uc_sigmask, &mask, sizeof mask);
	kbi_sys(SYS_sigaltstack, NULL, &uc->uc_stack);
	let_go(self, bound);
	kbi_task_clear(self, KBI_TASK_PREEMPTED);
	kbi_np_leave(self);
	if (kbi_preempt_returns)
		kbi_preempt_returns(self, uc);
}

/* By the tick, with np == 0, on vp's body. */
static KBI_SWITCHER void asked(struct kbi_task *self, void *context)
{
	struct kbi_vp *vp = self->vp;
	/* acquire: partner is the release in ask */
	uint32_t what = a_load_acq(&vp->asked);
	uintptr_t at = kbi_context_at(context);

	if (what == ASKED_LEAVE) {
		if (kbi_context_is_in_call(context, &vp->body->call))
			kbi_handoff_found(self);
	} else if (what == ASKED_SWITCH && at && kbi_context_may_leave(at) && has_room(kbi_thread_of(self), context)) {
		a_store_rlx(&vp->asked, ASKED_NOTHING);
		switch_away(self, context);
	}
}

/* First of all, wherever the tick arrives: the call it was sent for, which it has ended perhaps, is made again. */
static void restart(struct kbi_task *self, void *context)
{
	struct kbi_body *b = kbi_body_of_task(self);

	if (b && kbi_context_is_in_call(context, &b->call))
		kbi_context_make_again(context, &b->call);
}

int kbi_quantum_start(void)
{
	uint32_t none = KBI_BELL_NONE;
	int e;

	if (!kbi_options.quantum || KBI_SAN)
		return 0;
	kbi_context_learn();
	kbi_preempt_restart = restart;
	kbi_preempt_asked = asked;
	kbi_lookout_quantum = (struct kbi_lookout_duty){ look, any_busy };
	if (!a_cas_acqrel(&kbi_lookout_bell, &none, KBI_BELL_AWAKE))
		return 0;
	e = kbi_body_start_closed(kbi_lookout_run, NULL);
	if (e)
		a_store_rel(&kbi_lookout_bell, KBI_BELL_NONE);
	return e;
}
