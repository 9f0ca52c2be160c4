/* posix/call_number.c - the calls of call.def by libc's syscall(): without cancellation points, and
 * otherwise equal. Contract in call_priv.h. Callers: futex, which defines syscall(). May switch. */
#include "posix/call_priv.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "io/ready.h"
#include "libc/emulate.h"
#include "os/newer.h"
#include "os/sys.h"
#include "posix/clock.h"

enum { MASK_BYTES = 8 };

/* Numbers of call.def that newer machines lack. */
#ifndef SYS_unlink
enum { SYS_unlink = -1, SYS_rmdir = -1, SYS_rename = -1, SYS_mkdir = -1, SYS_link = -1,
	SYS_symlink = -1 };
#endif
#ifndef SYS_renameat
enum { SYS_renameat = -1 };
#endif

/* ---- arguments of the kernel that libc's functions hide ----------------------------------- */

/* Returns a mask of the kernel's size as libc's set. NULL: none. */
static const sigset_t *sigset_of_mask(const void *mask, sigset_t *set)
{
	if (!mask)
		return NULL;
	memset(set, 0, sizeof(*set));
	memcpy(set, mask, MASK_BYTES);
	return set;
}

/* Stores the time left. */
static void store_time_left(struct timespec *t, uint64_t begun)
{
	if (t)
		kbi_call_count_down(t, begun);
}

static long ppoll_by_number(const long a[6])
{
	uint64_t begun = kbi_timer_now();
	sigset_t set;
	long r;

	if (a[3] && a[4] != MASK_BYTES)
		return -EINVAL;
	r = kbi_call_ppoll((struct pollfd *)a[0], (nfds_t)a[1], (const struct timespec *)a[2],
			   sigset_of_mask((const void *)a[3], &set), N);
	if (r != -EINVAL)
		store_time_left((struct timespec *)a[2], begun);
	return r;
}

static long pselect_by_number(const long a[6])
{
	const struct {
		const void *mask;
		size_t bytes;
	} none = { NULL, 0 }, *m = a[5] ? (const void *)a[5] : &none;
	uint64_t begun = kbi_timer_now();
	sigset_t set;
	long r;

	if (m->mask && m->bytes != MASK_BYTES)
		return -EINVAL;
	r = kbi_call_pselect((int)a[0], (fd_set *)a[1], (fd_set *)a[2], (fd_set *)a[3],
		(const struct timespec *)a[4], sigset_of_mask(m->mask, &set), N);
	if (r != -EINVAL)
		store_time_left((struct timespec *)a[4], begun);
	return r;
}

static bool is_timer_clock(long clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* ---- by number ---------------------------------------------------------------------------- */

/* Makes a call that waits for time, signals or message queues; false: it is another call. */
static bool make_timed_call(long n, const long a[6], long *r)
{
	switch (n) {
	case SYS_nanosleep:
		*r = kbi_posix_sleep_by_number(CLOCK_MONOTONIC, 0, (const struct timespec *)a[0],
			(struct timespec *)a[1]);
		return true;
	case SYS_clock_nanosleep:
		if (!is_timer_clock(a[0]) && !kbi_clock_is_programs((clockid_t)a[0]) &&
			!kbi_clock_whose((clockid_t)a[0]))
			return false;
		*r = kbi_posix_sleep_by_number((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2],
					       (struct timespec *)a[3]);
		return true;
	case SYS_rt_sigtimedwait:
		if (!a[0] || a[3] != MASK_BYTES)
			return false;
		*r = kbi_posix_sigwait_by_number(*(const uint64_t *)a[0], (siginfo_t *)a[1],
			(const struct timespec *)a[2]);
		return true;
	case SYS_rt_sigsuspend:
		if (!a[0] || a[1] != MASK_BYTES)
			return false;
		*r = kbi_posix_sigsuspend_by_number(*(const uint64_t *)a[0]);
		return true;
	case SYS_mq_timedreceive:
		*r = kbi_call_mq_receive((mqd_t)a[0], (char *)a[1], (size_t)a[2], (unsigned *)a[3],
					 (const struct timespec *)a[4], N);
		return true;
	case SYS_mq_timedsend:
		*r = kbi_call_mq_send((mqd_t)a[0], (const char *)a[1], (size_t)a[2], (unsigned)a[3],
				      (const struct timespec *)a[4], N);
		return true;
	default:
		return false;
	}
}

/* Makes a call that waits for any of several descriptors; false: it is another call. */
static bool make_polling_call(long n, const long a[6], long *r)
{
	sigset_t set;

	switch (n) {
	case SYS_ppoll:
		*r = ppoll_by_number(a);
		return true;
	case SYS_pselect6:
		*r = pselect_by_number(a);
		return true;
	case SYS_epoll_pwait:
		if ((int)a[2] <= 0 || (a[4] && a[5] != MASK_BYTES))
			return false;
		*r = kbi_call_epoll_wait((int)a[0], (struct epoll_event *)a[1], (int)a[2], (int)a[3],
					 sigset_of_mask((const void *)a[4], &set), N);
		return true;
	case SYS_epoll_pwait2:
		if ((int)a[2] <= 0 || (a[4] && a[5] != MASK_BYTES))
			return false;
		*r = kbi_call_epoll_wait2((int)a[0], (struct epoll_event *)a[1], (int)a[2],
			(const struct timespec *)a[3], sigset_of_mask((const void *)a[4], &set), N);
		return true;
	default:
		return make_timed_call(n, a, r);
	}
}

/* Makes a call that moves many buffers or messages; false: it is another call. */
static bool make_many_buffers_call(long n, const long a[6], long *r)
{
	int fd = (int)a[0];

	switch (n) {
	case SYS_readv:
		if (kbi_call_is_odd((int)a[2]))
			return false;
		*r = kbi_call_readv(fd, (const struct iovec *)a[1], (int)a[2], N);
		return true;
	case SYS_writev:
		if (kbi_call_is_odd((int)a[2]))
			return false;
		*r = kbi_call_writev(fd, (const struct iovec *)a[1], (int)a[2], N);
		return true;
	case SYS_recvmmsg:
		if (kbi_call_is_odd_recv((int)a[3]))
			return false;
		*r = kbi_call_recvmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3],
			(struct timespec *)a[4], N);
		return true;
	case SYS_sendmmsg:
		*r = kbi_call_sendmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3], N);
		return true;
	default:
		return make_polling_call(n, a, r);
	}
}

/* Makes a call that has a form in which the thread sleeps. False: it is another call. */
static bool make_sleeping_call(long n, const long a[6], long *r)
{
	int fd = (int)a[0], flags = (int)a[3];

	switch (n) {
	case SYS_read:
		*r = kbi_call_read(fd, (void *)a[1], (size_t)a[2], N);
		return true;
	case SYS_write:
		*r = kbi_call_write(fd, (void *)a[1], (size_t)a[2], N);
		return true;
	case SYS_recvfrom:
		if (kbi_call_is_odd_recv(flags))
			return false;
		*r = kbi_call_recvfrom(fd, (void *)a[1], (size_t)a[2], flags, (void *)a[4],
			(socklen_t *)a[5], N);
		return true;
	case SYS_recvmsg:
		if (kbi_call_is_odd_recv((int)a[2]))
			return false;
		*r = kbi_call_recvmsg(fd, (struct msghdr *)a[1], (int)a[2], N);
		return true;
	case SYS_sendto:
		*r = kbi_call_sendto(fd, (void *)a[1], (size_t)a[2], flags, (void *)a[4], (socklen_t)a[5],
			N);
		return true;
	case SYS_sendmsg:
		*r = kbi_call_sendmsg(fd, (struct msghdr *)a[1], (int)a[2], N);
		return true;
	case SYS_accept4:
		*r = kbi_call_accept(fd, (void *)a[1], (socklen_t *)a[2], flags, N);
		return true;
	case SYS_connect:
		return kbi_call_connect(fd, (const struct sockaddr *)a[1], (socklen_t)a[2], N, r);
	default:
		return make_many_buffers_call(n, a, r);
	}
}

/* The same for numbers that not every machine has. */
static bool make_old_sleeping_call(long n, const long a[6], long *r)
{
	(void)n;
	(void)a;
	(void)r;
#ifdef SYS_accept
	if (n == SYS_accept) {
		*r = kbi_call_accept((int)a[0], (void *)a[1], (socklen_t *)a[2], 0, N);
		return true;
	}
#endif
#ifdef SYS_pause
	if (n == SYS_pause) {
		*r = kbi_posix_pause_by_number();
		return true;
	}
#endif
#ifdef SYS_poll
	if (n == SYS_poll) {
		*r = kbi_call_poll((struct pollfd *)a[0], (nfds_t)a[1], (int)a[2], N);
		return true;
	}
#endif
#ifdef SYS_select
	if (n == SYS_select) {
		*r = kbi_call_select((int)a[0], (fd_set *)a[1], (fd_set *)a[2], (fd_set *)a[3],
			(struct timeval *)a[4], N);
		return true;
	}
#endif
#ifdef SYS_epoll_wait
	if (n == SYS_epoll_wait && (int)a[2] > 0) {
		*r = kbi_call_epoll_wait((int)a[0], (struct epoll_event *)a[1], (int)a[2], (int)a[3], NULL,
			N);
		return true;
	}
#endif
	return false;
}

static bool make_mode_call(long n, const long a[6], long *r)
{
	if (!(n == SYS_fcntl && a[1] == F_SETFL) && !(n == SYS_ioctl && a[1] == FIONBIO) &&
	    !(n == SYS_setsockopt && kbi_call_matters((int)a[1], (int)a[2])))
		return false;
	*r = kbi_sys(n, a[0], a[1], a[2], a[3], a[4]);
	if (n == SYS_fcntl)
		kbi_call_mode_set((int)a[0]);
	else
		kbi_call_changed();
	return true;
}

static bool make_shutdown_call(long n, const long a[6], long *r)
{
	if (n != SYS_shutdown)
		return false;
	*r = kbi_sys(n, a[0], a[1], 0, 0, 0);
	kbi_ready_retry((int)a[0]);
	return true;
}

/* True if the call, on a file, may wait for a disk. */
static bool may_wait_for_disk(long n, const long a[6])
{
	int fd = (int)a[0];

#define DISK(result, name, number, ...) if (n == (number)) return true;
#include "posix/call.def"
	switch (n) {
	case SYS_pread64:
	case SYS_preadv:
	case SYS_pwrite64:
	case SYS_pwritev:
		kbi_call_flags(fd);
		return !kbi_call_is_cached(fd, n == SYS_pread64 || n == SYS_preadv);
	case SYS_preadv2:
	case SYS_pwritev2:
		kbi_call_flags(fd);
		return !kbi_call_is_quick(fd, (int)a[5], n == SYS_preadv2);
	default:
		return false;
	}
}

/* True if the call may block otherwise: then the virtual processor is lent. */
static bool may_block(long n, const long a[6])
{
	switch (n) {
	case SYS_readv:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_connect:
#ifdef SYS_open
	case SYS_open:
#endif
	case SYS_openat:
	case SYS_flock:
	case SYS_fcntl:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_msgrcv:
	case SYS_msgsnd:
#ifdef SYS_semop
	case SYS_semop:
#endif
	case SYS_semtimedop:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_clock_nanosleep:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
		return true;
	default:
		return may_wait_for_disk(n, a);
	}
}

static bool make_exec_call(long n, const long a[6], long *r)
{
	if (n != SYS_execve && n != SYS_execveat)
		return false;
	*r = kbi_signal_exec_by_number(n, a);
	return true;
}

bool kbi_call_by_number(long n, const long a[6], long *r)
{
	uint32_t before;

	if (kbi_call_closes_by_number(n, a, r))
		return true;
	if (!KBI_SYS_DIRECT || !kbi_call_may_wait())
		return false;
	if (make_sleeping_call(n, a, r) || make_old_sleeping_call(n, a, r) ||
	    make_mode_call(n, a, r) || make_shutdown_call(n, a, r) || make_exec_call(n, a, r)) {
		kbi_call_told(*r);
		return true;
	}
	if (!may_block(n, a))
		return false;
	kbi_call_leave_vp(false);
	before = kbi_posix_me.handled;
	do
		*r = n == SYS_wait4 || n == SYS_waitid ? kbi_emulate_waits(n, a) :
							 kbi_sys(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	/* interrupted by a signal that the program does not know of */
	while (*r == -EINTR && kbi_posix_me.handled == before);
	kbi_call_rejoin();
	return true;
}
