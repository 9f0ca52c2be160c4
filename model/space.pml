/* model/space.pml - waiting between processes: no wake-up is lost when a VP sleeps that watches a word in a space, nor when
 * who unlocks looks without the lock whether somebody waits.
 *
 * Mirrors: space/note.c kbi_space_note_wait, kbi_space_note_wake, note.h kbi_space_note_tell with core/agent.c's
 * sleep_in_kernel; space/queue.c lock_and_try_op and queue.h kbi_space_queue_maybe with space/mutex.c.
 * A waker changes the word once; a VP waits for that. Beside them a mutex: one gives it back, another one wants it.
 * A lost wake-up is a deadlock. Variants that must fail: see dev/models. */
#define WORDS 7
#define CPUS 4
#define DEPTH 2
#include "tso.h"

#define WORD 0
#define HOW 1    /* the VP polls the word */
#define ASLEEP 2
#define OWNER 3  /* 0: taken, 1: free */
#define LOCK 4
#define HEAD 5   /* one waits */
#define TOLD 6

bool rung; /* the bell of the VP's process */

#ifdef NO_WAKER_FENCE
#define change(c) store(c, WORD, 1)
#else
#define change(c) exchange(c, WORD, 1, x)
#endif
#ifdef NO_SLEEPER_FENCE
#define sleeper_fence(c) skip
#else
#define sleeper_fence(c) fence(c)
#endif

active proctype waker()
{
	byte x;

	change(0);
	if
	:: LOAD(0, HOW) == 1 && LOAD(0, ASLEEP) == 1 ->
		exchange(0, ASLEEP, 0, x);
		if
		:: x -> rung = true /* the listener wakes the VP */
		:: else
		fi
	:: else
	fi
}

active proctype vp()
{
	store(1, HOW, 1);
	do
	:: LOAD(1, WORD) -> break /* it polls for a while */
	:: true ->
		store(1, ASLEEP, 1);
		sleeper_fence(1);
		if
		:: LOAD(1, WORD) -> break
		:: else -> rung
		fi;
		store(1, ASLEEP, 0)
	od
}

active proctype unlocker()
{
	byte x, any;

	exchange(2, OWNER, 1, x);
#ifdef HEAD_FIRST
	any = LOAD(2, HEAD);
	any = any | LOAD(2, LOCK);
#else
	any = LOAD(2, LOCK);
	any = any | LOAD(2, HEAD);
#endif
	if
	:: any ->
		x = 0;
		do
		:: x -> break
		:: else -> cas(2, LOCK, 0, 1, x)
		od;
		if
		:: LOAD(2, HEAD) -> store(2, HEAD, 0); store(2, TOLD, 1)
		:: else
		fi;
		store(2, LOCK, 0)
	:: else
	fi
}

active proctype locker()
{
	byte x;

	do
	:: x -> break
	:: else -> cas(3, LOCK, 0, 1, x)
	od;
	if
	:: LOAD(3, OWNER) -> store(3, LOCK, 0)
	:: else ->
		store(3, HEAD, 1);
		store(3, LOCK, 0);
		LOAD(3, TOLD) == 1
	fi
}

init {
	atomic {
		run drain(0);
		run drain(1);
		run drain(2);
		run drain(3)
	}
}
