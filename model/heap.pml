/* model/heap.pml - magazines on their way back to the owner of their blocks: each that is posted is received once, by
 * whoever is the owner then, or lies in the inbox; nobody else is at the owner's bins and slabs meanwhile.
 *
 * Mirrors: mem/heap_owner.c post_magazine, receive_magazines, kbi_owner_receive with kbi_owner_enter and kbi_owner_leave;
 * mem/heap_owner_life.c kbi_life_end, make_orphan, kbi_life_tend, kbi_life_begin with take_orphan, find_gone_owner and
 * is_owner_gone.
 * CPU 0 is the owner, a kernel thread that receives as often as it likes and ends; or it ends without a word, between any
 * two stores, but not with a lock held: then all is taken over if it was not in the middle of anything, else nothing ever.
 * CPUs 1 and 2 post magazines 1, 2 and 3. CPU 3 is a new kernel thread, which takes the orphan over, or what one that is
 * gone has left, and receives, last when all were posted.
 * A magazine's blocks are a word that its poster writes in front of posting: what their last user did with them.
 * A magazine that is posted when its owner has just become an orphan may wait in the inbox for the next one: it is not
 * lost. Variants that must fail: see dev/models. */
#define WORDS 12
#define CPUS 4
#define DEPTH 3
#include "tso.h"

#define INBOX 0 /* a magazine's number, 0 none */
#define STATE 1
#define LOCK 2
#define NEXT 3  /* + magazine, 1 to 3 */
#define BLOCK 7 /* + magazine */
#define BUSY 11

#define OWNED 0
#define ORPHAN 1

byte inside; /* at the owner's bins and slabs */
byte received[4];
byte posted; /* posters that have done */
byte over;   /* processes that have ended */
bool ends, gone; /* the owner's kernel thread ends without a word; has done so */

inline lock(c)
{
	atomic {
		DRAINED(c) && mem[LOCK] == 0;
		mem[LOCK] = 1
	}
}

inline unlock(c)
{
	atomic {
		DRAINED(c);
		mem[LOCK] = 0
	}
}

inline receive(c)
{
#ifndef BUSY_LATE
	store(c, BUSY, 1);
#endif
	inside++;
	assert(inside == 1);
#ifdef TAKE_BY_STORE
	m = LOAD(c, INBOX);
	store(c, INBOX, 0);
#else
	exchange(c, INBOX, 0, m);
#endif
#ifdef BUSY_LATE
	store(c, BUSY, 1);
#endif
	do
	:: m != 0 ->
		atomic {
			assert(LOAD(c, BLOCK + m) == 1);
			received[m]++;
			assert(received[m] == 1);
			m = LOAD(c, NEXT + m)
		}
	:: else -> break
	od;
	inside--;
	store(c, BUSY, 0)
}

inline post(c, i)
{
	store(c, BLOCK + i, 1);
	old = LOAD(c, INBOX);
	do
	:: true ->
#ifndef LINK_BEHIND
		store(c, NEXT + i, old);
#endif
#ifdef POST_BY_STORE
		store(c, INBOX, i);
		ok = 1;
#else
		cas(c, INBOX, old, i, ok);
#endif
		if
		:: ok -> break
		:: else -> old = LOAD(c, INBOX)
		fi
	od;
#ifdef LINK_BEHIND
	store(c, NEXT + i, old);
#endif
	if
	:: LOAD(c, STATE) == ORPHAN -> tend(c)
	:: else
	fi
}

inline tend(c)
{
#ifndef TEND_WITHOUT_LOCK
	lock(c);
#endif
#ifdef TEND_UNASKED
	receive(c);
#else
	if
	:: LOAD(c, STATE) == ORPHAN -> receive(c)
	:: else
	fi;
#endif
#ifndef TEND_WITHOUT_LOCK
	unlock(c);
#endif
}

proctype owner()
{
	byte m;

	{
		do
		:: receive(0)
		:: break
		od;
		receive(0) /* kbi_owner_flush */
	} unless {
		ends;
		gone = true
	};
	if
	:: gone
	:: else ->
		lock(0);
		store(0, STATE, ORPHAN);
		receive(0);
		unlock(0)
	fi;
	over++
}

/* It may end like that at any time, or never. */
active proctype exit_of_owner()
{
end:	ends = true
}

/* Signal 0 tells whether it is there. */
#ifdef TAKE_BUSY
#define IS_GONE (gone && DRAINED(0) && LOAD(3, STATE) == OWNED)
#else
#define IS_GONE (gone && DRAINED(0) && LOAD(3, STATE) == OWNED && !LOAD(3, BUSY))
#endif

proctype poster(byte c; byte from; byte to)
{
	byte m, old, i = from;
	bool ok;

	do
	:: i <= to ->
		post(c, i);
		i++
	:: else -> break
	od;
	fence(c);
	posted++;
	over++
}

proctype heir()
{
	byte m;
	bool mine;

	lock(3);
	if
	:: LOAD(3, STATE) == ORPHAN || IS_GONE ->
		store(3, STATE, OWNED);
		mine = true
	:: else
	fi;
	unlock(3);
	if
	:: mine ->
		receive(3);
		posted == 2;
		receive(3);
		assert(received[1] + received[2] + received[3] == 3)
	:: else
	fi;
	over++
}

/* What nobody has received lies in the inbox; or in the hands of one that is gone. */
active proctype end()
{
	byte m, n;

	atomic {
		run drain(0);
		run drain(1);
		run drain(2);
		run drain(3);
		run owner();
		run poster(1, 1, 2);
		run poster(2, 3, 3);
		run heir()
	}
	over == 4 && DRAINED(0) && DRAINED(1) && DRAINED(2) && DRAINED(3);
	atomic {
		m = mem[INBOX];
		do
		:: m != 0 ->
			n++;
			m = mem[NEXT + m]
		:: else -> break
		od;
		assert(n + received[1] + received[2] + received[3] == 3 || (gone && mem[BUSY]))
	}
}
