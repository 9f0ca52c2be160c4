/* posix/call_blocking.c - calls with no form but a blocking one: libc's function, while the virtual
 * processor is given or lent to other threads. Where it is possible, they are tried without
 * blocking first, and once more after other threads have run. Also reads and writes of files by
 * position. Contract in call_priv.h.
 * Callers: programs. May switch. A cancellation may unwind these frames. */
#include "posix/call_priv.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "core/handoff.h"
#include "core/yield.h"
#include "io/async.h"
#include "io/ready.h"
#include "os/sys.h"
#include "posix/bind.h"
#include "posix/proc.h"
#include "posix/deputy.h"

enum { SECOND = 1000000000 }; /* ns */

#define REAL(name) KBI_CALL_REAL(name)

/* ---- leaving and coming back -------------------------------------------------------------- */

void kbi_call_leave_vp(bool surely)
{
	kbi_handoff_begin(surely ? KBI_HANDOFF_SURELY : KBI_HANDOFF_PERHAPS);
}

void kbi_call_lend_vp(struct kbi_handoff_habit *habit)
{
	kbi_handoff_begin_as(habit);
}

void kbi_call_rejoin(void)
{
	kbi_handoff_end();
	kbi_call_told(-errno); /* the error of libc's call, if it has failed */
	kbi_signal_resumed();
}

bool kbi_call_turn(bool cancels)
{
	uint32_t before = kbi_posix_me.ending;

	kbi_yield_now();
	kbi_signal_resumed();
	if (cancels)
		kbi_cancel_test();
	if (kbi_likely(kbi_posix_me.ending == before))
		return false;
	errno = EINTR;
	return true;
}

/* Sleeps for a while if kernel threads to block on are scarce. True: try again, unless a handler
 * has ended the call (*ended, EINTR). False: there are enough. */
static bool nap_if_scarce(bool cancels, bool *ended)
{
	enum { NAP = 1000000 }; /* ns */
	uint32_t before = kbi_posix_me.ending;
	uint64_t until = kbi_timer_now() + NAP;

	*ended = false;
	if (kbi_likely(!kbi_handoff_holds_up()))
		return false;
	kbi_waitq_sleep(kbi_self_raw(), cancels ? kbi_posix_until_cancelled(until)
		: kbi_posix_until(until));
	kbi_signal_resumed();
	if (cancels)
		kbi_cancel_test();
	*ended = kbi_posix_me.ending != before;
	if (*ended)
		errno = EINTR;
	return true;
}

/* True if a signal that the program does not know of ended the call: a cancellation of another
 * thread, or the tick. */
static bool is_hidden_interrupt(long r, uint32_t before)
{
	return kbi_unlikely(r < 0 && errno == EINTR) && kbi_posix_me.handled == before;
}

/* ---- tries -------------------------------------------------------------------------------- */

static const struct timespec no_time;

static inline bool would_block(long r)
{
	return r < 0 && errno == EAGAIN;
}

static inline bool is_locked(long r)
{
	return r < 0 && (errno == EAGAIN || errno == EACCES);
}

static inline bool waits_apart(long r)
{
	return r < 0 && errno == ENOSYS;
}

/* A descriptor of a call, in the order of waiting; fd < 0: none. */
struct wanted {
	int *fd;
	short events;
};

/* Waits until the call may begin, on copies of its descriptors. False: it may begin; true: *r is
 * the result. */
static bool await_descriptors(struct kbi_call_keeps *keeps, const struct wanted *w, int n,
	bool cancels, ssize_t *r)
{
	bool ready = true;
	long e = 0;

	for (int i = 0; i < n; i++)
		ready &= kbi_sys_is_ready(*w[i].fd, w[i].events);
	if (ready)
		return false;
	for (int i = 0; i < n; i++)
		kbi_call_keep(keeps, w[i].fd);
	for (int i = 0; i < n && !e; i++)
		e = kbi_call_await(*w[i].fd, w[i].events, cancels);
	if (e)
		*r = kbi_call_answer(e);
	return e != 0;
}

static bool await_output(struct kbi_call_keeps *keeps, int *in, int *out, ssize_t *r)
{
	const struct wanted w[] = { { out, POLLOUT }, { in, POLLIN } };

	if (kbi_sys_is_ready(*out, POLLOUT))
		return false;
	kbi_call_keep(keeps, in);
	return await_descriptors(keeps, w, 1, N, r);
}

static bool await_both_ends(struct kbi_call_keeps *keeps, int *in, int *out, unsigned flags,
	ssize_t *r)
{
	const struct wanted w[] = { { in, POLLIN }, { out, POLLOUT } };

	return !(flags & SPLICE_F_NONBLOCK) && await_descriptors(keeps, w, 2, C, r);
}

static bool begin_connect(int fd, const struct sockaddr *to, socklen_t len, int *r)
{
	long e;

	if (!kbi_call_connect(fd, to, len, true, &e))
		return false;
	*r = (int)kbi_call_answer(e);
	return true;
}

/* Syncs through io_uring, if that is better. */
static bool sync_by_ring(int fd, bool data, int *r)
{
	const struct kbi_async a = { .what = KBI_ASYNC_FSYNC, .fd = fd, .flags = data };

	if (!kbi_async_is_better())
		return false;
	kbi_cancel_test();
	*r = (int)kbi_call_answer(kbi_async(&a, kbi_waitq_until(KBI_FOREVER)));
	kbi_signal_resumed();
	return true;
}

/* Tries the operations with IPC_NOWAIT, which some of them may have already. True: the call need
 * not wait. */
static bool try_semaphores(int id, const struct sembuf *ops, size_t n, int *r)
{
	enum { MANY = 64 };
	struct sembuf quick[MANY];

	*r = 0;
	if (n == 0 || n > MANY)
		return false;
	for (size_t i = 0; i < n; i++) {
		quick[i] = ops[i];
		quick[i].sem_flg |= IPC_NOWAIT;
	}
	*r = REAL(semop)(id, quick, n);
	/* an operation with IPC_NOWAIT may have failed: only the kernel knows which */
	return !would_block(*r);
}

/* ---- the functions ------------------------------------------------------------------------ */

/* libc's headers redirect and inline some of these names, so the definitions have names of their
 * own in C. */
#define APART(result, name, parameters, arguments, quick, cancels, why) \
	KBI_POSIX_API result kbi_call_blocking_##name parameters __asm__(#name); \
	result kbi_call_blocking_##name parameters \
	{ \
		bool again, ended = false; \
		uint32_t before; \
		result r; \
\
		if (kbi_unlikely(!kbi_call_may_wait())) \
			return REAL(name) arguments; \
		before = kbi_posix_me.handled; \
		if ((quick) && !is_hidden_interrupt(r, before)) \
			return r; \
		if (kbi_call_turn(cancels)) \
			return -1; \
		before = kbi_posix_me.handled; \
		do { \
			again = false; \
			if ((quick) && !is_hidden_interrupt(r, before)) \
				return r; \
		} while (again && nap_if_scarce(cancels, &ended) && !ended); \
		if (ended) \
			return -1; \
		KBI_CALL_BLOCKING(true); \
		for (before = kbi_posix_me.handled;;) { \
			r = REAL(name) arguments; \
			if (!is_hidden_interrupt(r, before)) \
				return r; \
		} \
	}
#define LENDS(result, name, parameters, arguments, before, call) \
	KBI_POSIX_API result kbi_call_blocking_##name parameters __asm__(#name); \
	result kbi_call_blocking_##name parameters \
	{ \
		KBI_CALL_KEEPS(keeps); \
		result r __attribute__((unused)); \
\
		if (kbi_unlikely(!kbi_call_may_wait())) \
			return REAL(name) arguments; \
		if (before) \
			return r; \
		KBI_CALL_LENT(); \
		return call; \
	}
#define LENT(result, name, parameters, arguments, before, cancels, why) \
	LENDS(result, name, parameters, arguments, before, REAL(name) arguments)
#define OPENS(result, name, parameters, arguments, before, cancels, why) \
	LENDS(result, name, parameters, arguments, before, kbi_call_opened(REAL(name) arguments, how))
#define DISK(result, name, number, parameters, arguments, cancels, why) \
	KBI_POSIX_API result kbi_call_blocking_##name parameters __asm__(#name); \
	result kbi_call_blocking_##name parameters \
	{ \
		if (kbi_unlikely(!kbi_call_may_wait())) \
			return REAL(name) arguments; \
		KBI_CALL_LENT(); \
		return REAL(name) arguments; \
	}
#define GIVEN(result, name, parameters, arguments, cancels, why) \
	KBI_POSIX_API result kbi_call_blocking_##name parameters __asm__(#name); \
	result kbi_call_blocking_##name parameters \
	{ \
		if (kbi_unlikely(!kbi_call_may_wait())) \
			return REAL(name) arguments; \
		KBI_CALL_BLOCKING(true); \
		return REAL(name) arguments; \
	}
#define AT_ONCE(result, name, parameters, arguments, quick, cancels, why) \
	static KBI_NOINLINE result look_and_##name parameters \
	{ \
		if (!kbi_call_may_wait() || (kbi_call_flags(fd), quick)) \
			return KBI_CALL_REAL(name) arguments; \
		KBI_CALL_LENT(); \
		return KBI_CALL_REAL(name) arguments; \
	} \
	KBI_POSIX_API result kbi_call_blocking_##name parameters __asm__(#name); \
	result kbi_call_blocking_##name parameters \
	{ \
		if (kbi_likely(kbi_call_may_go_on()) && kbi_likely(quick)) \
			return kbi_call_originals.name arguments; \
		return look_and_##name arguments; \
	}
#include "posix/call.def"

KBI_CALL_ALIAS(__pread64, pread64, kbi_call_blocking_pread64);
KBI_CALL_ALIAS(__pwrite64, pwrite64, kbi_call_blocking_pwrite64);
KBI_CALL_ALIAS(__waitpid, waitpid, kbi_call_blocking_waitpid);
KBI_CALL_ALIAS(__wait, wait, kbi_call_blocking_wait);
KBI_CALL_ALIAS(__open, open, kbi_call_blocking_open);
KBI_CALL_ALIAS(__open64, open64, kbi_call_blocking_open64);
KBI_CALL_ALIAS(__connect, connect, kbi_call_blocking_connect);

static bool has_time_limit(const struct timespec *t)
{
	return t && t->tv_sec >= 0 && kbi_posix_time_ok(t);
}

static struct timespec time_left_until(uint64_t deadline)
{
	uint64_t now = kbi_timer_now(), ns = now < deadline ? deadline - now : 0;

	return (struct timespec){ (time_t)(ns / SECOND), (long)(ns % SECOND) };
}

KBI_POSIX_API int semtimedop(int id, struct sembuf *ops, size_t n, const struct timespec *t)
{
	uint64_t deadline = has_time_limit(t) ? kbi_posix_after(t) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	int r;

	if (!kbi_call_may_wait())
		return REAL(semtimedop)(id, ops, n, t);
	if (try_semaphores(id, ops, n, &r))
		return r;
	KBI_CALL_BLOCKING(true);
	r = REAL(semtimedop)(id, ops, n, t);
	while (is_hidden_interrupt(r, before)) {
		struct timespec rest = time_left_until(deadline);

		r = REAL(semtimedop)(id, ops, n, deadline == KBI_FOREVER ? NULL : &rest);
	}
	return r;
}

#pragma weak aio_error /* from libc, or from an older libc's librt, which the program then has */

static int await_aio_list(struct aiocb *const list[], int n)
{
	bool failed = false;

	for (int i = 0; i < n; i++) {
		const struct aiocb *const one[] = { list[i] };

		while (list[i] && aio_error(list[i]) == EINPROGRESS)
			REAL(aio_suspend)(one, 1, NULL);
		failed |= list[i] && aio_error(list[i]);
	}
	if (failed)
		errno = EIO;
	return failed ? -1 : 0;
}

KBI_POSIX_API int lio_listio(int mode, struct aiocb *const list[], int n, struct sigevent *told)
{
	uint32_t before = kbi_posix_me.handled;
	int r;

	if (mode != LIO_WAIT || !kbi_call_may_wait())
		return REAL(lio_listio)(mode, list, n, told);
	KBI_CALL_BLOCKING(true);
	r = REAL(lio_listio)(mode, list, n, told);
	/* the list must not be begun twice */
	return is_hidden_interrupt(r, before) ? await_aio_list(list, n) : r;
}

KBI_POSIX_ALIAS(lio_listio64, lio_listio);

/* ---- locks of files ----------------------------------------------------------------------- */

/* A way to lock a file: `ask` asks for the lock with or without waiting. */
struct locking {
	int fd;
	/* a lock of the process, which is lost when any descriptor of the file is closed: so no
	 * copies */
	bool own;
	bool cancels;
	long (*ask)(const struct locking *l, bool waits);
	int (*fcntl)(int, int, long);
	int (*lockf)(int, int, off_t);
	int what;
	long arg;
};

/* True if the number means another file by now; the kernel fails in the same way once it has got
 * the lock. */
static bool is_file_gone(const struct locking *l, uint64_t since)
{
	if (!l->own || kbi_likely(!kbi_hold_is_closed_since(l->fd, since)))
		return false;
	errno = EBADF;
	return true;
}

/* Locks the file that the number meant at the beginning, whichever file it means after other
 * threads have run. */
static long lock_file(struct locking l)
{
	uint64_t since = kbi_hold_now();
	bool ended = false;
	KBI_CALL_KEEPS(keeps);
	long r;

	if (l.cancels)
		kbi_cancel_test();
	r = l.ask(&l, false);
	if (!is_locked(r))
		return r;
	if (!l.own)
		kbi_call_keep(&keeps, &l.fd);
	if (kbi_call_turn(l.cancels))
		return -1;
	do {
		if (is_file_gone(&l, since))
			return -1;
		r = l.ask(&l, false);
		if (!is_locked(r))
			return r;
	} while (nap_if_scarce(l.cancels, &ended) && !ended);
	if (ended || is_file_gone(&l, since))
		return -1;
	KBI_CALL_BLOCKING(true);
	for (uint32_t before = kbi_posix_me.handled;;) {
		r = l.ask(&l, true);
		if (!is_hidden_interrupt(r, before))
			return r;
	}
}

static long ask_flock(const struct locking *l, bool waits)
{
	return REAL(flock)(l->fd, waits ? l->what : l->what | LOCK_NB);
}

static long ask_lockf(const struct locking *l, bool waits)
{
	return l->lockf(l->fd, waits ? F_LOCK : F_TLOCK, l->arg);
}

static long ask_fcntl(const struct locking *l, bool waits)
{
	return l->fcntl(l->fd, waits ? l->what : l->what == F_SETLKW ? F_SETLK : F_OFD_SETLK, l->arg);
}

int kbi_call_blocking_flock(int fd, int how) __asm__("flock");

KBI_POSIX_API int kbi_call_blocking_flock(int fd, int how)
{
	if (how & LOCK_NB || !kbi_call_may_wait())
		return REAL(flock)(fd, how);
	return (int)lock_file((struct locking){ .fd = fd, .ask = ask_flock, .what = how });
}

static int lockf_by(int (*original)(int, int, off_t), int fd, int what, off_t n)
{
	if (what != F_LOCK || !kbi_call_may_wait())
		return original(fd, what, n);
	return (int)lock_file((struct locking){ .fd = fd, .own = true, .cancels = C,
		.ask = ask_lockf, .lockf = original, .arg = n });
}

int kbi_call_blocking_lockf(int fd, int what, off_t n) __asm__("lockf");
int kbi_call_blocking_lockf64(int fd, int what, off64_t n) __asm__("lockf64");

KBI_POSIX_API int kbi_call_blocking_lockf(int fd, int what, off_t n)
{
	return lockf_by(REAL(lockf), fd, what, n);
}

KBI_POSIX_API int kbi_call_blocking_lockf64(int fd, int what, off64_t n)
{
	return lockf_by(REAL(lockf64), fd, what, n);
}

/* ---- fcntl -------------------------------------------------------------------------------- */

static int fcntl_by(int (*original)(int, int, long), int fd, int what, long arg)
{
	int r;

	if (what == F_SETFL) {
		r = original(fd, what, arg);
		kbi_call_mode_set(fd);
		return r;
	}
	if (kbi_unlikely(what == F_SETOWN_EX) && arg)
		return kbi_deputy_set_owner(original, fd, (const struct f_owner_ex *)arg);
	if (kbi_unlikely(what == F_GETOWN_EX))
		return kbi_deputy_owner(original, fd, (struct f_owner_ex *)arg);
	if (kbi_likely(what != F_SETLKW && what != F_OFD_SETLKW) || !kbi_call_may_wait())
		return original(fd, what, arg);
	return (int)lock_file((struct locking){ .fd = fd, .own = what == F_SETLKW, .cancels = C,
		.ask = ask_fcntl, .fcntl = original, .what = what, .arg = arg });
}

/* The third argument is where a variadic function has it. */
int kbi_call_blocking_fcntl(int fd, int what, long arg) __asm__("fcntl");
int kbi_call_blocking_fcntl64(int fd, int what, long arg) __asm__("fcntl64");

KBI_POSIX_API int kbi_call_blocking_fcntl(int fd, int what, long arg)
{
	return fcntl_by(REAL(fcntl), fd, what, arg);
}

KBI_POSIX_API int kbi_call_blocking_fcntl64(int fd, int what, long arg)
{
	return fcntl_by(REAL(fcntl64), fd, what, arg);
}

KBI_CALL_ALIAS(__fcntl, fcntl, kbi_call_blocking_fcntl);

/* ---- modes and time limits ---------------------------------------------------------------- */

int kbi_call_blocking_ioctl(int fd, unsigned long what, long arg) __asm__("ioctl");

KBI_POSIX_API int kbi_call_blocking_ioctl(int fd, unsigned long what, long arg)
{
	int r = REAL(ioctl)(fd, what, arg);

	if (kbi_unlikely(what == FIONBIO))
		kbi_call_changed();
	return r;
}

KBI_POSIX_API int setsockopt(int fd, int level, int what, const void *value, socklen_t n)
{
	int r = REAL(setsockopt)(fd, level, what, value, n);

	if (kbi_call_matters(level, what))
		kbi_call_changed();
	return r;
}

/* Waiting threads try again after a shutdown: poll(2) reports to a sender without room on a local
 * socket that the peer or both ends shut down, but not that its own end did; send(2) would
 * return. */
KBI_POSIX_API int shutdown(int fd, int how)
{
	int r = REAL(shutdown)(fd, how);

	if (r == 0 && !kbi_posix_in_vfork())
		kbi_ready_retry(fd);
	return r;
}
