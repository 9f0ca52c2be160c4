/* model/recovery.pml - a process that is a virtual processor is killed between any two stores to a queue, a mailbox, a
 * state word or the word it sleeps on, perhaps again before its successor stands in its place, and while a signal is passed
 * to it: no thread is lost but the one that ran there, none runs twice, nobody sleeps for ever over something to do.
 *
 * Mirrors: core/supervisor.c resume_process, save_process_place, handle_end, kbi_supervisor_saves, respawn_process,
 * on_kill_notice; core/respawn.c kbi_respawn, kbi_respawn_go; os/trace.c kbi_trace_save (a system call that was interrupted
 * is made again); core/contain.c lose_victim, land_lost_thread. And what they interrupt: sched/link.h kbi_link_put,
 * kbi_link_publish, sched/link.c kbi_link_take, kbi_link_release; sched/board.c kbi_mail_post, kbi_mail_take;
 * core/vp.h kbi_vp_rouse; core/domain.c mail_one; core/wait.c kbi_wait_sleep; core/agent.c sleep_in_kernel.
 * model/respawn.pml has the calls that are made in every process.
 * A process is what the kernel keeps for it: its registers, here `pc` and `x`. All else is in memory that is shared, also
 * its stack, and outlives it: `put`, `taken`, `cur`. A store buffer is empty when its process stops: that is a fence.
 * VP 0 runs thread A, which gives two threads to VP 1 and wakes a third one, B, that waits there. VP 1 runs B until it
 * waits, sleeps, and runs what comes.
 * A process that stands at its end and is killed again stays there (kbi_trace_end_is_seen); with -DOLD_KERNEL, before Linux
 * 6.0, it is gone, and the program may end by that, but nothing else happens.
 * Variants that must fail: see dev/models. */
#ifndef KILLS
#define KILLS 2
#endif
#ifndef SIGNALS
#define SIGNALS 1
#endif
#define WORDS 8
#define CPUS 2
#define DEPTH 2
#include "tso.h"

#define SLOT 0  /* + index */
#define TAIL 2
#define DOZE 3
#define LETTER 4 /* a mail's task */
#define MAIL 5   /* its word: it is there */
#define STATE 6  /* B's */
#define PERMIT 7 /* B's */
#define WAITING 1
#define READY 2
#define DONE 3
#define RUNNING 4

/* threads */
#define NOBODY 0
#define A 3 /* 1 and 2 are those it gives away */
#define B 4

/* what the kernel says of a process */
#define RUNS 0
#define STOPPED 1 /* a signal is about to be delivered, or for another reason */
#define AT_END 2  /* it was killed, and stands once more */
#define GONE 3    /* with its registers */
#define NEW 4     /* a successor in its own first steps */

mtype = { own_put, slot, tail, fence_tail, bell_tail, ring_tail, wake_tail, own_mail, letter, mail, fence_mail, bell_mail,
	  ring_mail, wake_mail, own_end, rest, own_wait, waits, permit, runs_on, dozes, fence_doze, look, take, release, own_run,
	  mail_there, claim, own_b, sleeps, asleep, awake, lands, first_steps };

byte is[2];
mtype pc[2];
byte x[2];
mtype place_pc[2]; /* where it stood when it last stopped */
byte place_x[2];
bool end_seen[2], unplaced[2];
bool notice[2];
byte victim[2];

byte put, taken, cur[2];
bool woken, mailed; /* VP 0 has begun to send B's wake-up; VP 1 has taken it */
bool in_futex;
byte runs[5];
bool lost[5];
byte kills, losses, signals_sent;
bool ended; /* the program, for a process's registers are not known */

#define OWN(p) ((p) == own_put || (p) == own_mail || (p) == own_end || (p) == own_wait || (p) == own_run || (p) == own_b)
#define AT(p) is[c] == RUNS && pc[c] == p && nfull(buf[c])
#define GO(p) pc[c] = p

/* The thread that runs now is the one that ran when its process was killed: struct kbi_victim. Threads 1 and 2 have one
 * descriptor, one after the other. */
#if defined(NO_VICTIM)
#define IS_TOLD(c) true
#elif defined(NO_TURN)
#define IS_TOLD(c) (!lost[cur[c]] && (cur[c] == victim[c] || cur[c] + victim[c] == 3))
#else
#define IS_TOLD(c) (cur[c] == victim[c] && !lost[cur[c]])
#endif

/* Who runs is in its own code: once. */
inline run_it(t)
{
	runs[t]++;
	assert(runs[t] == 1 && !lost[t])
}

proctype vp(byte c)
{
	bool ok;

end:	do
	/* thread A: two to the ring, one by one */
	:: atomic { AT(own_put) -> if :: put < 2 -> GO(slot) :: else -> GO(own_mail) fi }
	:: atomic { AT(slot) -> store(c, SLOT + put, put + 1); put++; GO(tail) }
	:: atomic { AT(tail) -> store(c, TAIL, put); GO(fence_tail) }
	:: atomic { AT(fence_tail) && DRAINED(c) -> GO(bell_tail) }
	:: atomic { AT(bell_tail) -> if :: LOAD(c, DOZE) -> GO(ring_tail) :: else -> GO(own_put) fi }
	:: atomic { AT(ring_tail) && DRAINED(c) -> x[c] = mem[DOZE]; mem[DOZE] = 0; GO(wake_tail) }
	:: atomic { AT(wake_tail) -> if :: x[c] -> in_futex = false :: else fi; x[c] = 0; GO(own_put) }
	/* a wake-up, by mail */
	:: atomic { AT(own_mail) -> GO(letter) }
	:: atomic { AT(letter) -> store(c, LETTER, B); woken = true; GO(mail) }
	:: atomic { AT(mail) -> store(c, MAIL, 1); GO(fence_mail) }
	:: atomic { AT(fence_mail) && DRAINED(c) -> GO(bell_mail) }
	:: atomic { AT(bell_mail) -> if :: LOAD(c, DOZE) -> GO(ring_mail) :: else -> GO(own_end) fi }
	:: atomic { AT(ring_mail) && DRAINED(c) -> x[c] = mem[DOZE]; mem[DOZE] = 0; GO(wake_mail) }
	:: atomic { AT(wake_mail) -> if :: x[c] -> in_futex = false :: else fi; x[c] = 0; GO(own_end) }
	:: atomic { AT(own_end) -> run_it(A); cur[c] = NOBODY; GO(rest) }

	/* thread B, which goes to sleep: kbi_wait_sleep */
	:: atomic { AT(own_wait) -> GO(waits) }
	:: atomic { AT(waits) -> store(c, STATE, WAITING); GO(permit) }
	:: atomic { AT(permit) && DRAINED(c) -> if :: mem[PERMIT] -> mem[PERMIT] = 0; GO(runs_on) :: else -> cur[c] = NOBODY; GO(dozes) fi }
	:: atomic { AT(runs_on) -> store(c, STATE, RUNNING); GO(own_b) }

	/* the agent: says that it sleeps, looks once more, sleeps */
	:: atomic { AT(dozes) -> store(c, DOZE, 1); GO(fence_doze) }
	:: atomic { AT(fence_doze) && DRAINED(c) -> GO(look) }
	:: atomic { AT(look) ->
		if
		:: LOAD(c, TAIL) != taken -> GO(take)
		:: LOAD(c, MAIL) && !mailed -> GO(mail_there)
		:: else -> GO(sleeps)
		fi
	   }
	:: atomic { AT(take) -> x[c] = LOAD(c, SLOT + taken); taken++; GO(release) }
	:: atomic { AT(release) -> cur[c] = x[c]; x[c] = 0; GO(own_run) }
	:: atomic { AT(own_run) -> run_it(cur[c]); cur[c] = NOBODY; GO(dozes) }
	:: atomic { AT(mail_there) -> x[c] = LOAD(c, LETTER); mailed = true; GO(claim) }
	:: atomic { AT(claim) ->
		assert(x[c] == B);
		x[c] = 0;
		if
		:: LOAD(c, STATE) == WAITING -> store(c, STATE, READY); cur[c] = B; GO(own_b)
		:: else -> GO(dozes) /* it is DONE: lost before it slept */
		fi
	   }
	:: atomic { AT(own_b) -> run_it(B); cur[c] = NOBODY; GO(dozes) }
	/* FUTEX_WAIT looks at the word before it sleeps */
	:: atomic { AT(sleeps) && DRAINED(c) -> if :: mem[DOZE] -> in_futex = true; GO(asleep) :: else -> GO(awake) fi }
	:: atomic { AT(asleep) && !in_futex -> GO(awake) }
	:: atomic { AT(awake) && DRAINED(c) -> mem[DOZE] = 0; GO(look) }

	/* the end of a thread that is lost: land, kbi_thread_lose */
	:: atomic { AT(lands) ->
		if
		:: cur[c] == B -> store(c, STATE, DONE)
		:: else
		fi;
		ok = (cur[c] == A);
		cur[c] = NOBODY;
		if
		:: ok -> GO(rest)
		:: else -> GO(dozes)
		fi
	   }

	/* on_kill_notice, in the handler: LATER is another time */
	:: atomic {
		is[c] == RUNS && notice[c] ->
		if
		:: cur[c] == NOBODY || !IS_TOLD(c) -> notice[c] = false; victim[c] = NOBODY
#ifndef LOSE_ANYWHERE
		:: cur[c] != NOBODY && !OWN(pc[c]) -> notice[c] = false; victim[c] = NOBODY /* told often enough */
		:: cur[c] != NOBODY && OWN(pc[c]) && IS_TOLD(c) ->
#else
		:: cur[c] != NOBODY && IS_TOLD(c) ->
#endif
			assert(cur[c] == victim[c]);
			notice[c] = false;
			victim[c] = NOBODY;
			lost[cur[c]] = true;
			losses++;
			assert(losses <= kills);
			x[c] = 0;
			GO(lands)
		fi
	   }
	od
}

/* A wait that is cut short: the call is made again. */
inline cut_short(c)
{
	if
	:: pc[c] == asleep -> in_futex = false; pc[c] = sleeps
	:: else
	fi
}

/* Somebody sends signals: the process stops, and the supervisor passes them on. */
inline stop(c)
{
	atomic { signals_sent < SIGNALS && is[c] == RUNS && DRAINED(c) -> signals_sent++; cut_short(c); is[c] = STOPPED }
}

/* kill -9 */
inline kill(c)
{
	atomic {
		kills < KILLS && is[c] != GONE && (is[c] == NEW || is[c] == AT_END || DRAINED(c)) ->
		kills++;
		if
		:: is[c] < AT_END -> cut_short(c); is[c] = AT_END
		:: is[c] == NEW -> is[c] = AT_END
#ifdef OLD_KERNEL
		:: else -> is[c] = GONE
#else
		:: else -> kills-- /* it is dying already */
#endif
		fi
	}
}

proctype others()
{
end:	do
	:: stop(0)
	:: stop(1)
	:: kill(0)
	:: kill(1)
	od
}

/* kbi_trace_save: one that is at its end by now has its registers still. A successor that was not placed yet keeps the
 * place that it was to have. */
inline save(v)
{
	atomic {
		if
#ifndef OWN_STEPS
		:: unplaced[v] -> saved = true
		:: !unplaced[v] && is[v] != GONE ->
#else
		:: is[v] != GONE ->
#endif
			place_pc[v] = pc[v];
			place_x[v] = x[v];
			saved = true
#ifdef SAVE_ANYHOW
		:: !unplaced[v] && is[v] == GONE -> place_pc[v] = first_steps; place_x[v] = 0; saved = true
#else
		:: !unplaced[v] && is[v] == GONE -> saved = false
#endif
		fi
	}
}

#if defined(STALE_PLACE) || defined(NO_SAVE)
#define FORGET(v) skip
#else
#define FORGET(v) place_pc[v] = 0; place_x[v] = 0
#endif

/* The killed one's registers are where it stood: the successor's. */
inline respawn(v)
{
	atomic {
		/* the thread that ran there, for `noticed` */
		victim[v] = cur[v];
		end_seen[v] = false;
		is[v] = NEW;
		pc[v] = first_steps;
		x[v] = 0
	};
	atomic {
		if
		:: is[v] == NEW ->
			unplaced[v] = false;
			pc[v] = place_pc[v];
			x[v] = place_x[v];
			is[v] = RUNS;
			notice[v] = true;
			FORGET(v)
		:: else -> unplaced[v] = true
		fi
	}
}

proctype supervisor()
{
	byte v;
	bool saved;

end:	do
	:: ended -> break
	:: atomic { !ended && (is[0] != RUNS || is[1] != RUNS) ->
		if
		:: is[0] != RUNS -> v = 0
		:: is[1] != RUNS -> v = 1
		fi
	   };
	   if
	   :: is[v] == STOPPED -> /* resume_process */
#ifdef NO_SAVE
		saved = true;
#else
		save(v);
#endif
		/* kbi_trace_go; one that was killed meanwhile is let go at its end, which nobody sees then */
		atomic {
			if
			:: saved && is[v] == STOPPED -> is[v] = RUNS; FORGET(v)
			:: saved && is[v] == AT_END -> is[v] = GONE
			:: else
			fi;
			saved = false
		}
	   :: is[v] == AT_END -> /* handle_end */
		end_seen[v] = true;
		save(v);
		if
		:: saved -> saved = false; respawn(v)
		:: else
		fi
	   :: is[v] == GONE -> /* kbi_supervisor_saves */
		if
#if !defined(OLD_KERNEL) || defined(STALE_PLACE)
		:: !end_seen[v] -> respawn(v)
#endif
		:: else -> ended = true
		fi
	   fi
	od
}

#define HAS_RUN(t) (runs[t] || lost[t])

init {
	atomic {
		pc[0] = own_put; cur[0] = A;
		pc[1] = own_wait; cur[1] = B;
		run drain(0); run drain(1);
		run vp(0); run vp(1); run others(); run supervisor()
	};
	/* all that was to run has run, or ran when its process was killed. What A was to do and had not begun went with it */
	(ended || (HAS_RUN(A) && (HAS_RUN(1) || (lost[A] && put < 1)) && (HAS_RUN(2) || (lost[A] && put < 2)) &&
		   (HAS_RUN(B) || (lost[A] && !woken))));
#ifndef OLD_KERNEL
	assert(!ended)
#endif
}
