/* io_calls.h - every call that waits for an event outside the threads, each once, by libc's name
 * and by its number: how to make a place where nothing comes, the call with the kernel's result,
 * and the event that lets it go on. Included once in a test. Places and their construction:
 * io_places.h. */
#ifndef IO_CALLS_H
#define IO_CALLS_H

#include "io_places.h"

#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static inline long result_of(long r) { return r < 0 ? -errno : r; }

/* ---- bytes ---- */

enum { BLOCK = 8192 }; /* more than a page: does not fit into a full buffer */

static char block[BLOCK];

static long do_read(int fd) { char c; return result_of(read(fd, &c, 1)); }
static long no_read(int fd) { char c; return result_of(syscall(SYS_read, fd, &c, 1)); }
static long do_write(int fd) { return result_of(write(fd, block, BLOCK)); }
static long no_write(int fd) { return result_of(syscall(SYS_write, fd, block, BLOCK)); }
static long do_read_8(int fd) { uint64_t n; return result_of(read(fd, &n, sizeof n)); }

static long by_vector(int fd, ssize_t (*with)(int, const struct iovec *, int), char *p, size_t n)
{
	struct iovec v[2] = { { p, n / 2 }, { p + n / 2, n - n / 2 } };

	return result_of(with(fd, v, 2));
}

static ssize_t readv_by_number(int fd, const struct iovec *v, int n)
{
	return syscall(SYS_readv, fd, v, n);
}

static ssize_t writev_by_number(int fd, const struct iovec *v, int n)
{
	return syscall(SYS_writev, fd, v, n);
}

/* With position -1 these also work on streams. */
static ssize_t read_2(int fd, const struct iovec *v, int n) { return preadv2(fd, v, n, -1, 0); }
static ssize_t write_2(int fd, const struct iovec *v, int n) { return pwritev2(fd, v, n, -1, 0); }

static long do_readv(int fd) { char c[2]; return by_vector(fd, readv, c, 2); }
static long no_readv(int fd) { char c[2]; return by_vector(fd, readv_by_number, c, 2); }
static long do_preadv2(int fd) { char c[2]; return by_vector(fd, read_2, c, 2); }
static long do_writev(int fd) { return by_vector(fd, writev, block, BLOCK); }
static long no_writev(int fd) { return by_vector(fd, writev_by_number, block, BLOCK); }
static long do_pwritev2(int fd) { return by_vector(fd, write_2, block, BLOCK); }

/* ---- messages ---- */

#define MESSAGE(m, p, n) \
	struct iovec v_ = { p, n }; \
	struct mmsghdr m = { { .msg_iov = &v_, .msg_iovlen = 1 }, 0 }

static long do_recv(int fd) { char c; return result_of(recv(fd, &c, 1, 0)); }
static long do_recvfrom(int fd) { char c; return result_of(recvfrom(fd, &c, 1, 0, NULL, NULL)); }
static long no_recvfrom(int fd)
{
	char c;
	return result_of(syscall(SYS_recvfrom, fd, &c, 1, 0, NULL, NULL));
}
static long do_recvmsg(int fd)
{
	char c;
	MESSAGE(m, &c, 1);
	return result_of(recvmsg(fd, &m.msg_hdr, 0));
}

static long no_recvmsg(int fd)
{
	char c;
	MESSAGE(m, &c, 1);

	return result_of(syscall(SYS_recvmsg, fd, &m.msg_hdr, 0));
}

static long do_recvmmsg(int fd)
{
	char c;
	MESSAGE(m, &c, 1);
	return result_of(recvmmsg(fd, &m, 1, 0, NULL));
}

static long no_recvmmsg(int fd)
{
	char c;
	MESSAGE(m, &c, 1);

	return result_of(syscall(SYS_recvmmsg, fd, &m, 1, 0, NULL));
}

static long do_send(int fd) { return result_of(send(fd, block, BLOCK, MSG_NOSIGNAL)); }
static long do_sendto(int fd) { return result_of(sendto(fd, block, BLOCK, MSG_NOSIGNAL, NULL, 0)); }

static long no_sendto(int fd)
{
	return result_of(syscall(SYS_sendto, fd, block, BLOCK, MSG_NOSIGNAL, NULL, 0));
}
static long do_sendmsg(int fd)
{
	MESSAGE(m, block, BLOCK);

	return result_of(sendmsg(fd, &m.msg_hdr, MSG_NOSIGNAL));
}

static long no_sendmsg(int fd)
{
	MESSAGE(m, block, BLOCK);

	return result_of(syscall(SYS_sendmsg, fd, &m.msg_hdr, MSG_NOSIGNAL));
}

static long do_sendmmsg(int fd)
{
	MESSAGE(m, block, BLOCK);

	return result_of(sendmmsg(fd, &m, 1, MSG_NOSIGNAL));
}

static long no_sendmmsg(int fd)
{
	MESSAGE(m, block, BLOCK);

	return result_of(syscall(SYS_sendmmsg, fd, &m, 1, MSG_NOSIGNAL));
}

static long accepted(long fd)
{
	long r = result_of(fd);
	int old;

	if (fd < 0)
		return r;
	/* close is a cancellation point */
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
	close((int)fd);
	CHECK_EQ(pthread_setcancelstate(old, NULL), 0);
	return 1;
}

static long do_accept(int fd) { return accepted(accept(fd, NULL, NULL)); }
static long do_accept4(int fd) { return accepted(accept4(fd, NULL, NULL, SOCK_CLOEXEC)); }
static long no_accept4(int fd) { return accepted(syscall(SYS_accept4, fd, NULL, NULL, 0)); }

static long do_connect(int fd)
{
	struct sockaddr_un a = address_of(fd);

	return result_of(connect(fd, (struct sockaddr *)&a, sizeof a));
}

static long no_connect(int fd)
{
	struct sockaddr_un a = address_of(fd);

	return result_of(syscall(SYS_connect, fd, &a, sizeof a));
}

/* ---- any of several ----------------------------------------------------------------------- */

/* A mask that unblocks no signal: a thread that unblocked one might get a signal meant for another
 * thread. */
static sigset_t same_mask(void)
{
	sigset_t set;

	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
	return set;
}

static long do_poll(int fd)
{
	struct pollfd p[2] = { { fd, POLLIN, 0 }, { -1, 0, 0 } };

	return result_of(poll(p, 2, -1));
}

static long do_ppoll(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	struct timespec t = { 60, 0 };
	sigset_t set = same_mask();

	return result_of(ppoll(&p, 1, &t, &set));
}

static long no_ppoll(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return result_of(syscall(SYS_ppoll, &p, 1, NULL, NULL, 0));
}

static long do_select(int fd)
{
	struct timeval t = { 60, 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return result_of(select(fd + 1, &in, NULL, NULL, &t));
}

static long do_pselect(int fd)
{
	struct timespec t = { 60, 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return result_of(pselect(fd + 1, &in, NULL, NULL, &t, NULL));
}

static long no_pselect(int fd)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return result_of(syscall(SYS_pselect6, fd + 1, &in, NULL, NULL, NULL, NULL));
}

static int set_with(int fd)
{
	static __thread int set = -1;
	struct epoll_event ev = { .events = EPOLLIN };

	if (set < 0)
		set = epoll_create1(EPOLL_CLOEXEC);
	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) == 0 || errno == EEXIST);
	return set;
}

static long do_epoll_wait(int fd)
{
	struct epoll_event ev;

	return result_of(epoll_wait(set_with(fd), &ev, 1, -1));
}

static long do_epoll_pwait(int fd)
{
	struct epoll_event ev;

	return result_of(epoll_pwait(set_with(fd), &ev, 1, 60000, NULL));
}

static long no_epoll_pwait(int fd)
{
	struct epoll_event ev;
	sigset_t set = same_mask();

	return result_of(syscall(SYS_epoll_pwait, set_with(fd), &ev, 1, -1, &set, 8));
}

/* ---- queues, locks ---- */

static long do_mq_receive(int q) { char c[8]; return result_of(mq_receive(q, c, sizeof c, NULL)); }
static long do_mq_send(int q) { return result_of(mq_send(q, "x", 1, 0)); }

static long do_mq_timedreceive(int q)
{
	struct timespec t = test_in_ms(CLOCK_REALTIME, 60000);
	char c[8];

	return result_of(mq_timedreceive(q, c, sizeof c, NULL, &t));
}

static long do_mq_timedsend(int q)
{
	struct timespec t = test_in_ms(CLOCK_REALTIME, 60000);

	return result_of(mq_timedsend(q, "x", 1, 0, &t));
}

static long no_mq_receive(int q)
{
	char c[8];

	return result_of(syscall(SYS_mq_timedreceive, q, c, sizeof c, NULL, NULL));
}

static long no_mq_send(int q) { return result_of(syscall(SYS_mq_timedsend, q, "x", 1, 0, NULL)); }

static long do_msgrcv(int id)
{
	struct message m;
	return result_of(msgrcv(id, &m, sizeof m.text, 0, 0));
}

static long no_msgrcv(int id)
{
	struct message m;

	return result_of(syscall(SYS_msgrcv, id, &m, sizeof m.text, 0, 0));
}

static long do_msgsnd(int id)
{
	struct message m = { 1, "" };

	return result_of(msgsnd(id, &m, sizeof m.text, 0));
}

static long no_msgsnd(int id)
{
	struct message m = { 1, "" };

	return result_of(syscall(SYS_msgsnd, id, &m, sizeof m.text, 0));
}

static struct sembuf take = { 0, -1, 0 };

static long do_semop(int id) { return result_of(semop(id, &take, 1)); }

static long do_semtimedop(int id)
{
	struct timespec t = { 60, 0 };

	return result_of(semtimedop(id, &take, 1, &t));
}

static long no_semtimedop(int id) { return result_of(syscall(SYS_semtimedop, id, &take, 1, NULL)); }

static long do_flock(int fd) { return result_of(flock(fd, LOCK_EX)); }
static long no_flock(int fd) { return result_of(syscall(SYS_flock, fd, LOCK_SH)); }
static long do_lockf(int fd) { return result_of(lockf(fd, F_LOCK, 1)); }

static long do_setlkw(int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_len = 1 };

	return result_of(fcntl(fd, F_SETLKW, &l));
}

static long do_ofd_setlkw(int fd)
{
	struct flock l = { .l_type = F_RDLCK, .l_len = 1 };

	return result_of(fcntl(fd, F_OFD_SETLKW, &l));
}

static long no_ofd_setlkw(int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_len = 1 };

	return result_of(syscall(SYS_fcntl, fd, F_OFD_SETLKW, &l));
}

/* ---- from one descriptor to another ---- */

static long do_splice(int fd) { return result_of(splice(fd, NULL, partner[fd], NULL, 1, 0)); }
static long no_splice(int fd)
{
	return result_of(syscall(SYS_splice, fd, NULL, partner[fd], NULL, 1, 0));
}
static long do_tee(int fd) { return result_of(tee(fd, partner[fd], 1, 0)); }
static long do_vmsplice(int fd)
{
	struct iovec v = { block, 1 };
	return result_of(vmsplice(fd, &v, 1, 0));
}
static long do_sendfile(int fd)
{
	off_t at = 0;
	return result_of(sendfile(fd, partner[fd], &at, 1));
}

static long no_sendfile(int fd)
{
	off_t at = 0;

	return result_of(syscall(SYS_sendfile, fd, partner[fd], &at, 1));
}

/* ---- FIFOs, children, names ---- */

static long opened(long fd) { return accepted(fd); }

static long do_open(int n) { return opened(open(fifo_name(n), O_RDONLY)); }
static long do_open_to_write(int n) { return opened(open(fifo_name(n), O_WRONLY | O_CLOEXEC)); }
static long do_creat(int n) { return opened(creat(fifo_name(n), 0600)); }
static long do_openat(int n) { return opened(openat(AT_FDCWD, fifo_name(n), O_RDONLY)); }
static long no_openat(int n)
{
	return opened(syscall(SYS_openat, AT_FDCWD, fifo_name(n), O_RDONLY));
}

static long waited(long r, int pid) { return r < 0 ? -errno : r == 0 || r == pid; }

static long do_waitpid(int pid) { return waited(waitpid(pid, NULL, 0), pid); }
static long do_wait_group(int pid) { return waited(waitpid(-pid, NULL, 0), pid); }
static long do_wait4(int pid) { return waited(wait4(pid, NULL, 0, NULL), pid); }
static long no_wait4(int pid) { return waited(syscall(SYS_wait4, pid, NULL, 0, NULL), pid); }
static long do_waitid(int pid)
{
	siginfo_t i;
	return waited(waitid(P_PID, (id_t)pid, &i, WEXITED), pid);
}

static long no_waitid(int pid)
{
	siginfo_t i;

	return waited(syscall(SYS_waitid, P_PID, pid, &i, WEXITED, NULL), pid);
}

/* ---- time, signals ---- */

static const struct timespec minute = { 60, 0 };
#define NOT_USED __attribute__((unused))

static long do_sleep(int n NOT_USED) { return sleep(60) > 0 ? -EINTR : 0; }
static long do_usleep(int n NOT_USED) { return result_of(usleep(60000000)); }
static long do_nanosleep(int n NOT_USED) { return result_of(nanosleep(&minute, NULL)); }
static long no_nanosleep(int n NOT_USED)
{
	return result_of(syscall(SYS_nanosleep, &minute, NULL));
}
static long do_clock_nanosleep(int n NOT_USED)
{
	return -clock_nanosleep(CLOCK_REALTIME, 0, &minute, NULL);
}
static long do_pause(int n NOT_USED) { return result_of(pause()); }

static long no_clock_nanosleep(int unused)
{
	(void)unused;
	return result_of(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &minute, NULL));
}

static long do_sigsuspend(int unused)
{
	sigset_t set = same_mask();

	(void)unused;
	return result_of(sigsuspend(&set));
}

static long do_sigwait(int sig)
{
	sigset_t set = only(sig);
	int got = 0;

	return -sigwait(&set, &got) ?: got == sig;
}

static long taken(long got, int sig) { return got < 0 ? -errno : got == sig; }
static long do_sigwaitinfo(int sig)
{
	sigset_t set = only(sig);
	return taken(sigwaitinfo(&set, NULL), sig);
}
static long do_sigtimedwait(int sig)
{
	sigset_t set = only(sig);
	return taken(sigtimedwait(&set, NULL, &minute), sig);
}

static long no_sigtimedwait(int sig)
{
	sigset_t set = only(sig);

	return taken(syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 8), sig);
}

/* ---- calls without a function of libc ----------------------------------------------------- */

static long no_futex(int i)
{
	return result_of(syscall(SYS_futex, &futex_word[i], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
}

static long no_io_getevents(int i)
{
	struct io_event e;

	return result_of(syscall(SYS_io_getevents, aio_context[i], 1, 1, &e, NULL));
}

/* ---- names of hosts ---- */

#ifdef __GLIBC__
static long do_getaddrinfo(int fd)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	int e;

	CHECK_EQ(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	CHECK_EQ(res_init(), 0);
	_res.nscount = 1;
	_res.nsaddr_list[0] = a;
	_res.retrans = 60;
	e = getaddrinfo("nobody.kochab-test.", "80", &hints, &found);
	if (e == 0)
		freeaddrinfo(found);
	return e == EAI_NONAME ? 1 : -1000 + e;
}
#endif

/* ---- the table ---- */

/* When the call goes on after a handler with SA_RESTART; LASTS: also after a handler without it. */
enum restart { ALWAYS, UNLESS_LIMITED, NEVER, LASTS };
/* DIES: it is a cancellation point. GOES_ON: it is none. EITHER: POSIX leaves it open. */
enum cancel { DIES, GOES_ON, EITHER };

static const struct quiet {
	const char *name;
	void (*open)(int *in, int *out); /* *in -1: the call does not exist here */
	void (*serve)(int in, int out);  /* NULL: only a handler ends the call */
	void (*close)(int in, int out);
	long (*call)(int in);
	long served;                     /* its result after `serve` */
	enum restart restart;
	enum cancel cancel;
	int limit;                       /* the socket option of its time limit; else 0 */
	/* `in` is a descriptor: EAGAIN with O_NONBLOCK; the call outlives a close of it */
	bool streams;
} quiets[] = {
#define PIPE quiet_pipe, send_byte, quiet_close
#define SOCKET quiet_socket, send_byte, quiet_close
#define FULL_PIPE full_pipe, drain, quiet_close
#define FULL_SOCKET full_socket, drain, quiet_close
#define LISTENING listening, connect_to, quiet_close
#define CONNECTING full_listener, accept_one, close_connecting
#define QUEUE quiet_queue, send_message, close_queue
#define FULL_QUEUE full_queue, take_message, close_queue
#define SYSV quiet_sysv, send_sysv, remove_sysv
#define FULL_SYSV full_sysv, take_sysv, remove_sysv
#define SEMAPHORE semaphore, add_one, remove_semaphore
#define LOCKED locked, unlock_it, quiet_close
#define FIFO new_fifo, open_fifo, remove_fifo
#define CHILD child, let_child_go, end_child
#define SIGNAL own_signal, raise_it, no_close
#define NOTHING nothing, NULL, no_close
	{ "read of a pipe", PIPE, do_read, 1, ALWAYS, DIES, 0, true },
	{ "read of a pipe by number", PIPE, no_read, 1, ALWAYS, GOES_ON, 0, true },
	{ "readv of a pipe", PIPE, do_readv, 1, ALWAYS, DIES, 0, true },
	{ "readv of a pipe by number", PIPE, no_readv, 1, ALWAYS, GOES_ON, 0, true },
	{ "preadv2 of a pipe", PIPE, do_preadv2, 1, ALWAYS, DIES, 0, true },
	{ "read of a socket", SOCKET, do_read, 1, UNLESS_LIMITED, DIES, SO_RCVTIMEO, true },
	{ "readv of a socket", SOCKET, do_readv, 1, UNLESS_LIMITED, DIES, SO_RCVTIMEO, true },
	{ "read of an eventfd", quiet_eventfd, send_8, quiet_close, do_read_8, 8, ALWAYS, DIES, 0,
		true },
	{ "read of a terminal", quiet_terminal, send_line, quiet_close, do_read, 1, ALWAYS, DIES, 0,
		true },
	{ "recv", SOCKET, do_recv, 1, UNLESS_LIMITED, DIES, SO_RCVTIMEO, true },
	{ "recvfrom", SOCKET, do_recvfrom, 1, UNLESS_LIMITED, DIES, SO_RCVTIMEO, true },
	{ "recvfrom by number", SOCKET, no_recvfrom, 1, UNLESS_LIMITED, GOES_ON, SO_RCVTIMEO, true },
	{ "recvmsg", SOCKET, do_recvmsg, 1, UNLESS_LIMITED, DIES, SO_RCVTIMEO, true },
	{ "recvmsg by number", SOCKET, no_recvmsg, 1, UNLESS_LIMITED, GOES_ON, SO_RCVTIMEO, true },
	{ "recvmmsg", SOCKET, do_recvmmsg, 1, UNLESS_LIMITED, DIES, SO_RCVTIMEO, true },
	{ "recvmmsg by number", SOCKET, no_recvmmsg, 1, UNLESS_LIMITED, GOES_ON, SO_RCVTIMEO, true },
	{ "accept", LISTENING, do_accept, 1, UNLESS_LIMITED, DIES, SO_RCVTIMEO, true },
	{ "accept4", LISTENING, do_accept4, 1, UNLESS_LIMITED, DIES, SO_RCVTIMEO, true },
	{ "accept4 by number", LISTENING, no_accept4, 1, UNLESS_LIMITED, GOES_ON, SO_RCVTIMEO, true },
	{ "write to a pipe", FULL_PIPE, do_write, BLOCK, ALWAYS, DIES, 0, true },
	{ "write to a pipe by number", FULL_PIPE, no_write, BLOCK, ALWAYS, GOES_ON, 0, true },
	{ "writev to a pipe", FULL_PIPE, do_writev, BLOCK, ALWAYS, DIES, 0, true },
	{ "writev to a pipe by number", FULL_PIPE, no_writev, BLOCK, ALWAYS, GOES_ON, 0, true },
	{ "pwritev2 to a pipe", FULL_PIPE, do_pwritev2, BLOCK, ALWAYS, DIES, 0, true },
	{ "write to a socket", FULL_SOCKET, do_write, BLOCK, UNLESS_LIMITED, DIES, SO_SNDTIMEO, true },
	{ "writev to a socket", FULL_SOCKET, do_writev, BLOCK, UNLESS_LIMITED, DIES, SO_SNDTIMEO,
		true },
	{ "send", FULL_SOCKET, do_send, BLOCK, UNLESS_LIMITED, DIES, SO_SNDTIMEO, true },
	{ "sendto", FULL_SOCKET, do_sendto, BLOCK, UNLESS_LIMITED, DIES, SO_SNDTIMEO, true },
	{ "sendto by number", FULL_SOCKET, no_sendto, BLOCK, UNLESS_LIMITED, GOES_ON, SO_SNDTIMEO,
		true },
	{ "sendmsg", FULL_SOCKET, do_sendmsg, BLOCK, UNLESS_LIMITED, DIES, SO_SNDTIMEO, true },
	{ "sendmsg by number", FULL_SOCKET, no_sendmsg, BLOCK, UNLESS_LIMITED, GOES_ON, SO_SNDTIMEO,
		true },
	{ "sendmmsg", FULL_SOCKET, do_sendmmsg, 1, UNLESS_LIMITED, DIES, SO_SNDTIMEO, true },
	{ "sendmmsg by number", FULL_SOCKET, no_sendmmsg, 1, UNLESS_LIMITED, GOES_ON, SO_SNDTIMEO,
		true },
	{ "connect", CONNECTING, do_connect, 0, UNLESS_LIMITED, DIES, SO_SNDTIMEO, false },
	{ "connect by number", CONNECTING, no_connect, 0, UNLESS_LIMITED, GOES_ON, SO_SNDTIMEO, false },
	{ "poll", PIPE, do_poll, 1, NEVER, DIES, 0, false },
	{ "ppoll", PIPE, do_ppoll, 1, NEVER, DIES, 0, false },
	{ "ppoll by number", PIPE, no_ppoll, 1, NEVER, GOES_ON, 0, false },
	{ "select", PIPE, do_select, 1, NEVER, DIES, 0, false },
	{ "pselect", PIPE, do_pselect, 1, NEVER, DIES, 0, false },
	{ "pselect6 by number", PIPE, no_pselect, 1, NEVER, GOES_ON, 0, false },
	{ "epoll_wait", PIPE, do_epoll_wait, 1, NEVER, DIES, 0, false },
	{ "epoll_pwait", PIPE, do_epoll_pwait, 1, NEVER, DIES, 0, false },
	{ "epoll_pwait by number", PIPE, no_epoll_pwait, 1, NEVER, GOES_ON, 0, false },
	{ "mq_receive", QUEUE, do_mq_receive, 1, ALWAYS, DIES, 0, true },
	{ "mq_timedreceive", QUEUE, do_mq_timedreceive, 1, ALWAYS, DIES, 0, true },
	{ "mq_timedreceive by number", QUEUE, no_mq_receive, 1, ALWAYS, GOES_ON, 0, true },
	{ "mq_send", FULL_QUEUE, do_mq_send, 0, ALWAYS, DIES, 0, true },
	{ "mq_timedsend", FULL_QUEUE, do_mq_timedsend, 0, ALWAYS, DIES, 0, true },
	{ "mq_timedsend by number", FULL_QUEUE, no_mq_send, 0, ALWAYS, GOES_ON, 0, true },
	{ "msgrcv", SYSV, do_msgrcv, 1, NEVER, DIES, 0, false },
	{ "msgrcv by number", SYSV, no_msgrcv, 1, NEVER, GOES_ON, 0, false },
	{ "msgsnd", FULL_SYSV, do_msgsnd, 0, NEVER, DIES, 0, false },
	{ "msgsnd by number", FULL_SYSV, no_msgsnd, 0, NEVER, GOES_ON, 0, false },
	{ "semop", SEMAPHORE, do_semop, 0, NEVER, GOES_ON, 0, false },
	{ "semtimedop", SEMAPHORE, do_semtimedop, 0, NEVER, GOES_ON, 0, false },
	{ "semtimedop by number", SEMAPHORE, no_semtimedop, 0, NEVER, GOES_ON, 0, false },
	{ "flock", LOCKED, do_flock, 0, ALWAYS, GOES_ON, 0, false },
	{ "flock by number", LOCKED, no_flock, 0, ALWAYS, GOES_ON, 0, false },
	{ "lockf", kept, let_keeper_go, end_keeper, do_lockf, 0, ALWAYS, DIES, 0, false },
	{ "fcntl, F_SETLKW", kept, let_keeper_go, end_keeper, do_setlkw, 0, ALWAYS, DIES, 0, false },
	{ "fcntl, F_OFD_SETLKW", LOCKED, do_ofd_setlkw, 0, ALWAYS, DIES, 0, false },
	{ "fcntl, F_OFD_SETLKW by number", LOCKED, no_ofd_setlkw, 0, ALWAYS, GOES_ON, 0, false },
	{ "splice", quiet_pipes, send_byte, close_pipes, do_splice, 1, ALWAYS, DIES, 0, false },
	{ "splice by number", quiet_pipes, send_byte, close_pipes, no_splice, 1, ALWAYS, GOES_ON, 0,
		false },
	{ "tee", quiet_pipes, send_byte, close_pipes, do_tee, 1, ALWAYS, DIES, 0, false },
	{ "vmsplice", FULL_PIPE, do_vmsplice, 1, ALWAYS, DIES, 0, false },
	{ "sendfile", full_from_file, drain, close_from_file, do_sendfile, 1, ALWAYS, GOES_ON, 0,
		false },
	{ "sendfile by number", full_from_file, drain, close_from_file, no_sendfile, 1, ALWAYS, GOES_ON,
		0, false },
	{ "open of a FIFO", FIFO, do_open, 1, ALWAYS, DIES, 0, false },
	{ "open of a FIFO to write", FIFO, do_open_to_write, 1, ALWAYS, DIES, 0, false },
	{ "creat of a FIFO", FIFO, do_creat, 1, ALWAYS, DIES, 0, false },
	{ "openat of a FIFO", FIFO, do_openat, 1, ALWAYS, DIES, 0, false },
	{ "openat of a FIFO by number", FIFO, no_openat, 1, ALWAYS, GOES_ON, 0, false },
	{ "waitpid", CHILD, do_waitpid, 1, ALWAYS, DIES, 0, false },
	{ "waitpid of a group", CHILD, do_wait_group, 1, ALWAYS, DIES, 0, false },
	{ "wait4", CHILD, do_wait4, 1, ALWAYS, EITHER, 0, false },
	{ "wait4 by number", CHILD, no_wait4, 1, ALWAYS, GOES_ON, 0, false },
	{ "waitid", CHILD, do_waitid, 1, ALWAYS, DIES, 0, false },
	{ "waitid by number", CHILD, no_waitid, 1, ALWAYS, GOES_ON, 0, false },
	{ "sleep", NOTHING, do_sleep, 0, NEVER, DIES, 0, false },
	{ "usleep", NOTHING, do_usleep, 0, NEVER, DIES, 0, false },
	{ "nanosleep", NOTHING, do_nanosleep, 0, NEVER, DIES, 0, false },
	{ "nanosleep by number", NOTHING, no_nanosleep, 0, NEVER, GOES_ON, 0, false },
	{ "clock_nanosleep", NOTHING, do_clock_nanosleep, 0, NEVER, DIES, 0, false },
	{ "clock_nanosleep by number", NOTHING, no_clock_nanosleep, 0, NEVER, GOES_ON, 0, false },
	{ "pause", NOTHING, do_pause, 0, NEVER, DIES, 0, false },
	{ "sigsuspend", NOTHING, do_sigsuspend, 0, NEVER, DIES, 0, false },
	{ "sigwait", SIGNAL, do_sigwait, 1, LASTS, DIES, 0, false },
	{ "sigwaitinfo", SIGNAL, do_sigwaitinfo, 1, NEVER, DIES, 0, false },
	{ "sigtimedwait", SIGNAL, do_sigtimedwait, 1, NEVER, DIES, 0, false },
	{ "rt_sigtimedwait by number", SIGNAL, no_sigtimedwait, 1, NEVER, GOES_ON, 0, false },
	{ "futex by number", futex_place, wake_futex, no_close, no_futex, 0, ALWAYS, GOES_ON, 0,
		false },
	{ "io_getevents by number", aio_place, submit_aio, end_aio, no_io_getevents, 1, NEVER, GOES_ON,
		0, false },
#ifdef __GLIBC__
	{ "getaddrinfo", silent_server, answer, quiet_close, do_getaddrinfo, 1, LASTS, EITHER, 0,
		false },
#endif
};

enum { QUIETS = sizeof quiets / sizeof *quiets };

#endif
