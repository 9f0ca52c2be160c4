/* Mutual exclusion with loads and stores only (Peterson). On paper it is right: each says that it wants
 * in, gives the other the way, and waits while the other wants in and has it. On a processor it is not: a
 * store waits in the store buffer while the load behind it is already done, so both may read active[other]
 * as 0 before either active[me] = 1 is seen. x86 allows this one reordering, others allow more. The cure
 * is a full fence between "I want in" and "does he?" - and, in a program for people, a mutex.
 * Spinning has a second defect: with both threads on one processor the one that waits keeps the other from
 * going on, so the loop must give the processor up now and then. Where other programs have the processors that is not
 * enough, for who is waited for may not run at all: each visit may take a turn of the kernel's then, and the
 * visits end when time is up. */
#include "two.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { ROUNDS = 100000, SECONDS = 3 };

static atomic_long active[2], loser;
static atomic_int inside;
static atomic_long collisions, visits;
static uint64_t end;
static enum { NO_FENCE, FENCE, BY_HAND } way;

static void enter(long me)
{
	long other = 1 - me;
	bool he_wants;

	if (way == BY_HAND) {
		/* what the processor may do, step by step: the load first, the stores seen later */
		he_wants = atomic_load_explicit(&active[other], memory_order_relaxed);
		kb_yield();
		atomic_store_explicit(&active[me], 1, memory_order_relaxed);
		if (!he_wants)
			return;
	}
	atomic_store_explicit(&active[me], 1, memory_order_relaxed);
	atomic_store_explicit(&loser, me, memory_order_relaxed);
	if (way == FENCE)
		atomic_thread_fence(memory_order_seq_cst);
	for (int spins = 1; atomic_load_explicit(&loser, memory_order_acquire) == me &&
			    atomic_load_explicit(&active[other], memory_order_acquire); spins++)
		if (spins % 1000 == 0)
			kb_yield();
}

static void *visit(void *arg)
{
	long me = (long)arg;
	int i;

	for (i = 0; i < (way == BY_HAND ? 1 : ROUNDS) && (i % 16 != 15 || kb_now() < end); i++) {
		enter(me);
		if (atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed) != 0)
			atomic_fetch_add_explicit(&collisions, 1, memory_order_relaxed);
		if (way == BY_HAND)
			kb_yield();
		atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
		atomic_store_explicit(&active[me], 0, memory_order_release);
	}
	atomic_fetch_add_explicit(&visits, i, memory_order_relaxed);
	return NULL;
}

static long run(int how, enum where where)
{
	way = how;
	active[0] = active[1] = loser = collisions = visits = 0;
	inside = 0;
	end = kb_now() + SECONDS * UINT64_C(1000000000);
	two(visit, where);
	return collisions;
}

int main(void)
{
	long by_hand = run(BY_HAND, TOGETHER), without, with;

	printf("wrong: the load before the store, by hand: %ld times both were inside\n", by_hand);
	without = run(NO_FENCE, APART);
	printf("wrong: no fence: %ld of %ld times (depends on the machine)\n", without, visits);
	with = run(FENCE, APART);
	printf("right: a fence: %ld of %ld times\n", with, visits);
	return by_hand == 1 && with == 0 ? 0 : 1;
}
