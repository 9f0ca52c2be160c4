/* io/async.h - operations that cannot be tried without blocking. The kernel performs them beside
 * the thread, through io_uring; where there is none, the thread makes the system call and its VP
 * gets another worker meanwhile (core/handoff).
 * Callers: call, file, posix. Calls os/uring, core/handoff, ready. */
#ifndef KBI_ASYNC_H
#define KBI_ASYNC_H

#include <sys/uio.h>

#include "sync/waitq.h"

enum kbi_async_what {
	KBI_ASYNC_READV,   /* address, length: iovec; offset: -1 the file's own */
	KBI_ASYNC_WRITEV,
	KBI_ASYNC_FSYNC,   /* flags: 1 data only */
	KBI_ASYNC_OPEN,    /* address: path; length: mode; flags */
	KBI_ASYNC_CONNECT, /* address; offset: its length */
};

struct kbi_async {
	enum kbi_async_what what;
	int fd;
	const void *address;
	uint64_t offset;
	uint32_t length, flags;
};

/* Makes the system call, which most likely is over soon, in the thread itself; if it is not, its VP
 * leaves it. No deadline. */
KBI_SWITCHES long kbi_async_here(const struct kbi_async *a);
/* Returns whether v lies in a buffer that the kernel knows (kb_io_buffers). */
bool kbi_async_is_known(const struct iovec *v);
/* Direct: returns whether the file has O_DIRECT. Safe: whether it has O_DSYNC or O_SYNC. To try a
 * transfer of a direct file, or to write to a safe file, would wait for the disk. Remembered for
 * each number, as a guess; kbi_async_new_number: the number means a different file now. */
bool kbi_async_is_direct(int fd);
bool kbi_async_is_safe(int fd);
void kbi_async_new_number(int fd);
/* Performs the operation. Returns the system call's result, or -errno; -ETIMEDOUT or the negated
 * result of until.stop if the operation could be taken back. After EINTR, or after the end of the
 * kernel thread that submitted it, the operation is repeated only where that does no harm. */
KBI_SWITCHES long kbi_async(const struct kbi_async *a, struct kbi_until until);
/* As kbi_async, for a call that ends by itself. Without a deadline the thread makes the call
 * itself, with its VP lent, unless kbi_async_is_better. */
KBI_SWITCHES long kbi_async_sync(const struct kbi_async *a, struct kbi_until until);
KBI_SWITCHES bool kbi_async_is_better(void);
/* Returns whether, for want of io_uring, the calling thread makes a system call of its own, which
 * neither a deadline nor until.stop ends. */
KBI_SWITCHES bool kbi_async_is_by_hand(void);
/* Begins to connect a socket in any mode: *r is -EINPROGRESS, or the system call's result if the
 * call is over already. False: that needs io_uring, and there is none. */
KBI_SWITCHES bool kbi_async_begin_connect(int fd, const void *address, uint32_t length, long *r);

#endif
