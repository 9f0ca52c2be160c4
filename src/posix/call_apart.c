/* posix/call_apart.c - calls that the kernel has no other form of than blocking: libc's, while the virtual processor is
 * given or lent to others. They are tried without blocking first where that is possible, and once more after others have
 * run. And the functions that give descriptors' numbers up. Contract in call_priv.h.
 * Callers: programs. May switch. Cancellation may pass through these frames. */
#include "posix/call_priv.h"

#include <limits.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "core/handoff.h"
#include "core/yield.h"
#include "io/ready.h"
#include "os/sys.h"
#include "posix/bind.h"

enum { SECOND = 1000000000 }; /* ns */

#define REAL(name) KBI_CALL_REAL(name)

/* ---- leaving and coming back ------------------------------------------------------------------------- */

void kbi_call_leave_vp(bool surely)
{
	kbi_handoff_begin(surely ? KBI_HANDOFF_SURELY : KBI_HANDOFF_PERHAPS);
}

void kbi_call_rejoin(void)
{
	kbi_handoff_end();
	kbi_call_told(-errno); /* libc's call, if it has failed */
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

/* Kernel threads to block on are scarce: to be tried again after a while, unless a handler has ended it (EINTR). False:
 * there are some. */
static bool naps(bool cancels, bool *ended)
{
	enum { NAP = 1000000 }; /* ns */
	uint32_t before = kbi_posix_me.ending;
	uint64_t until = kbi_timer_now() + NAP;

	*ended = false;
	if (kbi_likely(!kbi_handoff_holds_up()))
		return false;
	kbi_waitq_sleep(kbi_self_raw(), cancels ? kbi_posix_until_cancelled(until) : kbi_posix_until(until));
	kbi_signal_resumed();
	if (cancels)
		kbi_cancel_test();
	*ended = kbi_posix_me.ending != before;
	if (*ended)
		errno = EINTR;
	return true;
}

/* The call was ended by nobody the program knows: by a cancellation of another thread, or the tick. */
static bool for_nothing(long r, uint32_t before)
{
	return kbi_unlikely(r < 0 && errno == EINTR) && kbi_posix_me.handled == before;
}

/* ---- tries ------------------------------------------------------------------------------------------- */

static const struct timespec no_time;

static inline bool would_block(long r)
{
	return r < 0 && errno == EAGAIN;
}

static inline bool is_locked(long r)
{
	return r < 0 && (errno == EAGAIN || errno == EACCES);
}

/* libc's try is no cancellation point; what waits is one, also where it need not wait. */
static int tried_by(int what)
{
	if (what != F_LOCK)
		return what;
	kbi_cancel_test();
	return F_TLOCK;
}

static inline bool waits_apart(long r)
{
	return r < 0 && errno == ENOSYS;
}

/* It may begin; or else *r is the result. */
static bool awaits(int fd, short events, bool cancels, ssize_t *r)
{
	long e = kbi_call_await(fd, events, cancels);

	if (e == 0)
		return false;
	*r = kbi_call_answer(e);
	return true;
}

static bool connects(int fd, const struct sockaddr *to, socklen_t len, int *r)
{
	long e;

	if (!kbi_call_connect(fd, to, len, true, &e))
		return false;
	*r = (int)kbi_call_answer(e);
	return true;
}

/* The operations with IPC_NOWAIT, which each of them may have already: true if they need not wait. */
static bool tries_semaphores(int id, const struct sembuf *ops, size_t n, int *r)
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
	/* one that does not want to wait may be among them: only the kernel knows which */
	return !would_block(*r);
}

/* ---- the functions ----------------------------------------------------------------------------------- */

/* libc's headers redirect and inline some of these names; the definitions have names of their own. */
#define APART(result, name, parameters, arguments, quick, cancels, why) \
	KBI_POSIX_API result kbi_call_apart_##name parameters __asm__(#name); \
	result kbi_call_apart_##name parameters \
	{ \
		bool again, ended = false; \
		result r; \
\
		if (kbi_unlikely(!kbi_call_may_wait())) \
			return REAL(name) arguments; \
		if (quick) \
			return r; \
		if (kbi_call_turn(cancels)) \
			return -1; \
		do { \
			again = false; \
			if (quick) \
				return r; \
		} while (again && naps(cancels, &ended) && !ended); \
		if (ended) \
			return -1; \
		KBI_CALL_APART(true); \
		for (uint32_t before = kbi_posix_me.handled;;) { \
			r = REAL(name) arguments; \
			if (!for_nothing(r, before)) \
				return r; \
		} \
	}
#define LENT(result, name, parameters, arguments, before, cancels, why) \
	KBI_POSIX_API result kbi_call_apart_##name parameters __asm__(#name); \
	result kbi_call_apart_##name parameters \
	{ \
		result r __attribute__((unused)); \
\
		if (kbi_unlikely(!kbi_call_may_wait())) \
			return REAL(name) arguments; \
		if (before) \
			return r; \
		KBI_CALL_APART(false); \
		return REAL(name) arguments; \
	}
#define GIVEN(result, name, parameters, arguments, cancels, why) \
	KBI_POSIX_API result kbi_call_apart_##name parameters __asm__(#name); \
	result kbi_call_apart_##name parameters \
	{ \
		if (kbi_unlikely(!kbi_call_may_wait())) \
			return REAL(name) arguments; \
		KBI_CALL_APART(true); \
		return REAL(name) arguments; \
	}
#include "posix/call.def"

KBI_CALL_ALIAS(__waitpid, waitpid, kbi_call_apart_waitpid);
KBI_CALL_ALIAS(__wait, wait, kbi_call_apart_wait);
KBI_CALL_ALIAS(__open, open, kbi_call_apart_open);
KBI_CALL_ALIAS(__open64, open64, kbi_call_apart_open64);
KBI_CALL_ALIAS(__connect, connect, kbi_call_apart_connect);

static bool has_time(const struct timespec *t)
{
	return t && t->tv_sec >= 0 && kbi_posix_time_ok(t);
}

static struct timespec left_of(uint64_t deadline)
{
	uint64_t now = kbi_timer_now(), ns = now < deadline ? deadline - now : 0;

	return (struct timespec){ (time_t)(ns / SECOND), (long)(ns % SECOND) };
}

KBI_POSIX_API int semtimedop(int id, struct sembuf *ops, size_t n, const struct timespec *t)
{
	uint64_t deadline = has_time(t) ? kbi_posix_after(t) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	int r;

	if (!kbi_call_may_wait())
		return REAL(semtimedop)(id, ops, n, t);
	if (tries_semaphores(id, ops, n, &r))
		return r;
	KBI_CALL_APART(true);
	r = REAL(semtimedop)(id, ops, n, t);
	while (for_nothing(r, before)) {
		struct timespec rest = left_of(deadline);

		r = REAL(semtimedop)(id, ops, n, deadline == KBI_FOREVER ? NULL : &rest);
	}
	return r;
}

#pragma weak aio_error /* libc's, or an older one's librt, which the program has then */

static int await_all(struct aiocb *const list[], int n)
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
	KBI_CALL_APART(true);
	r = REAL(lio_listio)(mode, list, n, told);
	/* it may not be begun twice */
	return for_nothing(r, before) ? await_all(list, n) : r;
}

KBI_POSIX_ALIAS(lio_listio64, lio_listio);

KBI_POSIX_API void sync(void)
{
	if (!kbi_call_may_wait()) {
		REAL(sync)();
		return;
	}
	KBI_CALL_APART(false);
	REAL(sync)();
}

/* ---- fcntl ------------------------------------------------------------------------------------------- */

static int fcntl_by(int (*original)(int, int, long), int fd, int what, long arg)
{
	int quick = what == F_SETLKW ? F_SETLK : F_OFD_SETLK, r;
	bool ended = false;

	if (what == F_SETFL) {
		r = original(fd, what, arg);
		kbi_call_changed();
		return r;
	}
	if (kbi_unlikely(what == F_SETOWN_EX) && arg)
		return kbi_bind_set_owner(original, fd, (const struct f_owner_ex *)arg);
	if (kbi_unlikely(what == F_GETOWN_EX))
		return kbi_bind_owner(original, fd, (struct f_owner_ex *)arg);
	if (kbi_likely(what != F_SETLKW && what != F_OFD_SETLKW) || !kbi_call_may_wait())
		return original(fd, what, arg);
	kbi_cancel_test();
	r = original(fd, quick, arg);
	if (!is_locked(r))
		return r;
	if (kbi_call_turn(true))
		return -1;
	do {
		r = original(fd, quick, arg);
		if (!is_locked(r))
			return r;
	} while (naps(true, &ended) && !ended);
	if (ended)
		return -1;
	KBI_CALL_APART(true);
	return original(fd, what, arg);
}

/* The third argument is where a variadic function has it. */
int kbi_call_apart_fcntl(int fd, int what, long arg) __asm__("fcntl");
int kbi_call_apart_fcntl64(int fd, int what, long arg) __asm__("fcntl64");

KBI_POSIX_API int kbi_call_apart_fcntl(int fd, int what, long arg)
{
	return fcntl_by(REAL(fcntl), fd, what, arg);
}

KBI_POSIX_API int kbi_call_apart_fcntl64(int fd, int what, long arg)
{
	return fcntl_by(REAL(fcntl64), fd, what, arg);
}

KBI_CALL_ALIAS(__fcntl, fcntl, kbi_call_apart_fcntl);

/* ---- modes and time limits ----------------------------------------------------------------------------- */

int kbi_call_apart_ioctl(int fd, unsigned long what, long arg) __asm__("ioctl");

KBI_POSIX_API int kbi_call_apart_ioctl(int fd, unsigned long what, long arg)
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

/* Who sends on a local socket, and finds no room, is told by poll(2) when the other end shuts down or both ends do, and not
 * when only its own does; in send(2) it would be. */
KBI_POSIX_API int shutdown(int fd, int how)
{
	int r = REAL(shutdown)(fd, how);

	if (r == 0 && !kbi_posix_in_vfork())
		kbi_ready_retry(fd);
	return r;
}

/* ---- numbers that are given up ----------------------------------------------------------------------- */

/* Before the kernel closes it, and after. In the child of vfork the number is the child's, and what is known of it here
 * its parent's. */
static void gives_up(int fd)
{
	if (kbi_posix_in_vfork())
		return;
	kbi_call_note(fd, KBI_CALL_UNKNOWN);
	kbi_ready_closing(fd);
}

static void has_given_up(int fd)
{
	if (!kbi_posix_in_vfork())
		kbi_ready_closed(fd);
}

KBI_POSIX_API int close(int fd)
{
	int r;

	gives_up(fd);
	r = REAL(close)(fd);
	has_given_up(fd);
	return r;
}

static int dup_to(int from, int to, int flags, bool three)
{
	int r;

	if (from == to)
		return three ? REAL(dup3)(from, to, flags) : REAL(dup2)(from, to);
	gives_up(to);
	r = three ? REAL(dup3)(from, to, flags) : REAL(dup2)(from, to);
	has_given_up(to);
	return r;
}

KBI_POSIX_API int dup2(int from, int to)
{
	return dup_to(from, to, 0, false);
}

KBI_POSIX_API int dup3(int from, int to, int flags)
{
	return dup_to(from, to, flags, true);
}

/* The same for many. Those that wait are few: only numbers that were used are asked for. */
static void forget(unsigned first, unsigned last, void (*tell)(int fd))
{
	unsigned end = last < KBI_CALL_DESCRIPTORS ? last + 1 : KBI_CALL_DESCRIPTORS;

	if (kbi_posix_in_vfork())
		return;
	for (unsigned fd = first; fd < end; fd++) {
		if (a_load_rlx(&kbi_call_kinds[fd]))
			kbi_call_note((int)fd, KBI_CALL_UNKNOWN);
		tell((int)fd);
	}
}

KBI_POSIX_API int close_range(unsigned first, unsigned last, int flags)
{
	int r;

	if (flags & CLOSE_RANGE_CLOEXEC || first > last)
		return REAL(close_range)(first, last, flags);
	forget(first, last, kbi_ready_closing);
	r = REAL(close_range)(first, last, flags);
	forget(first, last, kbi_ready_closed);
	return r;
}

KBI_POSIX_API void closefrom(int first)
{
	unsigned from = first > 0 ? (unsigned)first : 0;

	forget(from, UINT_MAX, kbi_ready_closing);
	REAL(closefrom)(first);
	forget(from, UINT_MAX, kbi_ready_closed);
}

KBI_POSIX_ALIAS(__close, close);
KBI_POSIX_ALIAS(__dup2, dup2);
