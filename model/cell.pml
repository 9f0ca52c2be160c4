/* model/cell.pml - an event's message: no notification is lost and none is taken twice, whichever of the three
 * places its message went to: handed (in the cell, to an owner that awaits it), far (far_value behind a lock) or given
 * (in the owner's descriptor).
 *
 * Mirrors: core/cell.h; core/wait.c deliver_from, wait.h kbi_wait_deliver_here (a case of it); core/domain.c mail_one,
 * put_cell_value; sync/event.h kbi_event_pending, kbi_event_take; sync/event.c kb_event_wait, wait_next, wait_other,
 * wait_slow.
 * Waking and moving are as in wait.pml, in short.
 * The owner of two cells waits on cell 0 until two notifiers have done their part, then on cell 1. A thread of
 * VP 0 notifies cell 0, one of VP 1 cell 1 and then cell 0. Mail is read between tasks and by the tick, which
 * interrupts the owner anywhere. With -DKERNEL a kernel thread is the other notifier of cell 0, and nobody of cell 1.
 * With -DLOCAL only VP 0 is there: its thread notifies cell 0 twice, the owner sometimes sleeps for another reason,
 * and must get the last message.
 * A lost notification is a deadlock. Variants that must fail: see dev/models. */
#ifdef LOCAL
#define GIVES 0
#else
#define GIVES 1
#endif
#define WORDS 16
#define CPUS 3
#define DEPTH 2
#include "tso.h"

/* words */
#define STATE 0
#define BYTE 1   /* permit */
#define ARMED 2  /* KBI_TASK_MAIL */
#define GOT 3    /* the message; cell and value in one */
#define AWAITS 4 /* 1 + the cell that is awaited; 0: none */
#define NEAR 5   /* value, of the cell that is or was awaited */
#define FAR 6    /* + cell: 1 full, 2 locked */
#define VALUE 8  /* + cell: far_value */
#define MAIL 10  /* + vp: messages ever sent to it by the other VP */
#define BOARD 12 /* + vp, but only where the owner may be found marked */
#define LINK 14  /* the owner is in the link towards VP LINK - 1 */

/* messages; a number says its cell, too. 0: a bare wake-up */
#define TO_1 1
#define FROM_1 2
#define FROM_0 3
#define FROM_OUTSIDE 4
#define CELL(m) (m == TO_1)

/* state: kind * 2 + vp */
#define READY 0
#define WAIVED 2
#define RUNNING 4
#define WAITING 6
#define KIND(s) ((s) & 6)
#define HOME(s) ((s) & 1)

#define OUTSIDE 2

chan box[2] = [4] of { byte }; /* what lies in the mail; MAIL says how much of it is seen */
bool over;
bool done_0, done_1, done_out; /* what the notifiers did first */
bool taken[5];
byte gives = GIVES;

/* the owner yields where another can come between then */
#ifdef LOCAL
#define CAN_YIELD true
#else
#define CAN_YIELD gives
#endif
#ifdef KERNEL
#define ALL_DONE (done_1 && done_out)
#else
#define ALL_DONE (done_0 && done_1)
#endif

inline put_far(c, m)
{
#ifdef NO_FAR_LOCK
	store(c, VALUE + CELL(m), m);
	store(c, FAR + CELL(m), 1)
#else
	atomic { DRAINED(c) && !(mem[FAR + CELL(m)] & 2) -> mem[FAR + CELL(m)] = mem[FAR + CELL(m)] | 2 };
	store(c, VALUE + CELL(m), m);
	store(c, FAR + CELL(m), 1)
#endif
}

/* kbi_domain_claim and kbi_vp_push */
inline claim(c)
{
	if
	:: LOAD(c, BYTE) -> exchange(c, BYTE, 0, x)
	:: else
	fi;
	store(c, STATE, READY + c);
	queued = true
}

inline post(c, m)
{
	atomic {
		nfull(buf[c]);
		box[1 - c]!m;
		sent++
	};
	store(c, MAIL + (1 - c), sent)
}

/* kbi_domain_wake_far */
inline wake(c)
{
	do
	:: s = LOAD(c, STATE);
	   if
	   :: s == WAITING + c -> claim(c); break
	   :: s != WAITING + c && (HOME(s) == c || KIND(s) == WAIVED) ->
		store(c, BYTE, 1);
		fence(c);
		if
		:: LOAD(c, STATE) == s -> break
		:: else
		fi
	   :: s != WAITING + c && HOME(s) != c && KIND(s) != WAIVED -> post(c, 0); break
	   fi
	od;
	s = 0
}

/* kbi_cell_hand, kbi_cell_give */
inline hand(c, m)
{
	store(c, NEAR, m);
	store(c, AWAITS, 0)
}

inline give(c, m)
{
	store(c, GOT, m);
	store(c, ARMED, 1)
}

/* to an owner that waits here */
inline put_near(c, m)
{
	if
	:: LOAD(c, AWAITS) == 1 + CELL(m) -> hand(c, m)
#ifdef GIVE_OVER_FAR
	:: LOAD(c, AWAITS) != 1 + CELL(m) && LOAD(c, ARMED) -> put_far(c, m)
#else
	:: LOAD(c, AWAITS) != 1 + CELL(m) && (LOAD(c, ARMED) || LOAD(c, FAR + CELL(m))) -> put_far(c, m)
#endif
	:: else -> give(c, m)
	fi
}

/* deliver_from: a thread of VP c notifies */
inline deliver(c, m)
{
	s = LOAD(c, STATE);
	if
	:: s == WAITING + c -> put_near(c, m); claim(c)
	:: KIND(s) == WAITING && HOME(s) != c -> post(c, m)
	:: else ->
		put_far(c, m);
		wake(c)
	fi;
	s = 0
}

#define HERE(s, c) (s == WAITING + c || s == RUNNING + c)
#ifdef GOT_TWICE
#define NO_GOT(c) true
#else
#define NO_GOT(c) !LOAD(c, ARMED)
#endif

/* mail_one */
inline mail_one(c)
{
	box[c]?m;
	s = LOAD(c, STATE);
	if
	:: m && HERE(s, c) && NO_GOT(c) -> give(c, m)
	:: m && !(HERE(s, c) && NO_GOT(c)) -> put_far(c, m)
	:: else
	fi;
	m = 0;
	wake(c)
}

#define GOT_HERE(c) (LOAD(c, ARMED) && CELL(LOAD(c, GOT)) == want)

/* where the owner is in kb_event_wait; from SLOW on in wait_slow */
mtype = { CALL, LOOK, AWAIT, GO_ON, SLOW, SLOW_LOOK, TAKE_GOT, CLEAR, TAKE_FAR, SLEEP, SLEEP_ELSE };
mtype at = CALL;
byte want; /* the cell that it waits on */
byte value;

/* The owner's message is `value`. */
inline have()
{
	atomic {
		assert(value && CELL(value) == want && !taken[value]);
		taken[value] = true;
#ifdef LOCAL
		assert(!(value == FROM_1 && taken[FROM_0]));
		over = (value == FROM_0);
#else
		over = (want == 1);
#endif
		value = 0;
		at = CALL
	}
}

proctype vp(byte c)
{
	byte s, x, m, sent, read, says;
	bool queued, runs_here;

	if
#ifdef KERNEL
	:: c == 0 -> queued = true
	:: c == 1 -> says = FROM_1
#else
	:: c == 0 -> queued = true; says = FROM_0
	:: c == 1 -> says = TO_1
#endif
	fi;
	do
	:: over -> break
	/* between tasks, in kbi_wait_sleep while RUNNING, or by the tick: mail and board */
	:: LOAD(c, MAIL + c) != read -> read++; mail_one(c)
	:: LOAD(c, BOARD + c) ->
		exchange(c, BOARD + c, 0, x);
		wake(c)
	/* the notifier of this VP */
#ifdef LOCAL
	:: says == FROM_0 && !runs_here -> says = FROM_1; deliver(c, FROM_1)
	:: says == FROM_1 && !runs_here -> says = 0; done_0 = true; deliver(c, FROM_0)
#else
	:: says == FROM_0 && !runs_here -> says = 0; done_0 = true; deliver(c, FROM_0)
	:: says == TO_1 && !runs_here -> says = FROM_1; deliver(c, TO_1)
	:: says == FROM_1 && !runs_here -> says = 0; done_1 = true; deliver(c, FROM_1)
#endif
	/* the owner: runs, yields, is given away */
	:: queued ->
		queued = false;
		store(c, STATE, RUNNING + c);
		runs_here = true
	:: queued && gives ->
		gives--;
		queued = false;
		store(c, STATE, WAIVED + (1 - c));
		store(c, LINK, 2 - c)
	:: LOAD(c, LINK) == c + 1 ->
		store(c, LINK, 0);
		store(c, STATE, READY + c);
		fence(c); /* law 3 */
		queued = true
	:: runs_here && at == CALL && CAN_YIELD -> /* yields */
		runs_here = false;
		store(c, STATE, READY + c);
		queued = true
	/* its steps in kb_event_wait; between them the tick may come */
	:: runs_here && at == CALL -> /* is there anything left to wait for? */
		if
#if defined(KERNEL)
		:: ALL_DONE -> over = true; break
#elif !defined(LOCAL)
		:: want == 0 && ALL_DONE -> want = 1
#endif
		:: else
		fi;
		at = LOOK
	:: runs_here && at == LOOK ->
		if
		:: LOAD(c, ARMED) || LOAD(c, FAR + want) -> at = SLOW
		:: else -> at = AWAIT
		fi
	:: runs_here && at == AWAIT -> /* inside np brackets */
		store(c, AWAITS, 1 + want);
		if
		:: LOAD(c, BYTE) -> exchange(c, BYTE, 0, x); at = SLOW
		:: else ->
			runs_here = false;
			store(c, STATE, WAITING + c);
			at = GO_ON
		fi
	:: runs_here && at == GO_ON ->
		if
		:: LOAD(c, AWAITS) -> at = SLOW
		:: else -> value = LOAD(c, NEAR); have()
		fi
	:: runs_here && at == SLOW -> store(c, AWAITS, 0); at = SLOW_LOOK
	:: runs_here && at == SLOW_LOOK ->
		if
		:: GOT_HERE(c) || (LOAD(c, FAR + want) & 1) -> at = TAKE_GOT
		:: else -> at = SLEEP
		fi
#ifdef LOCAL
	:: runs_here && at == CALL && !done_0 -> at = SLEEP_ELSE
#endif
	:: runs_here && at == TAKE_GOT && GOT_HERE(c) ->
#ifdef CLEAR_FIRST
		store(c, ARMED, 0); at = CLEAR
#else
		value = LOAD(c, GOT); store(c, ARMED, 0); at = TAKE_FAR
#endif
	:: runs_here && at == CLEAR -> value = LOAD(c, GOT); at = TAKE_FAR
	:: runs_here && at == TAKE_GOT && !GOT_HERE(c) -> at = TAKE_FAR
	:: runs_here && at == TAKE_FAR -> /* kbi_event_take_far, inside np brackets */
		if
		:: LOAD(c, FAR + want) ->
#ifdef NO_FAR_LOCK
			if
			:: LOAD(c, FAR + want) & 1 -> value = LOAD(c, VALUE + want)
#else
			atomic { DRAINED(c) && !(mem[FAR + want] & 2) -> mem[FAR + want] = mem[FAR + want] | 2 };
			if
			:: LOAD(c, FAR + want) & 1 -> value = LOAD(c, VALUE + want)
#endif
			:: else
			fi;
			store(c, FAR + want, 0)
		:: else
		fi;
		have()
	:: runs_here && (at == SLEEP || at == SLEEP_ELSE) -> /* kbi_wait_sleep */
		store(c, STATE, WAITING + c);
		if
		:: LOAD(c, BYTE) -> exchange(c, BYTE, 0, x); store(c, STATE, RUNNING + c)
		:: else -> runs_here = false
		fi;
		at = (at == SLEEP -> SLOW_LOOK : CALL)
	od
}

/* kb_event_notify and kbi_domain_wake_from_outside */
proctype outside()
{
	byte s;

	done_out = true;
#if defined(HAND_ANYWHERE)
	if
	:: LOAD(OUTSIDE, AWAITS) -> hand(OUTSIDE, FROM_OUTSIDE)
	:: else -> put_far(OUTSIDE, FROM_OUTSIDE)
	fi;
#elif !defined(WAKE_FIRST)
	put_far(OUTSIDE, FROM_OUTSIDE);
#endif
	store(OUTSIDE, BYTE, 1);
	fence(OUTSIDE);
	s = LOAD(OUTSIDE, STATE);
	store(OUTSIDE, BOARD + HOME(s), 1)
#ifdef WAKE_FIRST
	;
	put_far(OUTSIDE, FROM_OUTSIDE)
#endif
}

init {
	atomic {
		run drain(0); run drain(1); run drain(2);
		run vp(0);
#ifndef LOCAL
		run vp(1);
#endif
#ifdef KERNEL
		run outside()
#endif
	}
}
