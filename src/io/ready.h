/* io/ready.h - waiting until a descriptor can be read or written: the lightweight thread sleeps, its VP runs others.
 * Everything that waits for a descriptor stands on it: the native I/O calls and the drop-in's. Who waits tries first,
 * and again after each wait: what was there may be gone.
 *
 * It holds the file (io/hold), so that it waits for that one whatever becomes of the number:
 *
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
 *
 * Callers: io, posix. Calls engine, hold, sync/waitq. */
#ifndef KBI_READY_H
#define KBI_READY_H

#include <poll.h>

#include "io/engine.h"
#include "io/hold.h"
#include "sync/waitq.h"

/* Waits for one of the events (POLLIN, POLLOUT, POLLPRI, POLLRDHUP; errors and hang-up are always among them).
 * turn: how often it has waited for this operation before; in the first turn it may just let others run.
 *   0          try again
 *   ETIMEDOUT  the deadline
 *   what until.stop said, asked before each sleep (EAGAIN of it: go on)
 *   EBADF      not open, or closed meanwhile and not to be outlived
 *   others     it cannot be waited for like this (EPERM: a regular file, which never blocks); EINTR only of a kernel
 *              thread that is no VP, whose system call a handler ended
 * Any number of threads may wait for one descriptor. */
KBI_SWITCHES int kbi_ready_wait(const struct kbi_hold *h, short events, struct kbi_until until, unsigned turn);
/* The same for who has been in the call for some turns. soon: it waits for POLLIN, will ask again without that when the
 * deadline, which is soon, has come, and knows that since its last wait all there was has been taken, by EAGAIN or as
 * below: input is believed to be told of without asking the kernel, so a number that means another file by now, unseen, is
 * found out that much later. */
KBI_SWITCHES int kbi_ready_stay(const struct kbi_hold *h, short events, struct kbi_until until, bool soon);
/* The last such wait of the calling thread was for input of a stream: a receive since then that got less than it had room
 * for has taken all there was. */
bool kbi_ready_is_stream(int fd);
/* The same for one of several, as poll(2): fds[i].fd < 0 are left out; h[i] holds the others; revents are not written. When
 * it returns 0 ask poll(2) without time. What cannot be waited for is ready at once. ENOMEM: too many. */
KBI_SWITCHES int kbi_ready_wait_any(const struct kbi_hold *h, const struct pollfd *fds, nfds_t n, struct kbi_until until,
				    unsigned turn);

/* The engine beneath, and whether it runs: errno value. */
int kbi_ready_start(void);
/* The calling thread waits by itself: it is a kernel thread that is no VP, or in the child of a fork. */
static inline bool kbi_ready_outside(const struct kbi_task *self)
{
	return kbi_unlikely(!self->vp) || kbi_engine_forked();
}

/* Who closes a descriptor, or puts another file under its number, calls the one before and the other after it.
 * Calls that hold the file go on with it, or end. Cheap when there are none; any kernel thread. */
KBI_SWITCHES void kbi_ready_closing(int fd);
void kbi_ready_closed(int fd);
/* A socket that is shut for receiving. Who waits for a datagram in the kernel is told that it is the end; who does not wait
 * is told to try again, for ever: to be asked after a wait that brought nothing. */
bool kbi_ready_is_shut(int fd);
/* Something has happened to the file that its poll(2) does not tell of: waiters try again. As cheap. */
void kbi_ready_retry(int fd);

#endif
