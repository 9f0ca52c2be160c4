/* model/waiver.pml - the way of ready tasks from a VP to the next: none is lost, none comes twice, they stay in
 * order, and a successor that sleeps is woken.
 *
 * Mirrors: base/ring.h kbi_ring_room, kbi_ring_publish, kbi_ring_filled, kbi_ring_release; sched/link.h
 * kbi_link_put, kbi_link_publish, sched/link.c kbi_link_take, kbi_link_release; sched/waiver.h kbi_waiver_put,
 * kbi_waiver_take (a packet of one); sched/sched_priv.h kbi_sched_wake_add; sched/rotator.c exchange_packets;
 * core/agent.c sleep_in_kernel.
 * The ring has SLOTS slots and is used more than twice around; indices run on, modulo INDICES.
 * With -DDISORDER stores land in any order: what a plain store instead of the release of the tail would do.
 * Variants that must fail: see dev/models. */
#define SLOTS 2
#define INDICES 8
#define TASKS 5
#define WORDS 6
#define CPUS 2
#define DEPTH 3
#include "tso.h"

#define SLOT 0 /* + index % SLOTS */
#define TAIL 2
#define HEAD 3
#define IDLE 4 /* 1: SLEEPING */
#define DOZE 5

#define GIVER 0
#define TAKER 1

bool asleep;
byte got; /* tasks that came, in order: 1, 2, ... */

proctype giver()
{
	byte put, next = 1, n, x;

	do
	:: next > TASKS -> break
	:: else ->
		/* as many as there is room for, at most two; then one publication */
		n = 0;
#ifdef NO_ROOM_LOOK
		do
		:: n < 2 && next <= TASKS ->
#else
		do
		:: n < 2 && next <= TASKS && (put + INDICES - LOAD(GIVER, HEAD)) % INDICES < SLOTS ->
#endif
			store(GIVER, SLOT + put % SLOTS, next);
			put = (put + 1) % INDICES;
			next++;
			n++
		:: n > 0 -> break
		od;
#ifdef WAKE_BEFORE_PUBLISH
		skip
#else
#ifdef DISORDER
#ifndef PLAIN_TAIL
		fence(GIVER); /* what release means where stores land in any order */
#endif
#endif
		store(GIVER, TAIL, put)
#endif
#ifndef NO_GIVER_FENCE
		;
		fence(GIVER)
#endif
		;
		if
		:: LOAD(GIVER, IDLE) && LOAD(GIVER, DOZE) ->
			exchange(GIVER, DOZE, 0, x);
			if
			:: x -> asleep = false
			:: else
			fi
		:: else
		fi
#ifdef WAKE_BEFORE_PUBLISH
		;
		store(GIVER, TAIL, put)
#endif
	od
}

inline take_all()
{
	do
	:: LOAD(TAKER, TAIL) != taken ->
#ifdef RELEASE_FIRST
		store(TAKER, HEAD, (taken + 1) % INDICES);
#endif
		x = LOAD(TAKER, SLOT + taken % SLOTS);
		got++;
		assert(x == got);
		taken = (taken + 1) % INDICES;
		store(TAKER, HEAD, taken)
	:: else -> break
	od
}

proctype taker()
{
	byte taken, x;

	do
	:: got == TASKS -> break
	:: else ->
		store(TAKER, IDLE, 1);
		store(TAKER, DOZE, 1);
#ifndef NO_SLEEPER_FENCE
		fence(TAKER);
#endif
		take_all();
		if
		:: got == TASKS -> break
		:: else
		fi;
		atomic { /* FUTEX_WAIT */
			DRAINED(TAKER);
			asleep = mem[DOZE]
		};
		!asleep;
		exchange(TAKER, DOZE, 0, x);
		store(TAKER, IDLE, 0);
		take_all()
	od
}

init {
	atomic {
		run drain(0); run drain(1);
		run giver(); run taker()
	}
}
