/* libc/tcb.c - the door of the control blocks: setup, the choice of donor or template, the gate
 * that fork and set*id close. Contract in tcb.h.
 * Runs on any stack; sleeps in the kernel only at a closed gate and for a donor's end. */
#include "libc/asked.h"
#include "libc/tcb_priv.h"
#include "os/lock.h"

#include "libc/real.h"
#include "os/sys.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum {
	STACK_MIN = 4 << 10,  /* bytes of a slab beside the block */
	DONOR_ROOM = 8 << 10, /* the same, where libc starts a thread on the slab */
};

bool kbi_tcb_available;

static enum kbi_tcb_mode mode = KBI_TCB_DONOR;
static const char *why = "kbi_tcb_setup was not called";
static size_t slab_min = STACK_MIN;

/* ---- the gate -------------------------------------------------------------------------------- */

static a32 makers; /* calls of make and destroy under way */
static a32 frozen;
static aptr hurried; /* thread pointer of the kernel thread that does not wait; NULL: none */

static void wait_in_kernel(a32 *word, uint32_t value)
{
	kbi_sys_futex_wait(word, value, NULL);
}

static void wake_in_kernel(a32 *word)
{
	kbi_sys_futex_wake(word, INT_MAX);
}

struct kbi_tcb_waits kbi_tcb_waits = { wait_in_kernel, wake_in_kernel };

/* Enters unless the gate is closed. The fence puts our entry in `makers` before the load of
 * `frozen`. Partner: the fence in kbi_tcb_freeze; either sees the other. The leaving pairs with the
 * acquire of `makers` in kbi_tcb_freeze. */
static bool try_gate(void)
{
	a_add_rlx(&makers, 1);
	a_fence_sc();
	if (kbi_likely(!a_load_acq(&frozen)))
		return true;
	a_sub_acqrel(&makers, 1);
	kbi_tcb_waits.wake(&makers);
	return false;
}

static void enter_gate(void)
{
	while (!try_gate())
		kbi_tcb_waits.wait(&frozen, 1);
}

/* Enters. Returns false if the gate is closed and the caller must not wait. */
static bool enter_gate_perhaps(void)
{
	while (!try_gate()) {
		if (a_load_rlx(&hurried) == kbi_tp_get())
			return false;
		kbi_tcb_waits.wait(&frozen, 1);
	}
	return true;
}

/* Notes the caller by its thread pointer: if its process is killed, the process that goes on in its
 * place has another number. */
void kbi_tcb_hurry(bool on)
{
	a_store_rlx(&hurried, on ? kbi_tp_get() : NULL);
}

/* release: our work is seen by the freezing thread; partner: the acquire in kbi_tcb_freeze. The
 * fence pairs with the fence in kbi_tcb_freeze. */
static void leave_gate(void)
{
	a_sub_acqrel(&makers, 1);
	a_fence_sc();
	if (kbi_unlikely(a_load_rlx(&frozen)))
		kbi_tcb_waits.wake(&makers);
}

void kbi_tcb_freeze(void)
{
	uint32_t n;

	while (a_xchg_acq(&frozen, 1)) /* partner: the release in kbi_tcb_thaw */
		kbi_tcb_waits.wait(&frozen, 1);
	/* partner: the fences in try_gate and leave_gate; the acquire below pairs with the releases
	 * there */
	a_fence_sc();
	while ((n = a_load_acq(&makers)) != 0)
		kbi_tcb_waits.wait(&makers, n);
}

void kbi_tcb_thaw(void)
{
	a_store_rel(&frozen, 0); /* partner: the acquire in try_gate */
	kbi_tcb_waits.wake(&frozen);
}

/* ---- setup ----------------------------------------------------------------------------------- */

/* Runtimes that keep their own registry of kernel threads in TLS. */
extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __hwasan_init(void) __attribute__((weak));

static const char *why_no_blocks(void)
{
	if (!KBI_HAVE_TP)
		return "this port cannot set the thread pointer";
	if (__tsan_init)
		return "ThreadSanitizer keeps its thread state in the TLS of kernel threads it started";
	if (__msan_init || __hwasan_init)
		return "MemorySanitizer keeps its thread state in the TLS of kernel threads it started";
	return NULL;
}

static enum kbi_tcb_mode choose_block_mode(enum kbi_tcb_mode wanted)
{
	if (wanted == KBI_TCB_DONOR)
		return KBI_TCB_DONOR;
	/* where the sanitizer's wrappers come before us, as in the drop-in, they see the program's
	 * threads and not ours */
	if (kbi_tcb_made_through_asan()) {
		why = "AddressSanitizer must see each thread being created";
		return KBI_TCB_DONOR;
	}
	if (kbi_tcb_template_learn(&why))
		return KBI_TCB_TEMPLATE;
	/* once more: another thread may have been created between the sentinels */
	if (kbi_tcb_layout_renew() || !kbi_tcb_template_learn(&why))
		return KBI_TCB_DONOR;
	why = "";
	return KBI_TCB_TEMPLATE;
}

/* Returns true where copies are never made: on some machines, and with AddressSanitizer. */
static bool wants_donors(enum kbi_tcb_mode wanted)
{
	return wanted == KBI_TCB_DONOR || !KBI_TCB_GLIBC || !KBI_TCB_TLS_BELOW ||
	       kbi_tcb_made_through_asan();
}

static void tell_mode(enum kbi_tcb_mode wanted)
{
	const char *what = "control blocks";

	if (mode == KBI_TCB_TEMPLATE)
		kbi_asked_found(what, "copied from a template");
	else if (wants_donors(wanted))
		kbi_asked_lacks(what, "made by libc, a kernel thread each time");
	else
		kbi_asked_missed(what, "%s: libc makes each, with a kernel thread that ends again", why);
}

static size_t least_slab(enum kbi_tcb_mode how)
{
	long libc = sysconf(_SC_THREAD_STACK_MIN);
	size_t least = kbi_tcb_overhead() + DONOR_ROOM;

	if (how == KBI_TCB_TEMPLATE)
		return kbi_tcb_overhead() + STACK_MIN;
	return libc > 0 && least < (size_t)libc ? (size_t)libc : least;
}

int kbi_tcb_setup(void *self_tls, enum kbi_tcb_mode wanted)
{
	const char *problem = why_no_blocks();
	int err = ENOTSUP;

	if (kbi_tcb_available)
		return 0;
	if (!problem)
		err = kbi_tcb_layout_find(self_tls, &problem);
	if (err) {
		why = problem;
		return err;
	}
	if (!kbi_tcb_reset_find(&why))
		return ENOTSUP;
	why = "";
	mode = choose_block_mode(wanted);
	tell_mode(wanted);
	kbi_tcb_reset_watch();
	slab_min = least_slab(mode);
	kbi_tcb_available = true;
	return 0;
}

const char *kbi_tcb_why(void)
{
	return why;
}

enum kbi_tcb_mode kbi_tcb_mode(void)
{
	return mode;
}

size_t kbi_tcb_overhead(void)
{
	size_t n = kbi_tcb_layout.below + kbi_tcb_layout.above + kbi_tcb_layout.align;

	return (n + KBI_CACHE_LINE - 1) & -(size_t)KBI_CACHE_LINE;
}

size_t kbi_tcb_slab_min(void)
{
	return slab_min;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* State of the sentinels. After a fork they are off libc's list: dlopen would not find them. New
 * sentinels are made when the first block is made or reset, because most children only exec. */
enum { FRESH, STALE, RENEWING };
static a32 sentinels;

/* release: the learnt layout; pairs with the acquire in renew_sentinels and in its callers */
static int renew_sentinels_now(void)
{
	const char *problem;
	int err = kbi_tcb_layout_renew();

	if (!err && mode == KBI_TCB_TEMPLATE && !kbi_tcb_template_learn(&problem))
		mode = KBI_TCB_DONOR;
	kbi_tcb_reset_look_always();
	slab_min = least_slab(mode);
	kbi_lock_tell(&sentinels, err ? STALE : FRESH);
	return err;
}

static KBI_NOINLINE int renew_sentinels(void)
{
	for (;;) {
		uint32_t state = STALE;

		if (a_cas_acq(&sentinels, &state, RENEWING)) /* partner: renew_sentinels_now */
			return renew_sentinels_now();
		if (state == FRESH)
			return 0;
		kbi_lock_await(&sentinels, RENEWING);
	}
}

static int make_block(struct kbi_tcb *t, enum kbi_tcb_mode how)
{
	int err;

	if (kbi_unlikely(a_load_acq(&sentinels) != FRESH)) { /* partner: renew_sentinels_now */
		err = renew_sentinels();
		if (err)
			return err;
	}
	if (how == KBI_TCB_TEMPLATE && mode == KBI_TCB_TEMPLATE)
		return kbi_tcb_template_make(t);
	err = kbi_tcb_donor_make(t);
	if (!err)
		*kbi_tcb_tid_word(t) = kbi_tcb_own_tid(t);
	return err;
}

static uint32_t id_of_number(uint32_t number)
{
	if (number < KBI_TCB_ID_TURNING)
		return number;
	return KBI_TCB_ID_STILL + (number - KBI_TCB_ID_TURNING) % (KBI_TCB_ID_LIMIT - KBI_TCB_ID_STILL);
}

static int make_block_in(struct kbi_tcb *t, void *slab_low, size_t slab_size, unsigned number,
			 void *self, enum kbi_tcb_mode how)
{
	int err;

	*t = (struct kbi_tcb){ .slab_low = slab_low, .slab_size = slab_size,
		.id = id_of_number(number) };
	if (!enter_gate_perhaps())
		return EBUSY;
	err = make_block(t, how);
	leave_gate();
	if (!err)
		*kbi_tcb_self_word(t) = self;
	return err;
}

/* Shrinks the slab to multiples of 16: it may be a program's own stack, of any alignment.
 * Sanitizers ask libc for the bounds and want them at multiples of 8. */
static void align_slab(void **low, size_t *size)
{
	uintptr_t from = ((uintptr_t)*low + 15) & ~(uintptr_t)15,
		end = ((uintptr_t)*low + *size) & ~(uintptr_t)15;

	*low = (void *)from;
	*size = end > from ? end - from : 0;
}

int kbi_tcb_make(struct kbi_tcb *t, void *slab_low, size_t slab_size, unsigned number, void *self)
{
	if (!kbi_tcb_available)
		return ENOTSUP;
	align_slab(&slab_low, &slab_size);
	if (slab_size < kbi_tcb_slab_min())
		return EINVAL;
	return make_block_in(t, slab_low, slab_size, number, self, KBI_TCB_TEMPLATE);
}

bool kbi_tcb_can_end(void)
{
	return KBI_TCB_GLIBC;
}

int kbi_tcb_make_to_end(struct kbi_tcb *t, void *slab_low, size_t slab_size,
	unsigned number, void *self)
{
	enum kbi_tcb_mode how = kbi_tcb_template_can_end() ? mode : KBI_TCB_DONOR;

	if (!kbi_tcb_available || !kbi_tcb_can_end())
		return ENOTSUP;
	align_slab(&slab_low, &slab_size);
	if (slab_size < least_slab(how))
		return EINVAL;
	return make_block_in(t, slab_low, slab_size, number, self, how);
}

int kbi_tcb_destroy(struct kbi_tcb *t)
{
	int err;

	if (!KBI_TCB_GLIBC || (t->copied && !kbi_tcb_template_can_end()))
		return EBUSY;
	enter_gate();
	if (t->copied)
		kbi_tcb_template_part(t);
	err = kbi_tcb_donor_end(t);
	if (err && t->copied)
		kbi_tcb_template_rejoin(t);
	leave_gate();
	return err;
}

void kbi_tcb_clear(struct kbi_tcb *t)
{
	if (kbi_unlikely(a_load_acq(&sentinels) != FRESH)) { /* partner: renew_sentinels_now */
		enter_gate();
		renew_sentinels(); /* if it fails the next make tries again */
		leave_gate();
	}
	kbi_tcb_reset_values(t);
}

void kbi_tcb_reset(struct kbi_tcb *t, void *self)
{
	kbi_tcb_clear(t);
	kbi_tcb_finish(t, self);
}

/* Read by the thread itself: meanwhile only libc's set*id might write the word, and the gate keeps
 * that out. */
uint32_t kbi_tcb_tid(const struct kbi_tcb *t)
{
	return *kbi_tcb_tid_word(t);
}

uint32_t kbi_tcb_settid(struct kbi_tcb *t, uint32_t tid)
{
	uint32_t *word = kbi_tcb_tid_word(t), before = *word;

	*word = tid;
	return before;
}

void kbi_tcb_renumber(struct kbi_tcb *t)
{
	if (t->id >= KBI_TCB_ID_STILL)
		return;
	t->id += KBI_TCB_ID_TURNING;
	if (t->id >= KBI_TCB_ID_STILL)
		t->id -= KBI_TCB_ID_STILL;
	*kbi_tcb_tid_word(t) = kbi_tcb_own_tid(t);
}

/* Detaches the caller from its block's tid word: fork leaves one thread on libc's list and
 * registers that word with the kernel, which would clear it when this kernel thread ends. */
void kbi_tcb_after_fork(struct kbi_tcb *t)
{
	static a32 cleared;

	/* no wake-up: nobody waits here, and a waiter of the parent may have held a lock that a wake-up
	 * needs */
	a_store_rlx(&frozen, 0);
	if (!kbi_tcb_available)
		return;
	a_store_rlx(&makers, 0);
	a_store_rlx(&sentinels, STALE);
	if (!t)
		return;
	kbi_sys(SYS_set_tid_address, &cleared.v_);
}
