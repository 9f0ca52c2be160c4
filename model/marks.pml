/* model/marks.pml - a board of marks between processes: who waits there is told of a change, whatever else is marked, emptied
 * and slept at that moment.
 *
 * Mirrors: base/marks.h kbi_marks_add, kbi_marks_take (a leaf of two numbers, one group); space/note.c
 * kbi_space_note_wait, register_watch, poll_boards, kbi_space_note_wake; core/domain.c kbi_domain_watch_fire;
 * core/agent.c sleep_in_kernel.
 * Two threads on one VP each wait for a word; two processes change the words, each that of one thread, and mark it.
 * A lost mark is a deadlock. Variants that must fail: see dev/models. */
#define WORDS 5
#define CPUS 3
#define DEPTH 2
#include "tso.h"

#define WORD 0   /* + thread */
#define LEAF 2   /* bits */
#define TOP 3
#define ASLEEP 4

#define VP 2     /* its cpu; the markers have those of their threads */

mtype = { NEW, HALFWAY, WAITING, DONE };
mtype state[2] = NEW;
bool permit[2];
bool rung;

inline or(c, a, v)
{
	atomic {
		DRAINED(c);
		mem[a] = mem[a] | v
	}
}

inline mark_top(c)
{
	if
	:: LOAD(c, TOP) -> skip
	:: else -> exchange(c, TOP, 1, x)
	fi
}

proctype marker(byte c)
{
	byte x;

	exchange(c, WORD + c, 1, x);
#ifdef TOP_FIRST
	mark_top(c);
#endif
#ifdef PLAIN_LEAF
	x = LOAD(c, LEAF);
	store(c, LEAF, x | (1 << c));
#else
	or(c, LEAF, 1 << c);
#endif
#ifndef TOP_FIRST
	mark_top(c);
#endif
	if
	:: LOAD(c, ASLEEP) ->
		exchange(c, ASLEEP, 0, x);
		if
		:: x -> rung = true
		:: else
		fi
	:: else
	fi
}

inline fire(n)
{
	if
	:: !(bits & (1 << n)) -> skip
	:: else ->
		if
		:: state[n] == WAITING -> state[n] = DONE
#ifndef NO_PERMIT
		:: state[n] == HALFWAY -> permit[n] = true
#endif
		:: else
		fi
	fi
}

inline look()
{
	if
	:: !LOAD(VP, TOP) -> skip
	:: else ->
#ifdef LEAF_FIRST
		exchange(VP, LEAF, 0, bits);
		exchange(VP, TOP, 0, x);
#else
		exchange(VP, TOP, 0, x);
		exchange(VP, LEAF, 0, bits);
#endif
		fire(0);
		fire(1)
	fi;
	bits = 0;
	x = 0
}

/* A thread stands in its place, looks at its word, and on its way to sleep its VP may look around. */
inline stand(n)
{
	state[n] = HALFWAY;
	if
#ifndef NO_LOOK
	:: LOAD(VP, WORD + n) -> state[n] = DONE
#endif
	:: else ->
		if
		:: true -> look()
		:: true -> skip
		fi;
		if
		:: permit[n] -> assert(LOAD(VP, WORD + n)); state[n] = DONE
		:: else -> state[n] = WAITING
		fi
	fi
}

active proctype vp()
{
	byte x, bits;

	do
	:: state[0] == NEW -> stand(0)
	:: state[1] == NEW -> stand(1)
	:: look()
	:: state[0] == DONE && state[1] == DONE -> break
	:: state[0] != NEW && state[1] != NEW && (state[0] == WAITING || state[1] == WAITING) ->
		rung = false;
		store(VP, ASLEEP, 1);
#ifndef NO_SLEEPER_FENCE
		fence(VP);
#endif
		look();
		if
		:: state[0] == WAITING || state[1] == WAITING -> rung
		:: else
		fi;
		store(VP, ASLEEP, 0)
	od
}

init {
	atomic {
		run drain(0);
		run drain(1);
		run drain(2);
		run marker(0);
		run marker(1)
	}
}
