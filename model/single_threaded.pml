/* model/single_threaded.pml - a virtual processor that is awake alone changes an object by a load and a store, others by atomic
 * operations: no change is lost, whoever goes to sleep, wakes up, or comes from outside meanwhile.
 *
 * Mirrors: core/single_threaded.h kbi_single_threaded_enter, kbi_single_threaded_leave; core/single_threaded.c kbi_single_threaded_park, kbi_single_threaded_unpark_slow, settle_sections,
 * kbi_single_threaded_end_slow. An operation on the object adds 1. VPS virtual processors operate OPS times each and sleep NAPS
 * times, at any time between; with -DKERNEL a kernel thread operates once, too.
 * Variants that must fail: see dev/models. */
#ifndef VPS
#define VPS 3
#endif
#ifndef OPS
#define OPS 2
#endif
#define NAPS 1
#define WORDS 5
#define CPUS 4
#define DEPTH 3
#include "tso.h"

#define AWAKE 0
#define BUSY 1
#define SETTLING 2
#define OBJECT 3
#define ENDED 4

#define OUTSIDE 3
#define OVER 128
#define BIT(c) (1 << (c))
#define IS_ONE(w) (w == 1 || w == 2 || w == 4)

byte finished;
#ifdef KERNEL
#define ALL (VPS * OPS + 1)
#else
#define ALL (VPS * OPS)
#endif

/* the kernel makes each processor pass a fence */
inline membarrier()
{
#ifndef NO_MEMBARRIER
	DRAINED(0); DRAINED(1); DRAINED(2); DRAINED(3)
#else
	skip
#endif
}

inline settle()
{
	membarrier();
	mem[BUSY] == 0 /* the caller's buffer is empty: it has just done an atomic operation */
}

inline operate_atomically(c)
{
	atomic {
		DRAINED(c);
		mem[OBJECT] = mem[OBJECT] + 1;
		finished++
	}
}

inline operate(c)
{
	if
	:: LOAD(c, AWAKE) == BIT(c) ->
		store(c, BUSY, 1);
		if
#ifdef NO_SECOND_LOOK
		:: true ->
#else
		:: LOAD(c, AWAKE) == BIT(c) ->
#endif
			x = LOAD(c, OBJECT);
			store(c, OBJECT, x + 1);
			store(c, BUSY, 0);
			finished++;
			x = 0
#ifndef NO_SECOND_LOOK
		:: else ->
			store(c, BUSY, 0);
			operate_atomically(c)
#endif
		fi
	:: else -> operate_atomically(c)
	fi
}

inline add(c, a, v)
{
	atomic {
		DRAINED(c);
		x = mem[a];
		mem[a] = x + v
	}
}

inline unpark(c)
{
#ifndef SAYS_LATE
	add(c, SETTLING, 1);
#endif
	add(c, AWAKE, BIT(c)); /* x: the others */
#ifdef SAYS_LATE
	y = x;
	add(c, SETTLING, 1);
	x = y;
#endif
	if
	:: (x & OVER) && !LOAD(c, ENDED) -> settle()
	:: (x & OVER) && LOAD(c, ENDED)
	:: x && !(x & OVER) && IS_ONE(x) -> settle()
#ifdef THIRD_DOES_NOT_WAIT
	:: x && !(x & OVER) && !IS_ONE(x)
#else
	:: x && !(x & OVER) && !IS_ONE(x) && LOAD(c, SETTLING) > 1 -> settle()
	:: x && !(x & OVER) && !IS_ONE(x) && LOAD(c, SETTLING) <= 1
#endif
	:: !x
	fi;
	add(c, SETTLING, -1);
	x = 0
}

proctype vp(byte c)
{
	byte x, y, ops = OPS, naps = NAPS;

	do
	:: ops -> ops--; operate(c)
	:: naps ->
		naps--;
		add(c, AWAKE, -BIT(c));
		x = 0;
		unpark(c)
	:: !ops -> /* it sleeps for good, or stays awake */
		if
		:: add(c, AWAKE, -BIT(c))
		:: true
		fi;
		break
	od
}

/* kbi_single_threaded_end_slow, and an operation */
proctype outside()
{
	byte x;

	add(OUTSIDE, AWAKE, OVER);
	settle();
	store(OUTSIDE, ENDED, 1);
	operate_atomically(OUTSIDE)
}

init {
	atomic {
		mem[AWAKE] = BIT(VPS) - 1;
		run drain(0); run drain(1); run drain(2); run drain(3);
		run vp(0); run vp(1);
#if VPS > 2
		run vp(2);
#endif
#ifdef KERNEL
		run outside()
#endif
	};
	finished == ALL && DRAINED(0) && DRAINED(1) && DRAINED(2) && DRAINED(3);
	assert(mem[OBJECT] == ALL)
}
