/* model/signal.pml - no signal is lost, taken twice, or brought to a thread that blocks it or has ended; a signal to the
 * process does not stay with a thread that blocks it, or ends, while another thread takes it.
 *
 * Mirrors: posix/signal.c kbi_signal_set_mask, set_vp_mask, take_resumed_signals_slow, on_tick_return, close_sleeper,
 * kbi_signal_returns, kbi_signal_thread_ends; posix/signal_dispatcher.c; posix/signal_sent.c kbi_signal_send_to,
 * kbi_signal_look_after_slow; posix/signal_action.c relay_signal, run_light_handler, put_off_signal;
 * posix/signal_sigcancel.c; posix/signal_pool.c; posix/signal_taker.c; posix/sigwait.c wait_with_wanted_set.
 * One standard signal with a handler, sent SENDS times: to the process, from outside or inside, or to thread 1. Thread 0
 * (main) and thread 1 share a VP. They change masks, sleep, lose the VP to the tick; thread 1 calls sigtimedwait, and ends:
 * STEPS such steps. Signals come between functions of the library, not inside them. A signal that a thread sends itself is
 * one step. Other signals are blocked, too: kbi_signal_returns always looks for signals.
 * Not here: switches in handlers, calls that block (handoff.pml), signal_settle (it only keeps an order).
 * When nothing can happen any more, init looks where the signals are. Variants that must fail: see dev/models. */
#ifndef SENDS
#define SENDS 2
#define STEPS 1
#endif
#ifndef WITHOUT
#define WITHOUT NOTHING
#endif
/* states of a thread; what a variant leaves out. KEPT_KICK: a thread is made to look for what look_after has put into its
 * list; KINDS: a signal to the process does not merge with the thread's own */
mtype = { READY, RUNNING, ASLEEP, DONE, NOTHING, GIVE_FENCE, GIVE_BACK, LOOK_FENCE, RING, KICK, OTHER_TAKER, CLOSED_LOOK,
	OPENING_LOOK, MASK_LOOK, LAST_BACK, KEPT_KICK, KINDS };
#define WORDS 5
#define CPUS 2
#define DEPTH 1
#include "tso.h"
/* words */
#define MASK 0   /* + thread: it blocks the signal */
#define WANTED 2 /* + thread: it is in sigtimedwait */
#define CLOSED 4 /* kbi_signal_vp_mask */
/* processors: the VP's; of dispatcher and sender, which store nothing without read-modify-write */
#define VP 0
#define OUT 1
#define L(a) LOAD(VP, a)
#define M(a) mem[a]
/* a signal on its way: to the process, or TO + thread. NONE: no thread */
#define PROCESS 1
#define TO 2
#define NONE 2

bool kp, kd;            /* a signal waits in the kernel for the process; for the dispatcher's kernel thread */
byte kv;                /* for the VP's kernel thread */
bool list[4];           /* IN: in a thread's list */
bool over[2];           /* the list is closed */
mtype st[2] = READY;
byte cur = NONE;        /* the thread on the VP */
bool inside[2] = true;  /* the thread is in the library */
bool kmask, posted, kicked, busy; /* of the VP's kernel thread; busy: in a handler, or in a function of the library */
bool open = true, alone, rung, unwoken; /* the dispatcher's; alone: no opening yet */
byte due[4], steps = STEPS; /* due: sent and not taken */
bool owed[4];           /* sent, and no delivery has begun since */

#define IN(t, w) list[2 * (t) + ((w) != PROCESS)]
#define PENDING(t) (list[2 * (t)] || list[2 * (t) + 1])
#define LETS_IN(t) (PENDING(t) && !L(MASK + (t)))
#define ACCEPTS(V, t) (st[t] != DONE && (!V(MASK + (t)) || V(WANTED + (t))))
#define TAKES(V, t) (st[t] != DONE && (!V(MASK + (t)) || (V(WANTED + (t)) && !PENDING(t))))
#define IS_FOR(t, w) ((w) == PROCESS -> (TAKES(L, t) && ((t) == 0 || !TAKES(L, 0))) : (w) == TO + (t))
#define WHEN(a, b) if :: a -> b :: else fi
#define ENTER !busy -> busy = true
#define LEAVE busy = false
inline opened(c) { DRAINED(c); alone = false; rung = rung || (!open && WITHOUT != RING); open = true }
inline put(t, w) {
	merges = (IN(t, w) || (WITHOUT == KINDS && PENDING(t))); ok = (!over[t] || merges);
	WHEN(ok && !merges, IN(t, w) = true); merges = false
}
inline forward(c, w) {
	if :: w == PROCESS -> kd = true; opened(c) :: else -> put(w - TO, w); WHEN(ok, unwoken = true; rung = true) fi
}
inline look_after() {
	WHEN(WITHOUT != LOOK_FENCE, fence(VP));
	WHEN(posted && kv,
		h = kv; kv = 0; posted = false; ok = false;
		WHEN(cur != NONE && IS_FOR(cur, h), put(cur, h));
		if :: !ok -> forward(VP, h) :: else -> kicked = (kicked || WITHOUT != KEPT_KICK) fi;
		h = 0; ok = false)
}
/* the VP gets this mask */
inline bring(m) { store(VP, CLOSED, m); look_after(); kmask = m }
inline taken(w) { assert(due[w]); due[w]--; owed[w] = false }
inline handle(t) { /* the handler, from begin to end */
	taken(w); assert(!over[t] && !L(MASK + t)); kmask = true;
	store(VP, MASK + t, 1); store(VP, MASK + t, 0);
	opened(VP); bring(0);
	WHEN(LETS_IN(t), kicked = true); w = 0
}
inline get(t) {
	if :: IN(t, PROCESS) -> IN(t, PROCESS) = false; w = PROCESS :: IN(t, TO) -> IN(t, TO) = false; w = TO + t :: !PENDING(t) fi
}
inline get_back(c, t) { WHEN(IN(t, PROCESS), IN(t, PROCESS) = false; forward(c, PROCESS)) }

/* the VP's kernel thread: a signal comes (relay_signal), SIGCANCEL comes, or the VP closes because it has no thread */
proctype vp() {
	byte t, w, h;
	bool ok, x, m, merges;
	do
	:: atomic { !kmask && (kv || kp) && ENTER; kmask = true; t = cur;
		if :: kv -> w = kv; kv = 0; posted = false :: else -> w = PROCESS; kp = false fi;
		m = (t == NONE || L(MASK + t));
		x = (t != NONE && ((!m && IS_FOR(t, w)) || WITHOUT == MASK_LOOK));
		if
		:: x && !inside[t] -> handle(t)
		:: else ->
			WHEN(x, x = LETS_IN(t); put(t, w); kicked = (kicked || (ok && !x))); /* put_off_signal */
			WHEN(!ok, forward(VP, w));
			bring(m)
		fi;
		LEAVE; t = 0; w = 0; ok = false; x = false; m = 0; }
	:: atomic { kicked && ENTER; kicked = false; t = cur; m = (t == NONE || L(MASK + t)); look_after();
		if
		:: t != NONE && inside[t] -> WHEN(LETS_IN(t), kicked = true)
		:: else -> bring(m); WHEN(t != NONE && LETS_IN(t), get(t); handle(t))
		fi;
		LEAVE; t = 0; m = 0; ok = false }
	:: atomic { cur == NONE && !kmask && ENTER; bring(1); LEAVE }
	od
}
inline wake(t) {
	if :: st[t] == ASLEEP -> st[t] = READY :: st[t] == RUNNING -> kicked = (kicked || WITHOUT != KICK) :: else fi
}
inline put_in_list(t, w) {
	atomic { put(t, w); WHEN(ok, wake(t)) };
	atomic {
		if
		:: !ok && w == PROCESS -> forward(OUT, PROCESS)
		:: ok && w == PROCESS && !ACCEPTS(M, t) && WITHOUT != OTHER_TAKER -> get_back(OUT, t)
		:: else
		fi }
}
inline send(t, w) {
	atomic { x = (st[t] == RUNNING && !M(MASK + t) && !M(CLOSED) && !posted); posted = (posted || x) };
	if
	:: x -> atomic { assert(!kv); kv = w }; atomic { WHEN(M(CLOSED) && WITHOUT != CLOSED_LOOK, kicked = true) }
	:: else -> put_in_list(t, w)
	fi
}
#define CHOOSE if :: TAKES(M, 0) -> t = 0 :: !TAKES(M, 0) && TAKES(M, 1) -> t = 1 :: else fi

proctype dispatcher() {
	byte t = NONE;
	bool set = true, ok, x, old, merges;
	do
	:: atomic { rung -> rung = false; /* wake_unwoken */
		WHEN(unwoken && PENDING(0) && ACCEPTS(M, 0), wake(0));
		WHEN(unwoken && PENDING(1) && ACCEPTS(M, 1), wake(1));
		unwoken = false; set = open }
	:: atomic { set && (kd || kp) -> if :: kd -> kd = false :: kp -> kp = false fi; CHOOSE };
		if
		:: t == NONE -> /* return_to_kernel */
			atomic { old = open; alone = true; x = TAKES(M, 0) };
			atomic { x = x || TAKES(M, 1); WHEN(open == old, open = x) };
			atomic { WHEN(!alone && WITHOUT != OPENING_LOOK, open = open || old); kp = true; alone = false }
		:: else -> send(t, PROCESS)
		fi;
		atomic { set = open; t = NONE; ok = false; x = false; old = false }
	od
}
#define SEND(w) n < SENDS -> n++; due[w]++; owed[w] = true

proctype sender() {
	byte t = NONE, n;
	bool ok, x, merges;
	do
	:: n == SENDS -> break
	:: atomic { SEND(PROCESS); kp = true }
	:: atomic { SEND(PROCESS); CHOOSE }; /* kbi_signal_give */
		if :: t == NONE -> kp = true :: else -> put_in_list(t, PROCESS) fi;
		atomic { t = NONE; ok = false }
	:: atomic { !over[1] && SEND(TO + 1) };
		send(1, TO + 1);
		atomic { x = false; ok = false }
	od
}
#define GET_VP st[t] == READY && cur == NONE && ENTER; cur = t; st[t] = RUNNING
inline resumed() {
	do
	:: atomic { ENTER; m = L(MASK + t);
		WHEN(m != L(CLOSED) || m != kmask, bring(m));
		x = LETS_IN(t);
		WHEN(x, get(t); handle(t));
		LEAVE; m = 0; ok = false };
		if :: x -> x = false :: else -> break fi
	od
}
inline sleep(timed) {
	atomic { !busy && DRAINED(VP) -> WHEN(!LETS_IN(t) && !(L(WANTED + t) && PENDING(t)), cur = NONE; st[t] = ASLEEP) };
	WHEN(timed && st[t] == ASLEEP, atomic { WHEN(st[t] == ASLEEP, st[t] = READY) });
	WHEN(st[t] != RUNNING, atomic { GET_VP; LEAVE });
	resumed()
}
inline give_back() {
	WHEN(WITHOUT != GIVE_FENCE, fence(VP));
	WHEN(L(MASK + t) && !L(WANTED + t) && WITHOUT != GIVE_BACK, get_back(VP, t));
	LEAVE
}

proctype thread(byte t) {
	byte w, h;
	bool ok, x, m, merges;
	atomic { GET_VP; LEAVE }; resumed(); inside[t] = false;
	do
	:: atomic { cur == t && steps && !busy -> steps--; inside[t] = true };
		if
		:: L(MASK + t) -> atomic { ENTER; store(VP, MASK + t, 0); opened(VP); LEAVE }
		:: !L(MASK + t) -> atomic { ENTER; store(VP, MASK + t, 1); give_back() }
		:: sleep(false)
		:: t == 1 -> /* sigtimedwait */
			atomic { ENTER; store(VP, WANTED + t, 1); opened(VP); LEAVE };
			do
			:: atomic { !busy -> get(t);
				if :: !w && kv -> w = kv; kv = 0 :: !w && !kv && kp -> w = PROCESS; kp = false :: else fi;
				WHEN(w, taken(w)) };
				if :: w -> break :: !w -> break /* the time is over */ :: !w -> sleep(true) fi
			od;
			w = 0;
			atomic { ENTER; store(VP, WANTED + t, 0); give_back() }
		:: t == 1 -> /* ends */
			resumed();
			atomic { DRAINED(VP) && ENTER; over[t] = true; owed[TO + t] = false; x = PENDING(t) };
			atomic { WHEN(x, store(VP, MASK + t, 1)); WHEN(WITHOUT != LAST_BACK, get_back(VP, t));
				IN(t, PROCESS) = false; IN(t, TO) = false;
				DRAINED(VP) -> st[t] = DONE; cur = NONE; LEAVE };
			break
		fi;
		resumed(); inside[t] = false
	:: atomic { /* the tick; on_tick_return */
		cur == t && !busy && DRAINED(VP) && st[1 - t] == READY && (steps || inside[1 - t] || LETS_IN(1 - t)) ->
		steps = (inside[1 - t] || LETS_IN(1 - t) -> steps : steps - 1);
		st[t] = READY; cur = NONE };
		atomic { GET_VP; WHEN(LETS_IN(t), kicked = true); m = L(MASK + t); bring(m); LEAVE; m = 0; ok = false }
	od
}
#define LETS(t) (st[t] != DONE && !M(MASK + t))
#define LIES(w) (kv == w || IN(0, w) || IN(1, w))

init {
	atomic { if :: mem[MASK] = 1 :: true fi; if :: mem[MASK + 1] = 1 :: true fi;
		run drain(VP); run vp(); run thread(0); run thread(1); run dispatcher(); run sender() };
	do
	:: timeout ->
		assert(!busy && (st[1] != DONE || !PENDING(1)));
		assert(!owed[PROCESS] || kp || kd || LIES(PROCESS));
		assert(!(kp || kd || LIES(PROCESS)) || !(LETS(0) || LETS(1)));
		assert(over[1] || !owed[TO + 1] || kv == TO + 1 || IN(1, TO));
		assert(!(kv == TO + 1 || IN(1, TO)) || !LETS(1))
	od
}
