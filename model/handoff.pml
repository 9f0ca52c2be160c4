/* model/handoff.pml - a thread that blocks lends its virtual processor: exactly one has it, the thread or who takes it;
 * sysmon does not sleep while it is lent; no wake-up of the thread is lost wherever it is; an idle worker finds its job and
 * does not go round for ever.
 *
 * Mirrors: core/handoff.c depart_from_vp, lend_vp, give_vp_now, have_back, win_lent_vp, leave_worker, send_to_vp,
 * take_permit, kbi_handoff_found; core/lending.c take_lent_vp, kbi_lending_give, kbi_lending_win; core/worker_pool.c
 * wait_for_job, kbi_worker_pool_give, adopt_vp; core/sysmon.c sleep_long; core/foreign.c kbi_foreign_sleep; core/domain.c
 * wake_blocked, leave_permit, kbi_domain_wake_far, kbi_domain_wake_from_outside.
 * One virtual processor, two workers. Thread A makes CALLS calls. One ends when it likes, another not before thread B, ready
 * on the same virtual processor, has run; B makes a short call, too.
 * With -DWAKE: in a call or outside, A waits for something that a thread of another virtual processor (-DKERNEL: a kernel
 * thread) does once; once a handler of A's, as A is about to sleep, is found in a call that nobody announced. Sysmon
 * is always awake there, and B makes no call.
 * A lost wake-up, or a sleeping sysmon, is a deadlock.
 * Variants that must fail: see dev/models. */
#ifdef WAKE
#define CALLS 1
#else
#define CALLS 2
#endif
#define WORDS 13
#define CPUS 4
#define DEPTH 2
#include "tso.h"

#define LENT 0
#define STATE 1
#define FUTEX 2
#define BYTE 3  /* permit */
#define DONE 4  /* what A waits for */
#define MAIL 5  /* a message to the virtual processor: A is to be woken */
#define INBOX 6 /* A was sent to it */
#define LBELL 7 /* sysmon's */
#define QUEUE 8 /* the virtual processor's own: plain loads and stores */
#define JOB 9   /* + worker */
#define BELL 11 /* + worker */

#define TAKEN 255

/* state */
#define RUNNING 0
#define BLOCKED 1
#define WAIVED 2
#define WAITING 3
#define READY 4

/* sysmon's bell */
#define AWAKE 0
#define ASLEEP 1

#define SYSMON 2
#define WAKER 3

bool idle[2];      /* the pool of idle workers, under its lock */
byte have = 1;     /* how many have the virtual processor, lent: nobody */
byte its_worker;
byte running = 1;  /* workers that run A */
bool rejoined;     /* A comes back from a call that it lost its virtual processor in */
bool to_sleep;     /* it was about to sleep */
bool ready;        /* A is in the queue */
#ifdef WAKE
bool seen;
#else
bool seen = true;
#endif
bool over;
bool b_ready = true, b_done;
byte calls = CALLS, found = 1, seq, touched;

inline get_it()
{
	have++;
	assert(have == 1)
}

inline touch(c)
{
	x = LOAD(c, QUEUE);
	store(c, QUEUE, x + 1);
	touched++;
	x = 0
}

/* ---- waking A ------------------------------------------------------------------------------------------ */

inline leave_permit(c)
{
	store(c, BYTE, 1);
	fence(c)
}

/* The virtual processor reads its message: kbi_domain_wake_far */
inline read_mail(c)
{
	exchange(c, MAIL, 0, x);
	do
	:: s = LOAD(c, STATE);
	   if
	   :: s == WAITING -> store(c, BYTE, 0); store(c, STATE, READY); ready = true; break
	   :: s == BLOCKED ->
		exchange(c, FUTEX, 1, x);
		if
		:: LOAD(c, STATE) == s -> break
		:: else
		fi
	   :: else ->
		leave_permit(c);
		if
		:: LOAD(c, STATE) == s -> break
		:: else
		fi
	   fi
	od;
	s = 0;
	x = 0
}

proctype waker()
{
	byte s, x;

	store(WAKER, DONE, 1);
#ifndef KERNEL /* a thread of another virtual processor */
	do
	:: s = LOAD(WAKER, STATE);
	   if
	   :: s == BLOCKED ->
		exchange(WAKER, FUTEX, 1, x);
#ifdef NO_RECHECK
		break
#else
		if
		:: LOAD(WAKER, STATE) == s -> break
		:: else
		fi
#endif
	   :: s == WAIVED ->
		leave_permit(WAKER);
		if
		:: LOAD(WAKER, STATE) == s -> break
		:: else
		fi
	   :: else -> store(WAKER, MAIL, 1); break
	   fi
	od
#else
	leave_permit(WAKER);
	s = LOAD(WAKER, STATE);
	if
	:: s == BLOCKED -> exchange(WAKER, FUTEX, 1, x)
	:: else -> store(WAKER, MAIL, 1)
	fi
#endif
}

/* ---- sysmon ---------------------------------------------------------------------------------------------- */

/* c has the virtual processor, or has just taken it. b: out of the pool */
inline give(c, b)
{
	store(c, JOB + b, 1);
	store(c, BELL + b, 1)
}

proctype sysmon()
{
	byte word, b;
	bool ok;

end:	do
	:: atomic {
		LOAD(SYSMON, LENT) != 0 && LOAD(SYSMON, LENT) != TAKEN && (idle[0] || idle[1]) ->
		word = LOAD(SYSMON, LENT);
		b = (idle[0] -> 0 : 1);
		idle[b] = false
	   };
#ifdef TAKE_BY_STORE
	   ok = (LOAD(SYSMON, LENT) == word);
	   if
	   :: ok -> atomic { store(SYSMON, LENT, TAKEN); get_it() }
	   :: else
	   fi;
#else
	   atomic {
		cas(SYSMON, LENT, word, TAKEN, ok);
		if
		:: ok -> get_it()
		:: else
		fi
	   };
#endif
	   if
	   :: ok -> give(SYSMON, b)
	   :: else -> idle[b] = true
	   fi;
	   word = 0; b = 0; ok = false
#ifndef WAKE
	:: LOAD(SYSMON, LENT) == 0 || LOAD(SYSMON, LENT) == TAKEN -> /* sleep_long */
		store(SYSMON, LBELL, ASLEEP);
#ifndef NO_SYSMON_FENCE
		fence(SYSMON);
#endif
		if
		:: LOAD(SYSMON, LENT) == 0 || LOAD(SYSMON, LENT) == TAKEN ->
			DRAINED(SYSMON); /* the kernel compares it */
end_asleep:		mem[LBELL] != ASLEEP
		:: else
		fi;
		store(SYSMON, LBELL, AWAKE)
#endif
	od
}

/* ---- lending ----------------------------------------------------------------------------------------------- */

inline lend(c)
{
#ifdef SAME_WORD
	word = 1;
#else
	seq++;
	word = seq;
#endif
#ifdef LEND_BY_STORE
	atomic { have--; store(c, LENT, word) };
#else
	atomic { DRAINED(c); have--; mem[LENT] = word };
#endif
	if
	:: LOAD(c, LBELL) == ASLEEP -> cas(c, LBELL, ASLEEP, AWAKE, ok)
	:: else
	fi
}

inline have_back(c)
{
#ifdef BACK_BY_STORE
	ok = (LOAD(c, LENT) == word);
	if
	:: ok -> atomic { store(c, LENT, 0); get_it() }
	:: else
	fi;
#else
	atomic {
		cas(c, LENT, word, 0, ok);
		if
		:: ok -> get_it(); assert(its_worker == c)
		:: else
		fi
	};
#endif
	word = 0
}

inline take_permit(c)
{
#ifndef NO_TAKE_PERMIT
	if
	:: LOAD(c, FUTEX) -> exchange(c, FUTEX, 0, x); store(c, BYTE, 1); x = 0
	:: else
	fi
#else
	skip
#endif
}

inline look_at_byte(c)
{
	x = 0;
#ifndef NO_PERMIT_LOOK
	if
	:: LOAD(c, BYTE) -> exchange(c, BYTE, 0, x)
	:: else
	fi
#endif
}

inline foreign_sleep(c)
{
	look_at_byte(c);
	if
	:: x
	:: else ->
		DRAINED(c);
		mem[FUTEX];
		exchange(c, FUTEX, 0, x)
	fi;
	x = 0
}

/* A, BLOCKED, waits for what it waits for */
inline foreign_wait(c)
{
	do
	:: LOAD(c, DONE) -> seen = true; break
	:: else ->
		foreign_sleep(c)
	od
}

/* ---- the workers ------------------------------------------------------------------------------------------- */

proctype worker(byte c)
{
	byte x, s, word;
	bool ok, needs_b;

	if
	:: c == 0 -> goto runs
	:: else
	fi;

idle_worker:	store(c, BELL + c, 0);
	store(c, JOB + c, 0);
	atomic { DRAINED(c); idle[c] = true };
	do
	:: LOAD(c, JOB + c) -> break
	:: !LOAD(c, JOB + c) ->
end_idle_worker:	mem[BELL + c];
#ifdef BELL_STAYS
		DRAINED(SYSMON) && DRAINED(1 - c); /* who rings has stored the job before: or it goes round for ever */
		assert(LOAD(c, JOB + c))
#else
		exchange(c, BELL + c, 0, x);
		x = 0
#endif
	od;
	/* adopt_vp */
	its_worker = c;
	store(c, LENT, 0);
	touch(c);

agent:	do
	:: LOAD(c, MAIL) -> read_mail(c)
	:: b_ready ->
		b_ready = false;
		b_done = true;
#ifndef WAKE
		lend(c);
		have_back(c);
		if
		:: !ok -> goto idle_worker /* it goes on elsewhere */
		:: else -> ok = false
		fi
#endif
	:: LOAD(c, INBOX) ->
		exchange(c, INBOX, 0, x);
		x = 0;
		store(c, STATE, READY);
		fence(c); /* law 3 */
		ready = true
	:: ready ->
		ready = false;
		store(c, STATE, RUNNING);
		running++;
		break
	od;
	assert(running == 1);

	/* A, on the virtual processor */
runs:	if
	:: rejoined ->
		rejoined = false;
		fence(c);
		take_permit(c);
		if
		:: to_sleep -> to_sleep = false; goto sleep
		:: else
		fi
	:: else
	fi;
	do
	:: LOAD(c, MAIL) -> read_mail(c) /* at a look between two tasks, or the tick */
	:: calls -> goto call
	:: !seen ->
		if
		:: LOAD(c, DONE) -> seen = true
		:: else -> goto sleep
		fi
	:: seen && !calls -> over = true; goto done
	od;

sleep:	if
	:: LOAD(c, MAIL) -> read_mail(c); goto sleep /* the tick */
	:: atomic { found && idle[1 - c] -> found--; idle[1 - c] = false }; /* kbi_handoff_found, in a handler */
		store(c, STATE, BLOCKED);
		store(c, LENT, TAKEN);
		give(c, 1 - c);
		if
		:: true -> /* the handler returns */
			foreign_sleep(c);
			foreign_wait(c)
		:: to_sleep = true /* the handler calls the library */
		fi;
		goto rejoin
	:: LOAD(c, BYTE) -> exchange(c, BYTE, 0, x); x = 0; goto runs
	:: !LOAD(c, BYTE) -> running--; store(c, STATE, WAITING); goto agent
	fi;

call:	calls--;
	touch(c);
	store(c, STATE, BLOCKED);
#ifndef WAKE
	if
	:: atomic { idle[1 - c] -> idle[1 - c] = false }; /* give_vp_now */
		store(c, LENT, TAKEN);
		give(c, 1 - c);
		goto rejoin
	:: true
	fi;
#endif
	lend(c);
	ok = false;
	if
	:: true
	:: b_done == false -> b_done /* B ends it */
	:: !seen -> foreign_wait(c)
	fi;
	have_back(c);
	if
	:: ok ->
		exchange(c, STATE, RUNNING, x);
		x = 0;
		ok = false;
		take_permit(c);
		goto runs
	:: else
	fi;

rejoin:	word = LOAD(c, LENT); /* win_lent_vp: B's, or nobody's */
	if
	:: word != 0 && word != TAKEN ->
#ifdef WIN_BY_STORE
		ok = (LOAD(c, LENT) == word);
		if
		:: ok -> atomic { store(c, LENT, TAKEN); get_it() }
		:: else
		fi;
#else
		atomic {
			cas(c, LENT, word, TAKEN, ok);
			if
			:: ok -> get_it()
			:: else
			fi
		};
#endif
		word = 0;
		if
		:: ok ->
			ok = false;
			its_worker = c;
			touch(c);
			store(c, LENT, 0);
			exchange(c, STATE, RUNNING, x);
			x = 0;
			take_permit(c);
			if
			:: to_sleep -> to_sleep = false; goto sleep
			:: else -> goto runs
			fi
		:: else
		fi
	:: else -> word = 0
	fi;
	rejoined = true;
#ifdef SENT_BEFORE_SAVED
	store(c, STATE, WAIVED);
	exchange(c, INBOX, 1, x);
	running--;
#else
	running--; /* the agent's stack; its context is saved */
	store(c, STATE, WAIVED);
	exchange(c, INBOX, 1, x);
#endif
	x = 0;
	goto idle_worker;
done:	skip
}

init {
	atomic {
		run drain(0); run drain(1); run drain(2); run drain(3);
		run worker(0); run worker(1); run sysmon();
#ifdef WAKE
		run waker()
#endif
	};
	over && DRAINED(0) && DRAINED(1) && DRAINED(2) && DRAINED(3);
	assert(mem[QUEUE] == touched)
}
