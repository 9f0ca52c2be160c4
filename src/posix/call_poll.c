/* posix/call_poll.c - poll, select, epoll_wait and their variants: a try without time; if nothing
 * is ready the thread sleeps until a descriptor of the set is ready, and tries again. Any handler
 * of the program ends the call, even with SA_RESTART. A signal that the call's own mask lets
 * through is delivered only if nothing is ready, as the kernel does.
 * Contract in call_priv.h. Callers: programs; call_number. May switch; cancellation points. */
#include "posix/call_priv.h"
#include "posix/signal_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "os/fd.h"
#include "os/sys.h"

enum { SECOND = 1000000000, MILLION = 1000000, MASK_BYTES = 8, FEW = 64 };

/* A call with the arguments of its attempts. */
struct polling {
	struct kbi_call c;
	void *what; /* struct pollfd *, struct epoll_event *, struct sets * */
	int n;
};

static struct polling *polling_of(struct kbi_call *c)
{
	return (struct polling *)(void *)c;
}

/* ---- time --------------------------------------------------------------------------------- */

/* Returns t in ns; KBI_FOREVER: no limit. */
static uint64_t span_of(const struct timespec *t)
{
	return t ? kbi_timer_ns(t->tv_sec, t->tv_nsec) : KBI_FOREVER;
}

static uint64_t span_of_ms(int ms)
{
	return ms < 0 ? KBI_FOREVER : (uint64_t)ms * 1000000u;
}

static uint64_t deadline_after(uint64_t span)
{
	return span == KBI_FOREVER ? span : kbi_timer_after(span);
}

static bool is_bad_timeout(const struct timespec *t)
{
	return t && (!kbi_posix_time_ok(t) || t->tv_sec < 0);
}

/* ---- masks -------------------------------------------------------------------------------- */

struct lent {
	struct kbi_task *self;
	uint64_t mask;
};

static void take_mask_back(void *lent)
{
	int saved = errno;

	kbi_signal_set_mask(((struct lent *)lent)->self, ((struct lent *)lent)->mask);
	errno = saved;
}

static bool lets_signal_in(struct lent *l, const sigset_t *set)
{
	uint32_t before = kbi_posix_me.handled;

	kbi_signal_set_mask(l->self, kbi_signal_from_set(set));
	return kbi_posix_me.handled != before;
}

/* Waits with the mask `set`, after a try that found nothing ready. */
static KBI_NOINLINE long wait_with_mask(struct kbi_call *c, const sigset_t *set, bool no_time)
{
	struct lent l = { kbi_self_raw(), 0 };
	long r;

	l.mask = a_load_rlx(kbi_signal_mask(l.self));
	pthread_cleanup_push(take_mask_back, &l);
	if (lets_signal_in(&l, set))
		r = -EINTR;
	else
		r = no_time ? c->late : kbi_call_wait(c);
	pthread_cleanup_pop(1);
	return r;
}

/* Tries, then waits. Reads the clock only when it has to wait. */
static long poll_or_wait(struct kbi_call *c, uint64_t span, const sigset_t *set, bool cancels)
{
	long r;

	c->cancels = cancels;
	c->never_restarts = c->waits_anyway = true;
	c->late = 0;
	if (cancels)
		kbi_cancel_test();
	r = c->attempt(c);
	if (!kbi_call_again(r)) {
		kbi_call_has_taken(r);
		return r;
	}
	c->deadline = deadline_after(span);
	if (set)
		return wait_with_mask(c, set, span == 0);
	return span ? kbi_call_wait(c) : 0;
}

/* ---- poll --------------------------------------------------------------------------------- */

static const struct pollfd nothing[1]; /* a set without descriptors: only time passes */

static long try_poll(struct kbi_call *c)
{
	/* the program's set, which is written to */
	struct pollfd *fds = (struct pollfd *)(uintptr_t)c->set;
	long r = c->holds ? kbi_hold_poll(c->holds, fds, c->n_set, c->copy)
		: kbi_sys_poll_now(fds, c->n_set);

	return r ? r : -EAGAIN;
}

static long poll_by(struct pollfd *fds, nfds_t n, uint64_t span, const sigset_t *set, bool cancels)
{
	struct kbi_call c = { .attempt = try_poll, .fd = -1, .set = n ? fds : nothing, .n_set = n };

	return poll_or_wait(&c, span, set, cancels);
}

long kbi_call_poll(struct pollfd *fds, nfds_t n, int ms, bool cancels)
{
	return poll_by(fds, n, span_of_ms(ms), NULL, cancels);
}

long kbi_call_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *set,
	bool cancels)
{
	return is_bad_timeout(t) ? -EINVAL : poll_by(fds, n, span_of(t), set, cancels);
}

/* ---- epoll -------------------------------------------------------------------------------- */

static long try_epoll(struct kbi_call *c)
{
	struct polling *p = polling_of(c);
	long r = kbi_sys(SYS_epoll_pwait, c->fd, p->what, p->n, 0, NULL, MASK_BYTES);

	return r ? r : -EAGAIN;
}

static long epoll_by(int fd, struct epoll_event *ev, int n, uint64_t span, const sigset_t *set,
	bool cancels)
{
	struct polling p = { { .attempt = try_epoll, .fd = fd, .events = POLLIN }, ev, n };

	return poll_or_wait(&p.c, span, set, cancels);
}

long kbi_call_epoll_wait(int fd, struct epoll_event *ev, int n, int ms, const sigset_t *set,
	bool cancels)
{
	return epoll_by(fd, ev, n, span_of_ms(ms), set, cancels);
}

long kbi_call_epoll_wait2(int fd, struct epoll_event *ev, int n, const struct timespec *t,
	const sigset_t *set, bool cancels)
{
	return is_bad_timeout(t) ? -EINVAL : epoll_by(fd, ev, n, span_of(t), set, cancels);
}

/* ---- select ------------------------------------------------------------------------------- */

/* select's question and answer are in the same memory, so the question is kept. */
struct sets {
	int n;
	size_t bytes;
	fd_set *set[3];
	char *asked;         /* a copy of the three sets */
	struct pollfd *fds;  /* the question in poll's form, for the wait */
	void *memory;
	char space[3 * sizeof(fd_set)];
	struct pollfd few[FEW];
};

static void restore_question(const struct sets *s)
{
	for (int i = 0; i < 3; i++)
		if (s->set[i])
			memcpy(s->set[i], s->asked + (size_t)i * s->bytes, s->bytes);
}

static bool is_fd_asked(const struct sets *s, int which, int fd)
{
	const char *bytes = s->asked + (size_t)which * s->bytes;

	/* the kernel's words are longs, on big-endian machines, too */
	return s->set[which] && ((const unsigned long *)(const void *)bytes)[fd / 64] >> fd % 64 & 1;
}

/* poll(2)'s events as the kernel translates them for select. */
static const short answers[3] = { POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR,
				  POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR, POLLPRI };

static long set_answer(const struct sets *s, const struct pollfd *p)
{
	long n = 0;

	for (int i = 0; i < 3; i++) {
		if (!s->set[i] || !is_fd_asked(s, i, p->fd) || !(p->revents & answers[i]))
			continue;
		((unsigned long *)(void *)s->set[i])[p->fd / 64] |= 1ul << p->fd % 64;
		n++;
	}
	return n;
}

/* Tries, where some numbers mean other files by now. */
static long try_moved_select(struct kbi_call *c, const struct sets *s)
{
	long r = kbi_hold_poll(c->holds, s->fds, c->n_set, c->copy), n = 0;

	if (r < 0)
		return r;
	for (int i = 0; i < 3; i++)
		if (s->set[i])
			memset(s->set[i], 0, s->bytes);
	for (nfds_t i = 0; i < c->n_set; i++) {
		if (s->fds[i].revents & POLLNVAL)
			return -EBADF;
		n += set_answer(s, &s->fds[i]);
	}
	return n ? n : -EAGAIN;
}

static long try_select(struct kbi_call *c)
{
	struct sets *s = polling_of(c)->what;
	long r;

	if (kbi_unlikely(c->holds && kbi_hold_moved(c->holds, c->set, c->n_set)))
		return try_moved_select(c, s);
	do {
		struct timespec none = { 0, 0 };

		restore_question(s);
		r = kbi_sys(SYS_pselect6, s->n, s->set[0], s->set[1], s->set[2], &none, NULL);
	} while (kbi_unlikely(r == -EINTR)); /* by a signal of the runtime, as in kbi_sys_poll_now */
	return r ? r : -EAGAIN;
}

/* Returns how many bits the kernel looks at; the program's sets may end there. */
static int bits_used(int n)
{
	char text[4096];
	const char *at;
	long fd, got;
	int most;

	if (n <= FD_SETSIZE)
		return n;
	KBI_FD_BRIEFLY();
	fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return n;
	got = kbi_sys(SYS_read, fd, text, sizeof(text) - 1);
	kbi_sys(SYS_close, fd);
	text[got > 0 ? got : 0] = 0;
	at = strstr(text, "FDSize:");
	most = at ? atoi(at + 7) : n;
	return n < most ? n : most;
}

static short events_of(const struct sets *s, int fd)
{
	return (short)((is_fd_asked(s, 0, fd) ? POLLIN : 0) |
		(is_fd_asked(s, 1, fd) ? POLLOUT : 0) |
		(is_fd_asked(s, 2, fd) ? POLLPRI : 0));
}

static nfds_t fill_pollfds(struct sets *s)
{
	nfds_t n = 0;

	for (int fd = 0; fd < s->n; fd++) {
		short events = events_of(s, fd);

		if (events)
			s->fds[n++] = (struct pollfd){ fd, events, 0 };
	}
	return n;
}

/* Copies the question. 0 or ENOMEM. */
static int open_sets(struct sets *s, int n, fd_set *in, fd_set *out, fd_set *x)
{
	size_t fds;

	s->n = bits_used(n);
	s->bytes = (size_t)(s->n + 63) / 64 * 8;
	s->set[0] = in;
	s->set[1] = out;
	s->set[2] = x;
	s->asked = s->space;
	s->fds = s->few;
	s->memory = NULL;
	fds = s->n <= FEW ? 0 : (size_t)s->n * sizeof(*s->fds);
	if (s->bytes * 3 > sizeof(s->space) || fds) {
		s->memory = malloc(s->bytes * 3 + fds);
		if (!s->memory)
			return ENOMEM;
		s->fds = s->memory;
		s->asked = (char *)s->memory + fds;
	}
	for (int i = 0; i < 3; i++)
		if (s->set[i])
			memcpy(s->asked + (size_t)i * s->bytes, s->set[i], s->bytes);
	return 0;
}

static void close_sets(void *s)
{
	int saved = errno;

	free(((struct sets *)s)->memory);
	errno = saved;
}

static KBI_NOINLINE long select_by(int n, fd_set *in, fd_set *out, fd_set *x, uint64_t span,
	const sigset_t *mask, bool cancels)
{
	struct sets s KBI_ALIGNED(8);
	struct polling p = { { .attempt = try_select, .fd = -1 }, &s, 0 };
	long r;

	if (n < 0)
		return -EINVAL;
	if (open_sets(&s, n, in, out, x))
		return -ENOMEM;
	pthread_cleanup_push(close_sets, &s);
	p.c.n_set = fill_pollfds(&s);
	p.c.set = s.fds;
	r = poll_or_wait(&p.c, span, mask, cancels);
	/* then the sets are unchanged, and a program that goes on after a handler asks with them
	 * again */
	if (r < 0)
		restore_question(&s);
	pthread_cleanup_pop(1);
	return r;
}

void kbi_call_count_down(struct timespec *t, uint64_t begun)
{
	struct timespec from = kbi_sys_timespec(begun), now = kbi_sys_timespec(kbi_timer_now()), end;

	/* overflow: the kernel's end of time, in whole seconds */
	if (__builtin_add_overflow(t->tv_sec, from.tv_sec + 1, &end.tv_sec)) {
		end = (struct timespec){ INT64_MAX, 0 };
	} else {
		end.tv_nsec = t->tv_nsec + from.tv_nsec;
		end.tv_sec -= end.tv_nsec < SECOND;
		end.tv_nsec %= SECOND;
	}
	if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec)) {
		*t = (struct timespec){ 0, 0 };
		return;
	}
	t->tv_sec = end.tv_sec - now.tv_sec - (end.tv_nsec < now.tv_nsec);
	t->tv_nsec = end.tv_nsec - now.tv_nsec + (end.tv_nsec < now.tv_nsec) * SECOND;
}

long kbi_call_select(int n, fd_set *in, fd_set *out, fd_set *x, struct timeval *t, bool cancels)
{
	struct timespec length;
	uint64_t begun;
	long r;

	if (!t)
		return select_by(n, in, out, x, KBI_FOREVER, NULL, cancels);
	if (t->tv_sec < 0 || t->tv_usec < 0 ||
	    __builtin_add_overflow(t->tv_sec, t->tv_usec / MILLION, &length.tv_sec))
		return -EINVAL;
	length.tv_nsec = t->tv_usec % MILLION * 1000;
	begun = kbi_timer_now();
	r = select_by(n, in, out, x, span_of(&length), NULL, cancels);
	kbi_call_count_down(&length, begun); /* as Linux does */
	*t = (struct timeval){ length.tv_sec, length.tv_nsec / 1000 };
	return r;
}

long kbi_call_pselect(int n, fd_set *in, fd_set *out, fd_set *x, const struct timespec *t,
	const sigset_t *mask, bool cancels)
{
	if (is_bad_timeout(t))
		return -EINVAL;
	return select_by(n, in, out, x, span_of(t), mask, cancels);
}

/* ---- the functions ------------------------------------------------------------------------ */

#define POLL(result, name, parameters, arguments, direct, work, cancels, why) \
	KBI_CALL_DEFINE(poll, result, name, parameters, arguments, direct, work)
#include "posix/call.def"

KBI_CALL_ALIAS(__poll, poll, kbi_call_poll_poll);
KBI_CALL_ALIAS(__select, select, kbi_call_poll_select);
