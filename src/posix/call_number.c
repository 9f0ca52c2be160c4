/* posix/call_number.c - the same calls by libc's syscall(): no cancellation points, and no other difference. Contract in
 * call_priv.h. Callers: futex, which defines syscall(). May switch. */
#include "posix/call_priv.h"

#include <sys/syscall.h>

#include "os/sys.h"

/* Many at once; false: none of them. */
static bool asleep_in_many(long n, const long a[6], long *r)
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
		*r = kbi_call_recvmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3], (struct timespec *)a[4], N);
		return true;
	case SYS_sendmmsg:
		*r = kbi_call_sendmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3], N);
		return true;
	case SYS_ppoll:
		/* the kernel tells what was left of the time, and takes masks of its own size: not here */
		if (a[2] || a[3])
			return false;
		*r = kbi_call_ppoll((struct pollfd *)a[0], (nfds_t)a[1], NULL, NULL, N);
		return true;
	default:
		return false;
	}
}

/* For those that have a form in which the thread sleeps. False: it is none of them. */
static bool asleep(long n, const long a[6], long *r)
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
		*r = kbi_call_recvfrom(fd, (void *)a[1], (size_t)a[2], flags, (void *)a[4], (socklen_t *)a[5], N);
		return true;
	case SYS_recvmsg:
		if (kbi_call_is_odd_recv((int)a[2]))
			return false;
		*r = kbi_call_recvmsg(fd, (struct msghdr *)a[1], (int)a[2], N);
		return true;
	case SYS_sendto:
		*r = kbi_call_sendto(fd, (void *)a[1], (size_t)a[2], flags, (void *)a[4], (socklen_t)a[5], N);
		return true;
	case SYS_sendmsg:
		*r = kbi_call_sendmsg(fd, (struct msghdr *)a[1], (int)a[2], N);
		return true;
	case SYS_accept4:
		*r = kbi_call_accept(fd, (void *)a[1], (socklen_t *)a[2], flags, N);
		return true;
	case SYS_epoll_pwait:
		if (a[4] || (int)a[2] <= 0)
			return false;
		*r = kbi_call_epoll_wait(fd, (struct epoll_event *)a[1], (int)a[2], flags, NULL, N);
		return true;
	default:
		return asleep_in_many(n, a, r);
	}
}

/* Numbers that not every machine has. */
static bool asleep_by_old_number(long n, const long a[6], long *r)
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
#ifdef SYS_epoll_wait
	if (n == SYS_epoll_wait && (int)a[2] > 0) {
		*r = kbi_call_epoll_wait((int)a[0], (struct epoll_event *)a[1], (int)a[2], (int)a[3], NULL, N);
		return true;
	}
#endif
	return false;
}

/* Those that may block in another way: the virtual processor is lent. */
static bool may_block(long n)
{
	switch (n) {
	case SYS_readv:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendmmsg:
	case SYS_connect:
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
#ifdef SYS_select
	case SYS_select:
#endif
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
	case SYS_mq_timedreceive:
	case SYS_mq_timedsend:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
		return true;
	default:
		return false;
	}
}

bool kbi_call_by_number(long n, const long a[6], long *r)
{
	if (!KBI_SYS_DIRECT || !kbi_call_may_wait())
		return false;
	if (asleep(n, a, r) || asleep_by_old_number(n, a, r))
		return true;
	if (!may_block(n))
		return false;
	kbi_call_leave_vp(false);
	*r = kbi_sys(n, a[0], a[1], a[2], a[3], a[4], a[5]);
	kbi_call_rejoin();
	return true;
}
