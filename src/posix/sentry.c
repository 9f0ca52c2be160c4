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

static void lock_sentries(void)
{
	kbi_np_enter(kbi_self());
	kbi_lock_take(&lock);
}

static void unlock_sentries(void)
{
	kbi_lock_leave(&lock);
	kbi_np_leave(kbi_self());
}

static struct kbi_sentry **sentry_list(const uint32_t *word)
{
	return &lists[((uintptr_t)word >> 3) % LISTS];
}

/* Finds the word's sentry. Call under lock. */
static struct kbi_sentry *find_sentry(const uint32_t *word)
{
	struct kbi_sentry *s = *sentry_list(word);

	while (s && s->word != word)
		s = s->next;
	return s;
}

/* Takes s out of the table. Call under lock. */
static void unlink_sentry(struct kbi_sentry *s)
{
	struct kbi_sentry **at = sentry_list(s->word);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	n--;
}

/* ---- the kernel thread -------------------------------------------------------------------- */

/* Waits for a job. False: the sentry ends. */
static bool await_sentry_job(struct kbi_sentry *s)
{
	bool armed = false, ends = false;

	while (!armed && !ends) {
		struct kbi_until soon = { kbi_timer_now() + STAY_S * UINT64_C(1000000000), NULL };
		int e = kbi_sem_wait(&s->job, soon);

		lock_sentries();
		armed = s->armed && !s->over;
		ends = s->over || (e && !armed && s->users == 0);
		if (ends && !s->over)
			unlink_sentry(s);
		s->looking = armed;
		unlock_sentries();
	}
	return armed;
}

static void wake_sentry_waiter(const uint32_t *word, bool woken)
{
	if (kbi_park_wake(word, 1, KBI_PARKED_WITH_SENTRY) == 0 && woken)
		kbi_sys_futex_wake_shared(word, 1);
}

/* Waits at the word, and wakes, until no thread has parked since the last wake-up. */
static void watch_sentry_word(struct kbi_sentry *s)
{
	static const struct timespec stay = { STAY_S, 0 };
	bool again = true;

	while (again) {
		uint32_t seen;
		long r;

		lock_sentries();
		s->armed = false;
		seen = s->seen;
		unlock_sentries();
		r = kbi_sys_futex_wait_shared(s->word, seen, &stay);
		if (r != -EINTR && r != -ETIMEDOUT)
			wake_sentry_waiter(s->word, r == 0);
		lock_sentries();
		again = s->armed || ((r == -EINTR || r == -ETIMEDOUT) && s->users);
		s->looking = again;
		unlock_sentries();
	}
}

static void *run_sentry(void *arg)
{
	struct kbi_sentry *s = arg;

	kbi_guardian_block_signals();
	while (await_sentry_job(s))
		watch_sentry_word(s);
	free(s);
	return NULL;
}

/* ---- the waiting thread ------------------------------------------------------------------- */

static struct kbi_sentry *make_sentry(const uint32_t *word)
{
	struct kbi_sentry *s = calloc(1, sizeof(*s));
	pthread_t id;

	if (!s)
		return NULL;
	s->word = word;
	if (kbi_guardian_start(&id, run_sentry, s) == 0)
		return s;
	free(s);
	return NULL;
}

/* Puts the new sentry into the table, unless another thread has made one; returns the one in the
 * table. */
static struct kbi_sentry *enlist_sentry(struct kbi_sentry *made)
{
	struct kbi_sentry *s;

	lock_sentries();
	s = find_sentry(made->word);
	if (s) {
		made->over = true;
	} else {
		s = made;
		s->next = *sentry_list(s->word);
		*sentry_list(s->word) = s;
		n++;
	}
	s->users++;
	unlock_sentries();
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
	lock_sentries();
	s = find_sentry(word);
	if (s)
		s->users++;
	full = n >= MAX;
	unlock_sentries();
	if (s || full)
		return s;
	s = make_sentry(word);
	return s ? enlist_sentry(s) : NULL;
}

void kbi_sentry_end(struct kbi_sentry *s, bool got)
{
	const uint32_t *word = s->word;

	lock_sentries();
	s->users--;
	unlock_sentries();
	if (!got)
		wake_sentry_waiter(word, true);
}

static void arm_sentry(struct kbi_sentry *s, uint32_t seen)
{
	bool post;

	lock_sentries();
	post = !s->looking && !s->armed;
	s->armed = true;
	s->seen = seen;
	unlock_sentries();
	if (post)
		kb_sem_post(&s->job);
}

/* Arms the sentry; called when the caller is parked, and before each of its sleeps. Returns EINTR
 * after a signal. */
static int arm_before_sleep(struct kbi_task *self)
{
	arm_sentry(kbi_posix_me.sentry, kbi_posix_me.sentry_seen);
	return kbi_posix_stop_signal(self);
}

void kbi_sentry_sleep(struct kbi_sentry *s, uint32_t seen, uint64_t until)
{
	kbi_posix_me.sentry = s;
	kbi_posix_me.sentry_seen = seen;
	kbi_park_wait_until(s->word, seen, KBI_PARKED_WITH_SENTRY,
		(struct kbi_until){ until, arm_before_sleep });
}
