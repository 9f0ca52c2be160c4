/* io/async.c - io_uring for the whole process. Contract in async.h.
 * Callers: io/call, io/file, posix. Runs on the asking thread's stack; answers
 * are taken on VPs that poll.
 *
 * One ring: it is filled under `filling` and reaped under `reaping`, submitted to the kernel
 * outside both. A request lies on the asking thread's stack. The thread waits in any case until the
 * answer has come, for the kernel reads and writes its buffers until then. Requests end with
 * ECANCELED when the kernel thread that submitted them ends; they are repeated. */
#include "io/async.h"

#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>
#include <sys/stat.h>

#include "base/option.h"
#include "core/handoff.h"
#include "core/worker_pool.h"
#include "io/engine.h"
#include "io/ready.h"
#include "os/lock.h"
#include "os/sys.h"
#include "os/uring.h"
#include "sched/source.h"

/* ---- as a system call ------------------------------------------------------------------------ */

static long make_transfer_call(const struct kbi_async *a)
{
	bool out = a->what == KBI_ASYNC_WRITEV;

	if (a->offset == UINT64_MAX)
		return kbi_sys(out ? SYS_writev : SYS_readv, a->fd, a->address, a->length);
	/* the kernel takes the offset in halves; the upper half counts where a long is short */
	return kbi_sys(out ? SYS_pwritev : SYS_preadv, a->fd, a->address, a->length, a->offset,
		a->offset >> 32);
}

static long make_async_call(const struct kbi_async *a)
{
	const long address = (long)a->address;

	switch (a->what) {
	case KBI_ASYNC_READV:
	case KBI_ASYNC_WRITEV:
		return make_transfer_call(a);
	case KBI_ASYNC_FSYNC:
		return kbi_sys(a->flags ? SYS_fdatasync : SYS_fsync, a->fd);
	case KBI_ASYNC_OPEN:
		return kbi_sys(SYS_openat, AT_FDCWD, address, a->flags, a->length);
	case KBI_ASYNC_CONNECT:
		return kbi_sys(SYS_connect, a->fd, address, a->offset);
	}
	return -EINVAL;
}

/* Makes the call on the thread's own kernel thread, which the VP leaves if the call lasts. The
 * caller has begun the hand-off. */
static long call_by_hand(const struct kbi_async *a)
{
	long r;

	do
		r = make_async_call(a);
	while (r == -EINTR && a->what != KBI_ASYNC_CONNECT);
	kbi_handoff_end();
	return r;
}

static long call_with_handoff(const struct kbi_async *a, enum kbi_handoff_hint hint)
{
	kbi_handoff_begin(hint);
	return call_by_hand(a);
}

long kbi_async_here(const struct kbi_async *a)
{
	return call_with_handoff(a, KBI_HANDOFF_PERHAPS);
}

/* ---- what is known of files ------------------------------------------------------------------ */

enum { NUMBERS = 4096 };
enum { LOOKED_AT = 1, SAFE = 2 /* O_DSYNC, O_SYNC */, DIRECT = 4 };
static a8 files[NUMBERS];

/* Returns whether fd is a file or disk: elsewhere O_DIRECT and O_DSYNC have different meanings. */
static KBI_NOINLINE bool is_on_disk(int fd)
{
	int saved = errno;
	struct stat st;
	bool is = fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));

	errno = saved;
	return is;
}

static KBI_NOINLINE unsigned read_file_kind(int fd)
{
	long flags = kbi_sys(SYS_fcntl, fd, F_GETFL);
	unsigned kind = LOOKED_AT;

	if (kbi_unlikely(flags >= 0 && flags & (O_DIRECT | O_DSYNC)) && is_on_disk(fd))
		kind |= (flags & O_DIRECT ? DIRECT : 0) | (flags & O_DSYNC ? SAFE : 0);
	a_store_rlx(&files[fd], (uint8_t)kind);
	return kind;
}

static inline unsigned file_kind(int fd)
{
	unsigned kind = (unsigned)fd < NUMBERS ? a_load_rlx(&files[fd]) : LOOKED_AT;

	return kbi_likely(kind != 0) ? kind : read_file_kind(fd);
}

bool kbi_async_is_direct(int fd)
{
	return kbi_unlikely(file_kind(fd) & DIRECT);
}

bool kbi_async_is_safe(int fd)
{
	return kbi_unlikely(file_kind(fd) & SAFE);
}

void kbi_async_new_number(int fd)
{
	if ((unsigned)fd < NUMBERS)
		a_store_rlx(&files[fd], 0);
}

/* ---- answers --------------------------------------------------------------------------------- */

#if KBI_HAVE_URING

enum { ENTRIES = 256 };

/* A request on its way. */
struct asked {
	struct kbi_task *task;
	int32_t result;
	a32 answered;
};

static struct {
	a32 stage; /* 0 not tried, 1 being made, 2 there, 3 none, or no longer */
	a32 filling KBI_ALIGNED(KBI_CACHE_LINE);
	a32 reaping KBI_ALIGNED(KBI_CACHE_LINE);
	struct kbi_uring uring;
} ring;

static void answer_request(struct kbi_vp *me, struct asked *q, int32_t result)
{
	struct kbi_task *t;

	/* acquire: pairs with the release in call_through_ring. The kernel in between orders all;
	 * ThreadSanitizer does not know that */
	if (a_load_acq(&q->answered))
		return;
	t = q->task;
	q->result = result;
	/* release: pairs with the acquire in is_answered. The record is gone */
	a_store_rel(&q->answered, 1);
	kbi_domain_wake(me, t, false);
}

static void reap_answers(struct kbi_vp *me)
{
	uint64_t data;
	int32_t result;

	while (kbi_uring_answered(&ring.uring)) {
		bool any;

		/* acquire: pairs with the release below */
		if (a_load_rlx(&ring.reaping) || a_xchg_acq(&ring.reaping, 1))
			return; /* the reaping VP looks again when it has finished */
		any = kbi_uring_reap(&ring.uring, &data, &result);
		/* release: pairs with the acquire above */
		a_store_rel(&ring.reaping, 0);
		if (any && data)
			answer_request(me, (struct asked *)(uintptr_t)data, result);
	}
}

static bool start_ring(void)
{
	uint32_t none = 0;

	/* acquire: pairs with the release in kbi_lock_tell below */
	if (kbi_likely(a_load_acq(&ring.stage) >= 2))
		return a_load_rlx(&ring.stage) == 2;
	if (a_cas_acq(&ring.stage, &none, 1)) {
		bool there = kbi_options.io_uring && kbi_uring_open(&ring.uring, ENTRIES) == 0;

		if (there && kbi_engine_join(ring.uring.fd, reap_answers)) {
			kbi_uring_close(&ring.uring);
			there = false;
		}
		if (there)
			kbi_uring_workers(&ring.uring, kbi_options.spares ? kbi_options.spares : 1);
		kbi_lock_tell(&ring.stage, there ? 2 : 3);
	}
	kbi_lock_await(&ring.stage, 1);
	return start_ring();
}

static bool start_ring_in_np(struct kbi_task *self)
{
	bool there;

	kbi_np_enter(self); /* other threads wait for the thread that makes the ring */
	there = start_ring();
	kbi_np_leave(self);
	return there;
}

/* ---- buffers that the kernel knows ----------------------------------------------------------- */

enum { BUFFERS = 256, MOST = 0x7ffff000 }; /* MOST bytes at once, as in the kernel */

/* A reader during a change may see a mixture: the kernel checks each
 * request against its own table. */
static struct {
	a32 n, changing;
	struct {
		a64 from, bytes;
	} at[BUFFERS];
} known;

/* Returns the number of the buffer in which v lies; -1: none. */
static int buffer_number(const struct iovec *v)
{
	uint64_t from = (uintptr_t)v->iov_base;

	for (uint32_t i = 0, n = a_load_rlx(&known.n); i < n; i++) {
		uint64_t before = from - a_load_rlx(&known.at[i].from),
			bytes = a_load_rlx(&known.at[i].bytes);

		if (before < bytes && v->iov_len <= bytes - before)
			return (int)i;
	}
	return -1;
}

bool kbi_async_is_known(const struct iovec *v)
{
	return kbi_unlikely(a_load_rlx(&known.n)) && buffer_number(v) >= 0;
}

static int register_buffers(const struct iovec *v, unsigned n)
{
	int e = kbi_uring_buffers(&ring.uring, v, n);

	if (e)
		return e;
	for (unsigned i = 0; i < n; i++) {
		a_store_rlx(&known.at[i].from, (uintptr_t)v[i].iov_base);
		a_store_rlx(&known.at[i].bytes, v[i].iov_len);
	}
	a_store_rlx(&known.n, n);
	return 0;
}

int kb_io_buffers(const struct iovec *buffers, unsigned count)
{
	int e = count > BUFFERS || (count && !buffers) ? EINVAL : kb_init();
	struct kbi_task *self = kbi_self();

	e = e ? e : kbi_ready_outside(self) ? EPERM : kbi_ready_start();
	if (e)
		return e;
	if (!start_ring_in_np(self))
		return ENOSYS;
	/* acquire: pairs with the release below */
	if (a_xchg_acq(&known.changing, 1))
		return EBUSY;
	kbi_np_enter(self);
	e = register_buffers(buffers, count);
	kbi_np_leave(self);
	/* release: pairs with the acquire above */
	a_store_rel(&known.changing, 0);
	return e;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Puts the request into the ring. Returns its place. Inside np brackets. */
static uint32_t put_request(const struct kbi_uring_ask *a)
{
	uint32_t place;
	bool filled;

	for (unsigned n = 0;; n++) {
		kbi_spin_lock_bit(&ring.filling, 1);
		place = a_load_rlx(ring.uring.sq_tail);
		filled = kbi_uring_fill(&ring.uring, a);
		kbi_spin_unlock_bit(&ring.filling, 1);
		if (filled)
			return place;
		kbi_uring_submit(&ring.uring);
		kbi_sys_yield_to_holder(n);
	}
}

/* Submits a request, which another VP may do first. False: the program has closed the ring, which
 * is of no use any more; requests under way will be answered. */
static bool submit_request(struct kbi_task *self, const struct kbi_uring_ask *a)
{
	unsigned n = 0;
	uint32_t place;
	int e = 0;

	kbi_np_enter(self);
	place = put_request(a);
	while ((int32_t)(a_load_rlx(ring.uring.sq_head) - place) <= 0 && !e) {
		e = kbi_uring_submit(&ring.uring);
		if (e == EAGAIN || e == EBUSY || e == EINTR) {
			kbi_sys_yield_to_holder(n++);
			e = 0;
		}
	}
	if (self->vp)
		reap_answers(self->vp); /* the answer may be there already */
	kbi_np_leave(self);
	if (kbi_unlikely(e))
		a_store_rlx(&ring.stage, 3);
	return e == 0;
}

static void translate_request(const struct kbi_async *a, struct kbi_uring_ask *u)
{
	static const uint8_t op[] = {
		[KBI_ASYNC_READV] = IORING_OP_READV,	 [KBI_ASYNC_WRITEV] = IORING_OP_WRITEV,
		[KBI_ASYNC_FSYNC] = IORING_OP_FSYNC,	 [KBI_ASYNC_OPEN] = IORING_OP_OPENAT,
		[KBI_ASYNC_CONNECT] = IORING_OP_CONNECT,
	};

	*u = (struct kbi_uring_ask){ .op = op[a->what], .fd = a->fd,
		.address = (uint64_t)(uintptr_t)a->address,
				     .offset = a->offset, .length = a->length, .flags = a->flags };
	if (a->what == KBI_ASYNC_OPEN)
		u->fd = AT_FDCWD;
}

/* Translates to a transfer with a buffer that the kernel knows; false: the iovec lies in none. */
static bool translate_known(const struct kbi_async *a, struct kbi_uring_ask *u)
{
	const struct iovec *v = a->address;
	int n = (a->what == KBI_ASYNC_READV || a->what == KBI_ASYNC_WRITEV) &&
		a->length == 1 ? buffer_number(v) : -1;

	if (n < 0)
		return false;
	u->op = a->what == KBI_ASYNC_READV ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
	u->address = (uint64_t)(uintptr_t)v->iov_base;
	u->length = (uint32_t)(v->iov_len < MOST ? v->iov_len : MOST);
	u->buffer = (uint32_t)n;
	return true;
}

static bool is_answered(const struct asked *q)
{
	/* acquire: pairs with the release in answer_request */
	return a_load_acq(&q->answered) != 0;
}

/* Waits for the answer. Returns 0, or why the request was asked to end early. */
static int await_answer(struct kbi_task *self, struct asked *q, struct kbi_until until)
{
	int why = 0;

	while (!is_answered(q)) {
		int e = kbi_waitq_sleep(self, until);

		if (!e || e == EAGAIN)
			continue;
		why = e;
		until = kbi_waitq_until(KBI_FOREVER);
		submit_request(self,
			&(struct kbi_uring_ask){ .op = IORING_OP_ASYNC_CANCEL, .fd = -1,
			.address = (uint64_t)(uintptr_t)q });
	}
	return why;
}

/* Returns whether the request ended without having been done. For an open that waits for a FIFO's
 * other end, the kernel returns its internal mark of a call that is to be restarted. */
static bool is_cut_off(int32_t r)
{
	enum { ERESTARTSYS = 512 };

	return r == -ECANCELED || r == -EINTR || r == -ERESTARTSYS;
}

/* The result that says: there is no ring. */
#define NO_RING INT64_MIN
static int64_t call_through_ring(struct kbi_task *self, const struct kbi_async *a,
	struct kbi_until until)
{
	struct asked q = { .task = self };
	struct kbi_uring_ask u;
	bool fixed;
	int why;

	translate_request(a, &u);
	fixed = kbi_unlikely(a_load_rlx(&known.n)) && translate_known(a, &u);
	u.data = (uint64_t)(uintptr_t)&q;
	for (;;) {
		/* release: pairs with the acquire in answer_request */
		a_store_rel(&q.answered, 0);
		if (!submit_request(self, &u))
			return NO_RING;
		why = await_answer(self, &q, until);
		if (kbi_unlikely(fixed && q.result == -EFAULT)) {
			/* the buffers have changed, or the ring belongs to another process: as any memory */
			translate_request(a, &u);
			u.data = (uint64_t)(uintptr_t)&q;
			fixed = false;
			continue;
		}
		if (!is_cut_off(q.result))
			return q.result;
		if (why)
			return -why;
	}
}

#else

bool kbi_async_is_known(const struct iovec *v)
{
	(void)v;
	return false;
}

int kb_io_buffers(const struct iovec *buffers, unsigned count)
{
	(void)buffers;
	(void)count;
	return ENOSYS;
}

#endif

/* ---- connect --------------------------------------------------------------------------------- */

#if KBI_HAVE_URING
static int stop_at_once(struct kbi_task *self)
{
	(void)self;
	return EINPROGRESS;
}
#endif

/* The request is taken back as soon as it is made: the kernel goes on connecting. */
bool kbi_async_begin_connect(int fd, const void *address, uint32_t length, long *r)
{
#if KBI_HAVE_URING
	const struct kbi_async a =
		{ .what = KBI_ASYNC_CONNECT, .fd = fd, .address = address, .offset = length };
	struct kbi_task *self = kbi_self();
	int64_t answer;

	if (kbi_ready_outside(self) || kbi_ready_start() || !start_ring_in_np(self))
		return false;
	a_add_rlx(&kbi_source.waiting, 1);
	answer = call_through_ring(self, &a, (struct kbi_until){ KBI_FOREVER, stop_at_once });
	a_sub_rlx(&kbi_source.waiting, 1);
	*r = answer == -EALREADY ? -EINPROGRESS : (long)answer;
	return answer != NO_RING;
#else
	(void)fd;
	(void)address;
	(void)length;
	(void)r;
	return false;
#endif
}

/* ---- the way --------------------------------------------------------------------------------- */

static bool has_ring(struct kbi_task *self)
{
#if KBI_HAVE_URING
	return !kbi_ready_start() && start_ring_in_np(self);
#else
	(void)self;
	return false;
#endif
}

bool kbi_async_is_by_hand(void)
{
	struct kbi_task *self = kbi_self();

	return kbi_ready_outside(self) || !has_ring(self);
}

/* Returns whether the ring is better than a lent VP. Where the ring takes the call over, the VP
 * goes on at once. A VP that is lent for a call changes its worker; all threads wait for that if
 * there is no other VP, and no other VP hears events. */
bool kbi_async_is_better(void)
{
	struct kbi_task *self = kbi_self();

	return self->vp && (kbi_vp_n == 1 || kbi_worker_pool_is_scarce()) &&
	       (kbi_vp_backlog(self->vp) || a_load_rlx(&kbi_source.waiting)) && !kbi_async_is_by_hand();
}

long kbi_async_sync(const struct kbi_async *a, struct kbi_until until)
{
	static struct kbi_handoff_habit habit;
	struct kbi_task *self = kbi_self();
	int e;

	if (until.deadline != KBI_FOREVER || kbi_async_is_better())
		return kbi_async(a, until);
	e = until.stop && self->vp ? until.stop(self) : 0;
	if (e && e != EAGAIN)
		return -e;
	kbi_handoff_begin_as(&habit);
	return call_by_hand(a);
}

long kbi_async(const struct kbi_async *a, struct kbi_until until)
{
	struct kbi_task *self = kbi_self();
	int e;

	if (kbi_ready_outside(self))
		return call_with_handoff(a, KBI_HANDOFF_PERHAPS); /* it has no VP to hand off */
	e = until.stop ? until.stop(self) : 0;
	if (e && e != EAGAIN)
		return -e;
#if KBI_HAVE_URING
	if (has_ring(self)) {
		int64_t answer;

		a_add_rlx(&kbi_source.waiting, 1);
		answer = call_through_ring(self, a, until);
		a_sub_rlx(&kbi_source.waiting, 1);
		if (kbi_likely(answer != NO_RING))
			return (long)answer;
	}
#endif
	return call_with_handoff(a, KBI_HANDOFF_SURELY);
}
