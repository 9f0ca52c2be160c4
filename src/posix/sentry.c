/* posix/sentry.c - sentries: a sentry is a kernel thread that waits in the kernel at a word that
 * other processes change, for all lightweight threads of this process that are parked there: when
 * the kernel wakes it, it wakes the first of these. There is one for each word, made by the first
 * thread that waits long; it ends when no thread has waited for a while. It reads the word through
 * the kernel only: the memory may be gone.
 * No wake-up is lost. A sleeper has left a mark in the word, so that a thread that changes the word
 * asks the kernel to wake. The sleeper parks before it tells the sentry the value to wait for: a
 * change before the sentry is in the kernel makes the sentry's wait fail, and a later change wakes
 * it. A thread that was woken and did not get what it wants sleeps again, or leaves by
 * kbi_sentry_end: then the next thread is woken, here or in another process.
 * Callers: posix/delegate. Sleeping may switch; the table is under a kernel-thread lock. */
#include "posix/posix.h"

#include <stdlib.h>

#include "os/lock.h"
#include "os/sys.h"
#include "sync/park.h"
#include "sync/sem.h"

enum { LISTS = 64, MAX = 256 /* words with a sentry */, STAY_S = 1 };

struct kbi_sentry {
	/* under lock */
	struct kbi_sentry *next;
	unsigned users;
	bool armed;    /* a thread has parked since the sentry last took `seen` */
	bool looking;  /* it is in the kernel, or will check `armed` before it sleeps */
	bool over;
	uint32_t seen; /* the value to wait for at the word */
	/* constant */
	const uint32_t *word;
	kb_sem_t job;
};

static struct kbi_sentry *lists[LISTS]; /* under lock */
static unsigned n;                      /* number of sentries; under lock */
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

/* Finds the word's sentry. Call under lock. */
static struct kbi_sentry *find(const uint32_t *word)
{
	struct kbi_sentry *s = *list_of(word);

	while (s && s->word != word)
		s = s->next;
	return s;
}

/* Takes s out of the table. Call under lock. */
static void take_out(struct kbi_sentry *s)
{
	struct kbi_sentry **at = list_of(s->word);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	n--;
}

/* ---- the kernel thread -------------------------------------------------------------------- */

/* Waits for a job. False: the sentry ends. */
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

/* Waits at the word, and wakes, until no thread has parked since the last wake-up. */
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

/* ---- the waiting thread ------------------------------------------------------------------- */

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

/* Puts the new sentry into the table, unless another thread has made one; returns the one in the
 * table. */
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

/* Arms the sentry; called when the caller is parked, and before each of its sleeps. Returns EINTR
 * after a signal. */
static int arm_and_stop(struct kbi_task *self)
{
	arm(kbi_posix_me.sentry, kbi_posix_me.sentry_seen);
	return kbi_posix_stop_signal(self);
}

void kbi_sentry_sleep(struct kbi_sentry *s, uint32_t seen, uint64_t until)
{
	kbi_posix_me.sentry = s;
	kbi_posix_me.sentry_seen = seen;
	kbi_park_wait_until(s->word, seen, KBI_PARKED_WITH_SENTRY,
		(struct kbi_until){ until, arm_and_stop });
}
