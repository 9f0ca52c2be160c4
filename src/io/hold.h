/* io/hold.h - a call that has begun is about the file that its number meant then, as in the kernel, until it returns,
 * whoever closes the number meanwhile and whatever it means next.
 *
 * A call begins where others can know that it has: before it suspends its thread for the first time. From there to its
 * end the call holds the file: its record is in the list of the number's slot, and it asks before each system call for
 * the number to use:
 *
 *	e = kbi_hold_begin(&h, fd, true, NULL);
 *	...
 *	kbi_hold_attempt();                    does not suspend from here
 *	r = recv(kbi_hold_fd(&h), p, n, MSG_DONTWAIT);
 *	kbi_hold_attempted();                  to here
 *	...
 *	kbi_hold_end(&h);
 *
 * Whoever closes a number, or puts another file under it, says so before and after. Before, it gives all calls that hold
 * the file one copy of it (io/own), by which they go on, and waits until attempts that may have begun with the number are
 * over. So an attempt must not block in the kernel: what may goes on with a copy of its own, outside.
 * Callers: ready, call, file, posix. Calls own, core/handoff. Its argument is in hold.c, its model is model/hold.pml. */
#ifndef KBI_HOLD_H
#define KBI_HOLD_H

#include "core/solo.h"
#include "core/vp.h"
#include "io/own.h"

/* Of a call and one number; lies on the caller's stack. Zeroed: it holds nothing. */
struct kbi_hold {
	/* under the lock of its slot */
	struct kbi_hold *next, *prev;
	aptr slot;  /* struct kbi_slot *; NULL: it is in no list. Changed under the locks of both */
	a32 fd;     /* what the call goes on with; -1: the file is closed */
	bool stays; /* with the file; else a close ends the call */
	bool own;   /* fd is a private copy, and the record one of its users */
};

/* How often a close of any number has begun or ended. A single count for all numbers: at its beginning a call reads this
 * word, and need not look for the number's slot. */
extern KBI_HIDDEN a64 kbi_hold_count;
static inline uint64_t kbi_hold_now(void)
{
	return a_load_acq(&kbi_hold_count); /* acquire: all use of the file comes after it */
}
/* Somebody has begun to close fd since then, or is about to. */
bool kbi_hold_is_closed_since(int fd, uint64_t since);

/* Holds the file that fd means. since: NULL, or kbi_hold_now before something has been done with that file.
 *   0       it does
 *   EBADF   the number is being closed, and means nothing now
 *   EAGAIN  since then it was closed, or is about to be
 *   ENOMEM  no room for what is known of numbers; kbi_hold_fd is fd all the same */
int kbi_hold_begin(struct kbi_hold *h, int fd, bool stays, const uint64_t *since);
/* Idempotent. */
void kbi_hold_end(struct kbi_hold *h);

/* Between attempt and attempted it means the file until then; elsewhere it may be stale at once. */
static inline int kbi_hold_fd(const struct kbi_hold *h)
{
	return (int)a_load_rlx(&h->fd);
}

/* Brackets round an attempt of the caller, who holds files, with all of them. Inside np brackets; not nested. */
void kbi_hold_tell(struct kbi_vp *vp);

static inline void kbi_hold_attempt(void)
{
	struct kbi_task *self = kbi_self_raw();
	a32 *turn;

	if (kbi_unlikely(!self || !self->vp))
		return; /* it has copies of its own */
	a_own_inc16(&self->np);
	turn = &self->vp->attempt;
	/* a process that was killed inside left it odd. A fence between this and the number's load; partner: the one in
	 * await_attempts, which makes the VP's processor pass another. This sees the new number, or that sees the turn */
	a_store_rlx(turn, (a_load_rlx(turn) + 1) | 1);
	if (kbi_unlikely(!a_load_rlx(&kbi_solo.has_barrier)))
		a_fence_sc();
	kbi_compiler_barrier();
}

static inline void kbi_hold_attempted(void)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_vp *vp;

	if (kbi_unlikely(!self || !(vp = self->vp)))
		return;
	/* release: partner is the acquire in await_attempts. The system call is over */
	a_store_rel(&vp->attempt, a_load_rlx(&vp->attempt) + 1);
	/* one that is missed here looks again by itself */
	if (kbi_unlikely(a_load_rlx(&vp->attempt_watched)))
		kbi_hold_tell(vp);
	a_own_dec16(&self->np);
}

/* The same for each of fds, of which those below 0 are left out; h is zeroed before. What cannot be held is as its number
 * says. */
struct pollfd;
void kbi_hold_begin_all(struct kbi_hold *h, const struct pollfd *fds, size_t n);
void kbi_hold_end_all(struct kbi_hold *h, size_t n);
/* Inside an attempt: does one of them go on with another number, or with none? */
bool kbi_hold_moved(const struct kbi_hold *h, const struct pollfd *fds, size_t n);
/* Inside an attempt: poll(2) of the files that are held, without time. copy: room for n. */
long kbi_hold_poll(const struct kbi_hold *h, struct pollfd *fds, size_t n, struct pollfd *copy);

/* Around whatever closes a number or puts another file under it; any kernel thread, not inside np brackets. True: calls
 * held the file, and go on with another number, or end: they are to be woken. */
KBI_SWITCHES bool kbi_hold_closing(int fd);
void kbi_hold_closed(int fd);

#endif
