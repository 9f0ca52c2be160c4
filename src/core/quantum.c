/* core/quantum.c - preemption, and blocking calls that were not announced. Contract in quantum.h.
 *
 * Sysmon looks twice a quantum at each busy VP. If a VP has not switched since the last look
 * while work waits for it, sysmon posts a request in a word and sends the tick. If the kernel
 * reports that the VP's worker is in a system call, or sleeps until a page arrives, the request is
 * to let the VP go while the thread stays there (core/handoff). Else the request is to switch. The
 * handler obeys if the thread may be switched away at that place; else the request is repeated
 * soon.
 *
 * A thread may be left when it is outside the library (np == 0, and the instruction is not in our
 * code), and not in libc, the loader or a sanitizer, whose locks it may hold, unless it spins there
 * by sched_yield; on its own stack, with room for a frame. A thread that is hardly ever met there,
 * since it makes system call after system call, is left at the end of libc's function for the call,
 * or at its next call of ours; or when the function of libc's that it is in returns:
 * libc/return_hook puts a return hook there.
 *
 * Threads that were switched away stand behind all other ready threads at the next quantum's end,
 * so that a thread that wakes up waits for a single quantum and not for a round of computing
 * threads.
 *
 * The tick ends some system calls that are not restarted: the handler knows from sysmon which
 * call it was, and has it made again. The handler runs on the interrupted thread's stack. */
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
#include "core/preempt.h"
#include "core/run.h"
#include "core/sysmon.h"
#include "core/turn.h"
#include "core/wait.h"
#include "core/worker_pool.h"
#include "core/yield.h"
#include "libc/context.h"
#include "libc/loader.h"
#include "libc/return_hook.h"
#include "os/sys.h"
#include "sched/source.h"

enum {
	SOON = 200000,       /* ns until a request is repeated */
	TRIES = 100,         /* that many repetitions, then half as often, and half of that ... */
	ALL_TRIES = 400,     /* and then once a look */
	QUIET = 4,           /* looks at idle VPs before sysmon may sleep for good: they cost about
	                      * as much as waking it */
	SHORTEST = 50000,    /* ns: sysmon does not look more often */
	BRIEF = 250000,      /* ns: the turn of a spinning thread */
	URGENT = 4,          /* this part of a turn is enough where a thread waits that has woken up */
	LIVELY = 16,         /* switches since the last look: no thread holds that VP up */
	COMPUTES = 8,        /* a thread that lacks no more than this part of the time computes */
	ROOM = 8192,         /* bytes of stack for a signal frame and a switch */
	LITTLE_ROOM = 2048,  /* on an alternate stack, which is small: for a switch */
	WHILE = 50000,       /* ns: after so long without a system call a thread probably will not make
	                      * a call soon */
	FRESH = 20000,       /* ns: as long as an observation of a worker counts */
	PACE_EVERY = 2000000, /* ns between two measurements of a VP's turns */
	LONG_TURN = 40000,   /* ns: several times as long as it takes to wake an idle VP */
	LOOKS = 3,           /* repeated looks when sysmon was too slow to send the tick */
};

enum { ASKED_NOTHING, ASKED_SWITCH, ASKED_LEAVE };

size_t (*kbi_quantum_room)(uintptr_t sp);
bool (*kbi_quantum_libcs)(uintptr_t at);

/* ---- sysmon's side --------------------------------------------------------------------------- */

static struct seen {
	uint64_t turns, since;
	uint64_t cpu;                 /* its worker's processor time at `since`, ns */
	uint64_t cpu_in_call;         /* and when it was last seen in a call, or first seen */
	uint32_t tries;
	uint32_t heard;               /* ticks that had come to the VP when a tick was sent */
	uint32_t lent;                /* looks in a row that found the VP lent */
	bool sent;                    /* a tick that may not have come yet */
	bool noted;                   /* core/turn has published when the turn began */
	bool brief;                   /* the turn is a short one: the thread spins */
	bool halts;                   /* its thread did not have its processor all the time, lately */
	bool obeys;                   /* its thread was switched away at the first tick */
	uint8_t ticks;                /* sent in this turn; 2 for more */
	struct kbi_context_call call; /* the call that its worker was in at the last try */
} seen[KBI_MAX_VPS];
static uint32_t quiet;

/* What was seen of a VP when its turns were last measured. */
static struct pace {
	uint64_t at;     /* ns */
	uint64_t cpu;    /* ns: processor time of its worker */
	uint64_t turns;
	uint64_t sleeps; /* polling in vain comes before each */
	int tid;         /* the worker */
} paces[KBI_MAX_VPS];

static const struct kbi_context_call no_call = { .nr = KBI_CONTEXT_NO_CALL };

/* Finds where the worker is, and notes for the handler which call that instruction makes. */
static void find_worker_call(int tid, struct kbi_context_call *c)
{
	kbi_context_find_call(tid, c);
	kbi_context_note_call(c);
}

/* Returns true if the worker is in a call, or waits for a page. */
static bool is_worker_asleep(const struct kbi_context_call *c)
{
	return c->nr != KBI_CONTEXT_NO_CALL;
}

static bool is_same_call(const struct kbi_context_call *a, const struct kbi_context_call *b)
{
	return a->nr == b->nr && a->sp == b->sp && a->pc == b->pc && a->arg == b->arg;
}

/* Returns true if the worker is still in the same call as at the last try, or still in none. A
 * worker that came out of a call, or went into a call, is left alone, for its next call might be a
 * call that the tick ends and that is unknown. Where processors are short it may have been about to
 * come out for long, and be in none: so it must have run for a while since it was seen in a
 * call. */
static bool is_steady(struct seen *s, int tid, const struct kbi_context_call *c)
{
	bool same = s->tries > 0 && is_same_call(&s->call, c);
	uint64_t cpu = kbi_turn_cpu(tid);

	s->call = *c;
	if (s->tries == 0 || is_worker_asleep(c))
		s->cpu_in_call = cpu;
	return same && (is_worker_asleep(c) || !cpu || cpu - s->cpu_in_call >= WHILE);
}

/* Returns true if the worker and its thread are still where they were at the look. A microsecond
 * passes from that look to the signal, but milliseconds if sysmon has lost its processor in
 * between: then it looks again. */
static bool is_still_there(const struct kbi_vp *vp, const struct seen *s, int tid,
			   const struct kbi_context_call *c,
			   uint64_t looked)
{
	struct kbi_context_call again;
	uint64_t now;

	for (int i = 0; i < LOOKS && (now = kbi_sys_now()) - looked > FRESH; i++) {
		looked = now;
		find_worker_call(tid, &again);
		if (!is_same_call(c, &again))
			return false;
	}
	return kbi_vp_turns(vp) == s->turns;
}

/* Returns the length of the thread's turn, ns: processor time, or an estimate. */
static uint64_t length_of_turn(const struct seen *s, int tid, uint64_t now)
{
	uint64_t wall = now - s->since, cpu = s->cpu ? kbi_turn_cpu(tid) : 0;

	if (!cpu || cpu < s->cpu || cpu - s->cpu > wall)
		return wall;
	return cpu - s->cpu;
}

/* Returns true if the worker has had its processor nearly all the time since the last switch: so it
 * was in no call that lasts. */
static bool has_computed(const struct seen *s, int tid, uint64_t now)
{
	uint64_t wall = now - s->since, cpu = s->cpu ? kbi_turn_cpu(tid) : 0;

	return cpu >= s->cpu + wall - wall / COMPUTES && cpu <= s->cpu + wall + wall / COMPUTES;
}

/* Returns true if the last tick has not come: the kernel runs other programs in place of the
 * worker, which will take the tick first of all when it runs again. True only once, so that a lost
 * tick is sent again. */
static bool is_tick_pending(const struct kbi_vp *vp, struct seen *s)
{
	bool sent = s->sent;

	s->sent = false;
	return sent && a_load_rlx(&vp->heard) == s->heard;
}

/* Returns true if no thread is known to wake up soon: then some microseconds of sysmon's count
 * more than a turn that is a little long. */
static bool is_calm(void)
{
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (a_load_rlx(&kbi_vps[i]->next_deadline) != UINT64_MAX)
			return false;
	return a_zero32_rlx(&kbi_source.waiting);
}

/* Posts the request without a tick: the thread sees the word at its next call of the library. */
static void post_request_word(struct kbi_vp *vp)
{
	/* release: partner is the acquire in kbi_quantum_obey */
	a_store_rel(&vp->asked, ASKED_SWITCH);
}

/* Returns the time until the next try, ns. A thread that is nearly always where it cannot be left
 * is met elsewhere only by luck: the longer that takes, the rarer are the tries. */
static uint64_t delay_of_next_try(const struct seen *s)
{
	return (uint64_t)SOON << s->tries / TRIES;
}

/* Posts the request and sends the tick to the worker that was looked at, though the VP may have
 * another by now. */
static void send_request_tick(struct kbi_vp *vp, struct seen *s, int tid, uint32_t what)
{
	/* release: partner is the acquire in obey_tick_request */
	a_store_rel(&vp->asked, what);
	s->heard = a_load_rlx(&vp->heard);
	s->sent = true;
	kbi_sys_signal(tid, kbi_preempt_signal());
	s->ticks += s->ticks < 2;
}

/* Makes a request to vp. Returns true if sysmon should look again soon. */
static bool make_request(struct kbi_vp *vp, struct seen *s, uint64_t now)
{
	int tid = (int)a_load_rlx(&vp->tid);
	struct kbi_worker *b = tid ? kbi_worker_of_tid(tid) : NULL;
	uint32_t what = ASKED_SWITCH;
	struct kbi_context_call c;
	uint64_t looked;

	if (!b || is_tick_pending(vp, s))
		return false;
	looked = kbi_sys_now();
	find_worker_call(tid, &c);
	s->halts = is_worker_asleep(&c) || !has_computed(s, tid, now);
	if (s->halts && !is_steady(s, tid, &c)) {
		post_request_word(vp);
		return ++s->tries < ALL_TRIES;
	}
	if (is_worker_asleep(&c)) {
		/* our own calls are made where a VP may wait */
		if (kbi_context_is_ours(c.pc))
			return false;
		if (!kbi_handoff_has_idle_worker())
			return true;
		what = ASKED_LEAVE;
	}
	a_store_rlx(&vp->asked_used, length_of_turn(s, tid, now));
	if (!is_still_there(vp, s, tid, &c, looked)) {
		post_request_word(vp);
		return ++s->tries < ALL_TRIES;
	}
	if (what == ASKED_LEAVE)
		b->call = c;
	send_request_tick(vp, s, tid, what);
	/* most likely the next thread runs already: that is not worth a look of its own. Not so after a
	 * blocking call: where a thread blocks, more do */
	if (what == ASKED_SWITCH && s->obeys && s->ticks == 1 && is_calm())
		return false;
	return ++s->tries < ALL_TRIES;
}

/* Returns true if work waits for vp. If threads wait for events and all VPs compute, only the tick
 * asks for events. */
static bool has_work(struct kbi_vp *vp, uint64_t now)
{
	return (!vp->plain && !vp->sched->gather) || a_load_rlx(&kbi_source.waiting) ||
	       kbi_agent_has_work(vp, now);
}

/* Returns true if only threads that were switched away by force wait there, as far as another VP
 * can see. */
static bool only_marked(struct kbi_vp *vp, const struct seen *s, uint64_t now)
{
	return s->noted && kbi_vp_backlog(vp) <= a_load_rlx(&vp->turn.known) &&
	       !kbi_agent_has_news(vp, now);
}

/* Begins to watch a turn: vp has switched since the last look. Already looks where its worker is,
 * unless the clock will tell as much, or the VP is lively: then a further look is enough. */
static void watch_new_turn(struct kbi_vp *vp, struct seen *s, uint64_t turns, uint64_t now,
	bool lively)
{
	int tid = (int)a_load_rlx(&vp->tid);
	/* acquire: partner is the release in core/turn */
	bool noted = a_load_acq(&vp->turn.number) == turns;

	*s = (struct seen){ .turns = turns, .since = now, .noted = noted, .halts = s->halts,
			    .call = no_call, .obeys = s->ticks ? s->ticks == 1 : s->obeys };
	if (noted) {
		s->since = a_load_rlx(&vp->turn.since);
		s->cpu = a_load_rlx(&vp->turn.cpu);
		s->brief = a_load_rlx(&vp->turn.brief);
	}
	if (!tid || lively || !has_work(vp, now))
		return;
	/* a spinning thread is in no call */
	if (!s->brief)
		find_worker_call(tid, &s->call);
	s->cpu_in_call = s->cpu ? s->cpu : kbi_turn_cpu(tid);
	s->tries = 1;
}

/* Returns how long until the thread has had its turn, or it is time to look again, ns; 0: it has
 * had its turn. A part of a turn is enough if a thread waits that has woken up or is new, or will
 * have woken up by then. By the clock: the processor time that the kernel gave to the worker is
 * reckoned when the turn is over. */
static uint64_t time_left_of_turn(struct kbi_vp *vp, const struct seen *s, uint64_t now,
	uint64_t quantum)
{
	uint64_t whole = s->brief && quantum > BRIEF ? BRIEF : quantum, had = now - s->since, due;
	/* where no thread has a deadline, most likely a thread has come from another VP */
	uint64_t part = whole / (is_calm() ? 2 : URGENT), short_of = part > had ? part - had : 0;

	if (!only_marked(vp, s, now))
		return had >= part - part / 16 ? 0 : short_of;
	if (had >= whole - whole / 16)
		return 0;
	due = a_load_rlx(&vp->next_deadline);
	due = due > now ? due - now : 0;
	return kbi_sysmon_sooner(due > short_of ? due : short_of, whole - had);
}

/* Watches a lent VP. If the call lasts the VP is taken. A thread that makes such calls in a row has
 * its turn until its next call begins, if any thread waits. */
static void note_lent(struct kbi_vp *vp, struct seen *s, uint64_t turns, uint64_t now)
{
	enum { LOOKS = 3 };

	if (s->turns != turns - 1)
		*s = (struct seen){ .turns = turns - 1, .halts = s->halts, .obeys = s->obeys };
	if (++s->lent >= LOOKS && has_work(vp, now))
		post_request_word(vp);
}

/* Measures the turns of vp's threads: processor time of its worker for a turn, without the polling
 * before its sleeps. The owner counts its sleeps with plain stores; a stale number costs a wrong
 * verdict of some milliseconds. */
__attribute__((no_sanitize("thread"))) static void measure_turns(struct kbi_vp *vp, uint64_t turns,
								 uint64_t now)
{
	struct pace *p = &paces[vp->id], then = *p;
	int tid = (int)a_load_rlx(&vp->tid);
	uint64_t polled;
	bool is_long;

	if (now - p->at < PACE_EVERY || !tid)
		return;
	*p = (struct pace){ .at = now, .cpu = kbi_turn_cpu(tid), .turns = turns,
			    .sleeps = *(const volatile uint64_t *)&vp->n_sleeps, .tid = tid };
	polled = (p->sleeps - then.sleeps) * kbi_options.spin_us * 1000;
	is_long = then.tid == tid &&
		  p->cpu - then.cpu > polled + (turns - then.turns) * LONG_TURN;
	if (a_load_rlx(&vp->long_turns) != is_long)
		a_store_rlx(&vp->long_turns, is_long);
}

/* Returns how long until vp is to be looked at again, ns, at most `most`; UINT64_MAX: it is
 * idle. */
static uint64_t check_vp_turn(struct kbi_vp *vp, struct seen *s, uint64_t now, uint64_t quantum,
	uint64_t most)
{
	uint64_t turns = kbi_vp_turns(vp), wait;
	bool lively = s->since && turns - s->turns > LIVELY;

	if (a_load_rlx(&vp->s->idle) != KBI_IDLE_BUSY)
		return UINT64_MAX;
	measure_turns(vp, turns, now);
	if (a_load_rlx(&vp->lent)) {
		note_lent(vp, s, turns, now);
		return quantum / 2;
	}
	if (turns != s->turns || !s->since)
		watch_new_turn(vp, s, turns, now, lively);
	if (lively)
		return quantum / 2;
	if (!has_work(vp, now))
		return most;
	wait = time_left_of_turn(vp, s, now, quantum);
	if (wait == 0)
		wait = make_request(vp, s, now) ? delay_of_next_try(s) : most;
	return kbi_sysmon_sooner(wait, most);
}

static uint64_t scan_vp_turns(uint64_t now)
{
	uint64_t quantum = (uint64_t)kbi_options.quantum * 1000, nap = UINT64_MAX, most;

	/* a turn that begins after a look is seen at the next look */
	most = quantum / (is_calm() ? 2 : URGENT);
	for (unsigned i = 0; i < kbi_vp_n; i++)
		nap = kbi_sysmon_sooner(nap, check_vp_turn(kbi_vps[i], &seen[i], now, quantum,
			most));
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

/* ---- the handler's side ---------------------------------------------------------------------- */

/* Returns true if the thread is on its own stack, as far as known, with room. With
 * kbi_quantum_libcs also true on a stack that the program has taken for a coroutine: the tick's
 * frame lies there already, and a switch takes a few hundred bytes more, as any wait does. */
static bool has_switch_room(const struct kb_thread *t, const ucontext_t *uc)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), above;

	/* the kernel thread's alternate stack */
	if (uc->uc_stack.ss_flags & SS_ONSTACK ||
	    here - (uintptr_t)uc->uc_stack.ss_sp < uc->uc_stack.ss_size)
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

/* Returns where the interrupted function returns to, if it is a function of libc's for strings or
 * memory, or the end of a function that makes a system call; else 0. */
static uintptr_t leaf_returns_to(const void *context)
{
	uintptr_t to = kbi_context_returns_to(context);

	return to ? to : kbi_context_leaf_returns_to(context);
}

/* Returns true if the thread may be left in libc, whose waiters are threads. Not below our own
 * code, which copies memory with locks that are waited for in the kernel. Not a light thread, which
 * has no TLS of its own: libc may have an address in its virtual processor's TLS. */
static bool may_leave_libc(const struct kbi_task *self, const void *context, uintptr_t at)
{
	return kbi_quantum_libcs && self->tp && kbi_quantum_libcs(at) &&
	       !kbi_context_is_ours(leaf_returns_to(context));
}

/* Returns true if the thread may be left here: also where it has just made a system call and is
 * about to return from libc, for a thread that does little else is hardly ever met anywhere else,
 * because signals come in there; and where it copies, clears or searches memory. */
static bool may_leave_here(const struct kbi_task *self, const void *context)
{
	uintptr_t at = kbi_context_at(context), to;

	if (may_leave_libc(self, context, at))
		return true;
	if (!(kbi_quantum_libcs && self->tp) && kbi_loader_is_held())
		return false;
	if (at && at == kbi_return_hook_place())
		return true;
	if (!at || kbi_context_may_leave(at))
		return at;
	if (kbi_context_code(at) != KBI_CODE_LIBC)
		return false;
	/* it spins for a lock, a sanitizer's most likely, whose holder may be a thread that wants to
	 * run here; a thread that spins for a lock of this thread's will be met in the same place */
	if (kbi_context_has_yielded(context))
		return true;
	to = leaf_returns_to(context);
	if (!to)
		to = kbi_context_known_returns_to(context);
	return to && kbi_context_may_leave(to);
}

/* Puts a return hook: the thread is deep in libc, or in our allocator, and is to be left when it
 * comes out. */
static void hook_return(const struct kb_thread *t, const void *context)
{
	uintptr_t *slot = kbi_context_slot(context);

	if (slot)
		kbi_return_hook(t, slot, t->stack ? (uintptr_t)t->stack->low : 0,
			t->stack ? t->stack->size : 0);
}

/* Returns the signal to send when the thread has come out; none if the request is not pending any
 * more. */
static struct kbi_return_hook_signal signal_after_return(void)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_return_hook_signal s = { 0 };

	if (!self || !self->vp || a_load_rlx(&self->np) || a_load_rlx(&self->vp->asked) != ASKED_SWITCH)
		return s;
	s.tid = a_load_rlx(&self->vp->tid);
	s.sig = (uint32_t)kbi_preempt_signal();
	s.pid = kbi_sys_from.processes ? 0 : (uint64_t)getpid();
	return s;
}

/* Obeys a request. Called by the tick's handler, with np == 0, on vp's worker. */
static KBI_SWITCHER void obey_tick_request(struct kbi_task *self, void *context)
{
	struct kbi_vp *vp = self->vp;
	/* acquire: partners are the releases in send_request_tick and post_request_word */
	uint32_t what = a_load_acq(&vp->asked);

	if (what == ASKED_LEAVE) {
		if (kbi_context_is_in_call(context, &vp->worker->call))
			kbi_handoff_found(self, context);
	} else if (what == ASKED_SWITCH && has_switch_room(kbi_thread_of(self), context)) {
		if (!may_leave_here(self, context)) {
			hook_return(kbi_thread_of(self), context);
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
	/* acquire: partners are the releases in post_request_word and send_request_tick */
	if (!a_cas_acq(&self->vp->asked, &what, ASKED_NOTHING))
		return;
	/* no tick need have come: threads may have to wake up by now */
	kbi_np_enter(self);
	kbi_run_look(self->vp);
	kbi_np_leave(self);
	kbi_yield_now();
}

/* Has an interrupted call made again; called first wherever the tick arrives. This is the call that
 * the tick was sent for, and has perhaps ended; or a call that began after sysmon's look, if
 * it can be identified. Calls of our own may be ended. */
static void restart_ended_call(struct kbi_task *self, void *context)
{
	struct kbi_worker *b = kbi_worker_of_task(self);

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
	kbi_return_hook_learn();
	kbi_return_hook_asks = signal_after_return;
	kbi_preempt_restart = restart_ended_call;
	kbi_preempt_asked = obey_tick_request;
	kbi_sysmon_quantum = (struct kbi_sysmon_duty){ scan_vp_turns, any_busy };
	return kbi_handoff_start_sysmon();
}
