/* posix/futex.c - contract in futex.h. syscall(): SYS_futex on this process's memory waits on the
 * parking lot, so that std::future, std::atomic::wait, std::latch, Rust's std and any code that
 * makes futexes by libc's syscall() does not block a virtual processor. Calls that may block are
 * served likewise (call_number); any further call goes to libc's own function.
 * Before the first lightweight thread all calls go to the kernel; a later wake reaches those
 * sleepers, too. FUTEX_PRIVATE_FLAG says that no other process uses the word; without it
 * (libstdc++'s futures) the page decides: a word in a shared mapping stays the kernel's, and a
 * waiting thread leaves its virtual processor to other threads. This also holds for waits for
 * several words at once, and for the separate system calls of newer Linux; wakes reach these
 * sleepers, too. Operations with priority inheritance: posix/futex_owner.
 * Callers: programs. Waits may switch. They are no cancellation points, as in libc. */
#include "posix/futex.h"

#include "posix/bind.h"
#include "posix/call_priv.h"
#include "posix/futex_owner.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/vp.h"
#include "core/yield.h"
#include "os/maps.h"
#include "os/memory.h"
#include "os/newer.h"
#include "os/sys.h"
#include "posix/path.h"
#include "sync/park.h"

/* Constants of all machines. */
enum { WAITV_MAX = 128, PRIVATE2 = 128 };

/* The kernel's struct futex_waitv. */
struct one_of {
	uint64_t value, addr;
	uint32_t flags, reserved;
};

/* A wait went to the kernel, so wakes must go there, too. */
static a32 kernel_waits;

/* ---- whose memory ------------------------------------------------------------------------- */

/* Tells whether the page is shared where /proc, or a descriptor to read it, is missing. The kernel
 * makes a second mapping of shared pages only. */
static bool has_twin(uintptr_t at)
{
	long twin;

	if (kbi_memory_holds((void *)at, sizeof(uint32_t)))
		return false;
	twin = kbi_sys(SYS_mremap, at & ~((uintptr_t)KBI_PAGE - 1), 0, KBI_PAGE, MREMAP_MAYMOVE);
	if (twin < 0 && twin > -4096)
		return twin != -EINVAL;
	kbi_sys(SYS_munmap, twin, KBI_PAGE);
	return true;
}

/* True if the word lies in a mapping that other processes may share. Unknown counts as shared: the
 * kernel's wait is always right. */
static bool is_shared_mapping(uintptr_t at)
{
	struct kbi_maps_line m;

	/* where virtual processors are processes, memory that all of them share is the program's own */
	if (kbi_maps_find(at, &m))
		return has_twin(at);
	return m.shared && m.inode != kbi_memory_file();
}

/* Remembers the kind of a page; a page is not expected to turn from private to shared memory. */
static bool is_shared_word(const uint32_t *addr)
{
	enum { REMEMBERED = 1024 };
	static a64 known[REMEMBERED]; /* page number << 1 | shared */
	uint64_t page = (uintptr_t)addr / KBI_PAGE;
	a64 *slot = &known[page % REMEMBERED];
	uint64_t v = a_load_rlx(slot);

	if (v >> 1 != page) {
		v = page << 1 | (uint64_t)is_shared_mapping((uintptr_t)addr);
		a_store_rlx(slot, v);
	}
	return v & 1;
}

/* ---- waits in the kernel ------------------------------------------------------------------ */

static bool has_length(const struct timespec *t)
{
	return kbi_posix_time_ok(t) && t->tv_sec >= 0;
}

/* Waits with an absolute time, so that the wait can be restarted. */
static long wait_futex_in_kernel(const struct kbi_futex *c)
{
	const struct timespec *t = (const struct timespec *)c->timeout;
	long a[6] = { (long)c->addr, c->op, (long)c->value, (long)c->timeout, 0, (long)c->value3 };
	struct timespec until;

	if ((c->op & KBI_FUTEX_OP) == FUTEX_WAIT) {
		a[1] = FUTEX_WAIT_BITSET | (c->op & FUTEX_PRIVATE_FLAG);
		a[5] = (long)FUTEX_BITSET_MATCH_ANY;
	}
	if ((c->op & KBI_FUTEX_OP) == FUTEX_WAIT && t && has_length(t)) {
		until = kbi_sys_timespec(kbi_posix_after(t));
		a[3] = (long)&until;
	}
	if (!kbi_sys_from.futex) /* the program may be several processes */
		a[1] &= ~FUTEX_PRIVATE_FLAG;
	return kbi_futex_in_kernel(SYS_futex, a);
}

static long wait_for_one_of(const long a[6])
{
	struct one_of common[WAITV_MAX];
	long b[6] = { (long)common, a[1], a[2], a[3], a[4], 0 };

	a_store_rlx(&kernel_waits, 1);
	if (kbi_sys_from.futex || !a[0] || a[1] <= 0 || a[1] > WAITV_MAX)
		return kbi_futex_in_kernel(SYS_futex_waitv, a);
	memcpy(common, (const void *)a[0], (size_t)a[1] * sizeof(common[0]));
	for (long i = 0; i < a[1]; i++)
		common[i].flags &= ~(uint32_t)PRIVATE2;
	return kbi_futex_in_kernel(SYS_futex_waitv, b);
}

static long wait_by_new_number(const long a[6])
{
	long b[6] = { a[0], a[1], a[2], a[3], a[4], a[5] };

	a_store_rlx(&kernel_waits, 1);
	if (!kbi_sys_from.futex)
		b[3] &= ~(long)PRIVATE2;
	return kbi_futex_in_kernel(SYS_futex_wait, b);
}

/* ---- the operations ----------------------------------------------------------------------- */

/* Parks as the kernel does: without a time limit a handler with SA_RESTART restarts the wait, with
 * its check of the value; with a limit the handler ends it. */
static int park_at_futex(const struct kbi_futex *c, uint32_t bitset, uint64_t deadline)
{
	uint32_t before = kbi_posix_me.handled;
	bool ends;
	int e;

	do {
		e = kbi_park_wait_until(c->addr, c->value, bitset, kbi_posix_until(deadline));
		ends = kbi_signal_resumed() || (deadline != KBI_FOREVER && kbi_posix_me.handled != before);
	} while (e == EINTR && !ends);
	return e;
}

static long wait_relative(const struct kbi_futex *c)
{
	const struct timespec *t = (const struct timespec *)c->timeout;

	if (t && (!kbi_posix_time_ok(t) || t->tv_sec < 0))
		return -EINVAL;
	return -park_at_futex(c, KBI_PARK_ANY, kbi_posix_after(t));
}

static long wait_absolute(const struct kbi_futex *c)
{
	const struct timespec *t = (const struct timespec *)c->timeout;
	clockid_t clock = c->op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;

	if (c->value3 == 0 || (t && (!kbi_posix_time_ok(t) || t->tv_sec < 0)))
		return -EINVAL;
	if (!t)
		return -park_at_futex(c, c->value3, KBI_FOREVER);
	return -park_at_futex(c, c->value3, kbi_posix_deadline(clock, t));
}

KBI_SWITCHER long kbi_futex_parked(const struct kbi_futex *c)
{
	return (c->op & KBI_FUTEX_OP) == FUTEX_WAIT ? wait_relative(c) : wait_absolute(c);
}

/* True if the kernel may have sleepers: from before the first thread, or of other processes. */
static bool kernel_may_have_sleepers(const struct kbi_futex *c)
{
	return !(c->op & FUTEX_PRIVATE_FLAG) || a_load_rlx(&kernel_waits);
}

static long wake_futex(const struct kbi_futex *c, uint32_t bitset)
{
	unsigned n = (int)c->value > 0 ? c->value : 1;
	unsigned woken = kbi_park_wake(c->addr, n, bitset);
	struct kbi_futex rest = *c;
	long more;

	if (woken >= n || !kernel_may_have_sleepers(c))
		return woken;
	rest.value = n - woken;
	more = kbi_futex_kernel(&rest);
	return more > 0 ? (long)woken + more : woken;
}

/* Changes FUTEX_WAKE_OP's second word as value3 says, and compares its old value. False: value3 is
 * invalid. */
static bool change_second_word(const struct kbi_futex *c, bool *holds)
{
	const uint32_t code = c->value3 >> 28, cmp = c->value3 >> 24 & 15;
	uint32_t with = (uint32_t)((int32_t)(c->value3 << 8) >> 20), value;
	const int32_t limit = (int32_t)(c->value3 << 20) >> 20;
	a32 *word = (a32 *)(uintptr_t)c->addr2;
	uint32_t old = a_load_rlx(word);

	if (code & FUTEX_OP_OPARG_SHIFT)
		with = 1u << (with & 31);
	do {
		switch (code & 7) {
		case FUTEX_OP_SET: value = with; break;
		case FUTEX_OP_ADD: value = old + with; break;
		case FUTEX_OP_OR: value = old | with; break;
		case FUTEX_OP_ANDN: value = old & ~with; break;
		case FUTEX_OP_XOR: value = old ^ with; break;
		default: return false;
		}
	/* pairs with the program's own atomic operations on the word */
	} while (!a_cas_acqrel(word, &old, value));
	switch (cmp) {
	case FUTEX_OP_CMP_EQ: *holds = old == (uint32_t)limit; return true;
	case FUTEX_OP_CMP_NE: *holds = old != (uint32_t)limit; return true;
	case FUTEX_OP_CMP_LT: *holds = (int32_t)old < limit; return true;
	case FUTEX_OP_CMP_LE: *holds = (int32_t)old <= limit; return true;
	case FUTEX_OP_CMP_GT: *holds = (int32_t)old > limit; return true;
	case FUTEX_OP_CMP_GE: *holds = (int32_t)old >= limit; return true;
	default: return false;
	}
}

static long wake_and_change(const struct kbi_futex *c)
{
	const int wakes = (c->op & ~KBI_FUTEX_OP & FUTEX_PRIVATE_FLAG) | FUTEX_WAKE;
	struct kbi_futex first = { .addr = c->addr, .op = wakes, .value = c->value };
	struct kbi_futex second = { .addr = c->addr2, .op = wakes, .value = (uint32_t)c->timeout };
	bool holds;
	long n;

	if (!change_second_word(c, &holds))
		return -ENOSYS;
	n = wake_futex(&first, KBI_PARK_ANY);
	return holds ? n + wake_futex(&second, KBI_PARK_ANY) : n;
}

static long requeue_waiters(const struct kbi_futex *c, const uint32_t *compare)
{
	unsigned woken, moved;
	int e;

	if ((int)c->value < 0 || (int)c->timeout < 0)
		return -EINVAL;
	e = kbi_park_requeue(c->addr, c->value, c->addr2, (unsigned)c->timeout, compare, &woken,
		&moved);
	if (e)
		return -e;
	/* FUTEX_REQUEUE returns the woken, FUTEX_CMP_REQUEUE the woken and the moved */
	return compare ? (long)woken + moved : (long)woken;
}

static long emulate_futex(const struct kbi_futex *c)
{
	switch (c->op & KBI_FUTEX_OP) {
	case FUTEX_WAIT:
		return wait_relative(c);
	case FUTEX_WAIT_BITSET:
		return wait_absolute(c);
	case FUTEX_WAKE:
		return wake_futex(c, KBI_PARK_ANY);
	case FUTEX_WAKE_BITSET:
		return c->value3 ? wake_futex(c, c->value3) : -EINVAL;
	case FUTEX_REQUEUE:
		return requeue_waiters(c, NULL);
	case FUTEX_CMP_REQUEUE:
		return requeue_waiters(c, &c->value3);
	case FUTEX_WAKE_OP:
		return wake_and_change(c);
	default:
		return kbi_futex_owned(c, false);
	}
}

static bool is_futex_wait(const struct kbi_futex *c)
{
	int op = c->op & KBI_FUTEX_OP;

	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET;
}

static long call_futex(const struct kbi_futex *c)
{
	if (kbi_vp_n == 0 || kbi_posix_forked) {
		if (is_futex_wait(c))
			a_store_rlx(&kernel_waits, 1);
		return kbi_futex_alone(c);
	}
	if (((uintptr_t)c->addr & 3) || !c->addr)
		return -EINVAL;
	if (!(c->op & FUTEX_PRIVATE_FLAG) && is_shared_word(c->addr))
		return is_futex_wait(c) ? wait_futex_in_kernel(c) : kbi_futex_owned(c, true);
	return emulate_futex(c);
}

/* a: address, mask, count, flags. Wakes threads that are parked here first. */
static long wake_by_new_number(const long a[6])
{
	long woken = 0, b[6] = { a[0], a[1], a[2], a[3] }, more;

	if (kbi_vp_n && !kbi_posix_forked && a[0] && !(a[0] & 3) && (uint32_t)a[1] && (int)a[2] > 0)
		woken = kbi_park_wake((const uint32_t *)a[0], (unsigned)a[2], (uint32_t)a[1]);
	if (woken && woken >= (int)a[2])
		return woken;
	b[2] -= woken;
	if (!kbi_sys_from.futex)
		b[3] &= ~(long)PRIVATE2;
	more = kbi_sys(SYS_futex_wake, b[0], b[1], b[2], b[3]);
	return more > 0 ? woken + more : woken ? woken : more;
}

static bool call_futex_by_new_number(long n, const long a[6], long *r)
{
	switch (n) {
	case SYS_futex_waitv:
		*r = wait_for_one_of(a);
		return true;
	case SYS_futex_wait:
		*r = wait_by_new_number(a);
		return true;
	case SYS_futex_wake:
		*r = wake_by_new_number(a);
		return true;
	default:
		return false;
	}
}

long kbi_futex_by_instruction(long nr, long a[6], const uintptr_t *frame)
{
	(void)nr, (void)frame;
	return call_futex(&(struct kbi_futex){ (const uint32_t *)a[0], (int)a[1], (uint32_t)a[2],
		(uintptr_t)a[3], (const uint32_t *)a[4], (uint32_t)a[5] });
}

/* The kernel takes six numbers for any call; a variadic function gets them where a plain function
 * does. */
long kbi_posix_syscall(long n, long a, long b, long c, long d, long e, long f) __asm__("syscall");

KBI_POSIX_API long kbi_posix_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	const long all[6] = { a, b, c, d, e, f };
	long r;

	if (n != SYS_futex &&
	    (kbi_path_by_number(n, all, &r) || kbi_call_by_number(n, all, &r) ||
	    kbi_bind_syscall(n, all, &r) ||
	     call_futex_by_new_number(n, all, &r))) {
		if (r >= 0 || r < -4095)
			return r;
		errno = (int)-r;
		return -1;
	}
	if (n != SYS_futex)
		return ((__typeof__(&kbi_posix_syscall))(uintptr_t)kbi_libc()->syscall)(n, a, b, c, d, e,
			f);
	r = call_futex(&(struct kbi_futex){ (const uint32_t *)a, (int)b, (uint32_t)c, (uintptr_t)d,
		(const uint32_t *)e, (uint32_t)f });
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}
