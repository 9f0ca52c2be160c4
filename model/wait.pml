/* model/wait.pml - no wake-up is lost and no thread runs twice, wherever the thread goes meanwhile.
 *
 * Mirrors: core/wait.c kbi_wait_sleep (kbi_wait_sleep_on); core/domain.c kbi_domain_wake_far, leave_permit,
 * kbi_domain_post, mail_one, on_marked_task, kbi_domain_wake_from_outside, kbi_domain_claim; sched/link.h (a packet
 * goes to the other VP, perhaps unopened); laws 1 to 3 of sched/task.h.
 * One thread sleeps until two things have happened. A thread of VP 0 does the first, a kernel thread the second; with
 * -DHANDLER a signal handler does the second, which interrupts a VP between any two steps (posix/signal_action.c
 * put_off_signal).
 * Between its looks it is given to the other VP, GIVES times at most. VPs never sleep here: board.pml.
 * A lost wake-up is a deadlock (nobody can go on, and the end is not reached).
 * Variants that must fail: see dev/models. */
#ifndef GIVES
#define GIVES 2
#endif
#define WORDS 10
#define CPUS 3
#define DEPTH 3
#include "tso.h"

/* words */
#define STATE 0
#define BYTE 1     /* permit */
#define DONE_VP 2  /* what the sleeper waits for */
#define DONE_OUT 3
#define MAIL 4     /* + vp: messages ever sent to it by the other VP */
#define BOARD 6    /* + vp: the thread is marked */
#define LINK 8     /* + vp: the thread is in the link towards it */

/* state: kind * 2 + vp */
#define READY 0
#define WAIVED 2
#define RUNNING 4
#define WAITING 6
#define KIND(s) ((s) & 6)
#define HOME(s) ((s) & 1)

#define OUTSIDE 2 /* the kernel thread's processor */

bool over;        /* the sleeper has seen both */
#ifdef HANDLER
byte signals = 2; /* that are still to come */
#endif
byte runs;        /* how many VPs run or queue the thread: never 2 */
byte gives = GIVES;

#ifdef NO_WAKER_FENCE
#define waker_fence(c) skip
#else
#define waker_fence(c) fence(c)
#endif
#ifdef NO_LAW_3
#define law_3_fence(c) skip
#else
#define law_3_fence(c) fence(c)
#endif

/* kbi_domain_claim and kbi_vp_push, on VP c */
inline claim(c)
{
	if
	:: LOAD(c, BYTE) -> exchange(c, BYTE, 0, x)
	:: else
	fi;
	store(c, STATE, READY + c);
	queued = true;
	runs++;
	assert(runs == 1)
}

/* kbi_domain_wake_far on VP c */
inline wake(c)
{
	do
	:: s = LOAD(c, STATE);
	   if
#ifdef CLAIM_ANYWHERE /* against law 2 */
	   :: KIND(s) == WAITING -> claim(c); break
#else
	   :: s == WAITING + c -> claim(c); break
#endif
#ifdef NO_LEFT_PERMIT
	   :: s != WAITING + c && (HOME(s) == c || KIND(s) == WAIVED) -> break
#else
	   :: s != WAITING + c && (HOME(s) == c || KIND(s) == WAIVED) ->
		store(c, BYTE, 1);
		waker_fence(c);
#ifdef NO_RECHECK
		break
#else
		if
		:: LOAD(c, STATE) == s -> break
		:: else
		fi
#endif
#endif
#ifndef CLAIM_ANYWHERE
	   :: s != WAITING + c && HOME(s) != c && KIND(s) != WAIVED ->
		sent++;
		store(c, MAIL + (1 - c), sent);
		break
#else
	   :: KIND(s) != WAITING && HOME(s) != c && KIND(s) != WAIVED ->
		sent++;
		store(c, MAIL + (1 - c), sent);
		break
#endif
	   fi
	od;
	s = 0
}

/* A VP. The thread's own steps are in line: they run on it. */
proctype vp(byte c)
{
	byte s, x, sent, taken;
	bool queued, runs_here, looked, waits, waker;

	waker = (c == 0);
	if
	:: c == 0 -> queued = true; runs = 1
	:: else
	fi;
	do
	:: over -> break
	/* between tasks, or in kbi_wait_sleep while RUNNING: mail and board */
	:: !waits && LOAD(c, MAIL + c) != taken ->
		taken++;
#ifdef NO_FORWARD
		if
		:: LOAD(c, STATE) == WAITING + c -> claim(c)
		:: else
		fi
#else
		wake(c)
#endif
	:: !waits && LOAD(c, BOARD + c) ->
		exchange(c, BOARD + c, 0, x);
		wake(c)
	/* the other thread of VP 0: does its part, wakes */
	:: waker && !runs_here ->
		waker = false;
		store(c, DONE_VP, 1);
		wake(c)
	/* the ready thread: runs, or is given away */
	:: queued ->
		queued = false;
		store(c, STATE, RUNNING + c);
		runs_here = true
	:: queued && gives ->
		gives--;
		queued = false;
		runs--;
		store(c, STATE, WAIVED + (1 - c));
		store(c, LINK + (1 - c), 1)
	/* a packet: opened, or passed on as it is */
	:: LOAD(c, LINK + c) ->
		store(c, LINK + c, 0);
		store(c, STATE, READY + c);
		law_3_fence(c);
		queued = true;
		runs++;
		assert(runs == 1)
	:: LOAD(c, LINK + c) && gives ->
		gives--;
		store(c, LINK + c, 0);
		store(c, LINK + (1 - c), 1)
	/* the thread: looks, and sleeps if it must */
	:: runs_here && !looked ->
		if
		:: LOAD(c, DONE_VP) && LOAD(c, DONE_OUT) -> over = true
		:: else -> looked = true
		fi
	:: runs_here && !looked && gives -> /* yields */
		runs_here = false;
		store(c, STATE, READY + c);
		queued = true
	/* kbi_wait_sleep */
#ifdef PERMIT_FIRST
	:: runs_here && looked && !waits ->
		if
		:: LOAD(c, BYTE) -> exchange(c, BYTE, 0, x); looked = false
		:: else -> waits = true
		fi
	:: waits -> store(c, STATE, WAITING + c); looked = false; waits = false; runs_here = false; runs--
#else
	:: runs_here && looked && !waits -> store(c, STATE, WAITING + c); waits = true
	:: waits ->
		looked = false;
		waits = false;
		if
#ifndef NO_PERMIT_LOOK
		:: LOAD(c, BYTE) -> exchange(c, BYTE, 0, x); store(c, STATE, RUNNING + c)
#endif
		:: else -> runs_here = false; runs--
		fi
#endif
#ifdef HANDLER
	/* what it brings to a thread that is not RUNNING here the dispatcher tells, from outside */
	:: atomic { signals -> signals-- };
		store(c, DONE_OUT, 1);
		store(c, BYTE, 1);
		if
		:: runs_here && LOAD(c, STATE) == RUNNING + c
		:: else ->
			fence(c);
			s = LOAD(c, STATE);
			store(c, BOARD + HOME(s), 1);
			s = 0
		fi
#endif
	od
}

/* kbi_domain_wake_from_outside */
proctype outside()
{
	byte s;

	store(OUTSIDE, DONE_OUT, 1);
	store(OUTSIDE, BYTE, 1);
#ifndef NO_OUTSIDE_FENCE
	fence(OUTSIDE);
#endif
	s = LOAD(OUTSIDE, STATE);
	store(OUTSIDE, BOARD + HOME(s), 1)
}

init {
	atomic {
		run drain(0); run drain(1); run drain(2);
		run vp(0); run vp(1);
#ifndef HANDLER
		run outside()
#endif
	}
}
