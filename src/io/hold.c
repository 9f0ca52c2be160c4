/* io/hold.c - calls and the files they are about. Contract in hold.h; model/hold.pml.
 *
 * Why a call never meets a different file. Let C be a close of number n.
 *  1. A record is put into n's list under the slot's lock, while `closing` is 0; else the call gets
 *     a copy at once, of the file that n means then. That is right: no thread has seen the call
 *     begin before C did. (If the call has moved a part already, before C, `since` tells: it ends
 *     with that part.) So once C has counted itself in `closing`, under the lock, the list only
 *     shrinks, and C finds in it each call that began before. Where threads run one at a time, a
 *     call needs no lock (core/single_threaded): all code that changes `held`, `closing` and
 *     `closed` is in this file, and has called kbi_self, which ends the single-threaded phase on
 *     other kernel threads.
 *  2. C makes one copy of the file and stores its number in each record; then a fence; then it
 *     waits for all attempts that were under way on any VP. An attempt says that it is under way,
 *     then a fence, then it reads its number. So each attempt that used n is over before the kernel
 *     closes n; all later attempts use the copy. A further close of n at the same time may find an
 *     empty list: it waits for those attempts, too.
 *  3. The last user of a copy closes it. Closes by number leave it alone (own.h), except dup2,
 *     which closes n = the copy's number by the rules above, and its calls move on.
 *  4. A thread arms the engine for its wait under the lock of the slot of its number; step 2
 *     changes the number under that lock, too. A thread that then sleeps at the old number is woken
 *     afterwards (ready).
 *
 * A thread in an attempt is on one VP from its beginning to its end, inside np brackets, so a word
 * for each VP is enough. C waits for one system call that does not block; most often for none.
 * Threads on no VP have copies at once.
 *
 * Not chosen: a copy at each first sleep. That is two system calls for each message in a
 * conversation, a tenth of its time, where a hold is some stores, or read-modify-writes. Not chosen
 * either: to check at each wake-up whether the number was closed. A check before the system call
 * may be too late; before a check after it, the data of a different file are taken. */
#include "io/hold.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

#include "core/handoff.h"
#include "core/thread.h"
#include "core/wait.h"
#include "io/engine.h"
#include "os/sys.h"

a64 kbi_hold_count;

/* ---- the list: under the slot's lock --------------------------------------------------------- */

static void link_hold(struct kbi_slot *s, struct kbi_hold *h)
{
	h->prev = NULL;
	h->next = s->held;
	if (h->next)
		h->next->prev = h;
	s->held = h;
}

static void unlink_hold(struct kbi_slot *s, struct kbi_hold *h)
{
	if (h->prev)
		h->prev->next = h->next;
	else
		s->held = h->next;
	if (h->next)
		h->next->prev = h->prev;
}

static inline struct kbi_task *self_now(void)
{
	struct kbi_task *self = kbi_self_raw();

	return kbi_likely(self != NULL) ? self : kbi_self();
}

/* Enters a section without the slot's lock, for some instructions that do not switch. A thread that
 * is alone need not lock, but no other thread may hold the lock. */
static inline bool enter_alone(const struct kbi_task *self, const struct kbi_slot *s)
{
	if (!kbi_single_threaded_enter(self))
		return false;
	if (kbi_likely(!a_load_rlx(&s->lock)))
		return true;
	kbi_single_threaded_leave();
	return false;
}

static inline void enter_locking(struct kbi_task *self, struct kbi_slot *s)
{
	kbi_np_enter(self);
	kbi_slot_lock(s);
}

static inline void leave_slot(struct kbi_task *self, struct kbi_slot *s, bool alone)
{
	if (kbi_likely(alone)) {
		kbi_single_threaded_leave();
		return;
	}
	kbi_slot_unlock(s);
	kbi_np_leave(self);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Begins with a copy at once: the thread is on no VP, or the number is being closed. */
static KBI_NOINLINE int begin_with_copy(struct kbi_hold *h, int fd)
{
	struct kbi_task *self = kbi_self();
	int own = kbi_own_copy(fd);
	struct kbi_slot *s;

	if (own < 0)
		return EBADF;
	h->own = true;
	a_store_rlx(&h->fd, (uint32_t)own);
	s = kbi_slot_find(own);
	kbi_np_enter(self);
	kbi_slot_lock(s);
	link_hold(s, h);
	a_store_rlx(&h->slot, (void *)s);
	kbi_slot_unlock(s);
	kbi_np_leave(self);
	return 0;
}

bool kbi_hold_is_closed_since(int fd, uint64_t since)
{
	const struct kbi_slot *s = kbi_slot_find(fd);

	/* acquire: pairs with the release in kbi_hold_closed, which has counted before */
	return s && (a_load_acq(&s->closing) > 0 || a_load_rlx(&s->closed) > since);
}

/* Counts a begin or an end of a close. Under s's lock, where `closing` is above 0 already: a caller
 * that has read the count in between sees `closing`, until the close is counted once more. release:
 * pairs with the acquire in kbi_hold_now. */
static void count_close(struct kbi_slot *s)
{
	a_store_rlx(&s->closed, a_add_acqrel(&kbi_hold_count, 1) + 1);
}

int kbi_hold_begin(struct kbi_hold *h, int fd, bool stays, const uint64_t *since)
{
	struct kbi_task *self = self_now();
	struct kbi_slot *s = kbi_slot_find(fd);
	bool alone, closing, changed;

	if (kbi_unlikely(!s || !a_load_rlx(&s->made)))
		s = kbi_slot_make(fd);
	a_store_rlx(&h->slot, NULL);
	a_store_rlx(&h->fd, (uint32_t)fd);
	h->stays = stays;
	h->own = false;
	if (kbi_unlikely(!s))
		return fd < 0 ? EBADF : ENOMEM;
	alone = enter_alone(self, s);
	if (!alone) {
		if (kbi_unlikely(kbi_engine_forked()))
			return 0; /* the child of fork has a single thread, and no closer */
		if (kbi_unlikely(!self->vp))
			return begin_with_copy(h, fd);
		enter_locking(self, s);
	}
	closing = a_load_rlx(&s->closing) > 0;
	changed = since && (closing || a_load_rlx(&s->closed) > *since);
	if (kbi_likely(!closing && !changed)) {
		link_hold(s, h);
		a_store_rlx(&h->slot, (void *)s);
	}
	leave_slot(self, s, alone);
	if (kbi_likely(!closing && !changed))
		return 0;
	return changed ? EAGAIN : begin_with_copy(h, fd);
}

/* Takes the record out of its list. The closer that moves it has both locks,
 * and stores the slot last. */
static inline void remove_hold(struct kbi_task *self, struct kbi_hold *h)
{
	struct kbi_slot *s;

	/* acquire: pairs with the release in move_hold */
	while ((s = a_load_acq(&h->slot)) != NULL) {
		bool alone = enter_alone(self, s);

		if (!alone)
			enter_locking(self, s);
		if (kbi_likely(a_load_rlx(&h->slot) == s)) {
			unlink_hold(s, h);
			a_store_rlx(&h->slot, NULL);
		}
		leave_slot(self, s, alone);
	}
}

void kbi_hold_end(struct kbi_hold *h)
{
	if (!a_load_acq(&h->slot) && !h->own) /* acquire: pairs with the release in move_hold */
		return;
	remove_hold(self_now(), h);
	if (kbi_unlikely(h->own)) {
		kbi_own_drop(kbi_hold_fd(h));
		h->own = false;
	}
}

/* ---- closing --------------------------------------------------------------------------------- */

KBI_NOINLINE void kbi_hold_tell(struct kbi_vp *vp)
{
	a_store_rlx(&vp->attempt_watched, 0);
	kbi_sys_futex_wake(&vp->attempt, INT_MAX);
}

/* Waits for an attempt. The turn is odd: the attempt is over when the word changes, or when the VP
 * has a new worker, whose predecessor was killed inside. */
static void await_turn(struct kbi_vp *vp, uint32_t turn)
{
	struct timespec pause = { 0, 1000000 };
	uint32_t tid = a_load_rlx(&vp->tid);

	/* acquire: pairs with the release in kbi_hold_attempted */
	while (a_load_acq(&vp->attempt) == turn && a_load_rlx(&vp->tid) == tid) {
		a_store_rlx(&vp->attempt_watched, 1);
		kbi_sys_futex_wait(&vp->attempt, turn, &pause);
	}
}

/* Waits until each VP has left the attempt in which it is. The caller's own VP is in none. */
static KBI_SWITCHES void await_attempts(const struct kbi_task *self)
{
	bool away = false;

	/* sc: pairs with the fence in kbi_hold_attempt; the barrier serves attempts without fence. The
	 * loads of attempt below pair with the release in kbi_hold_attempted */
	if (kbi_likely(a_load_rlx(&kbi_single_threaded.has_barrier)))
		kbi_single_threaded_barrier();
	else
		a_fence_sc();
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		uint32_t turn = a_load_acq(&kbi_vps[i]->attempt);

		if (kbi_likely(!(turn & 1)) || (!away && kbi_vps[i] == self->vp))
			continue;
		if (!away)
			kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
		away = true;
		await_turn(kbi_vps[i], turn);
	}
	if (away)
		kbi_handoff_end();
}

/* Lets h go on with `own`, or marks its file as closed. Under s's lock. */
static void move_hold(struct kbi_slot *s, struct kbi_hold *h, int own)
{
	struct kbi_slot *to = h->stays && own >= 0 ? kbi_slot_find(own) : NULL;

	unlink_hold(s, h);
	h->own = to != NULL;
	a_store_rlx(&h->fd, (uint32_t)(to ? own : -1));
	if (to) {
		kbi_own_share(own);
		/* a number that no thread closes yet: two such locks are never taken in a circle */
		kbi_slot_lock(to);
		link_hold(to, h);
	}
	/* release: pairs with the acquire in remove_hold. The record may be gone */
	a_store_rel(&h->slot, (void *)to);
	if (to)
		kbi_slot_unlock(to);
}

/* Lets all calls that hold fd's file go on with a copy. */
static KBI_NOINLINE KBI_SWITCHES void move_all_holds(struct kbi_slot *s, int fd)
{
	struct kbi_task *self = kbi_self();
	int own = kbi_own_copy(fd);
	unsigned dropped = 0;
	struct kbi_hold *h;

	kbi_np_enter(self);
	kbi_slot_lock(s);
	while ((h = s->held) != NULL) {
		dropped += h->own;
		move_hold(s, h, own);
	}
	kbi_slot_unlock(s);
	kbi_np_leave(self);
	await_attempts(kbi_self());
	for (; dropped > 0; dropped--)
		kbi_own_drop(fd);
	if (own >= 0)
		kbi_own_drop(own);
}

static bool is_of_no_concern(const struct kbi_slot *s)
{
	return kbi_unlikely(!s) || !kbi_vp_n || kbi_unlikely(kbi_engine_forked());
}

bool kbi_hold_closing(int fd)
{
	struct kbi_slot *s = kbi_vp_n ? kbi_slot_make(fd) : NULL;
	struct kbi_task *self;
	bool held, others;

	if (is_of_no_concern(s))
		return false;
	self = kbi_self();
	kbi_np_enter(self);
	kbi_slot_lock(s);
	others = a_load_rlx(&s->closing) > 0;
	a_store_rlx(&s->closing, a_load_rlx(&s->closing) + 1);
	count_close(s);
	held = s->held != NULL;
	kbi_slot_unlock(s);
	kbi_np_leave(self);
	if (kbi_unlikely(held))
		move_all_holds(s, fd);
	else if (kbi_unlikely(others)) /* that close has taken the list, and may be waiting still */
		await_attempts(self);
	return held;
}

void kbi_hold_closed(int fd)
{
	struct kbi_slot *s = kbi_slot_find(fd);
	struct kbi_task *self;

	if (is_of_no_concern(s))
		return;
	self = kbi_self();
	kbi_np_enter(self);
	kbi_slot_lock(s);
	count_close(s);
	/* 0: the close may have begun before there were VPs. release: pairs with
	 * kbi_hold_is_closed_since */
	if (a_load_rlx(&s->closing))
		a_store_rel(&s->closing, a_load_rlx(&s->closing) - 1);
	kbi_slot_unlock(s);
	kbi_np_leave(self);
}

/* ---- several at once ------------------------------------------------------------------------- */

bool kbi_hold_moved(const struct kbi_hold *h, const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i].fd >= 0 && kbi_hold_fd(&h[i]) != fds[i].fd)
			return true;
	return false;
}

/* Polls a copy of the array. A file that could not be kept counts as closed. */
static long poll_copy(const struct kbi_hold *h, struct pollfd *fds, size_t n, struct pollfd *copy)
{
	long r, lost = 0;

	for (size_t i = 0; i < n; i++)
		copy[i] = (struct pollfd){ fds[i].fd < 0 ? -1 : kbi_hold_fd(&h[i]), fds[i].events, 0 };
	r = kbi_sys_poll_now(copy, n);
	for (size_t i = 0; i < n && r >= 0; i++) {
		bool is_lost = fds[i].fd >= 0 && copy[i].fd < 0;

		fds[i].revents = is_lost ? POLLNVAL : copy[i].revents;
		lost += is_lost;
	}
	return r < 0 ? r : r + lost;
}

long kbi_hold_poll(const struct kbi_hold *h, struct pollfd *fds, size_t n, struct pollfd *copy)
{
	if (kbi_unlikely(kbi_hold_moved(h, fds, n)))
		return poll_copy(h, fds, n, copy);
	return kbi_sys_poll_now(fds, n);
}

void kbi_hold_begin_all(struct kbi_hold *h, const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			kbi_hold_begin(&h[i], fds[i].fd, true, NULL);
}

void kbi_hold_end_all(struct kbi_hold *h, size_t n)
{
	for (size_t i = 0; i < n; i++)
		kbi_hold_end(&h[i]);
}
