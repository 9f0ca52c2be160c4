/* posix/standin_futex.c - futex stand-ins: kernel threads, each of which waits in the kernel at a
 * word that other processes change, for all lightweight threads of this process that are parked
 * there: when the kernel wakes it, it wakes the first of these. There is one for each word, made by
 * the first thread that waits long; it ends when no thread has waited for a while. It reads the
 * word through the kernel only: the memory may be gone.
 * No wake-up is lost. A sleeper has left a mark in the word, so that a thread that changes the word
 * asks the kernel to wake. The sleeper parks before it tells the stand-in the value to wait for: a
 * change before the stand-in is in the kernel makes the stand-in's wait fail, and a later change
 * wakes it. A thread that was woken and did not get what it wants sleeps again, or leaves by
 * kbi_standin_futex_end: then the next thread is woken, here or in another process.
 * Callers: posix/libc_mutex. Sleeping may switch; the table is under a kernel-thread lock. */
#include "posix/posix.h"

#include <stdlib.h>

#include "os/lock.h"
#include "os/sys.h"
#include "sync/park.h"
#include "sync/sem.h"

enum { LISTS = 64, MAX = 256 /* words with a stand-in */, STAY_S = 1 };

struct kbi_standin_futex {
	/* under lock */
	struct kbi_standin_futex *next;
	unsigned users;
	bool armed;    /* a thread has parked since the stand-in last took `seen` */
	bool looking;  /* it is in the kernel, or will check `armed` before it sleeps */
	bool over;
	uint32_t seen; /* the value to wait for at the word */
	/* constant */
	const uint32_t *word;
	kb_sem_t job;
};

static struct kbi_standin_futex *lists[LISTS]; /* under lock */
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

static struct kbi_standin_futex **standin_list(const uint32_t *word)
{
	return &lists[((uintptr_t)word >> 3) % LISTS];
}

/* Finds the word's stand-in. Call under lock. */
static struct kbi_standin_futex *find_standin(const uint32_t *word)
{
	struct kbi_standin_futex *s = *standin_list(word);

	while (s && s->word != word)
		s = s->next;
	return s;
}

/* Takes s out of the table. Call under lock. */
static void unlink_standin(struct kbi_standin_futex *s)
{
	struct kbi_standin_futex **at = standin_list(s->word);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	n--;
}

/* ---- the kernel thread -------------------------------------------------------------------- */

/* Waits for a job. False: the stand-in ends. */
static bool await_standin_job(struct kbi_standin_futex *s)
{
	bool armed = false, ends = false;

	while (!armed && !ends) {
		struct kbi_until soon = { kbi_timer_now() + STAY_S * UINT64_C(1000000000), NULL };
		int e = kbi_sem_wait(&s->job, soon);

		lock_sentries();
		armed = s->armed && !s->over;
		ends = s->over || (e && !armed && s->users == 0);
		if (ends && !s->over)
			unlink_standin(s);
		s->looking = armed;
		unlock_sentries();
	}
	return armed;
}

static void wake_standin_waiter(const uint32_t *word, bool woken)
{
	if (kbi_park_wake(word, 1, KBI_PARKED_WITH_STANDIN) == 0 && woken)
		kbi_sys_futex_wake_shared(word, 1);
}

/* Waits at the word, and wakes, until no thread has parked since the last wake-up. */
static void watch_standin_word(struct kbi_standin_futex *s)
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
			wake_standin_waiter(s->word, r == 0);
		lock_sentries();
		again = s->armed || ((r == -EINTR || r == -ETIMEDOUT) && s->users);
		s->looking = again;
		unlock_sentries();
	}
}

static void *run_standin_futex(void *arg)
{
	struct kbi_standin_futex *s = arg;

	kbi_standin_block_signals();
	while (await_standin_job(s))
		watch_standin_word(s);
	free(s);
	return NULL;
}

/* ---- the waiting thread ------------------------------------------------------------------- */

static struct kbi_standin_futex *make_standin(const uint32_t *word)
{
	struct kbi_standin_futex *s = calloc(1, sizeof(*s));
	pthread_t id;

	if (!s)
		return NULL;
	s->word = word;
	if (kbi_standin_start(&id, run_standin_futex, s) == 0)
		return s;
	free(s);
	return NULL;
}

/* Puts the new stand-in into the table, unless another thread has made one; returns the one in the
 * table. */
static struct kbi_standin_futex *enlist_standin(struct kbi_standin_futex *made)
{
	struct kbi_standin_futex *s;

	lock_sentries();
	s = find_standin(made->word);
	if (s) {
		made->over = true;
	} else {
		s = made;
		s->next = *standin_list(s->word);
		*standin_list(s->word) = s;
		n++;
	}
	s->users++;
	unlock_sentries();
	if (s != made)
		kb_sem_post(&made->job);
	return s;
}

struct kbi_standin_futex *kbi_standin_futex_begin(const uint32_t *word)
{
	struct kbi_standin_futex *s;
	bool full;

	if (kbi_standin_may_be_lost())
		return NULL;
	lock_sentries();
	s = find_standin(word);
	if (s)
		s->users++;
	full = n >= MAX;
	unlock_sentries();
	if (s || full)
		return s;
	s = make_standin(word);
	return s ? enlist_standin(s) : NULL;
}

void kbi_standin_futex_end(struct kbi_standin_futex *s, bool got)
{
	const uint32_t *word = s->word;

	lock_sentries();
	s->users--;
	unlock_sentries();
	if (!got)
		wake_standin_waiter(word, true);
}

static void arm_standin(struct kbi_standin_futex *s, uint32_t seen)
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

/* Arms the stand-in; called when the caller is parked, and before each of its sleeps. Returns EINTR
 * after a signal. */
static int arm_before_sleep(struct kbi_task *self)
{
	arm_standin(kbi_posix_me.standin_futex, kbi_posix_me.standin_seen);
	return kbi_posix_stop_signal(self);
}

void kbi_standin_futex_sleep(struct kbi_standin_futex *s, uint32_t seen, uint64_t until)
{
	kbi_posix_me.standin_futex = s;
	kbi_posix_me.standin_seen = seen;
	kbi_park_wait_until(s->word, seen, KBI_PARKED_WITH_STANDIN,
		(struct kbi_until){ until, arm_before_sleep });
}
