/* kochab/io.h - input and output that suspends the calling lightweight thread and nobody else: its virtual processor
 * runs other threads meanwhile.
 *
 * Conventions. What a call of libc's returns, and where that would be -1: the negative errno value. Each call waits as
 * on a blocking descriptor, whether the descriptor is one or not (its O_NONBLOCK is neither needed nor changed, so
 * descriptors may be shared with other processes), until the deadline: absolute ns as everywhere (kb_now() + delay),
 * KB_FOREVER for none; 0 tries once. Then -ETIMEDOUT, or -ECANCELED after kb_io_cancel; but how many bytes have been
 * moved if some have. Never -EAGAIN or -EINTR. What could be done at once is done, deadline or not. All may suspend;
 * none is a cancellation point of POSIX. A kernel thread that Kochab did not create waits by itself.
 *
 * How. A call is tried first. If it would block the thread lets others run and tries again; then it waits in epoll,
 * which the virtual processors ask while they poll. Files that epoll does not know (regular ones) go through io_uring;
 * where that is not allowed (option io_uring, `kochab doctor`) the thread keeps its kernel thread and its virtual
 * processor goes on with another one, as between kb_blocking_begin and kb_blocking_end.
 * What the kernel has begun on a disk is not taken back: the call returns when it is over. */
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

/* ---- streams and files ------------------------------------------------------------------------------- */

/* At least one byte, 0 at the end. From what has no position: pipes, sockets, terminals; else from the file's. */
KB_API ssize_t kb_io_read(int fd, void *buf, size_t n, uint64_t deadline);
KB_API ssize_t kb_io_readv(int fd, const struct iovec *iov, int count, uint64_t deadline);
/* All of it. To a pipe or socket that nobody reads: -EPIPE, and SIGPIPE as from write(2). */
KB_API ssize_t kb_io_write(int fd, const void *buf, size_t n, uint64_t deadline);
KB_API ssize_t kb_io_writev(int fd, const struct iovec *iov, int count, uint64_t deadline);
/* At a position of a file; less than n only at its end, or on an error after some. */
KB_API ssize_t kb_io_pread(int fd, void *buf, size_t n, off_t at, uint64_t deadline);
KB_API ssize_t kb_io_pwrite(int fd, const void *buf, size_t n, off_t at, uint64_t deadline);
KB_API ssize_t kb_io_preadv(int fd, const struct iovec *iov, int count, off_t at, uint64_t deadline);
KB_API ssize_t kb_io_pwritev(int fd, const struct iovec *iov, int count, off_t at, uint64_t deadline);
/* Also of a FIFO, which waits for the other end: until the deadline, with io_uring and without. The descriptor. */
KB_API int kb_io_open(const char *path, int flags, mode_t mode, uint64_t deadline);
/* Threads that wait for it in Kochab get -EBADF; those in kb_io_connect and kb_io_poll go on with the file, whatever the
 * number means next. */
KB_API int kb_io_close(int fd);
KB_API int kb_io_fsync(int fd, uint64_t deadline);
KB_API int kb_io_fdatasync(int fd, uint64_t deadline);

/* Makes buffers known to the kernel (at most 256, in place of none). A transfer by position of bytes that lie in one of
 * them goes to io_uring without a try, and spares the kernel the search for their pages: of use with O_DIRECT. All else
 * works as before. They stay in memory until count 0 takes them all away; who uses them then goes on as without.
 * EBUSY: there are some already; ENXIO: there are none; ENOSYS: no io_uring here; ENOMEM: RLIMIT_MEMLOCK; EFAULT, EINVAL;
 * EPERM: a kernel thread that Kochab did not create; or as kb_init. May suspend. */
KB_API int kb_io_buffers(const struct iovec *buffers, unsigned count);

/* ---- sockets ------------------------------------------------------------------------------------------- */

/* flags as of recv(2) and send(2). send: all of it on a stream; no SIGPIPE. */
KB_API ssize_t kb_io_recv(int fd, void *buf, size_t n, int flags, uint64_t deadline);
KB_API ssize_t kb_io_send(int fd, const void *buf, size_t n, int flags, uint64_t deadline);
KB_API ssize_t kb_io_recvmsg(int fd, struct msghdr *m, int flags, uint64_t deadline);
/* May send a part on a stream, as sendmsg(2) of a non-blocking socket. */
KB_API ssize_t kb_io_sendmsg(int fd, const struct msghdr *m, int flags, uint64_t deadline);
/* The descriptor; address and length may be NULL; flags as of accept4(2). */
KB_API int kb_io_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags, uint64_t deadline);
/* After -ETIMEDOUT or -ECANCELED the connection may still come about: close it. */
KB_API int kb_io_connect(int fd, const struct sockaddr *address, socklen_t length, uint64_t deadline);
/* As poll(2): how many, 0 at the deadline. */
KB_API int kb_io_poll(struct pollfd *fds, nfds_t n, uint64_t deadline);

/* ---- cancelling ----------------------------------------------------------------------------------------- */

/* The call of this header that the thread waits in, or the next that would have to wait, returns -ECANCELED. One
 * request; a second before it has been taken is the same. ESRCH: no such thread. Any thread may call. */
KB_API int kb_io_cancel(kb_thread_t thread);

/* ---- completions that agents poll for ------------------------------------------------------------------- */

/* What a thread waits for and a program's own source completes: the queue of a device that is driven from user space
 * (RDMA, DPDK), a flag in memory. All zero to begin with; one thread waits for it at a time. */
typedef struct kb_io_completion {
	void *state;
	int64_t result;
} kb_io_completion_t;
#define KB_IO_COMPLETION_INIT { 0, 0 }

/* The agent that polls. */
typedef struct kb_io_agent kb_io_agent_t;

/* Adds a source. poll(agent, arg) is called by the polling agents as long as a thread waits in kb_io_await: all the time
 * by idle virtual processors, every 100 us when all sleep; by busy ones now and then: where all run threads that make no
 * call, with a quantum within two quanta, without one not at all. By one at a time. It looks at the
 * source and calls kb_io_complete for what it finds. It runs on an agent's stack or that of any thread, so with a few
 * KiB of it, and calls nothing else of Kochab, nothing that blocks and nothing long. ENOSPC: there are 64; or as
 * kb_init. */
KB_API int kb_io_poll_source(void (*poll)(kb_io_agent_t *agent, void *arg), void *arg);
/* Takes it away; when it returns poll is not running and not called any more. ENOENT. May suspend. */
KB_API int kb_io_poll_source_end(void (*poll)(kb_io_agent_t *agent, void *arg), void *arg);
/* Completes c, whether or not its thread waits already. Only once until it has been waited for. agent: what poll was
 * given; NULL: from a thread of any kind. */
KB_API void kb_io_complete(kb_io_agent_t *agent, kb_io_completion_t *c, int64_t result);
/* Waits until c has been completed; then c may be used again. result may be NULL. 0, ETIMEDOUT, ECANCELED: c may be
 * completed later, and must stay where it is until then. May suspend. */
KB_API int kb_io_await(kb_io_completion_t *c, int64_t *result, uint64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
