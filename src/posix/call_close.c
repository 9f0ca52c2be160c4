/* posix/call_close.c - the functions that close descriptors' numbers, or put another file under
 * them. The remembered kind of a number is forgotten, and calls on its old file go on with that
 * file (io/hold). Private copies (io/own) are not the program's to close: it gets EBADF. Contract
 * in call_priv.h.
 * Callers: programs, stdio, call_number. May switch. A cancellation may unwind these frames. */
#include "posix/call_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "io/ready.h"
#include "os/fd.h"
#include "os/newer.h"
#include "os/sys.h"

#define REAL(name) KBI_CALL_REAL(name)

/* ---- one number --------------------------------------------------------------------------- */

/* In the child of vfork the number is the child's, while all notes here are about the parent's. */
struct kbi_call_closing kbi_call_gives_up(int fd, bool over)
{
	struct kbi_call_closing x = { .fd = fd };
	bool careful = kbi_fd_may_be_ours(fd);

	if (kbi_posix_in_vfork())
		return x;
	if (kbi_unlikely(careful) && !over && kbi_own_is(fd)) {
		x.refused = true;
		return x;
	}
	kbi_call_note(fd, KBI_CALL_UNKNOWN);
	kbi_ready_closing(fd);
	x.told = true;
	if (kbi_likely(!careful))
		return x;
	kbi_own_stop_copies();
	x.stopped = true;
	x.refused = kbi_own_is(fd);
	return x;
}

void kbi_call_has_given_up(struct kbi_call_closing *x)
{
	if (kbi_unlikely(x->stopped))
		kbi_own_let_copies();
	if (kbi_likely(x->told))
		kbi_ready_closed(x->fd);
}

static long fail_with_errno(int e)
{
	errno = e;
	return -1;
}

KBI_POSIX_API int close(int fd)
{
	bool lends = kbi_call_may_wait() && kbi_call_may_be_file(kbi_call_known(fd));
	KBI_CALL_CLOSING(x, fd, false);

	if (kbi_unlikely(x.refused))
		return (int)fail_with_errno(EBADF);
	if (!lends || kbi_unlikely(x.stopped)) /* otherwise other calls would wait for this close */
		return REAL(close)(fd);
	/* the last close of a deleted file frees its blocks */
	KBI_CALL_LENT();
	return REAL(close)(fd);
}

static int dup_once(int from, int to, int flags, bool three)
{
	/* a child of vfork has a descriptor table of its own */
	bool inside = !kbi_posix_in_vfork() && kbi_fd_place();
	int r = three ? REAL(dup3)(from, to, flags) : REAL(dup2)(from, to);

	kbi_fd_placed(inside);
	return r;
}

/* Tries again after EBUSY: the kernel has reserved the number for a call that is about to open a
 * file. Each attempt of accept reserves a number for a moment; an accept that waits in the kernel
 * keeps the number that it began with. */
static int dup_when_free(int from, int to, int flags, bool three)
{
	enum { TRIES = 100 };
	static const struct timespec nap = { 0, 50000 };
	int r = dup_once(from, to, flags, three);

	for (int i = 0; r < 0 && errno == EBUSY && i < TRIES; i++) {
		kbi_sys(SYS_nanosleep, &nap, NULL);
		r = dup_once(from, to, flags, three);
	}
	return r;
}

static int dup_to(int from, int to, int flags, bool three)
{
	if (from == to)
		return dup_once(from, to, flags, three);

	KBI_CALL_CLOSING(x, to, true);
	/* a call that blocks in the kernel uses the private copy, and closes it */
	if (kbi_unlikely(x.refused))
		return (int)fail_with_errno(EBUSY);
	return dup_when_free(from, to, flags, three);
}

KBI_POSIX_API int dup2(int from, int to)
{
	return dup_to(from, to, 0, false);
}

KBI_POSIX_API int dup3(int from, int to, int flags)
{
	return dup_to(from, to, flags, true);
}

KBI_POSIX_API int mq_close(mqd_t q)
{
	KBI_CALL_CLOSING(x, q, false);

	return kbi_unlikely(x.refused) ? (int)fail_with_errno(EBADF) : REAL(mq_close)(q);
}

KBI_POSIX_ALIAS(__close, close);
KBI_POSIX_ALIAS(__dup2, dup2);

/* ---- many --------------------------------------------------------------------------------- */

/* Returns the end of the numbers that calls have ever used; above it nothing is known and no call
 * has begun. */
static unsigned end_of_known_numbers(unsigned last)
{
	unsigned most = (unsigned)kbi_slot_limit();

	return last < most ? last + 1 : most;
}

static void begin_closing_many(unsigned first, unsigned last, unsigned end)
{
	unsigned known = last < KBI_CALL_DESCRIPTORS ? last + 1 : KBI_CALL_DESCRIPTORS;

	for (unsigned fd = first; fd < known; fd++)
		if (a_load_rlx(&kbi_call_kinds[fd]))
			kbi_call_note((int)fd, KBI_CALL_UNKNOWN);
	for (unsigned fd = first; fd < end; fd++)
		kbi_ready_closing((int)fd);
	kbi_own_stop_copies();
}

static void end_closing_many(unsigned first, unsigned end)
{
	kbi_own_let_copies();
	for (unsigned fd = first; fd < end; fd++)
		kbi_ready_closed((int)fd);
}

/* libc has close_range from 2.34 on; with an older libc, programs make it by number. */
static int close_plain(unsigned first, unsigned last, int flags)
{
	int (*libcs)(unsigned, unsigned, int) = REAL(close_range);

	return libcs ? libcs(first, last, flags)
		: kbi_posix_answer(kbi_sys(SYS_close_range, first, last, flags));
}

/* Closes the numbers between private copies. */
static int close_around(unsigned first, unsigned last, int flags)
{
	for (;;) {
		unsigned own = first < INT_MAX ? (unsigned)kbi_own_next((int)first) : INT_MAX;
		int r = 0;

		if (own > last || own == INT_MAX)
			return close_plain(first, last, flags);
		if (own > first)
			r = close_plain(first, own - 1, flags);
		if (r || own == last)
			return r;
		first = own + 1;
	}
}

KBI_POSIX_API int close_range(unsigned first, unsigned last, int flags)
{
	unsigned end = end_of_known_numbers(last);
	bool inside;
	int r;

	if (flags & CLOSE_RANGE_CLOEXEC || first > last || kbi_posix_in_vfork())
		return close_plain(first, last, flags);
	begin_closing_many(first, last, end);
	inside = kbi_fd_place();
	r = close_around(first, last, flags);
	kbi_fd_placed(inside);
	end_closing_many(first, end);
	return r;
}

/* Closes fd; no cancellation point. */
static void close_one(int fd)
{
	KBI_CALL_CLOSING(x, fd, false);

	if (!x.refused)
		kbi_sys(SYS_close, fd);
}

/* Closes the descriptors in an answer of getdents64. */
static void close_listed(const char *list, long size, int first, int folder)
{
	enum { LENGTH = 16, NAME = 19 }; /* offsets in a linux_dirent64 */
	uint16_t length;

	for (long at = 0; at < size; at += length) {
		const char *name = list + at + NAME;
		int fd = name[0] == '.' ? -1 : atoi(name);

		memcpy(&length, list + at + LENGTH, sizeof length);
		if (fd >= first && fd != folder)
			close_one(fd);
	}
}

static bool close_shown(int first)
{
	long folder = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/fd",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC), size;
	char list[2048];

	if (folder < 0)
		return false;
	while ((size = kbi_sys(SYS_getdents64, folder, list, sizeof list)) > 0)
		close_listed(list, size, first, (int)folder);
	kbi_sys(SYS_close, folder);
	return true;
}

/* Used where the kernel has no close_range: closes the numbers that /proc shows; libc's own would
 * close the runtime's, too. If no number is left to open /proc, numbers below the limit are closed
 * first. Without /proc libc's function ends the program, as it does on libc. */
static void close_each(int first)
{
	if (close_shown(first))
		return;
	for (int fd = first; fd < kbi_slot_limit(); fd++)
		close_one(fd);
	if (!close_shown(first) && REAL(closefrom))
		REAL(closefrom)(first);
}

KBI_POSIX_API void closefrom(int first)
{
	int error = errno;

	first = first > 0 ? first : 0;
	if (close_range((unsigned)first, UINT_MAX, 0)) {
		close_each(first);
		errno = error;
	}
}

/* ---- by number ---------------------------------------------------------------------------- */

bool kbi_call_closes_by_number(long n, const long a[6], long *r)
{
	switch (n) {
	case SYS_close:
		*r = close((int)a[0]);
		break;
#ifdef SYS_dup2
	case SYS_dup2:
		*r = dup2((int)a[0], (int)a[1]);
		break;
#endif
	case SYS_dup3:
		*r = dup3((int)a[0], (int)a[1], (int)a[2]);
		break;
	case SYS_close_range:
		*r = close_range((unsigned)a[0], (unsigned)a[1], (int)a[2]);
		break;
	default:
		return false;
	}
	*r = kbi_call_result(*r);
	return true;
}
