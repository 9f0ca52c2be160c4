/* posix/libwait.c - libc's private futex calls. Contract in libwait.h.
 *
 * The holder of a lock for which a thread waits here may be ready on this virtual processor: so the
 * thread is parked (sync/park), and its virtual processor goes on. A wait stays in the kernel
 *  - on a kernel thread that has no virtual processor, or has lent it,
 *  - inside our library (np): the thread would come back on another virtual processor,
 *  - in a child of fork or vfork, whose variables are its parent's: its process number differs,
 *  - with the tick blocked, by libc for a while or by the program, or for a thread without a
 *    control block of its own, whose TLS is the virtual processor's: the virtual processor is lent
 *    meanwhile.
 * A wake-up wakes up to its number of parked sleepers and as many of the kernel's: libc's code
 * checks again after each wake-up. So a sleeper in the kernel never depends on a parked thread that
 * was woken and has yet to run.
 *
 * A child of fork calls libc's unlock before our atfork handler runs there; at the fork another
 * thread of the parent may have held a lock of the parking lot. The forking thread has a mark,
 * which its child has, too. A child of vfork has no such mark: it wakes its parent's threads, by
 * words and system calls only.
 * Runs on the caller's stack, inside libc, perhaps with locks of libc held; allocates no memory. */
#include "posix/libwait.h"

#include <limits.h>
#include <linux/futex.h>

#include "base/option.h"
#include "base/san.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "core/quantum.h"
#include "core/single_threaded.h"
#include "libc/asked.h"
#include "libc/endable.h"
#include "libc/intercept_patch.h"
#include "libc/names.h"
#include "os/sys.h"
#include "posix/futex_owner.h"
#include "sync/park.h"

static const char *const what = "libc's waits";
static long program; /* the program's process number; constant once it is set */

static bool is_in_child(void)
{
	return kbi_sys(SYS_getpid) != program;
}

/* ---- waits -------------------------------------------------------------------------------- */

static bool is_tick_blocked(void)
{
	uint64_t blocked = 0;

	kbi_sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof blocked);
	return blocked >> (kbi_preempt_signal() - 1) & 1;
}

/* True on a virtual processor, outside our library. */
static bool may_park_caller(const struct kbi_task *self)
{
	return self && self->vp && !a_load_rlx(&self->np) && !kbi_posix_forked;
}

/* Waits in the kernel with the virtual processor lent. A woken thread that has lost its virtual
 * processor wakes the next thread, which may still have its own. */
static KBI_SWITCHER long wait_lending(const long a[6])
{
	const uint32_t *word = (const uint32_t *)a[0];
	long r;

	kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
	r = kbi_endable_call(SYS_futex, a);
	if (r == 0 && kbi_park_has(word))
		kbi_park_wake(word, 1, KBI_PARK_ANY);
	if (r == 0)
		kbi_sys_futex_wake(word, 1);
	kbi_handoff_end();
	return r;
}

/* Reports, with option verbose, a wait inside the runtime, so that a test can see that there is
 * none: the lock's holder may be ready on this virtual processor, which stands still until another
 * one takes the holder. */
static void report_inside_wait(const struct kbi_task *self)
{
	static a32 told;

	if (self && self->vp && a_load_rlx(&self->np) && !a_xchg_rlx(&told, 1))
		kbi_asked_lacks(what, "the runtime waits for a lock of libc's with a virtual processor");
}

static KBI_SWITCHER long wait_for_libc_word(const long a[6])
{
	const struct kbi_futex c = { (const uint32_t *)a[0], (int)a[1], (uint32_t)a[2], (uintptr_t)a[3],
		NULL, (uint32_t)a[5] };
	const struct kbi_task *self = kbi_self_raw();
	long r;

	if (!may_park_caller(self) || is_in_child()) {
		report_inside_wait(self);
		return kbi_sys(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	if (!self->tp || is_tick_blocked())
		return wait_lending(a);
	r = kbi_futex_parked(&c);
	if (kbi_posix_me.forks)
		kbi_signal_bring_mask(); /* its child must get the mask */
	return r;
}

/* ---- wake-ups ----------------------------------------------------------------------------- */

static void wake_parked(long at, uint32_t n, uint32_t bitset)
{
	const uint32_t *word = (const uint32_t *)at;
	struct kbi_task *self = kbi_self_raw();
	bool child;

	if (kbi_likely(!kbi_park_has(word)) || kbi_posix_forked)
		return;
	child = is_in_child();
	if (child && kbi_posix_me.forks)
		return;
	kbi_park_wake_by(child ? NULL : self, word, n, bitset);
}

static KBI_SWITCHER long handle_libc_futex(long nr, long a[6], const uintptr_t *frame)
{
	(void)frame;
	switch (a[1] & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return wait_for_libc_word(a);
	case FUTEX_WAKE:
		wake_parked(a[0], (uint32_t)a[2], KBI_PARK_ANY);
		break;
	case FUTEX_WAKE_BITSET:
		wake_parked(a[0], (uint32_t)a[2], (uint32_t)a[5]);
		break;
	case FUTEX_WAKE_OP: /* the kernel changes the word first */
		nr = kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		wake_parked(a[0], (uint32_t)a[2], KBI_PARK_ANY);
		wake_parked(a[4], (uint32_t)a[3], KBI_PARK_ANY);
		return nr;
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE: /* wakes all parked threads, which check again */
		wake_parked(a[0], UINT_MAX, KBI_PARK_ANY);
		break;
	default:
		break;
	}
	return kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- the law of leaving ------------------------------------------------------------------- */

/* True if a sanitizer's runtime or our allocator is loaded: they call libc with locks of their own
 * held, for which threads wait in the kernel. */
static bool has_others_locks(void)
{
	static const char *const names[] =
		{ "__asan_init", "__lsan_init", "__ubsan_handle_add_overflow", "kb_heap_door" };

	for (unsigned i = 0; i < kbi_countof(names); i++)
		if (kbi_names_look_up(names[i]))
			return true;
	return false;
}

static bool leave_anywhere(void)
{
	if (has_others_locks() || !kbi_intercept_patch_find())
		return false;
	kbi_quantum_libcs = kbi_intercept_patch_is_libcs;
	return true;
}

/* ---- start -------------------------------------------------------------------------------- */

void kbi_libwait_begin(void)
{
	struct kbi_intercept_counts c;
	const char *why;

	if (kbi_options.body != KBI_OPT_BODY_THREAD || KBI_SAN || program)
		return;
	if (kbi_options.libcalls != KBI_OPT_LIBCALLS_PATCH) {
		kbi_asked_found(what, "the kernel's, so a thread is not left in libc");
		return;
	}
	if (!kbi_single_threaded_is_only_one()) {
		kbi_asked_missed(what, "other kernel threads run already: they stay in the kernel");
		return;
	}
	program = kbi_sys(SYS_getpid);
	kbi_intercept_patch_prepare();
	if (kbi_intercept_patch_replace_futex(handle_libc_futex,
		(const void *)(uintptr_t)kbi_libc()->pthread_barrier_wait, &c, &why)) {
		kbi_asked_missed(what, "%s: they stay in the kernel", why);
		return;
	}
	kbi_asked_found(what, "%u places replaced: a thread that waits there is parked, and is %s",
		c.replaced,
			leave_anywhere() ? "left anywhere but in our code"
			: "not left in libc: more locks are under it");
}
