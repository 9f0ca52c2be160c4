/* core/foreign.c - kernel threads that Kochab did not create. Contract in foreign.h. */
#include "core/foreign.h"

#include <errno.h>
#include <pthread.h>

#include "core/single_threaded.h"
#include "libc/real.h"
#include "os/lock.h"
#include "os/sys.h"

aptr kbi_foreign_at_end;

static a32 count;
static pthread_key_t key;
static a32 key_state; /* 0 none, 1 being made, 2 made, or the program has them all */
static bool no_key;

/* libc's function for C++ thread_local objects: used if there is no key left. */
int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object,
	void *dso) __attribute__((weak));

static void end_foreign_thread(void *arg)
{
	void (*at_end)(struct kb_thread *) =
		(void (*)(struct kb_thread *))(uintptr_t)a_load_rlx(&kbi_foreign_at_end);
	struct kb_thread *t = arg;

	if (t->is_main)
		return; /* the runtime has adopted it meanwhile */
	if (t->keys) /* set after at_end, by this kernel thread */
		at_end(t);
	/* release: pairs with the acquire in kbi_posix_thread: a reader that finds the descriptor to
	 * be a different thread's also sees the NULL */
	__atomic_store_n(&kbi_self_tls, NULL, __ATOMIC_RELAXED);
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_FREE, 0));
	a_sub_rlx(&count, 1);
	kbi_descriptor_free(NULL, t);
}

static void make_key(void)
{
	uint32_t none = 0;

	/* acquire: pairs with the release in kbi_lock_tell */
	if (a_load_acq(&key_state) == 2)
		return;
	if (a_cas_acq(&key_state, &none, 1)) {
		no_key = kbi_real.pthread_key_create(&key, end_foreign_thread) != 0;
		if (no_key && !__cxa_thread_atexit_impl)
			kbi_sys_fatal("no pthread key left for kernel threads that use Kochab");
		kbi_lock_tell(&key_state, 2);
	}
	kbi_lock_await(&key_state, 1);
}

struct kbi_task *kbi_foreign_enter(void)
{
	struct kb_thread *t;

	kbi_single_threaded_end();
	t = kbi_descriptor_alloc(NULL);
	if (!t)
		kbi_sys_fatal("no thread descriptor left for a foreign kernel thread (max_threads)");
	t->fn = NULL; /* no function of ours has started it, */
	a_store_rlx(&t->task.np, 0); /* and it runs outside the library already */
	/* release: pairs with the acquire of any reader of the state (core/domain) */
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_FOREIGN, 0));
	a_add_rlx(&count, 1);
	kbi_self_tls = &t->task;
	make_key();
	if (kbi_unlikely(no_key))
		__cxa_thread_atexit_impl(end_foreign_thread, t, &kbi_foreign_at_end);
	else
		kbi_real.pthread_setspecific(key, t);
	return &t->task;
}

void kbi_foreign_after_fork(void)
{
	if (a_load_rlx(&key_state) == 1)
		a_store_rlx(&key_state, 0);
}

/* Returns ETIMEDOUT: the deadline had come before; EINTR: a handler has run; 0: the caller looks
 * again. */
static int wait_on_futex_word(struct kbi_task *self, const a32 *word, uint32_t expected,
	uint64_t deadline)
{
	uint64_t now = deadline == UINT64_MAX ? 0 : kbi_sys_now(), ns = deadline - now;
	struct timespec left = kbi_sys_timespec(ns);

	if (now >= deadline)
		return ETIMEDOUT;
	if (kbi_sys_futex_wait(word, expected, deadline == UINT64_MAX ? NULL : &left) != -EINTR)
		return 0;
	kbi_thread_of(self)->reason = KBI_WAKE_HANDLER;
	return EINTR;
}

int kbi_foreign_sleep(struct kbi_task *self, uint64_t deadline)
{
	struct kb_thread *t = kbi_thread_of(self);

	kbi_thread_of(self)->reason = KBI_WAKE_PERMIT;
	/* self became BLOCKED after it queued itself (kbi_handoff_found, in a signal handler), and
	 * was woken while it ran. acquire: pairs with the release in leave_permit */
	if (kbi_unlikely(!a_zero8_rlx(&self->permit)) && a_xchg_acq(&self->permit, 0))
		return 0;
	for (;;) {
		/* acquire: pairs with the release in kbi_foreign_wake. A BLOCKED thread has a second bit
		 * there */
		uint32_t word = a_and_acqrel(&t->futex, ~1u);
		int e;

		if (word & 1)
			return 0;
		e = wait_on_futex_word(self, &t->futex, word, deadline);
		if (e)
			return e == EINTR ? 0 : e;
	}
}

int kbi_foreign_sleep_at(struct kbi_task *self, const a32 *word, uint32_t seen, uint64_t deadline)
{
	kbi_thread_of(self)->reason = KBI_WAKE_PERMIT;
	return wait_on_futex_word(self, word, seen, deadline) == ETIMEDOUT ? ETIMEDOUT : 0;
}

void kbi_foreign_wake(struct kbi_task *task)
{
	struct kb_thread *t = kbi_thread_of(task);

	/* release: pairs with the acquire in kbi_foreign_sleep. Descriptors are never unmapped. */
	if (!(a_or_acqrel(&t->futex, 1) & 1))
		kbi_sys_futex_wake(&t->futex, 1);
}

void kbi_foreign_leave(struct kb_thread *t)
{
	(void)t;
	if (!no_key)
		kbi_real.pthread_setspecific(key, NULL);
	a_sub_rlx(&count, 1);
}

void kbi_foreign_disown(void)
{
	if (kbi_self_tls)
		a_sub_rlx(&count, 1);
}

static void forget_foreign_thread(struct kb_thread *t)
{
	kbi_real.pthread_setspecific(key, NULL);
	end_foreign_thread(t);
}

bool kbi_foreign_undo(void)
{
	if (!kbi_self_tls)
		return true;
	if (no_key)
		kbi_foreign_disown();
	else
		forget_foreign_thread(kbi_thread_of(kbi_self_tls));
	return !kbi_self_tls;
}

uint32_t kbi_foreign_count(void)
{
	return a_load_rlx(&count);
}

void kbi_foreign_hide(void)
{
	/* release: pairs with the acquire in kbi_posix_task */
	__atomic_store_n(&kbi_self_tls, NULL, __ATOMIC_RELEASE);
}

/* The child may have waited and then has a descriptor of its own. */
void kbi_foreign_show(struct kbi_task *self)
{
	struct kbi_task *childs = kbi_self_tls;

	if (kbi_unlikely(childs && !no_key))
		forget_foreign_thread(kbi_thread_of(childs));
	kbi_self_tls = self;
}
