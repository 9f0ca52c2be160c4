/* io/ready.c - threads that wait for descriptors. Contract in ready.h.
 * Callers: io, posix; io/engine calls on_engine_events and on_engine_recheck. Only the functions
 * kbi_ready_wait*, kbi_ready_stay and kbi_ready_closing may switch.
 *
 * A waiter's record lies on its stack, in the queue of the slot. Under the slot's lock the thread
 * that finds an event takes a record out and stores its verdict, its last touch of the record, and
 * later wakes the waiter; a waiter that gives up takes the lock and checks whether it is still
 * queued. So event, deadline, stop and close race, and exactly one wins. An event wakes a single
 * reader and a single writer, and all waiters that only look; for the remaining waiters the
 * descriptor is armed again, which reports at once if there is more. So a thousand threads in
 * accept are woken in turn. */
#include "io/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "core/thread.h"
#include "io/talk.h"
#include "os/sys.h"
#include "sched/source.h"

enum { QUEUED, READY }; /* verdicts of a record */
enum { ROW_MOST = UINT16_MAX };

struct kbi_ready {
	/* under the slot's lock */
	struct kbi_ready *next, *prev;
	struct kbi_task *task; /* constant while queued */
	int fd;
	uint32_t events;
	bool looks;  /* takes no input: more waiters may be woken by the same event */
	/* Records in a row from this one on, itself included; ROW_MOST: so many or more. Read by
	 * tool/look_descriptor.c only */
	uint16_t row;
	a32 verdict;
};

/* ---- the queue: under the slot's lock -------------------------------------------------------- */

static void append_ready_waiter(struct kbi_slot *s, struct kbi_ready *w)
{
	w->next = NULL;
	w->prev = s->last;
	if (w->prev)
		w->prev->next = w;
	else
		a_store_rlx(&s->first, (void *)w);
	s->last = w;
}

static void remove_ready_waiter(struct kbi_slot *s, struct kbi_ready *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		a_store_rlx(&s->first, (void *)w->next);
	if (w->next)
		w->next->prev = w->prev;
	else
		s->last = w->prev;
}

/* Returns the events of all waiters, beside errors and hang-up. */
static uint32_t wanted_events(const struct kbi_slot *s)
{
	uint32_t mask = 0;

	for (const struct kbi_ready *w = a_load_rlx(&s->first); w; w = w->next)
		mask |= w->events;
	return mask;
}

/* Returns the first waiter that the events wake, and takes the events that it uses up, of a reader
 * or a writer, out of *events. */
static struct kbi_ready *pick_ready_waiter(struct kbi_slot *s, uint32_t *events)
{
	for (struct kbi_ready *w = a_load_rlx(&s->first); w; w = w->next) {
		if (!(w->events & *events) && !(*events & (EPOLLERR | EPOLLHUP)))
			continue;
		if (!w->looks)
			*events &= ~(w->events & (EPOLLIN | EPOLLOUT));
		return w;
	}
	return NULL;
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Wakes a thread. me: NULL on a kernel thread that is no VP. */
static void wake_ready_task(struct kbi_vp *me, struct kbi_task *t)
{
	if (me)
		kbi_domain_wake(me, t, false);
	else
		kbi_wait_wake(t);
}

/* Threads that were taken out and are to be woken without the slot's lock. */
struct woken {
	struct kbi_vp *me;
	unsigned n;
	struct kbi_task *task[8];
};

static void wake_all(struct woken *k)
{
	for (unsigned i = 0; i < k->n; i++)
		wake_ready_task(k->me, k->task[i]);
	k->n = 0;
}

/* Takes w out. Where there is no room for its thread, wakes some threads,
 * without the lock meanwhile. */
static void settle_ready_waiter(struct woken *k, struct kbi_slot *s, struct kbi_ready *w)
{
	struct kbi_task *t = w->task;

	remove_ready_waiter(s, w);
	/* release: pairs with the acquire in is_settled. The record is gone */
	a_store_rel(&w->verdict, READY);
	if (kbi_unlikely(k->n == kbi_countof(k->task))) {
		kbi_slot_unlock(s);
		wake_all(k);
		kbi_slot_lock(s);
	}
	k->task[k->n++] = t;
}

static void settle_each(struct woken *k, struct kbi_slot *s)
{
	struct kbi_ready *w;

	while ((w = a_load_rlx(&s->first)) != NULL)
		settle_ready_waiter(k, s, w);
}

static void unlock_and_wake(struct woken *k, struct kbi_slot *s)
{
	kbi_slot_unlock(s);
	wake_all(k);
}

/* Notes that input has come to a descriptor that stays armed without a waiter. At the second time
 * in a row staying is not worth it. */
static void note_news(struct kbi_slot *s, int fd)
{
	uint32_t known = a_load_rlx(&s->known);

	if (known & KBI_SLOT_NEWS)
		kbi_engine_disarm(s, fd);
	else if (known & KBI_SLOT_STAYS)
		a_store_rlx(&s->known, known | KBI_SLOT_NEWS);
	else if (!known)
		kbi_engine_stray();
}

static void on_engine_events(struct kbi_vp *me, int fd, uint32_t events)
{
	struct kbi_slot *s = kbi_slot_find(fd);
	struct woken k = { .me = me };
	struct kbi_ready *w;
	bool any = false;

	if (!s)
		return;
	kbi_slot_lock(s);
	/* a thread that takes all input before urgent data has not taken all */
	if (kbi_unlikely(events & EPOLLPRI))
		a_store_rlx(&s->known, KBI_SLOT_KNOWN);
	for (; (w = pick_ready_waiter(s, &events)) != NULL; any = true)
		settle_ready_waiter(&k, s, w);
	if (!any)
		note_news(s, fd);
	if (a_load_rlx(&s->first) && kbi_engine_arm(s, fd, wanted_events(s)))
		settle_each(&k, s); /* the waiters try, and get the error themselves */
	unlock_and_wake(&k, s);
}

static void on_engine_recheck(struct kbi_vp *me, int fd, bool lost)
{
	struct kbi_slot *s = kbi_slot_find(fd);
	struct woken k = { .me = me };

	if (!s || !(lost || a_load_rlx(&s->first)))
		return;
	kbi_slot_lock(s);
	if (lost)
		a_store_rlx(&s->known, 0);
	if (lost || kbi_engine_check(s, fd, wanted_events(s)))
		settle_each(&k, s);
	unlock_and_wake(&k, s);
}

static void settle_all(int fd)
{
	struct kbi_slot *s = kbi_slot_find(fd);
	struct woken k = { 0 };
	struct kbi_task *self;

	/* the child of fork has no waiters, and perhaps a lock whose owner does not exist */
	if (!s || kbi_unlikely(kbi_engine_forked()))
		return;
	/* sc: pairs with the fence of a waiter in enter_ready_queue, between its queueing and the
	 * engine's look at the descriptor */
	a_fence_sc();
	if (!a_load_rlx(&s->first))
		return;
	self = kbi_self();
	kbi_np_enter(self);
	k.me = self->vp;
	kbi_slot_lock(s);
	settle_each(&k, s);
	unlock_and_wake(&k, s);
	kbi_np_leave(self);
}

/* Disarms a number that stays: it would stay armed as long as the file is open under another number
 * or in another process. */
static void disarm_staying_number(int fd)
{
	struct kbi_slot *s = kbi_slot_find(fd);
	struct kbi_task *self;

	if (!s || kbi_likely(!(a_load_rlx(&s->known) & KBI_SLOT_STAYS)) || kbi_engine_forked())
		return;
	self = kbi_self();
	kbi_np_enter(self);
	kbi_slot_lock(s);
	if (a_load_rlx(&s->known) & KBI_SLOT_STAYS)
		kbi_engine_disarm(s, fd);
	kbi_slot_unlock(s);
	kbi_np_leave(self);
}

/* A waiter holds the file: it asks again at the number with which it goes on, or ends. */
void kbi_ready_closing(int fd)
{
	if (kbi_unlikely(kbi_hold_closing(fd)))
		settle_all(fd);
	disarm_staying_number(fd);
}

void kbi_ready_closed(int fd)
{
	disarm_staying_number(fd);
	kbi_hold_closed(fd);
}

void kbi_ready_retry(int fd)
{
	settle_all(fd);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Ways to wait: takes no input; the soon of kbi_ready_stay. */
enum { LOOKS = 1, SOON = 2 };

/* Ends the wait at once, because input has come since the last wait for it. */
static void hear_news(struct kbi_slot *s, struct kbi_ready *w)
{
	a_store_rlx(&s->known, a_load_rlx(&s->known) & ~(uint32_t)KBI_SLOT_NEWS);
	remove_ready_waiter(s, w);
	a_store_rlx(&w->verdict, READY);
}

/* Returns whether fd is TCP without a layer over it such as TLS, whose
 * receives stop after each record. */
static bool is_stream(int fd)
{
	int protocol = 0;
	char over[16];
	socklen_t n = sizeof(protocol), m = sizeof(over);

	return kbi_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) == 0 &&
		protocol == IPPROTO_TCP &&
	       kbi_sys(SYS_getsockopt, fd, IPPROTO_TCP, TCP_ULP, over, &m) == 0 && m == 0;
}

static int arm_to_stay(struct kbi_slot *s, const struct kbi_ready *w)
{
	int e = kbi_engine_arm_to_stay(s, w->fd);

	if (e)
		return e;
	a_store_rlx(&s->owner, w->task);
	if (is_stream(w->fd))
		a_store_rlx(&s->known, a_load_rlx(&s->known) | KBI_SLOT_STREAM);
	return 0;
}

static int arm_ready_waiter(struct kbi_slot *s, const struct kbi_ready *w, bool soon)
{
	if (!soon || s->last != w || w->prev)
		return kbi_engine_arm(s, w->fd, wanted_events(s));
	if (a_load_rlx(&s->known) & KBI_SLOT_STAYS && a_load_rlx(&s->owner) == w->task)
		return 0;
	/* a different thread may have left input that was reported to it: the kernel looks */
	return arm_to_stay(s, w);
}

/* Returns the slot, locked, of the number that h means, which a close changes
 * under that lock; NULL: none. */
static struct kbi_slot *lock_held(const struct kbi_hold *h, int *fd)
{
	for (;;) {
		struct kbi_slot *s = kbi_slot_make(*fd = kbi_hold_fd(h));

		if (!s)
			return NULL;
		kbi_slot_lock(s);
		if (kbi_likely(kbi_hold_fd(h) == *fd))
			return s;
		kbi_slot_unlock(s);
	}
}

/* Queues and arms a waiter. Returns 0 or an errno value. Inside np brackets. */
static int enter_ready_queue(struct kbi_ready *w, struct kbi_task *self, const struct kbi_hold *h,
	short events, unsigned how, nfds_t row)
{
	struct kbi_slot *s;
	int e;

	w->task = self;
	w->events = (uint16_t)events;
	w->looks = how & LOOKS;
	w->row = row < ROW_MOST ? (uint16_t)row : ROW_MOST;
	a_store_rlx(&w->verdict, QUEUED);
	s = lock_held(h, &w->fd);
	if (!s)
		return w->fd < 0 ? EBADF : ENOMEM;
	a_add_rlx(&kbi_source.waiting, 1);
	a_store_rlx(&s->spared, 0);
	append_ready_waiter(s, w);
	/* sc, with the lock's read-modify-write: pairs with the fence in settle_all */
	a_fence_after_rmw();
	e = arm_ready_waiter(s, w, how & SOON);
	if (e)
		remove_ready_waiter(s, w);
	else if (kbi_unlikely(a_load_rlx(&s->known) & KBI_SLOT_NEWS))
		hear_news(s, w);
	kbi_slot_unlock(s);
	if (e)
		a_sub_rlx(&kbi_source.waiting, 1);
	return e;
}

static bool is_settled(const struct kbi_ready *w)
{
	/* acquire: pairs with the release in settle_ready_waiter */
	return a_load_acq(&w->verdict) != QUEUED;
}

/* Takes the record out of the queue in any case. True: another thread had taken it
 * out. Inside np brackets. */
static bool leave_ready_queue(struct kbi_ready *w)
{
	struct kbi_slot *s = kbi_slot_find(w->fd);
	bool settled = is_settled(w);

	if (!settled) {
		kbi_slot_lock(s);
		settled = is_settled(w);
		if (!settled)
			remove_ready_waiter(s, w);
		kbi_slot_unlock(s);
	}
	a_sub_rlx(&kbi_source.waiting, 1);
	return settled;
}

/* Waits in a kernel thread that is no VP. */
static int wait_outside(const struct pollfd *fds, nfds_t n, struct kbi_until until)
{
	struct timespec left = { 0, 0 };
	long r;
	int e = until.stop ? until.stop(kbi_self()) : 0;

	if (e)
		return e == EAGAIN ? 0 : e;
	if (until.deadline != KBI_FOREVER) {
		uint64_t real = until.deadline & KBI_WAITQ_REAL, at = until.deadline & ~KBI_WAITQ_REAL,
			now = kbi_timer_now();
		struct timespec clock;

		if (real) {
			clock_gettime(CLOCK_REALTIME, &clock);
			now = (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
		}
		at = at > now ? at - now : 0;
		left = kbi_sys_timespec(at);
	}
	r = kbi_sys(SYS_ppoll, fds, n, until.deadline == KBI_FOREVER ? NULL : &left, NULL, 0);
	return r > 0 ? 0 : r == 0 ? ETIMEDOUT : (int)-r;
}

static int sleep_until_settled(struct kbi_task *self, const struct kbi_ready *w,
	struct kbi_until until)
{
	int e = 0;

	while (!is_settled(w) && !e) {
		e = kbi_waitq_sleep(self, until);
		if (e == EAGAIN)
			e = 0;
	}
	return e;
}

int kbi_ready_start(void)
{
	struct kbi_task *self = kbi_self();
	int e;

	kbi_np_enter(self); /* other threads wait for the thread that makes the engine */
	e = kbi_engine_start(on_engine_events, on_engine_recheck);
	kbi_np_leave(self);
	return e;
}

static KBI_NOINLINE int wait_armed(struct kbi_task *self, const struct kbi_hold *h, short events,
	struct kbi_until until, unsigned how)
{
	struct kbi_ready w;
	int e = kbi_ready_start();

	if (e)
		return e;
	kbi_np_enter(self);
	e = enter_ready_queue(&w, self, h, events, how, 1);
	kbi_np_leave(self);
	if (e)
		return e;
	e = sleep_until_settled(self, &w, until);
	kbi_np_enter(self);
	if (leave_ready_queue(&w))
		e = 0;
	kbi_np_leave(self);
	return e;
}

static KBI_NOINLINE int wait_one_outside(int fd, short events, struct kbi_until until)
{
	struct pollfd p = { .fd = fd, .events = events };

	return fd < 0 ? EBADF : wait_outside(&p, 1, until);
}

int kbi_ready_wait(const struct kbi_hold *h, short events, struct kbi_until until, unsigned turn)
{
	struct kbi_task *self = kbi_self();

	if (kbi_unlikely(kbi_ready_outside(self)))
		return wait_one_outside(kbi_hold_fd(h), events, until);
	return turn == 0 && kbi_talk_others_run(self, false) ? 0 :
		wait_armed(self, h, events, until, 0);
}

int kbi_ready_stay(const struct kbi_hold *h, short events, struct kbi_until until, bool soon)
{
	struct kbi_task *self = kbi_self();

	if (kbi_unlikely(kbi_ready_outside(self)))
		return wait_one_outside(kbi_hold_fd(h), events, until);
	return wait_armed(self, h, events, until, soon ? SOON : 0);
}

bool kbi_ready_is_stream(int fd)
{
	const struct kbi_slot *s = kbi_slot_find(fd);

	/* a thread that changes `known` meanwhile makes this thread ask the kernel when it waits */
	return s && a_load_rlx(&s->known) & KBI_SLOT_STREAM && a_load_rlx(&s->owner) == kbi_self_raw();
}

bool kbi_ready_is_shut(int fd)
{
	struct pollfd p = { fd, EPOLLRDHUP, 0 };

	return kbi_sys_poll_now(&p, 1) == 1 && p.revents & EPOLLRDHUP;
}

/* ---- one of several -------------------------------------------------------------------------- */

/* Enters the waiters up to the first failure, whose errno value is stored
 * in *e. Returns how many. */
static nfds_t enter_all_queues(struct kbi_ready *w, struct kbi_task *self, const struct kbi_hold *h,
	const struct pollfd *fds, nfds_t n, int *e)
{
	nfds_t i;

	for (i = 0; i < n; i++) {
		w[i].task = NULL;
		if (fds[i].fd < 0)
			continue;
		*e = enter_ready_queue(&w[i], self, &h[i], fds[i].events, LOOKS, n - i);
		if (*e) {
			w[i].task = NULL;
			break;
		}
	}
	return i;
}

static bool any_settled(const struct kbi_ready *w, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (w[i].task && is_settled(&w[i]))
			return true;
	return false;
}

static bool leave_all_queues(struct kbi_ready *w, nfds_t n)
{
	bool any = false;

	for (nfds_t i = 0; i < n; i++)
		if (w[i].task)
			any |= leave_ready_queue(&w[i]);
	return any;
}

static int wait_any(struct kbi_task *self, struct kbi_ready *w, const struct kbi_hold *h,
	const struct pollfd *fds, nfds_t n, struct kbi_until until)
{
	nfds_t in;
	int e = 0;

	kbi_np_enter(self);
	in = enter_all_queues(w, self, h, fds, n, &e);
	kbi_np_leave(self);
	while (in == n && !e && !any_settled(w, n)) {
		e = kbi_waitq_sleep(self, until);
		if (e == EAGAIN)
			e = 0;
	}
	kbi_np_enter(self);
	/* a regular file is ready, and so is a number that is not open */
	if (leave_all_queues(w, in) || e == EPERM || e == EBADF)
		e = 0;
	kbi_np_leave(self);
	return e;
}

int kbi_ready_wait_any(const struct kbi_hold *h, const struct pollfd *fds, nfds_t n,
	struct kbi_until until, unsigned turn)
{
	enum { ON_STACK = 16 };
	struct kbi_task *self = kbi_self();
	struct kbi_ready some[ON_STACK], *w = some;
	int e;

	if (kbi_ready_outside(self))
		return wait_outside(fds, n, until);
	if (turn == 0 && kbi_talk_others_run(self, false))
		return 0;
	e = kbi_ready_start();
	if (e)
		return e;
	if (n > ON_STACK) {
		w = kbi_sys_map(n * sizeof *w);
		if (!w)
			return ENOMEM;
	}
	e = wait_any(self, w, h, fds, n, until);
	if (w != some)
		kbi_sys_unmap(w, n * sizeof *w);
	return e;
}
