/* core/quantum.c - preemption, and blocking calls that nobody has announced. Contract in quantum.h.
 *
 * The lookout looks twice a quantum at each busy VP. One that has not switched since the last look although something
 * waits for it is asked, by a word and the tick, for one of two things. If the kernel says that its body is in a system
 * call, or sleeps until somebody brings a page: to let the VP go, the thread stays there (core/handoff). Else: to switch.
 * The handler does it where the thread may be left, or nothing; then it is asked again soon.
 *
 * A thread may be left when it is outside the library (np == 0, and the instruction is not in our code), and not in
 * libc, the loader or a sanitizer, whose locks it may hold, unless it spins there by sched_yield; on its own stack, with
 * room for a frame. One that is hardly ever met there, since it makes one system call after the other, is left at the
 * end of libc's function for that, or when it calls one of ours the next time; or when the function of libc's that it is
 * in returns: os/plant has it come by.
 * Those that were switched away stand behind all others that are ready at the next quantum's end, so that a thread that
 * wakes up waits for one quantum and not for a round of computing ones.
 *
 * The tick ends some system calls that are not restarted: the handler knows from the lookout which call it was, and
 * has it made again. The handler runs on the interrupted thread's stack. */
#include "core/quantum.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/option.h"
#include "base/san.h"
#include "core/agent.h"
#include "core/handoff.h"
#include "core/lookout.h"
#include "core/preempt.h"
#include "core/run.h"
#include "core/source.h"
#include "core/spare.h"
#include "core/turn.h"
#include "core/wait.h"
#include "core/yield.h"
#include "os/context.h"
#include "os/loader.h"
#include "os/plant.h"
#include "os/sys.h"

enum {
	SOON = 200000,       /* ns until it is asked again */
	TRIES = 100,         /* so often, then half as often, and half of that ... */
	ALL_TRIES = 400,     /* and then once a look */
	QUIET = 4,           /* looks at nothing before the lookout may sleep for good: they cost about as much as waking it */
	SHORTEST = 50000,    /* ns: the lookout does not look more often */
	BRIEF = 250000,      /* ns: a turn of who spins */
	URGENT = 4,          /* this part of a turn is enough where one waits that has woken up */
	LIVELY = 16,         /* switches since the last look: no thread holds that VP up */
	COMPUTES = 8,        /* who lacks no more than this part of the time computes */
	ROOM = 8192,         /* bytes of stack: what a signal frame and a switch take */
	LITTLE_ROOM = 2048,  /* on an alternate stack, which is small: a switch */
	WHILE = 50000,       /* ns: who has run so long since a call is not about to make another, most likely */
	FRESH = 20000,       /* ns: as long as what was seen of a body counts */
	LOOKS = 3,           /* at one that the lookout was too slow to send the tick to */
};

enum { ASKED_NOTHING, ASKED_SWITCH, ASKED_LEAVE };

size_t (*kbi_quantum_room)(uintptr_t sp);
bool (*kbi_quantum_libcs)(uintptr_t at);

/* ---- the lookout's side -------------------------------------------------------------------------------------- */

static struct seen {
	uint64_t turns, since;
	uint64_t cpu;                 /* its body's processor time then, ns */
	uint64_t cpu_in_call;         /* and when it was last seen in a call, or for the first time */
	uint32_t tries;
	uint32_t heard;               /* ticks that had come to the VP when one was sent */
	uint32_t lent;                /* looks that found the VP lent, without another in between */
	bool sent;                    /* one that may not have come yet */
	bool noted;                   /* core/turn has told when the turn began */
	bool brief;                   /* and that it is a short one */
	bool halts;                   /* what runs here did not have its processor all the time, lately; */
	bool obeys;                   /* and was left at the first tick */
	uint8_t ticks;                /* sent in this turn, 2 for more */
	struct kbi_context_call call; /* that its body was in at the last try */
} seen[KBI_MAX_VPS];
static uint32_t quiet;

static const struct kbi_context_call no_call = { .nr = KBI_CONTEXT_NO_CALL };

/* Where the body is. Which call an instruction makes is of use to the handler later. */
static void find_call(int tid, struct kbi_context_call *c)
{
	kbi_context_find_call(tid, c);
	kbi_context_note_call(c);
}

/* In a call, or for a page. */
static bool sleeps(const struct kbi_context_call *c)
{
	return c->nr != KBI_CONTEXT_NO_CALL;
}

static bool is_same(const struct kbi_context_call *a, const struct kbi_context_call *b)
{
	return a->nr == b->nr && a->sp == b->sp && a->pc == b->pc && a->arg == b->arg;
}

/* Still in the same call as at the last try, or still in none: one that came out of a call, or went into one, is let
 * be, for the next call might be one that the tick ends and that nobody knows. Where others want the processors it may have
 * been about to come out for long, and be in none: so it must have run for a while since it was seen in one. */
static bool is_steady(struct seen *s, int tid, const struct kbi_context_call *c)
{
	bool same = s->tries > 0 && is_same(&s->call, c);
	uint64_t cpu = kbi_turn_cpu(tid);

	s->call = *c;
	if (s->tries == 0 || sleeps(c))
		s->cpu_in_call = cpu;
	return same && (sleeps(c) || !cpu || cpu - s->cpu_in_call >= WHILE);
}

/* Still there now, where it was when it was looked at, and the same thread? A microsecond goes by from that look to the
 * signal, but milliseconds if the lookout has lost its processor in between: then it looks again. */
static bool is_still_there(const struct kbi_vp *vp, const struct seen *s, int tid, const struct kbi_context_call *c,
			   uint64_t looked)
{
	struct kbi_context_call again;
	uint64_t now;

	for (int i = 0; i < LOOKS && (now = kbi_sys_now()) - looked > FRESH; i++) {
		looked = now;
		find_call(tid, &again);
		if (!is_same(c, &again))
			return false;
	}
	return kbi_vp_turns(vp) == s->turns;
}

/* How long the thread has had its turn: processor time, or what is known of it. */
static uint64_t used(const struct seen *s, int tid, uint64_t now)
{
	uint64_t wall = now - s->since, cpu = s->cpu ? kbi_turn_cpu(tid) : 0;

	if (!cpu || cpu < s->cpu || cpu - s->cpu > wall)
		return wall;
	return cpu - s->cpu;
}

/* It has had its processor nearly all the time since the last switch: so it was in no call that lasts. */
static bool has_computed(const struct seen *s, int tid, uint64_t now)
{
	uint64_t wall = now - s->since, cpu = s->cpu ? kbi_turn_cpu(tid) : 0;

	return cpu >= s->cpu + wall - wall / COMPUTES && cpu <= s->cpu + wall + wall / COMPUTES;
}

/* The last tick has not come: the kernel runs others in place of the body, which will take it first of all when it runs
 * again. Said once, so that one that was lost is sent again. */
static bool is_on_its_way(const struct kbi_vp *vp, struct seen *s)
{
	bool sent = s->sent;

	s->sent = false;
	return sent && a_load_rlx(&vp->heard) == s->heard;
}

/* Nobody is about to wake up, as far as one sees: then some microseconds of the lookout's count more than a turn that is a
 * little long. */
static bool is_calm(void)
{
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (a_load_rlx(&kbi_vps[i]->next_deadline) != UINT64_MAX)
			return false;
	return a_zero32_rlx(&kbi_source.waiting);
}

/* No tick is sent: it sees the word when it calls us the next time. */
static void ask_by_word(struct kbi_vp *vp)
{
	/* release: partner is the acquire in kbi_quantum_obey */
	a_store_rel(&vp->asked, ASKED_SWITCH);
}

/* Who is nearly always where it cannot be left is met elsewhere by luck: it is tried less often the longer that takes. */
static uint64_t soon(const struct seen *s)
{
	return (uint64_t)SOON << s->tries / TRIES;
}

/* The tick, to the body that was looked at, though the VP may have another by now. */
static void send(struct kbi_vp *vp, struct seen *s, int tid, uint32_t what)
{
	/* release: partner is the acquire in asked */
	a_store_rel(&vp->asked, what);
	s->heard = a_load_rlx(&vp->heard);
	s->sent = true;
	kbi_sys_signal(tid, kbi_preempt_signal());
	s->ticks += s->ticks < 2;
}

/* True: look again soon. */
static bool ask(struct kbi_vp *vp, struct seen *s, uint64_t now)
{
	int tid = (int)a_load_rlx(&vp->tid);
	struct kbi_body *b = tid ? kbi_body_of_tid(tid) : NULL;
	uint32_t what = ASKED_SWITCH;
	struct kbi_context_call c;
	uint64_t looked;

	if (!b || is_on_its_way(vp, s))
		return false;
	looked = kbi_sys_now();
	find_call(tid, &c);
	s->halts = sleeps(&c) || !has_computed(s, tid, now);
	if (s->halts && !is_steady(s, tid, &c)) {
		ask_by_word(vp);
		return ++s->tries < ALL_TRIES;
	}
	if (sleeps(&c)) {
		/* our own calls are made where a VP may wait */
		if (kbi_context_is_ours(c.pc))
			return false;
		if (!kbi_handoff_has_spare())
			return true;
		what = ASKED_LEAVE;
	}
	a_store_rlx(&vp->asked_used, used(s, tid, now));
	if (!is_still_there(vp, s, tid, &c, looked)) {
		ask_by_word(vp);
		return ++s->tries < ALL_TRIES;
	}
	if (what == ASKED_LEAVE)
		b->call = c;
	send(vp, s, tid, what);
	/* most likely the next one runs already: to see that is worth no look of its own. Not so after a call: where one
	 * blocks others do */
	if (what == ASKED_SWITCH && s->obeys && s->ticks == 1 && is_calm())
		return false;
	return ++s->tries < ALL_TRIES;
}

/* If threads wait for events and all VPs compute, nobody asks whether there are any but the tick. */
static bool has_work(struct kbi_vp *vp, uint64_t now)
{
	return (!vp->plain && !vp->sched->gather) || a_load_rlx(&kbi_source.waiting) || kbi_agent_has_work(vp, now);
}

/* Threads that were switched away by force are all that waits there, as far as one sees from here. */
static bool only_marked(struct kbi_vp *vp, const struct seen *s, uint64_t now)
{
	return s->noted && kbi_vp_backlog(vp) <= a_load_rlx(&vp->turn.known) && !kbi_agent_has_news(vp, now);
}

/* It has switched since the last look. Where its body is is looked at already, unless the clock will tell as much, or it is
 * lively: then one more look is enough. */
static void begin(struct kbi_vp *vp, struct seen *s, uint64_t turns, uint64_t now, bool lively)
{
	int tid = (int)a_load_rlx(&vp->tid);
	/* acquire: partner is the release in core/turn */
	bool noted = a_load_acq(&vp->turn.number) == turns;

	*s = (struct seen){ .turns = turns, .since = now, .noted = noted, .halts = s->halts, .call = no_call,
			    .obeys = s->ticks ? s->ticks == 1 : s->obeys };
	if (noted) {
		s->since = a_load_rlx(&vp->turn.since);
		s->cpu = a_load_rlx(&vp->turn.cpu);
		s->brief = a_load_rlx(&vp->turn.brief);
	}
	if (!tid || lively || !has_work(vp, now))
		return;
	/* who spins is in no call */
	if (!s->brief)
		find_call(tid, &s->call);
	s->cpu_in_call = s->cpu ? s->cpu : kbi_turn_cpu(tid);
	s->tries = 1;
}

/* How long until the thread has had its turn, or it is time to look again; 0: it has had it. A part of it is enough if one
 * waits that has woken up or is new, or will have woken up by then. By the clock: how much of that the kernel gave to the
 * body is reckoned when the turn is over. */
static uint64_t left(struct kbi_vp *vp, const struct seen *s, uint64_t now, uint64_t quantum)
{
	uint64_t whole = s->brief && quantum > BRIEF ? BRIEF : quantum, had = now - s->since, due;
	/* where nobody has a deadline it is one that has come from another VP, most likely */
	uint64_t part = whole / (is_calm() ? 2 : URGENT), short_of = part > had ? part - had : 0;

	if (!only_marked(vp, s, now))
		return had >= part - part / 16 ? 0 : short_of;
	if (had >= whole - whole / 16)
		return 0;
	due = a_load_rlx(&vp->next_deadline);
	due = due > now ? due - now : 0;
	return kbi_lookout_sooner(due > short_of ? due : short_of, whole - had);
}

/* If its call lasts it is taken from there. Who makes one such call after the other has its turn until the next begins,
 * if anybody waits. */
static void note_lent(struct kbi_vp *vp, struct seen *s, uint64_t turns, uint64_t now)
{
	enum { LOOKS = 3 };

	if (s->turns != turns - 1)
		*s = (struct seen){ .turns = turns - 1, .halts = s->halts, .obeys = s->obeys };
	if (++s->lent >= LOOKS && has_work(vp, now))
		ask_by_word(vp);
}

/* How long until vp is to be looked at again, ns, `most` at the most; UINT64_MAX: it is idle. */
static uint64_t look_at(struct kbi_vp *vp, struct seen *s, uint64_t now, uint64_t quantum, uint64_t most)
{
	uint64_t turns = kbi_vp_turns(vp), wait;
	bool lively = s->since && turns - s->turns > LIVELY;

	if (a_load_rlx(&vp->s->idle) != KBI_IDLE_BUSY)
		return UINT64_MAX;
	if (a_load_rlx(&vp->lent)) {
		note_lent(vp, s, turns, now);
		return quantum / 2;
	}
	if (turns != s->turns || !s->since)
		begin(vp, s, turns, now, lively);
	if (lively)
		return quantum / 2;
	if (!has_work(vp, now))
		return most;
	wait = left(vp, s, now, quantum);
	if (wait == 0)
		wait = ask(vp, s, now) ? soon(s) : most;
	return kbi_lookout_sooner(wait, most);
}

static uint64_t look(uint64_t now)
{
	uint64_t quantum = (uint64_t)kbi_options.quantum * 1000, nap = UINT64_MAX, most;

	/* a turn that begins after a look is seen at the next */
	most = quantum / (is_calm() ? 2 : URGENT);
	for (unsigned i = 0; i < kbi_vp_n; i++)
		nap = kbi_lookout_sooner(nap, look_at(kbi_vps[i], &seen[i], now, quantum, most));
	quiet = nap != UINT64_MAX ? 0 : quiet + 1;
	if (quiet > QUIET)
		return UINT64_MAX;
	if (nap == UINT64_MAX)
		return quantum / 2;
	return nap < SHORTEST ? SHORTEST : nap;
}

static bool any_busy(void)
{
	quiet = 0;
	return a_load_rlx(&kbi_vps[0]->s->idle_count) < kbi_vp_n;
}

/* ---- the handler's side ----------------------------------------------------------------------------------------- */

/* On its own stack, as far as we know that, and there is room. Or, with the law of kbi_quantum_libcs, on a stack that the
 * program has taken for a coroutine: there the tick's frame lies already, and a switch takes a few hundred bytes more, as
 * any wait does. */
static bool has_room(const struct kb_thread *t, const ucontext_t *uc)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), above;

	/* the kernel thread's */
	if (uc->uc_stack.ss_flags & SS_ONSTACK || here - (uintptr_t)uc->uc_stack.ss_sp < uc->uc_stack.ss_size)
		return false;
	if (kbi_quantum_room && kbi_quantum_room(here))
		return kbi_quantum_room(here) > LITTLE_ROOM;
	if (!t->stack)
		return t->is_main;
	above = here - (uintptr_t)t->stack->low;
	if (above < t->stack->size)
		return above > ROOM;
	return kbi_quantum_libcs; /* a coroutine's */
}

/* In a function of libc's for strings or memory, or at the end of a function that makes a system call: where that returns
 * to; else 0. */
static uintptr_t leaf_returns_to(const void *context)
{
	uintptr_t to = kbi_context_returns_to(context);

	return to ? to : kbi_context_leaf_returns_to(context);
}

/* In libc, whose waiters are threads. Our own code copies memory with locks that are waited for in the kernel. A light
 * thread has no TLS of its own: libc may have an address in its virtual processor's. */
static bool may_leave_libc(const struct kbi_task *self, const void *context, uintptr_t at)
{
	return kbi_quantum_libcs && self->tp && kbi_quantum_libcs(at) && !kbi_context_is_ours(leaf_returns_to(context));
}

/* Also where it has just made a system call and is about to return from libc: who does little else is hardly ever met
 * anywhere else, for that is where signals come in. And where it copies, clears or searches memory. */
static bool may_leave(const struct kbi_task *self, const void *context)
{
	uintptr_t at = kbi_context_at(context), to;

	if (may_leave_libc(self, context, at))
		return true;
	if (!(kbi_quantum_libcs && self->tp) && kbi_loader_is_held())
		return false;
	if (at && at == kbi_plant_place())
		return true;
	if (!at || kbi_context_may_leave(at))
		return at;
	if (kbi_context_code(at) != KBI_CODE_LIBC)
		return false;
	/* it spins for a lock, a sanitizer's most likely, whose holder may be a thread that wants to run here; who spins for
	 * what this one holds will be met in the same place */
	if (kbi_context_has_yielded(context))
		return true;
	to = leaf_returns_to(context);
	if (!to)
		to = kbi_context_known_returns_to(context);
	return to && kbi_context_may_leave(to);
}

/* Deep in libc, or in our allocator: it is to be left when it comes out. */
static void leave_later(const struct kb_thread *t, const void *context)
{
	uintptr_t *slot = kbi_context_slot(context);

	if (slot)
		kbi_plant(t, slot, t->stack ? (uintptr_t)t->stack->low : 0, t->stack ? t->stack->size : 0);
}

/* It has come out: is it still wanted? */
static struct kbi_plant_signal is_back(void)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_plant_signal s = { 0 };

	if (!self || !self->vp || a_load_rlx(&self->np) || a_load_rlx(&self->vp->asked) != ASKED_SWITCH)
		return s;
	s.tid = a_load_rlx(&self->vp->tid);
	s.sig = (uint32_t)kbi_preempt_signal();
	s.pid = kbi_sys_from.processes ? 0 : (uint64_t)getpid();
	return s;
}

/* By the tick, with np == 0, on vp's body. */
static KBI_SWITCHER void asked(struct kbi_task *self, void *context)
{
	struct kbi_vp *vp = self->vp;
	/* acquire: partner is the release in ask */
	uint32_t what = a_load_acq(&vp->asked);

	if (what == ASKED_LEAVE) {
		if (kbi_context_is_in_call(context, &vp->body->call))
			kbi_handoff_found(self, context);
	} else if (what == ASKED_SWITCH && has_room(kbi_thread_of(self), context)) {
		if (!may_leave(self, context)) {
			leave_later(kbi_thread_of(self), context);
			return;
		}
		a_store_rlx(&vp->asked, ASKED_NOTHING);
		kbi_turn_end(self, context, a_load_rlx(&vp->asked_used));
	}
}

void kbi_quantum_obey(struct kbi_task *self)
{
	uint32_t what = ASKED_SWITCH;

	if (!kbi_quantum_libcs && kbi_loader_is_held())
		return;
	if (!a_cas_acq(&self->vp->asked, &what, ASKED_NOTHING)) /* partner: the release in ask */
		return;
	/* no tick need have come: who has to wake up by now? */
	kbi_np_enter(self);
	kbi_run_look(self->vp);
	kbi_np_leave(self);
	kbi_yield_now();
}

/* First of all, wherever the tick arrives: the call it was sent for, which it has ended perhaps, is made again. Or one that
 * was begun after the lookout's look, if it can be told which; our own may be ended. */
static void restart(struct kbi_task *self, void *context)
{
	struct kbi_body *b = kbi_body_of_task(self);

	if (b && kbi_context_is_in_call(context, &b->call))
		kbi_context_make_again(context, &b->call);
	else if (!kbi_context_is_ours(kbi_context_at(context)))
		kbi_context_make_any_again(context);
}

int kbi_quantum_start(void)
{
	if (!kbi_options.quantum || KBI_SAN || !kbi_loader_learn())
		return 0;
	kbi_context_learn();
	kbi_context_frames_learn();
	kbi_plant_learn();
	kbi_plant_asks = is_back;
	kbi_preempt_restart = restart;
	kbi_preempt_asked = asked;
	kbi_lookout_quantum = (struct kbi_lookout_duty){ look, any_busy };
	return kbi_handoff_start_lookout();
}
