/* kochab/io.h - input and output that suspends only the calling lightweight thread: its virtual
 * processor runs other threads meanwhile.
 *
 * Results. Each call returns the value of the libc call of the same name, with the negative errno
 * value in place of -1. A call waits as on a blocking descriptor, whether or not the descriptor is
 * blocking (O_NONBLOCK is neither needed nor changed, so a descriptor may be shared with other
 * processes). A call waits until its deadline: absolute ns (kb_now() + delay), KB_FOREVER for none;
 * 0 tries once. Then it returns -ETIMEDOUT, or -ECANCELED after kb_io_cancel; but if some bytes
 * have been moved, it returns their number. It never returns -EAGAIN or -EINTR. A call that need
 * not wait succeeds even if its deadline has passed. All calls may suspend; none is a cancellation
 * point of POSIX. In a foreign kernel thread a call blocks that kernel thread.
 *
 * How. A call is tried first. If it would block, the thread lets other threads run and tries again;
 * then it waits in epoll, which the virtual processors ask while they poll. Files that epoll does
 * not support (regular files) go through io_uring. Where io_uring is not allowed (option io_uring,
 * `kochab doctor`) the thread keeps its kernel thread and its virtual processor goes on with
 * another kernel thread, as between kb_blocking_begin and kb_blocking_end. A disk transfer that the
 * kernel has begun cannot be cancelled: the call returns when the transfer is over. */
#ifndef KOCHAB_IO_H
#define KOCHAB_IO_H

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- streams and files ----------------------------------------------------------------------- */

/* Read at least one byte; 0: end of file. A pipe, socket or terminal has no position; from a file
 * they read at its position and advance it. POSIX read, readv. */
KB_API ssize_t kb_io_read(int fd, void *buf, size_t n, uint64_t deadline);
KB_API ssize_t kb_io_readv(int fd, const struct iovec *iov, int count, uint64_t deadline);
/* Write all bytes. To a pipe or socket without a reader: -EPIPE, and SIGPIPE as from write(2). */
KB_API ssize_t kb_io_write(int fd, const void *buf, size_t n, uint64_t deadline);
KB_API ssize_t kb_io_writev(int fd, const struct iovec *iov, int count, uint64_t deadline);
/* Read or write at a position of a file. They return less than n only at the end of the file, or
 * after an error that follows a partial transfer. POSIX pread, pwrite. */
KB_API ssize_t kb_io_pread(int fd, void *buf, size_t n, off_t at, uint64_t deadline);
KB_API ssize_t kb_io_pwrite(int fd, const void *buf, size_t n, off_t at, uint64_t deadline);
KB_API ssize_t kb_io_preadv(int fd, const struct iovec *iov, int count, off_t at, uint64_t deadline);
KB_API ssize_t kb_io_pwritev(int fd, const struct iovec *iov, int count, off_t at, uint64_t deadline);
/* Opens a file and returns the descriptor. Opening a FIFO waits for its other end until the
 * deadline, with io_uring and without. POSIX open. */
KB_API int kb_io_open(const char *path, int flags, mode_t mode, uint64_t deadline);
/* Closes the descriptor. Threads that wait for it in Kochab get -EBADF; threads in kb_io_connect
 * and kb_io_poll continue to wait for the old file, even if the number is given to a new one. POSIX
 * close. */
KB_API int kb_io_close(int fd);
KB_API int kb_io_fsync(int fd, uint64_t deadline);
KB_API int kb_io_fdatasync(int fd, uint64_t deadline);

/* Registers buffers with the kernel: at most 256, and only while none are registered. A transfer at
 * a position whose bytes lie in one of them goes to io_uring without a first try, and the kernel
 * need not look up its pages: useful with O_DIRECT. All other calls work as before. The buffers
 * stay in memory until a call with count 0 unregisters them all; transfers then work without them.
 * EBUSY: buffers are registered already. ENXIO: none are registered. ENOSYS: there is no io_uring.
 * ENOMEM: RLIMIT_MEMLOCK. EFAULT, EINVAL. EPERM: the caller is a foreign kernel thread. Or an error
 * of kb_init. May suspend. */
KB_API int kb_io_buffers(const struct iovec *buffers, unsigned count);

/* ---- sockets --------------------------------------------------------------------------------- */

/* flags as of recv(2) and send(2). kb_io_send sends all bytes on a stream and raises no SIGPIPE. */
KB_API ssize_t kb_io_recv(int fd, void *buf, size_t n, int flags, uint64_t deadline);
KB_API ssize_t kb_io_send(int fd, const void *buf, size_t n, int flags, uint64_t deadline);
KB_API ssize_t kb_io_recvmsg(int fd, struct msghdr *m, int flags, uint64_t deadline);
/* May send only a part on a stream, as sendmsg(2) on a non-blocking socket. */
KB_API ssize_t kb_io_sendmsg(int fd, const struct msghdr *m, int flags, uint64_t deadline);
/* Returns the new descriptor. address and length may be NULL; flags as of accept4(2). */
KB_API int kb_io_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags, uint64_t deadline);
/* After -ETIMEDOUT or -ECANCELED the connection may still be established: close the descriptor. */
KB_API int kb_io_connect(int fd, const struct sockaddr *address, socklen_t length, uint64_t deadline);
/* As poll(2): returns the number of ready descriptors, 0 at the deadline. */
KB_API int kb_io_poll(struct pollfd *fds, nfds_t n, uint64_t deadline);

/* ---- cancelling ------------------------------------------------------------------------------ */

/* Makes the thread's current waiting call of this header return -ECANCELED, or else its next call
 * that would have to wait. Requests are not counted: a second request before the first has taken
 * effect changes nothing. ESRCH: no such thread. Any thread may call it. Does not suspend. */
KB_API int kb_io_cancel(kb_thread_t thread);

/* ---- completions that agents poll for -------------------------------------------------------- */

/* An event that a thread waits for and that a program's own source completes: the queue of a device
 * that is driven from user space (RDMA, DPDK), or a flag in memory. Initially all zero. One thread
 * at a time waits for it. */
typedef struct kb_io_completion {
	void *state;
	int64_t result;
} kb_io_completion_t;
#define KB_IO_COMPLETION_INIT { 0, 0 }

/* The agent (the loop of a virtual processor that looks for work) that calls poll. */
typedef struct kb_io_agent kb_io_agent_t;

/* Adds a source. Agents call poll(agent, arg) as long as a thread waits in kb_io_await: idle
 * virtual processors call it continuously; when all sleep it is called every 100 us; busy virtual
 * processors call it now and then. Where all virtual processors run threads that make no call, poll
 * is called within two quanta with a quantum, and not at all without one. Calls for a source never
 * overlap. poll looks at the source and calls kb_io_complete for each completion found. It runs on
 * an agent's stack or on any thread's, so it must need no more than a few KiB of stack; it must
 * call nothing else of Kochab, must not block, and must be short. ENOSPC: there are 64 sources. Or
 * an error of kb_init. */
KB_API int kb_io_poll_source(void (*poll)(kb_io_agent_t *agent, void *arg), void *arg);
/* Removes a source. At return poll is not running and will not be called again. ENOENT: no such
 * source. May suspend. */
KB_API int kb_io_poll_source_end(void (*poll)(kb_io_agent_t *agent, void *arg), void *arg);
/* Completes c, whether or not its thread waits already. Must be called only once until c has been
 * waited for. agent: the argument that poll was given; NULL outside poll, from a thread of any
 * kind. */
KB_API void kb_io_complete(kb_io_agent_t *agent, kb_io_completion_t *c, int64_t result);
/* Waits until c has been completed; then c may be used again. result may be NULL. Returns 0,
 * ETIMEDOUT or ECANCELED (positive); after an error c may still be completed later and must stay
 * where it is until then. May suspend. */
KB_API int kb_io_await(kb_io_completion_t *c, int64_t *result, uint64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
