/* core/deadline: a deadline that a wait leaves in its VP's heap when it is woken does not disturb
 * the next waits: of the same thread with a nearer or farther deadline, there or where the thread
 * has moved to, or of the descriptor's next thread. None ends before its time, each ends. */
#include <errno.h>
#include <kochab/kochab.h>

#include "test.h"

enum { PAIRS = TEST_THREADS(300), ROUNDS = 40, LIVES = 4, MS = 1000000 };

struct pair {
	kb_sem_t gate, left;
	uint64_t rand, posters;
};

static uint32_t came, posted;

/* The deadline comes. */
static void near(struct pair *p)
{
	uint64_t until = kb_now() + test_rand(&p->rand) % (3 * MS);

	CHECK_EQ(kb_sem_timedwait(&p->left, until), ETIMEDOUT);
	CHECK(kb_now() >= until);
	__atomic_add_fetch(&came, 1, __ATOMIC_RELAXED);
}

/* The deadline is at any time from at once to in two days: a post ends the wait, or the deadline
 * does. */
static void far(struct pair *p)
{
	uint64_t until = kb_now() + (UINT64_C(1) << test_rand(&p->rand) % 47);
	int e = kb_sem_timedwait(&p->gate, until);

	if (e == ETIMEDOUT) {
		CHECK(kb_now() >= until);
		kb_sem_wait(&p->gate);
	} else {
		CHECK_EQ(e, 0);
	}
}

static void *posts(void *arg)
{
	struct pair *p = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned k = test_rand(&p->posters) % 8; k > 0; k--)
			kb_yield();
		kb_sem_post(&p->gate);
		__atomic_add_fetch(&posted, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *waits(void *arg)
{
	struct pair *p = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		far(p);
		if (test_rand(&p->rand) % 8 == 0)
			near(p);
		/* long enough in the queue for another VP to take it along */
		for (unsigned k = test_rand(&p->rand) % 16; k > 0; k--)
			kb_yield();
	}
	return NULL;
}

int main(void)
{
	static struct pair p[PAIRS];
	static kb_thread_t t[2 * PAIRS];

	for (unsigned life = 0; life < LIVES; life++) {
		for (unsigned i = 0; i < PAIRS; i++) {
			p[i].rand = test_seed() + life * PAIRS + i + 1;
			p[i].posters = p[i].rand * 77;
			CHECK_EQ(kb_thread_create(&t[2 * i], NULL, waits, &p[i]), 0);
			CHECK_EQ(kb_thread_create(&t[2 * i + 1], NULL, posts, &p[i]), 0);
		}
		for (unsigned i = 0; i < 2 * PAIRS; i++)
			CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	}
	CHECK_EQ(posted, LIVES * PAIRS * ROUNDS);
	CHECK(came > 0);
	return 0;
}
