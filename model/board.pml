/* model/board.pml - a VP goes to sleep in the kernel while others have work for it or act for it: no wake-up and no
 * task is lost, no waiter is claimed twice.
 *
 * Mirrors: sched/board.c kbi_board_mark, kbi_board_scan (sum2 and sum3 as one level), kbi_mail_post, kbi_mail_take and
 * sched/board.h kbi_mail_filled (one slot, one lap); core/agent.c sleep_in_kernel, sleep_offering_domain, reclaim_keeper;
 * core/vp.c kbi_vp_rouse, kbi_vp_hold, kbi_vp_unhold, kbi_vp_send, kbi_vp_receive; core/domain.c pull_waiter,
 * kbi_domain_post, mail_one, on_marked_task, scan_board, kbi_domain_wake_from_outside. A wake-up to be a monitor is like
 * none: the sleeper looks again.
 * Threads 0 and 1, in one group of the board, wait on VP `home`. A kernel thread wakes 1. A waker on VP `other` wakes 0
 * and then polls home's domain once, as a poller does; a kernel thread wakes 0 too, and sends home a new task.
 * Lost: deadlock. Claimed twice: an assertion. Variants that must fail: see dev/models. */
#define WORDS 11
#define CPUS 4
#define DEPTH 3
#include "tso.h"

#define DOZE 0
#define KEEPER 1
#define MARKED 2
#define SUM2 3
#define SUM1 4
#define BYTE 5    /* + thread: its mark */
#define STATE 7   /* + thread */
#define MAIL 9    /* from `other`: a message for thread 0, ever 0 or 1 */
#define INBOX 10

#define SELF 0
#define OFFERED 1
#define TAKEN 2

#define WAITING 0 /* on home */
#define READY 1   /* + cpu of the VP */

#define HOME 0
#define OTHER 1

byte claimed[2];
byte received;
bool asleep;
byte mails; /* taken; under the keeper */
#define ALL (claimed[0] && claimed[1] && received)

#ifdef NO_WAKER_FENCE
#define waker_fence(c) skip
#else
#define waker_fence(c) fence(c)
#endif

inline claim(t)
{
	claimed[t]++;
	assert(claimed[t] == 1)
}

/* kbi_vp_rouse */
inline rouse(c)
{
	if
	:: LOAD(c, DOZE) ->
		exchange(c, DOZE, 0, x);
		if
		:: x -> asleep = false /* FUTEX_WAKE */
		:: else
		fi
	:: else
	fi
}

inline mark(c, t)
{
#ifdef MARK_TOP_DOWN
	store(c, MARKED, 1);
	store(c, SUM2, 1);
	store(c, SUM1, 1);
	store(c, BYTE + t, 1)
#else
	store(c, BYTE + t, 1);
	store(c, SUM1, 1);
	store(c, SUM2, 1);
	store(c, MARKED, 1)
#endif
}

inline found(c, t)
{
	if
	:: LOAD(c, BYTE + t) ->
		exchange(c, BYTE + t, 0, x);
		if
		:: LOAD(c, STATE + t) == WAITING -> claim(t); store(c, STATE + t, READY + c)
		:: else
		fi
	:: else
	fi
}

inline scan(c)
{
	if
	:: LOAD(c, MARKED) ->
		exchange(c, MARKED, 0, x);
		if
		:: LOAD(c, SUM2) ->
			exchange(c, SUM2, 0, x);
			if
#ifdef CLEAR_AFTER_SCAN
			:: LOAD(c, SUM1) -> found(c, 0); found(c, 1); exchange(c, SUM1, 0, x)
#else
			:: LOAD(c, SUM1) -> exchange(c, SUM1, 0, x); found(c, 0); found(c, 1)
#endif
			:: else
			fi
		:: else
		fi;
		if
		:: c == HOME && LOAD(c, INBOX) ->
			exchange(c, INBOX, 0, x);
			received++;
			assert(received == 1)
#ifndef INBOX_FORGOTTEN
		:: c != HOME && LOAD(c, INBOX) -> store(c, MARKED, 1)
#endif
		:: else
		fi
	:: else
	fi
}

/* kbi_domain_poll of home's domain, which the caller holds */
inline poll(c)
{
	if
	:: LOAD(c, MAIL) != mails ->
		mails++;
		if
		:: LOAD(c, STATE) == WAITING -> claim(0); store(c, STATE, READY + c)
		:: else
		fi
	:: else
	fi;
	scan(c)
}

proctype home()
{
	byte x;
	bool ok;

	do
	:: ALL -> break
	:: else ->
		store(HOME, DOZE, 1);
#ifndef NO_SLEEPER_FENCE
		fence(HOME);
#endif
		poll(HOME);
		if
		:: ALL -> break
		:: else
		fi;
		store(HOME, KEEPER, OFFERED);
		atomic { /* FUTEX_WAIT: looks at the word in the kernel, behind a fence */
			DRAINED(HOME);
			asleep = mem[DOZE]
		};
		!asleep;
		ok = false;
		do
		:: !ok && mem[KEEPER] == OFFERED -> cas(HOME, KEEPER, OFFERED, SELF, ok)
		:: ok -> break
		od;
		exchange(HOME, DOZE, 0, x)
	od;
	asleep = false
}

/* Claims thread 0 out of the sleeper's domain, or else sends a message; then polls for it. */
proctype other()
{
	byte x;
	bool ok, mine;

	/* pull_waiter */
	if
	:: LOAD(OTHER, STATE) == WAITING ->
		cas(OTHER, KEEPER, OFFERED, TAKEN, ok);
		if
		:: ok ->
			mine = (LOAD(OTHER, STATE) == WAITING);
			if
			:: mine -> claim(0)
			:: else
			fi;
#ifdef READY_AFTER_UNHOLD
			store(OTHER, KEEPER, OFFERED);
			if
			:: mine -> store(OTHER, STATE, READY + OTHER)
			:: else
			fi
#else
			if
			:: mine -> store(OTHER, STATE, READY + OTHER)
			:: else
			fi;
			store(OTHER, KEEPER, OFFERED)
#endif
		:: else
		fi;
		if
		:: mine
		:: else ->
			store(OTHER, MAIL, 1);
			waker_fence(OTHER);
			rouse(OTHER)
		fi
	:: else
	fi;
	/* poll_others */
	cas(OTHER, KEEPER, OFFERED, TAKEN, ok);
	if
	:: ok ->
		poll(OTHER);
		store(OTHER, KEEPER, OFFERED)
	:: else
	fi
}

proctype kernel_thread(byte c; byte t)
{
	byte x;

	mark(c, t);
	waker_fence(c);
	rouse(c);
	if
	:: t == 0 -> /* kbi_vp_send */
		exchange(c, INBOX, 1, x);
		store(c, MARKED, 1);
		waker_fence(c);
		rouse(c)
	:: else
	fi
}

init {
	atomic {
		run drain(0); run drain(1); run drain(2); run drain(3);
		run home(); run other(); run kernel_thread(2, 0); run kernel_thread(3, 1)
	}
}
