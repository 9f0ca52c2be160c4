/* model/respawn.pml - a process that is a virtual processor is killed at any moment and another takes its place: each call
 * that is made in every process is made by each of them before the caller goes on, the lock round such calls has one
 * holder, and nobody waits for ever.
 *
 * Mirrors: libc/broadcast.c kbi_broadcast, make_call_in_others, kbi_broadcast_answer, lock_calls,
 * kbi_broadcast_act_for, kbi_broadcast_succeed, kbi_broadcast_excuse; core/respawn.c kbi_respawn; core/supervisor.c
 * handle_stops_in_wait.
 * A process is what its registers and memory maps say: `pc` (the process's own steps, kept over a kill) and `has` (how
 * many calls its maps have seen). The successor goes on at the same step with the supervisor's maps.
 * Process 0 is the supervisor; it makes calls only when it is asked. Each of the others makes one call.
 * Variants that must fail: see dev/models. */
#ifndef KILLS
#define KILLS 2
#endif
#define PROCESSES 3
#define FREE 255

byte lock = FREE;          /* who holds it */
byte number;               /* of the call that is announced */
bool making;               /* the holder makes one: */
byte what;
byte has[PROCESSES];       /* a bit for each call that the process's maps have seen */
byte done[PROCESSES];      /* the last that it has said to have made */
bool excused[PROCESSES];
bool stands[PROCESSES];    /* it was killed and waits for a successor */
byte kills;
byte finished;

#define BIT(n) (1 << (n))

inline answer(p)
{
	if
	:: done[p] != number ->
		has[p] = has[p] | BIT(number);
		done[p] = number
	:: else
	fi
}

/* Each step of a process that is not stopped. */
#define STEP !stands[me]

proctype virtual(byte me)
{
	byte mine;

	/* lock_calls */
	do
	:: atomic { STEP && lock == FREE -> lock = me }; break
	:: atomic { STEP && done[me] != number -> answer(me) }
	od;
	/* what is said before it is made */
	atomic { STEP -> mine = number + 1; what = mine; making = true };
	atomic { STEP -> has[me] = has[me] | BIT(mine) };
	/* make_call_in_others: its own part first, then the number that all see */
	atomic { STEP -> done[me] = mine };
	atomic { STEP -> number = mine };
	/* wait for all others */
	atomic {
		STEP && (done[0] == mine || excused[0]) && (done[1] == mine || excused[1]) && (done[2] == mine || excused[2]) ->
#ifndef NO_CHECK
		/* whoever is not stopped has made it */
		assert(has[0] & BIT(mine));
		assert(stands[1] || has[1] & BIT(mine));
		assert(stands[2] || has[2] & BIT(mine));
#endif
		assert(lock == me)
	};
	atomic { STEP -> making = false; lock = FREE; finished++ };
	/* answers others' calls from now on */
end:	do
	:: atomic { STEP && done[me] != number -> answer(me) }
	od
}

/* The kernel: kill -9. */
proctype killer()
{
	do
	:: kills < KILLS ->
		if
		:: atomic { !stands[1] -> stands[1] = true; kills++ }
		:: atomic { !stands[2] -> stands[2] = true; kills++ }
		:: break
		fi
	:: else -> break
	od
}

proctype supervisor()
{
	byte old;
	bool its;

end:	do
	:: atomic { done[0] != number -> answer(0) }
	:: (stands[1] || stands[2]) ->
		if
		:: stands[1] -> old = 1
		:: stands[2] -> old = 2
		fi;
#ifndef NO_EXCUSE
		excused[old] = true;
#endif
		/* act for it, or hold */
		do
		:: atomic { lock == FREE -> lock = 0; its = false }; break
#ifdef OWN_LOCK_ONLY
		:: atomic { lock == old && excused[old] -> its = true }; break
#else
		:: atomic { lock != FREE && excused[lock] -> its = true }; break
#endif
#ifndef NO_MEANWHILE
		/* the holder was killed, too, or waits for one that was */
		:: atomic { stands[3 - old] && !excused[3 - old] -> excused[3 - old] = true }
#endif
		:: atomic { done[0] != number -> answer(0) }
		od;
#ifndef NO_MAKING
		if
		:: its && making -> has[0] = has[0] | BIT(what)
		:: else
		fi;
#endif
#ifndef NO_ANSWER
		if
		:: done[0] != number -> answer(0)
		:: else
		fi;
#endif
		/* the successor: a copy of our maps; it goes on where the old one stood */
		atomic {
			has[old] = has[0];
			if
#ifdef DONE_AGAIN
			:: true -> done[old] = number
#else
			:: done[old] < number -> done[old] = number
#endif
			:: else
			fi;
			excused[old] = false;
			stands[old] = false
		};
		if
		:: !its -> lock = FREE
		:: else
		fi
	od
}

init {
	atomic {
		run virtual(1); run virtual(2); run supervisor(); run killer()
	}
	/* everybody's call has been made by all */
	(finished == 2 && !stands[1] && !stands[2] && done[0] == number && done[1] == number && done[2] == number);
	assert(has[0] == BIT(1) + BIT(2) && has[1] == has[0] && has[2] == has[0])
}
