/* posix/call_wait.c - the slow half of a call that may block: other threads run, then the caller
 * sleeps until its descriptor is ready, and tries again; time limits, handlers and cancellation.
 * Contract in call_priv.h.
 * Callers: call_*. Runs on the calling thread. May switch. A cancellation may unwind these
 * frames. */
#include "posix/call_priv.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>

#include "core/yield.h"
#include "io/async.h"
#include "io/ready.h"
#include "os/sys.h"
#include "sched/source.h"

enum { SECOND = 1000000000 };

/* ---- gates -------------------------------------------------------------------------------- */

enum { GATES = 64, GATE_TURNS = 1000 };

static struct gate {
	a32 busy;
} KBI_ALIGNED(KBI_CACHE_LINE) gates[GATES];

bool kbi_call_gate_now(int fd)
{
	/* acquire: pairs with the release in kbi_call_gate_open */
	return !a_xchg_acqrel(&gates[(unsigned)fd % GATES].busy, 1);
}

bool kbi_call_gate(int fd)
{
	a32 *busy = &gates[(unsigned)fd % GATES].busy;

	/* acquire: pairs with the release in kbi_call_gate_open */
	for (int n = 0; a_xchg_acqrel(busy, 1); n++) {
		if (n == GATE_TURNS)
			return false;
		kbi_yield_now();
	}
	return true;
}

void kbi_call_gate_open(int fd)
{
	/* release: pairs with the acquire in kbi_call_gate and kbi_call_gate_now */
	a_store_rel(&gates[(unsigned)fd % GATES].busy, 0);
}

/* ---- why it may end early ----------------------------------------------------------------- */

struct marks {
	uint32_t handled, ending;
	bool settled;
	bool trusts;    /* it sleeps without having asked the kernel */
	uint64_t since; /* ns, when it began to sleep */
};

static struct marks marks_now(void)
{
	return (struct marks){ .handled = kbi_posix_me.handled, .ending = kbi_posix_me.ending };
}

/* Returns the deadline by a socket's time limit; both fields zero mean none. */
static uint64_t limit_of_socket(int fd, int which)
{
	struct timeval t = { 0, 0 };
	socklen_t n = sizeof(t);

	if (kbi_sys(SYS_getsockopt, fd, SOL_SOCKET, which, &t, &n) || (!t.tv_sec && !t.tv_usec))
		return KBI_FOREVER;
	return kbi_timer_after(kbi_timer_ns(t.tv_sec, t.tv_usec * 1000));
}

static void note_waits(const struct kbi_call *c)
{
	unsigned k = kbi_call_known(c->fd);
	bool waits = c->time_limit == SO_RCVTIMEO && c->deadline == KBI_FOREVER;

	if (c->time_limit == SO_RCVTIMEO && waits != !!(k & KBI_CALL_WAITS))
		kbi_call_note(c->fd, k ^ KBI_CALL_WAITS);
}

/* Finds out, once, before the caller sleeps, whether the call is to wait, and how long. 0, or the
 * result. */
static long settle_call(struct kbi_call *c, struct marks *m)
{
	/* acquire: pairs with the a_add_acqrel in kbi_call_changed, after a change of the mode */
	uint32_t changes = a_load_acq(&kbi_call_changes);

	m->settled = true;
	if (c->waits_anyway)
		return 0;
	if (c->looks)
		kbi_call_look_up(c->fd);
	if (kbi_call_nonblocking(c->fd))
		return -EAGAIN;
	if (c->settle) {
		long r = c->settle(c);

		if (r)
			return r;
	}
	if (!c->time_limit)
		return 0;
	c->deadline = limit_of_socket(c->fd, c->time_limit);
	note_waits(c);
	if (c->deadline == KBI_FOREVER) {
		kbi_posix_me.settled_fd = c->fd;
		kbi_posix_me.settled = changes;
		return 0;
	}
	if (m->since)
		c->deadline -= kbi_timer_now() - m->since;
	c->never_restarts = true;
	return 0;
}

/* For TRUST_NS the thread believes its last look at the descriptor (its mode, and that it is
 * armed), if its waits are shorter than that: the thread sleeps, and looks again if nothing has
 * come. Changes by this process are known; a change by another process, or a close that bypasses
 * us, is found that much later. */
enum { TRUST_NS = 500000000 };

static bool trusts_last_look(const struct kbi_call *c)
{
	const struct kbi_posix_thread *me = &kbi_posix_me;

	return me->short_waits && c->time_limit == SO_RCVTIMEO && c->events == POLLIN && !c->settle &&
	       c->deadline == KBI_FOREVER && me->settled_fd == c->fd &&
	       me->settled == a_load_rlx(&kbi_call_changes) &&
	       kbi_call_known(c->fd) & KBI_CALL_WAITS;
}

/* A handler that has run since the last look counts, though no signal is pending any more. */
static int stop_signal(struct kbi_task *self)
{
	return kbi_posix_me.handled != kbi_posix_me.seen ? EINTR : kbi_posix_stop_signal(self);
}

static int stop_reason(struct kbi_task *self)
{
	return kbi_unlikely(kbi_cancel_pending()) ? ECANCELED : stop_signal(self);
}

/* Runs handlers and acts on a cancellation. 0, or the result. */
static long handle_interrupt(struct kbi_call *c, struct marks *m)
{
	long r;

	kbi_signal_resumed();
	if (c->cancels && kbi_unlikely(kbi_cancel_pending())) {
		if (c->done && kbi_cancel_goes_by_place())
			return -EINTR; /* reports the part, as libc does; the next cancellation point acts */
		kbi_cancel_act(); /* after a part, too: the rest may never be wanted */
	}
	kbi_posix_me.seen = m->handled;
	if (kbi_likely(kbi_posix_me.handled == m->handled))
		return 0;
	if (c->done) /* even with SA_RESTART */
		return -EINTR;
	r = m->settled ? 0 : settle_call(c, m);
	if (r)
		return r;
	if (c->never_restarts || kbi_posix_me.ending != m->ending)
		return -EINTR;
	kbi_posix_me.seen = m->handled = kbi_posix_me.handled;
	return 0;
}

/* ---- the loop ----------------------------------------------------------------------------- */

/* False: a handler that has run meanwhile has ended the hold. */
static bool is_held(const struct kbi_call *c)
{
	return kbi_posix_me.held == c->holds;
}

static inline void drop_copy(struct kbi_call *c)
{
	if (kbi_likely(!c->out))
		return;
	kbi_call_note(c->out - 1, KBI_CALL_UNKNOWN);
	kbi_own_drop(c->out - 1);
	c->out = 0;
}

static inline void release_hold(struct kbi_call *c)
{
	drop_copy(c);
	if (!is_held(c))
		return;
	kbi_posix_me.held = NULL;
	if (kbi_unlikely(c->set != NULL)) {
		kbi_hold_end_all(c->holds, c->n_set);
		return;
	}
	if (kbi_unlikely(c->holds->own))
		kbi_call_note(kbi_hold_fd(c->holds), KBI_CALL_UNKNOWN);
	kbi_hold_end(c->holds);
}

/* Binds the call to the file that its number means now. 0, or the result. */
static long hold_file(struct kbi_call *c)
{
	int e = 0;

	if (c->set) {
		kbi_hold_begin_all(c->holds, c->set, c->n_set);
		kbi_posix_me.held = c->holds;
		kbi_posix_me.n_held = c->n_set;
		return 0;
	}
	c->fd = c->number;
	e = kbi_hold_begin(c->holds, c->number, true, c->done ? &c->since : NULL);
	if (kbi_unlikely(e == EBADF || e == EAGAIN))
		return -EBADF;
	kbi_posix_me.held = c->holds;
	kbi_posix_me.n_held = 1;
	return 0;
}

/* Begins an attempt: other threads cannot run from here on. */
static inline void step_in(struct kbi_call *c)
{
	kbi_hold_attempt();
	c->inside = true;
	if (!c->set)
		c->fd = kbi_hold_fd(c->holds);
}

static inline void step_back(struct kbi_call *c)
{
	if (kbi_likely(c->inside))
		kbi_hold_attempted();
	c->inside = false;
}

int kbi_call_step_out(struct kbi_call *c)
{
	int own;

	if (!c->inside)
		return c->fd;
	own = kbi_own_copy(c->fd);
	if (own < 0)
		return c->fd;
	c->out = own + 1;
	step_back(c);
	return own;
}

bool kbi_call_step_in(struct kbi_call *c)
{
	if (!c->out)
		return false;
	drop_copy(c);
	step_in(c);
	return c->fd >= 0;
}

/* Sleeps until the descriptor is ready. 0: try again; else the result. */
static long sleep_until_ready(struct kbi_call *c, const struct marks *m, unsigned turn,
	uint64_t deadline)
{
	enum { PAUSE_NS = 1000000 };
	struct kbi_until until = { deadline, c->cancels ? stop_reason : stop_signal };
	uint64_t soon;
	int e;

	/* other threads have run already, so it is never the thread's first turn */
	e = c->set ? kbi_ready_wait_any(c->holds, c->set, c->n_set, until, turn + 1) :
		     kbi_ready_stay(c->holds, c->events, until, m->trusts);
	switch (e) {
	case EBADF:
		return -EBADF;
	case 0:
	case ETIMEDOUT:
	case EAGAIN:
	case EINTR:
	case ECANCELED:
		return 0;
	default: /* no memory, or the kernel has no more places: look now and then */
		soon = kbi_timer_now() + PAUSE_NS;
		until.deadline = until.deadline < soon ? until.deadline : soon;
		kbi_waitq_sleep(kbi_self(), until);
		return 0;
	}
}

static bool is_call_over(const struct kbi_call *c)
{
	if (c->deadline == KBI_FOREVER)
		return false;
	if (c->deadline & KBI_WAITQ_REAL)
		return kbi_timer_passed(CLOCK_REALTIME, (int64_t)((c->deadline & ~KBI_WAITQ_REAL) / SECOND),
					(long)((c->deadline & ~KBI_WAITQ_REAL) % SECOND));
	return kbi_timer_now() >= c->deadline;
}

/* Stores the time until which the call may sleep; 0: its time is over. Returns 0, or the result if
 * it must not sleep. */
static long limit_sleep(struct kbi_call *c, struct marks *m, unsigned turn, uint64_t *until)
{
	long r = 0;

	if (turn == 0)
		m->since = kbi_timer_now();
	m->trusts = !m->settled && turn == 0 && trusts_last_look(c);
	if (m->trusts) {
		*until = m->since + TRUST_NS;
		return 0;
	}
	if (!m->settled) {
		step_in(c);
		r = settle_call(c, m);
		step_back(c);
	}
	*until = is_call_over(c) ? 0 : c->deadline;
	return r;
}

/* ---- luck --------------------------------------------------------------------------------- */

/* A second try after other threads have run pays if those threads bring the data: in conversations.
 * If the data comes from elsewhere the try is in vain. A success outweighs many failures, and one
 * wait in eight is tried in any case. Such a try follows a question to the kernel for events, so
 * that a partner that sleeps as well gets its turn. */
enum { LUCK_WORTH = 12, LUCK_MOST = 24, LUCK_TRY = 8 };

static bool expects_luck(const struct kbi_call *c)
{
	/* a call that made no first try, on a descriptor that may have become non-blocking, is tried */
	if (kbi_posix_me.luck || (c->empty && !trusts_last_look(c)))
		return true;
	if (++kbi_posix_me.waits % LUCK_TRY)
		return false;
	kbi_talk_ask(kbi_self());
	return true;
}

static void note_luck(bool had)
{
	uint8_t *luck = &kbi_posix_me.luck;

	if (had)
		*luck = *luck + LUCK_WORTH < LUCK_MOST ? *luck + LUCK_WORTH : LUCK_MOST;
	else if (*luck)
		--*luck;
}

static bool has_drained(int fd)
{
	return kbi_posix_me.drained == fd + 1 && kbi_ready_is_stream(fd);
}

static bool is_peer_shut(const struct kbi_call *c)
{
	return c->time_limit == SO_RCVTIMEO && c->events == POLLIN && !c->done &&
		kbi_ready_is_shut(c->fd);
}

static inline __attribute__((always_inline)) long attempt_inside(struct kbi_call *c, unsigned turn)
{
	long r;

	if (kbi_unlikely(!c->set && c->fd < 0))
		return -EBADF;
	r = c->attempt(c);
	if (turn == 0 && !kbi_call_again(r)) {
		note_luck(true);
		if (kbi_likely(!c->set && r > 0))
			kbi_talk_spared(c->holds);
	} else if (turn == 0)
		note_luck(false);
	else if (r == -EAGAIN && is_peer_shut(c)) {
		c->shut = true;
		r = c->attempt(c);
	}
	return r;
}

static inline __attribute__((always_inline)) long attempt_call(struct kbi_call *c, unsigned turn,
	bool lucky)
{
	long r;

	/* a thread that sleeps without asking the kernel must know that all data is taken */
	if (turn == 0 && !lucky && (!trusts_last_look(c) || has_drained(c->fd)))
		return -EAGAIN;
	step_in(c);
	r = attempt_inside(c, turn);
	step_back(c);
	if (kbi_call_again(r))
		drop_copy(c);
	return r;
}


static inline __attribute__((always_inline)) long run_call(struct kbi_call *c)
{
	struct marks m = marks_now();
	uint64_t until;
	bool lucky;
	long r;

	/* O_NONBLOCK is a guess, so the kernel is asked first: a program that polls many such
	 * descriptors must not lose its turn at each */
	if (c->at_once || (!c->waits_anyway && (kbi_call_flags(c->fd) & KBI_CALL_NONBLOCK) &&
		kbi_call_nonblocking(c->fd)))
		return -EAGAIN;
	r = hold_file(c);
	if (r)
		return r;
	lucky = expects_luck(c);
	kbi_yield_now();
	for (unsigned turn = 0;; turn++) {
		r = handle_interrupt(c, &m);
		if (!r && kbi_unlikely(!is_held(c)))
			r = hold_file(c);
		if (r)
			return r;
		r = attempt_call(c, turn, lucky);
		if (turn > 0)
			kbi_posix_me.short_waits = kbi_timer_now() - m.since < TRUST_NS;
		if (!kbi_call_again(r))
			return r;
		r = limit_sleep(c, &m, turn, &until);
		if (r || !until)
			return r ? r : c->late;
		c->slept = true;
		r = sleep_until_ready(c, &m, turn, until);
		if (r)
			return r;
	}
}

static void cleanup_hold(struct kbi_call **c)
{
	release_hold(*c);
	(*c)->holds = NULL;
	(*c)->copy = NULL;
}

static inline __attribute__((always_inline)) long run_to_end(struct kbi_call *c)
{
	/* a cancellation may unwind it */
	struct kbi_call *inside __attribute__((cleanup(cleanup_hold), unused)) = c;

	return run_call(c);
}

struct room {
	void *p;
	size_t bytes;
};

static void give_room_back(struct room *r)
{
	if (r->p)
		kbi_sys_unmap(r->p, r->bytes);
}

/* Runs a call on a set. */
static KBI_NOINLINE long run_many(struct kbi_call *c)
{
	enum { FEW = 16 };
	struct kbi_hold few[FEW];
	struct pollfd copy[FEW];
	struct room room __attribute__((cleanup(give_room_back))) =
		{ NULL, c->n_set * (sizeof *few + sizeof *copy) };

	if (kbi_likely(c->n_set <= FEW)) {
		memset(few, 0, sizeof few);
		c->holds = few;
		c->copy = copy;
		return run_to_end(c);
	}
	room.p = kbi_sys_map(room.bytes);
	if (!room.p)
		return -ENOMEM;
	c->holds = room.p;
	c->copy = (struct pollfd *)(void *)(c->holds + c->n_set);
	return run_to_end(c);
}

static inline __attribute__((always_inline)) long run_one(struct kbi_call *c)
{
	struct kbi_hold hold;
	long r;

	c->holds = &hold;
	r = run_to_end(c);
	c->holds = NULL;
	return r;
}

/* Notes a receive for the guess whether the next one finds something at once. */
static inline void note_talk(const struct kbi_call *c, uint32_t ticks)
{
	if (!c->empty || c->slept)
		kbi_talk_goes_on(&kbi_posix_me.talk, (uint32_t)c->number);
	else if (kbi_unlikely(kbi_talk_ticks() != ticks))
		kbi_talk_is_over(&kbi_posix_me.talk, (uint32_t)c->number);
}

long kbi_call_wait(struct kbi_call *c)
{
	uint32_t ticks = kbi_talk_ticks();
	long r;

	c->number = c->fd;
	kbi_slice_note(kbi_self());
	r = kbi_unlikely(c->set != NULL) ? run_many(c) : run_one(c);
	c->fd = c->number; /* it may be that of a copy, which is closed */
	if (kbi_likely(r > 0 && c->time_limit == SO_RCVTIMEO))
		note_talk(c, ticks);
	if (kbi_likely(r >= 0) || !c->done)
		return r;
	/* runs the handler of a signal that the rest has raised: the result does not report that */
	kbi_signal_resumed();
	return (long)c->done;
}

/* ---- copies ------------------------------------------------------------------------------- */

void kbi_call_keep(struct kbi_call_keeps *k, int *fd)
{
	int own = kbi_own_copy(*fd);

	if (own < 0)
		return;
	k->own[k->own[0] >= 0] = own;
	*fd = own;
}

void kbi_call_keep_no_more(struct kbi_call_keeps *k)
{
	int saved = errno;

	for (int i = 0; i < 2; i++) {
		if (k->own[i] < 0)
			continue;
		kbi_call_note(k->own[i], KBI_CALL_UNKNOWN);
		kbi_own_drop(k->own[i]);
		k->own[i] = -1;
	}
	errno = saved;
}

/* ---- waiting only ------------------------------------------------------------------------- */

static long try_readiness(struct kbi_call *c)
{
	return kbi_sys_is_ready(c->fd, c->events) ? 0 : -EAGAIN;
}

long kbi_call_await(int fd, short events, bool cancels)
{
	struct kbi_call c = KBI_CALL(.attempt = try_readiness, .fd = fd, .events = events,
		.cancels = cancels);
	long r = try_readiness(&c);

	return kbi_call_again(r) ? kbi_call_wait(&c) : r;
}

/* ---- connect ------------------------------------------------------------------------------ */

static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t n = sizeof(protocol);

	return kbi_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) == 0 &&
		protocol == IPPROTO_TCP;
}

struct connecting {
	struct kbi_call c;
	const struct sockaddr *to;
	socklen_t len;
};

/* Returns the kernel's verdict. Once the socket is connected, or refused, a second connect returns
 * at once. */
static long try_connected(struct kbi_call *c)
{
	struct connecting *x = (struct connecting *)(void *)c;

	return kbi_sys_is_ready(c->fd, POLLOUT) ? kbi_sys(SYS_connect, c->fd, x->to, x->len) : -EAGAIN;
}

bool kbi_call_connect(int fd, const struct sockaddr *to, socklen_t len, bool cancels, long *r)
{
	KBI_CALL_KEEPS(keeps);
	struct connecting x = { KBI_CALL(.attempt = try_connected, .fd = fd, .events = POLLOUT,
		.cancels = cancels, .time_limit = SO_SNDTIMEO), to, len };

	if (!is_tcp(fd) || kbi_call_nonblocking(fd))
		return false;
	if (cancels)
		kbi_cancel_test();
	kbi_call_keep(&keeps, &x.c.fd);
	if (!kbi_async_begin_connect(x.c.fd, to, len, r))
		return false;
	x.c.late = -EINPROGRESS;
	if (*r == -EINPROGRESS)
		*r = kbi_call_wait(&x.c);
	return true;
}
