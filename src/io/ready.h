/* io/ready.h - waiting until a descriptor can be read or written: the lightweight thread sleeps,
 * its VP runs other threads. All waits for descriptors stand on it: the native I/O calls and the
 * drop-in's. A caller tries first, and again after each wait, since the data may be gone. The
 * caller holds the file (io/hold), so that it waits for that file whatever becomes of the number:
 *	for (unsigned turn = 0;; turn++) {
 *		kbi_hold_attempt();
 *		r = recv(kbi_hold_fd(&h), p, n, MSG_DONTWAIT);
 *		kbi_hold_attempted();
 *		if (r >= 0 || errno != EAGAIN)
 *			break;
 *		e = kbi_ready_wait(&h, POLLIN, until, turn);
 *		if (e)
 *			break;
 *	}
 * Callers: io, posix. Calls engine, hold, sync/waitq. */
#ifndef KBI_READY_H
#define KBI_READY_H

#include <poll.h>

#include "io/engine.h"
#include "io/hold.h"
#include "sync/waitq.h"

/* Waits for any of the events (POLLIN, POLLOUT, POLLPRI, POLLRDHUP; errors and hang-up are always
 * among them). turn: number of waits before in this operation; in the first turn the call may just
 * let other threads run. Returns
 *    0          try again
 *    ETIMEDOUT  the deadline has passed
 *    the result of until.stop, which is asked before each sleep (EAGAIN of it: go on)
 *    EBADF      not open, or closed meanwhile and not to be outlived
 *    else       the file cannot be waited for like this (EPERM: a regular file, which never
 *    blocks); EINTR only on a kernel thread that is no VP, whose system call a handler ended
 * Any number of threads may wait for a descriptor. */
KBI_SWITCHES int kbi_ready_wait(const struct kbi_hold *h, short events, struct kbi_until until,
	unsigned turn);
/* As kbi_ready_wait, for a caller that has been in the call for some turns. soon: the caller waits
 * for POLLIN, will ask again without soon when the deadline, which is near, has passed, and knows
 * that since its last wait all input has been taken, by EAGAIN or by the rule below. Then the
 * engine's reports of input are believed without asking the kernel; so a number that has come to
 * mean a different file unseen is found out that much later. */
KBI_SWITCHES int kbi_ready_stay(const struct kbi_hold *h, short events, struct kbi_until until,
	bool soon);
/* Returns whether the last such wait of the calling thread was for input of a stream: then a
 * receive that got less than its room has taken all input. */
bool kbi_ready_is_stream(int fd);
/* Waits for any of several descriptors, as poll(2): fds[i].fd < 0 are left out; h[i] holds the file
 * of fds[i]; revents are not written. Returns as kbi_ready_wait; after 0 call poll(2) with zero
 * time. A file that cannot be waited for is ready at once. ENOMEM: too many. */
KBI_SWITCHES int kbi_ready_wait_any(const struct kbi_hold *h, const struct pollfd *fds, nfds_t n,
	struct kbi_until until, unsigned turn);

/* Starts the engine beneath. Returns an errno value. */
int kbi_ready_start(void);
/* Returns whether the calling thread waits by itself: a kernel thread that is
 * no VP, or a child of fork. */
static inline bool kbi_ready_outside(const struct kbi_task *self)
{
	return kbi_unlikely(!self->vp) || kbi_engine_forked();
}

/* Brackets round a close of a descriptor, or an operation that puts a different file
 * under its number. Calls that hold the file go on with it, or end. Cheap when there are
 * none; any kernel thread. */
KBI_SWITCHES void kbi_ready_closing(int fd);
void kbi_ready_closed(int fd);
/* Returns whether a socket is shut for receiving. The kernel tells a thread that waits for a
 * datagram in it that this is the end; it tells a call that does not wait to try again, for ever:
 * to be asked after a wait that brought nothing. */
bool kbi_ready_is_shut(int fd);
/* Lets waiters try again, because the file has changed in a way that its poll(2)
 * does not report. As cheap. */
void kbi_ready_retry(int fd);

#endif
