/* model/source.pml - virtual processors that sleep while a thread waits for an event of the kernel: the event is found,
 * and who sleeps where events come is woken for other work.
 *
 * Mirrors: core/agent.c sleep_in_kernel, become_source_sleeper, leave_source; core/vp.c kbi_vp_rouse; sched/source.h
 * kbi_source_due; io/engine.c poll_now, sleep_now, deliver_events, ring_bell, kick_sleeper; io/ready.c enter_ready_queue.
 * A thread of VP 0 counts itself in and arms its event, then both VPs look now and then, and sleep. The kernel has the
 * event at any time afterwards; a kernel thread gives VP 0 some work. epoll is level-triggered: `bell` and `event` are
 * what it has ready; taking is one step. A VP whose work never ends is not in it: monitors look after that.
 * Lost: deadlock. Variants that must fail: see dev/models. */
#define WORDS 5
#define CPUS 3
#define DEPTH 3
#include "tso.h"

#define DOZE 0 /* + VP */
#define SLEEPER 2
#define WAITING 3
#define WORK 4

#define YES 1
#define SOURCE 2

bool armed, event, bell; /* in the kernel */
bool asleep[2];          /* in the futex; a wake-up ends it */
bool found;              /* the event was */
bool worked;
#define ALL (found && worked)

#ifdef NO_WAKER_FENCE
#define waker_fence(c) skip
#else
#define waker_fence(c) fence(c)
#endif

/* epoll_wait returns: what is ready, once each */
inline take(e, b)
{
	atomic {
		e = event;
		b = bell;
		event = false;
		bell = false
	}
}

/* poll_now: not the sleeper; it may have become one since the first look */
inline poll(c)
{
	if
	:: LOAD(c, WAITING) && !LOAD(c, SLEEPER) ->
		take(e, b);
		if
		:: e -> found = true
		:: else
		fi;
#ifndef NO_RING_AGAIN
		if
		:: b && LOAD(c, SLEEPER) -> bell = true
		:: else
		fi;
#endif
		e = false;
		b = false
	:: else
	fi
}

/* the work that was sent */
inline look(c)
{
	if
	:: c == 0 && LOAD(c, WORK) && !worked -> worked = true; some = true
	:: else -> some = false
	fi
}

inline leave()
{
	if
	:: in_source -> store(c, SLEEPER, 0)
	:: else
	fi
}

proctype vp(byte c)
{
	byte old;
	bool e, b, in_source, some;

	if
	:: c == 0 ->
		/* its thread waits */
		exchange(c, WAITING, 1, old);
		armed = true
	:: else
	fi;
	do
	:: ALL -> break
	:: else ->
		if
		:: poll(c)
		:: skip
		fi;
		/* become_source_sleeper */
		in_source = false;
		if
		:: LOAD(c, WAITING) && !LOAD(c, SLEEPER) ->
			exchange(c, SLEEPER, 1, old);
			in_source = !old
		:: else
		fi;
		asleep[c] = !in_source;
		store(c, DOZE + c, (in_source -> SOURCE : YES));
#ifndef NO_SLEEPER_FENCE
		fence(c);
#endif
		look(c);
		if
		:: some ->
			store(c, DOZE + c, 0);
#ifndef FORGET_TO_LEAVE
			leave()
#endif
		:: !some && in_source ->
			/* in the kernel: behind a fence */
			atomic { DRAINED(c) && (event || bell || ALL) };
			take(e, b);
			exchange(c, DOZE + c, 0, old);
			if
			:: e -> found = true
			:: else
			fi;
			e = false;
			b = false;
			leave();
			look(c)
		:: !some && !in_source ->
			atomic { DRAINED(c); if :: mem[DOZE + c] != YES -> asleep[c] = false :: else fi };
			(!asleep[c] || ALL);
			exchange(c, DOZE + c, 0, old);
			look(c)
		fi
	od
}

/* kbi_domain_wake_from_outside or kbi_vp_send to VP 0, then kbi_vp_rouse */
proctype waker()
{
	byte old;

	store(2, WORK, 1);
	waker_fence(2);
	if
	:: LOAD(2, DOZE) ->
		exchange(2, DOZE, 0, old);
		if
		:: old == SOURCE -> bell = true
		:: old == YES -> asleep[0] = false
		:: else
		fi
	:: else
	fi
}

proctype kernel()
{
	armed;
	event = true
}

init {
	atomic {
		run drain(0); run drain(1); run drain(2);
		run vp(0); run vp(1); run waker(); run kernel()
	}
}
