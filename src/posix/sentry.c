/* posix/sentry.c - kernel threads that wait in the kernel at a word that other processes change, for all lightweight
 * threads of this process that are parked there: what wakes it in the kernel wakes the first of those. One for each word,
 * made by who first waits there for long; it ends when nobody has for a while. It touches the word by the kernel only:
 * the memory may be gone.
 * A sleeper has left a mark in the word, so that who changes it asks the kernel to wake. It is parked before the sentry is
 * told what to wait for, so a change that comes before the sentry is in the kernel is found by that, and one that comes
 * later wakes it. Who was woken and did not get what it wants says so again, or by kbi_sentry_end that it goes: then the
 * next one is woken, here or in another process. So no wake-up is lost on somebody who has no use for it.
 * Callers: posix/delegate. Sleeping may switch; the table is under a kernel-thread lock. */
#include "posix/posix.h"

#include <stdlib.h>

#include "os/lock.h"
#include "os/sys.h"
#include "sync/park.h"
#include "sync/sem.h"

enum { LISTS = 64, MAX = 256 /* words */, STAY_S = 1 };

struct kbi_sentry {
	/* under lock */
	struct kbi_sentry *next;
	unsigned users;
	bool armed;    /* somebody has parked since it last took `seen` */
	bool looking;  /* it is in the kernel, or will ask whether it is armed before it sleeps */
	bool over;
	uint32_t seen; /* what to wait at the word for */
	/* constant */
	const uint32_t *word;
	kb_sem_t job;
};

static struct kbi_sentry *lists[LISTS]; /* under lock */
static unsigned n;                      /* under lock */
static a32 lock;

static void enter(void)
{
	kbi_np_enter(kbi_self());
	kbi_lock_take(&lock);
}

static void leave(void)
{
	kbi_lock_leave(&lock);
	kbi_np_leave(kbi_self());
}

static struct kbi_sentry **list_of(const uint32_t *word)
{
	return &lists[((uintptr_t)word >> 3) % LISTS];
}

/* Under lock. */
static struct kbi_sentry *find(const uint32_t *word)
{
	struct kbi_sentry *s = *list_of(word);

	while (s && s->word != word)
		s = s->next;
	return s;
}

/* Under lock. */
static void take_out(struct kbi_sentry *s)
{
	struct kbi_sentry **at = list_of(s->word);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	n--;
}

/* ---- the kernel thread ----------------------------------------------------------------------------- */

/* False: it ends. */
static bool is_needed(struct kbi_sentry *s)
{
	bool armed = false, ends = false;

	while (!armed && !ends) {
		struct kbi_until soon = { kbi_timer_now() + STAY_S * UINT64_C(1000000000), NULL };
		int e = kbi_sem_wait(&s->job, soon);

		enter();
		armed = s->armed && !s->over;
		ends = s->over || (e && !armed && s->users == 0);
		if (ends && !s->over)
			take_out(s);
		s->looking = armed;
		leave();
	}
	return armed;
}

static void wake_one(const uint32_t *word, bool woken)
{
	if (kbi_park_wake(word, 1, KBI_PARKED_WITH_SENTRY) == 0 && woken)
		kbi_sys_futex_wake_shared(word, 1);
}

/* Until nobody has parked since it last woke somebody. */
static void look(struct kbi_sentry *s)
{
	static const struct timespec stay = { STAY_S, 0 };
	bool again = true;

	while (again) {
		uint32_t seen;
		long r;

		enter();
		s->armed = false;
		seen = s->seen;
		leave();
		r = kbi_sys_futex_wait_shared(s->word, seen, &stay);
		if (r != -EINTR && r != -ETIMEDOUT)
			wake_one(s->word, r == 0);
		enter();
		again = s->armed || ((r == -EINTR || r == -ETIMEDOUT) && s->users);
		s->looking = again;
		leave();
	}
}

static void *sentry_body(void *arg)
{
	struct kbi_sentry *s = arg;

	kbi_guardian_block_signals();
	while (is_needed(s))
		look(s);
	free(s);
	return NULL;
}

/* ---- who waits ------------------------------------------------------------------------------------- */

static struct kbi_sentry *make(const uint32_t *word)
{
	struct kbi_sentry *s = calloc(1, sizeof(*s));
	pthread_t id;

	if (!s)
		return NULL;
	s->word = word;
	if (kbi_guardian_start(&id, sentry_body, s) == 0)
		return s;
	free(s);
	return NULL;
}

/* Another may have made one meanwhile. */
static struct kbi_sentry *enlist(struct kbi_sentry *made)
{
	struct kbi_sentry *s;

	enter();
	s = find(made->word);
	if (s) {
		made->over = true;
	} else {
		s = made;
		s->next = *list_of(s->word);
		*list_of(s->word) = s;
		n++;
	}
	s->users++;
	leave();
	if (s != made)
		kb_sem_post(&made->job);
	return s;
}

struct kbi_sentry *kbi_sentry_begin(const uint32_t *word)
{
	struct kbi_sentry *s;
	bool full;

	if (kbi_guardian_may_be_lost())
		return NULL;
	enter();
	s = find(word);
	if (s)
		s->users++;
	full = n >= MAX;
	leave();
	if (s || full)
		return s;
	s = make(word);
	return s ? enlist(s) : NULL;
}

void kbi_sentry_end(struct kbi_sentry *s, bool got)
{
	const uint32_t *word = s->word;

	enter();
	s->users--;
	leave();
	if (!got)
		wake_one(word, true);
}

static void arm(struct kbi_sentry *s, uint32_t seen)
{
	bool post;

	enter();
	post = !s->looking && !s->armed;
	s->armed = true;
	s->seen = seen;
	leave();
	if (post)
		kb_sem_post(&s->job);
}

/* Asked when the caller is parked, and before each of its sleeps. */
static int arm_and_stop(struct kbi_task *self)
{
	arm(kbi_posix_me.sentry, kbi_posix_me.sentry_seen);
	return kbi_posix_stop_signal(self);
}

void kbi_sentry_sleep(struct kbi_sentry *s, uint32_t seen, uint64_t until)
{
	kbi_posix_me.sentry = s;
	kbi_posix_me.sentry_seen = seen;
	kbi_park_wait_until(s->word, seen, KBI_PARKED_WITH_SENTRY, (struct kbi_until){ until, arm_and_stop });
}
