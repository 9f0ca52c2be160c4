/* matrix: sched=rotator,lb2,steal vps=1,2
 * core/vp: tasks that cost less than their move stay where they are, but when they become longer
 * all VPs get some, though each of the tasks still ends before its VP could be called stuck. */
#include <kochab/kochab.h>
#include <stdbool.h>

#include "test.h"

enum { ROUNDS = 12, FEW = 500, FINE_MS = 50, WORK_NS = 200000, MS = 1000000 };

static kb_thread_t t[FEW];
static uint32_t used[64];
static kb_sem_t done;

static void *nothing(void *arg)
{
	return arg;
}

static void *computes(void *arg)
{
	uint64_t end = test_now_ns() + WORK_NS;

	__atomic_add_fetch(&used[kb_vp_self()], 1, __ATOMIC_RELAXED);
	while (test_now_ns() < end)
		;
	kb_sem_post(&done);
	return arg;
}

static void make(void *(*fn)(void *))
{
	for (unsigned i = 0; i < FEW; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, fn, NULL), 0);
}

static void join(void)
{
	for (unsigned i = 0; i < FEW; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

/* Returns true if every VP had some. */
static bool shared(unsigned round)
{
	uint64_t end = test_now_ns() + FINE_MS * MS;
	bool all = true;

	while (test_now_ns() < end) {
		make(nothing);
		join();
	}
	make(computes);
	for (unsigned i = 0; i < FEW; i++)
		CHECK_EQ(kb_sem_wait(&done), 0);
	join();
	for (unsigned i = 0; i < kb_vp_count(); i++) {
		if (used[i] < FEW / kb_vp_count() / 8) {
			fprintf(stderr, "round %u: VP %u ran %u of %u threads\n", round, i, used[i], FEW);
			all = false;
		}
		used[i] = 0;
	}
	return all;
}

int main(void)
{
	unsigned bad = 0;

	CHECK_EQ(kb_sem_init(&done, 0), 0);
	for (unsigned i = 0; i < ROUNDS; i++)
		bad += !shared(i);
	/* other programs use the machine, too: in some rounds the kernel lets a VP not run */
	CHECK(bad <= ROUNDS / 3);
	return 0;
}
