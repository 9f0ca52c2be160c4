/* io/hold.h - a call that has begun is about the file that its number meant then, as in the
 * kernel, until it returns, no matter which thread closes the number meanwhile and which
 * file the number means next.
 *
 * A call begins at a point that other threads can observe: before it suspends its thread for the
 * first time. From there to its end the call holds the file: its record is in the list of the
 * number's slot, and before each system call it reads the number to use from the record:
 *	e = kbi_hold_begin(&h, fd, true, NULL);
 *	...
 *	kbi_hold_attempt();                    does not suspend from here
 *	r = recv(kbi_hold_fd(&h), p, n, MSG_DONTWAIT);
 *	kbi_hold_attempted();                  to here
 *	...
 *	kbi_hold_end(&h);
 *
 * A thread that closes a number, or puts a different file under it, calls kbi_hold_closing
 * before and kbi_hold_closed after. The first gives all calls that hold the file a common copy
 * (io/own), with which they go on, and waits until attempts that may have begun with the number
 * are over. So an attempt must not block in the kernel: a call that may block goes on with a
 * copy of its own, outside.
 * Callers: ready, talk, call, file, posix. Calls own, core/handoff. The argument is in hold.c, the
 * model is model/hold.pml. */
#ifndef KBI_HOLD_H
#define KBI_HOLD_H

#include "core/single_threaded.h"
#include "core/vp.h"
#include "io/own.h"

/* The record of a call and a number; lies on the caller's stack. Zeroed: it holds nothing. */
struct kbi_hold {
	/* under the lock of its slot */
	struct kbi_hold *next, *prev;
	/* struct kbi_slot *; NULL: the record is in no list. Changed under the locks of both slots */
	aptr slot;
	a32 fd;     /* number with which the call goes on; -1: the file is closed */
	bool stays; /* the call stays with the file; else a close ends the call */
	bool own;   /* fd is a private copy, and the record one of its users */
};

/* Counts the begins and ends of closes of any number. A single word serves all numbers: at its
 * beginning a call reads only this word, and need not look for the number's slot. */
extern KBI_HIDDEN a64 kbi_hold_count;
static inline uint64_t kbi_hold_now(void)
{
	/* acquire: all use of the file comes after this read; pairs with the
	 * release in count_close (hold.c) */
	return a_load_acq(&kbi_hold_count);
}
/* Returns whether a close of fd has begun since then, or is about to. */
bool kbi_hold_is_closed_since(int fd, uint64_t since);

/* Holds the file that fd means. since: NULL, or kbi_hold_now before the caller's first
 * use of that file. Returns
 *    0       the call holds the file
 *    EBADF   the number is being closed, and means nothing now
 *    EAGAIN  the number was closed since then, or is about to be
 *    ENOMEM  no room for a slot; kbi_hold_fd is fd all the same */
int kbi_hold_begin(struct kbi_hold *h, int fd, bool stays, const uint64_t *since);
/* Releases the file. Idempotent. */
void kbi_hold_end(struct kbi_hold *h);

/* Returns the number to use. It means the file from attempt to attempted; elsewhere
 * it may be stale at once. */
static inline int kbi_hold_fd(const struct kbi_hold *h)
{
	return (int)a_load_rlx(&h->fd);
}

/* Brackets round an attempt of the caller, with all files that it holds. The thread is
 * inside np brackets there. Attempts do not nest. kbi_hold_tell wakes the threads that wait
 * for the end of vp's attempt. */
void kbi_hold_tell(struct kbi_vp *vp);

static inline void kbi_hold_attempt(void)
{
	struct kbi_task *self = kbi_self_raw();
	a32 *turn;

	if (kbi_unlikely(!self || !self->vp))
		return; /* a thread without VP has copies of its own */
	a_own_inc16(&self->np);
	turn = &self->vp->attempt;
	/* A process that was killed inside left the word odd. A fence between this store and the load
	 * of the number; pairs with the fence in await_attempts (hold.c), or with its barrier, which
	 * makes the VP's processor pass a fence. Either this thread sees the new number, or the closing
	 * thread sees the turn. */
	a_store_rlx(turn, (a_load_rlx(turn) + 1) | 1);
	if (kbi_unlikely(!a_load_rlx(&kbi_single_threaded.has_barrier)))
		a_fence_sc();
	kbi_compiler_barrier();
}

static inline void kbi_hold_attempted(void)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_vp *vp;

	if (kbi_unlikely(!self || !(vp = self->vp)))
		return;
	/* release: pairs with the acquire in await_attempts and await_turn. The system call is over */
	a_store_rel(&vp->attempt, a_load_rlx(&vp->attempt) + 1);
	/* relaxed: a watcher that is missed here looks again by itself */
	if (kbi_unlikely(a_load_rlx(&vp->attempt_watched)))
		kbi_hold_tell(vp);
	a_own_dec16(&self->np);
}

/* Begins and ends a hold for each of fds, except those below 0; h is zeroed before. A file that
 * cannot be held is used by its number. */
struct pollfd;
void kbi_hold_begin_all(struct kbi_hold *h, const struct pollfd *fds, size_t n);
void kbi_hold_end_all(struct kbi_hold *h, size_t n);
/* Returns, inside an attempt, whether any of the holds goes on with a
 * different number, or with none. */
bool kbi_hold_moved(const struct kbi_hold *h, const struct pollfd *fds, size_t n);
/* Calls poll(2) with zero time for the held files, inside an attempt. copy: room for n. */
long kbi_hold_poll(const struct kbi_hold *h, struct pollfd *fds, size_t n, struct pollfd *copy);

/* Brackets round an operation that closes a number or puts a different file under it; any kernel
 * thread, not inside np brackets. True: calls held the file, and go on with a different number, or
 * end: the caller must wake them. */
KBI_SWITCHES bool kbi_hold_closing(int fd);
void kbi_hold_closed(int fd);

#endif
