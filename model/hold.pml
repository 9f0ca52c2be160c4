/* model/hold.pml - a thread waits in a call for the file of a number; closers close the number and others open files under
 * it, or the closer puts another file there: no attempt of the call, once others can know that it has begun, uses another
 * file than the one that the number meant when it began, nor a number that is closed.
 *
 * Mirrors: io/hold.h kbi_hold_attempt, kbi_hold_attempted; io/hold.c kbi_hold_begin, begin_with_copy, remove_hold,
 * kbi_hold_end, kbi_hold_closing, move_all_holds, await_attempts, kbi_hold_closed. The number N and two private ones;
 * CALLERS threads on a VP each make TRIES attempts; CLOSERS close N once each, a file of the program's comes to it at
 * once or later. The kernel's table of numbers is one word a number, read and written at once. A lock's unlock is a fence
 * here; it need not be: what it guards is looked at under it only.
 * One caller with two closers and two callers with one closer are searched whole; two of each are 10^8 states and more, where
 * only the variants that must fail are looked for: see dev/models. */
#ifndef CALLERS
#define CALLERS 2
#endif
#ifndef CLOSERS
#define CLOSERS 2
#endif
#define TRIES 2
#define CPUS (CALLERS + CLOSERS)
#define WORDS (2 * CALLERS)
#define DEPTH 3
#include "tso.h"

#define TURN(t) (t)            /* odd: inside an attempt */
#define FD(t) (CALLERS + (t))  /* what the call uses: 1 + the number */

#define NUMBERS (1 + CLOSERS + CALLERS)
#define NONE 0
byte file[NUMBERS];   /* by number, 0 is N; NONE: it is closed */
byte users[NUMBERS];  /* of a private one */
bool held[CPUS];      /* thread t's record is in N's list */
byte lock;            /* of N's slot */
byte closing;
byte files = 1;       /* that were ever there */

inline take() { atomic { lock == 0 -> lock = 1 } }
inline leave(c) { atomic { DRAINED(c) -> lock = 0 } }

/* One system call of t, about the file x that its call began with. */
inline use(t, x)
{
	store(t, TURN(t), 1);
#ifndef NO_CALLER_FENCE
	fence(t);
#endif
	n = LOAD(t, FD(t));
	skip; /* it has loaded the number and is on its way into the kernel */
	atomic {
		if /* it was closed when the call began: as one that begins with the next file */
		:: n > 0 && x == NONE -> x = file[n - 1]
		:: else
		fi;
		assert(n == 0 || file[n - 1] == x)
	}
	store(t, TURN(t), 0)
}

/* A copy of N's file, which t is a user of. */
inline copy(p)
{
	atomic {
		file[p] = file[0];
		users[p] = (file[0] == NONE -> 0 : 1)
	}
}

inline drop(p)
{
	atomic {
		users[p]--;
		if
		:: users[p] == 0 -> file[p] = NONE
		:: else
		fi
	}
}

proctype caller(byte t)
{
	byte n, x, i, p;

	p = 1 + CLOSERS + t;
	take();
	if
#ifdef LINK_WHILE_CLOSING
	:: true ->
#else
	:: closing == 0 ->
#endif
		held[t] = true;
		store(t, FD(t), 1);
		x = file[0]; /* others can know from the unlock on */
		leave(t)
	:: closing > 0 ->
		leave(t);
		copy(p);
		x = file[p];
		store(t, FD(t), (x == NONE -> 0 : 1 + p))
	fi;
	do
	:: i < TRIES -> use(t, x); i++
	:: i < TRIES -> break /* it is ready at once */
	:: else -> break
	od;
	/* its end: whoever moves the record has the lock meanwhile */
	take();
	n = LOAD(t, FD(t));
	held[t] = false;
	leave(t);
	if
	:: n > 1 -> drop(n - 1)
	:: else
	fi
}

proctype closer(byte c)
{
	byte i, p, turn;
	bool any;

	p = 1 + c - CALLERS;
	take();
	closing++;
	i = 0;
	do
	:: i < CALLERS -> any = any || held[i]; i++
	:: else -> break
	od;
#ifndef ALONE
	any = any || closing > 1;
#endif
	leave(c);
	if
	:: any ->
		copy(p);
		take();
		i = 0;
		do
		:: i < CALLERS && held[i] ->
			held[i] = false;
			if
			:: file[p] != NONE -> users[p]++; store(c, FD(i), 1 + p)
			:: else -> store(c, FD(i), 0)
			fi;
			i++
		:: i < CALLERS && !held[i] -> i++
		:: else -> break
		od;
		leave(c);
#ifdef MEMBARRIER
		i = 0;
		do
		:: i < CALLERS -> DRAINED(i); i++
		:: else -> break
		od;
#endif
		fence(c);
		i = 0;
		do
#ifndef NO_GRACE
		:: i < CALLERS -> LOAD(c, TURN(i)) == 0; i++
#endif
		:: else -> break
		od;
		if
		:: users[p] > 0 -> drop(p)
		:: else
		fi
	:: else
	fi;
	/* the kernel's turn: closed, or another's file in one step */
	if
	:: file[0] = NONE
	:: atomic { files++; file[0] = files }
	fi;
	take();
	closing--;
	leave(c)
}

/* The lowest free number is the next that is opened. */
proctype opener()
{
end:	do
	:: atomic { file[0] == NONE && files < 4 -> files++; file[0] = files }
	od
}

init {
	byte i;

	atomic {
		file[0] = 1;
		i = 0;
		do
		:: i < CPUS -> run drain(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < CALLERS -> run caller(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < CLOSERS -> run closer(CALLERS + i); i++
		:: else -> break
		od;
		run opener()
	}
}
