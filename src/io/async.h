/* io/async.h - operations that have no way to be tried: the kernel does them beside the thread, through io_uring, or,
 * where there is none, the thread makes the system call and its VP gets another kernel thread meanwhile (core/handoff).
 * Callers: call, file. Calls os/uring, core/handoff, ready. */
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

/* The system call, which is most likely over soon, by the thread itself; if not its VP leaves it. No deadline. */
KBI_SWITCHES long kbi_async_here(const struct kbi_async *a);
/* It lies in a buffer that the kernel knows (kb_io_buffers). */
bool kbi_async_is_known(const struct iovec *v);
/* Direct: is it a file with O_DIRECT? Safe: is it a file with O_DSYNC or O_SYNC? To try a transfer of a direct file, or to
 * write to a safe file, would wait for the disk. Remembered for each number, as a guess; kbi_async_new_number: it is
 * another file's now. */
bool kbi_async_is_direct(int fd);
bool kbi_async_is_safe(int fd);
void kbi_async_new_number(int fd);
/* The system call's result, or -errno; -ETIMEDOUT or what until.stop said if it could be taken back. It is not made
 * again by itself after EINTR or the end of a kernel thread that had submitted it, unless that does no harm. */
KBI_SWITCHES long kbi_async(const struct kbi_async *a, struct kbi_until until);
/* The same for a call that ends by itself. Without a deadline the thread makes it itself, with its VP lent, unless
 * kbi_async_is_better. */
KBI_SWITCHES long kbi_async_sync(const struct kbi_async *a, struct kbi_until until);
KBI_SWITCHES bool kbi_async_is_better(void);
/* For want of io_uring what the calling thread asks for is a system call of its own, which neither a deadline nor
 * until.stop ends. */
KBI_SWITCHES bool kbi_async_is_by_hand(void);
/* Begins to connect a socket whatever mode it is in: *r is -EINPROGRESS, or the system call's result if it is over
 * already. False: that needs io_uring, and there is none. */
KBI_SWITCHES bool kbi_async_begin_connect(int fd, const void *address, uint32_t length, long *r);

#endif
