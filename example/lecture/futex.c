/* A mutex from a futex. The futex of the lecture is made here from a mutex and a condition variable of
 * Kochab, so that the calls that would be system calls can be counted and the order of steps can be chosen.
 *
 * Attempt 1 counts everybody who tries. Its defects:
 * - each try changes the value, so a waiter on its way to sleep finds another value than it expects, tries
 *   again, and thereby spoils the other waiter's: they keep each other awake;
 * - unlock cannot know whether anybody waits: a system call each time;
 * - the count may wrap: after 2^32 tries it is 0 and says "free" while somebody is inside.
 *
 * Attempt 2 knows three values: 0 free, 1 locked, 2 locked and somebody may wait. Its first condition is
 * ((c = CAS(&futex->val, 0, 1)) != 0): with the parenthesis behind the 0, as printed, c is 0 or 1, never 2.
 * On Kochab one writes kb_mutex_lock. */
#include "two.h"

#include <stdatomic.h>

/* ---- the futex ------------------------------------------------------------------------------------ */

typedef struct {
	atomic_uint val;
	kb_mutex_t lock;
	kb_cond_t queue;
} futex_t;

static long waits, in_vain, wakes; /* calls; in_vain: waits that returned at once */

static void futex_wait(futex_t *f, unsigned val)
{
	waits++;
	kb_mutex_lock(&f->lock);
	if (atomic_load(&f->val) == val)
		kb_cond_wait(&f->queue, &f->lock);
	else
		in_vain++;
	kb_mutex_unlock(&f->lock);
}

static void futex_wake(futex_t *f)
{
	wakes++;
	kb_mutex_lock(&f->lock);
	kb_cond_signal(&f->queue);
	kb_mutex_unlock(&f->lock);
}

static unsigned cas(atomic_uint *p, unsigned old, unsigned new)
{
	atomic_compare_exchange_strong(p, &old, new);
	return old;
}

/* Where another processor may come in between. */
static void meanwhile(void)
{
	kb_yield();
}

/* ---- the attempts ---------------------------------------------------------------------------------- */

static void lock1(futex_t *f)
{
	unsigned c;

	while ((c = atomic_fetch_add(&f->val, 1)) != 0) {
		meanwhile();
		futex_wait(f, c + 1);
	}
}

static void unlock1(futex_t *f)
{
	atomic_store(&f->val, 0);
	futex_wake(f);
}

static void lock2(futex_t *f)
{
	unsigned c;

	if ((c = cas(&f->val, 0, 1)) != 0) {
		do {
			if (c == 2 || cas(&f->val, 1, 2) != 0) {
				meanwhile();
				futex_wait(f, 2);
			}
		} while ((c = cas(&f->val, 0, 2)) != 0);
	}
}

static void unlock2(futex_t *f)
{
	if (atomic_fetch_sub(&f->val, 1) != 1) {
		atomic_store(&f->val, 0);
		futex_wake(f);
	}
}

static futex_t futex;
static kb_mutex_t mutex;
static void lock3(futex_t *f) { (void)f; kb_mutex_lock(&mutex); }
static void unlock3(futex_t *f) { (void)f; kb_mutex_unlock(&mutex); }

static const struct attempt {
	const char *name;
	void (*lock)(futex_t *), (*unlock)(futex_t *);
} attempts[] = {
	{ "wrong: attempt 1", lock1, unlock1 },
	{ "right: attempt 2", lock2, unlock2 },
	{ "right: kb_mutex", lock3, unlock3 },
}, *now;

/* ---- what happens ------------------------------------------------------------------------------------- */

static void clear(void)
{
	waits = in_vain = wakes = 0;
	futex = (futex_t){ 0 };
}

/* Nobody else is there. */
static long calls_alone(void)
{
	clear();
	for (int i = 0; i < 1000; i++) {
		now->lock(&futex);
		now->unlock(&futex);
	}
	return waits + wakes;
}

static long inside, collisions;

static void want(void)
{
	now->lock(&futex);
	collisions += inside++ != 0;
	kb_yield();
	inside--;
	now->unlock(&futex);
}

static kb_barrier_t all_here;

static void *first(void *unused)
{
	(void)unused;
	now->lock(&futex);
	kb_barrier_wait(&all_here);
	for (int i = 0; i < 100; i++)
		kb_yield();
	now->unlock(&futex);
	return NULL;
}

static void *others(void *unused)
{
	(void)unused;
	kb_barrier_wait(&all_here);
	want();
	return NULL;
}

/* One holds the lock for 100 yields, two want it meanwhile. How often was a waiter's sleep spoilt? */
static long spoilt(void)
{
	kb_thread_t holder;
	kb_attr_t attr;

	clear();
	kb_barrier_init(&all_here, 3);
	kb_attr_init(&attr);
	kb_attr_setvp(&attr, 0);
	if (kb_thread_create(&holder, &attr, first, NULL) != 0)
		abort();
	two(others, TOGETHER);
	kb_thread_join(holder, NULL);
	return in_vain;
}

/* Somebody is inside and 2^32 - 1 have tried. */
static long both_inside_after_wrap(void)
{
	clear();
	inside = 1;
	collisions = 0;
	atomic_store(&futex.val, UINT32_MAX);
	atomic_fetch_add(&futex.val, 1); /* one more tries ... */
	now = &attempts[0];
	want();
	inside = 0;
	return collisions;
}

int main(void)
{
	long alone[3], vain[3], together = 0, wrapped;

	for (int i = 0; i < 3; i++) {
		now = &attempts[i];
		alone[i] = calls_alone();
		vain[i] = spoilt();
		together += collisions;
		printf("%s: %ld system calls for 1000 locks nobody else wants; %ld sleeps spoilt by other waiters\n",
		       now->name, alone[i], vain[i]);
	}
	wrapped = both_inside_after_wrap();
	printf("wrong: attempt 1: the count wraps, and %ld comes in while another is inside\n", wrapped);
	if (alone[0] != 1000 || vain[0] < 50 || wrapped != 1)
		return 1; /* the defects are not there */
	return alone[1] == 0 && vain[1] == 0 && together == 0 ? 0 : 1;
}
