/* posix/posix.c - from a pthread_t to the room's record of the thread, and the frame under a
 * thread's first function. A pthread_t is the address of libc's control block. Our initial-exec TLS
 * lies at a constant distance from that block in every thread, libc's kernel threads included, so a
 * thread's variables are found by address arithmetic.
 * Callers: this room, core/foreign (the word kbi_self_tls), programs (pthread_exit, thrd_exit).
 * Runs on the calling thread. No locks. kbi_posix_settle may yield the kernel thread; nothing here
 * switches threads. */
#include "posix/posix.h"

#include <setjmp.h>

#include "os/sys.h"

__thread struct kbi_posix_thread kbi_posix_me __attribute__((tls_model("initial-exec")));

bool kbi_posix_forked;
a32 kbi_posix_helped;
bool kbi_posix_made_kernel;

/* Returns the address at which thread t has the variable that the caller has at `here`. */
static void *address_in_thread(pthread_t t, void *here)
{
	return (char *)t + ((char *)here - (char *)kbi_posix_self());
}

struct kbi_posix_thread *kbi_posix_record(pthread_t t)
{
	return address_in_thread(t, &kbi_posix_me);
}

/* Returns the descriptor of thread t, or NULL. While a child of vfork runs in the thread's place
 * (posix/fork), kbi_self_tls is the child's, and a child that waits has a descriptor of its own
 * there. `hidden` holds the thread's descriptor from the first vfork until the thread ends, so
 * `hidden` takes precedence. If `hidden` is found empty after the child's descriptor was read, the
 * thread has ended since then, and the word has changed: the loop reads it again. */
static inline struct kbi_task *task_of(pthread_t t)
{
	struct kbi_task **word = address_in_thread(t, &kbi_self_tls), *task, *hidden;

	if (!t)
		return NULL;
	do {
		/* acquire: partner is the release in kbi_foreign_hide, before which `hidden` was set */
		task = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		/* acquire: partner is the thread's path from its child's end to its own end, which contains
		 * system calls */
		hidden = __atomic_load_n(&kbi_posix_record(t)->hidden, __ATOMIC_ACQUIRE);
	} while (kbi_unlikely(__atomic_load_n(word, __ATOMIC_RELAXED) != task));
	return kbi_unlikely(hidden != NULL) ? hidden : task;
}

struct kbi_task *kbi_posix_task(pthread_t t)
{
	return task_of(t);
}

struct kb_thread *kbi_posix_thread(pthread_t id, bool *gone)
{
	struct kbi_task *task = task_of(id);
	struct kb_thread *t = kbi_thread_of(task);

	*gone = !id;
	/* acquire: partner is the release when the descriptor is given back, after the thread's pointer
	 * to the descriptor has been cleared */
	if (!task || kbi_state_kind(a_load_acq(&task->state)) == KBI_TASK_FOREIGN)
		return NULL;
	if (t->is_main)
		return t;
	if (kbi_unlikely(task_of(id) != task))
		return NULL; /* a kernel thread that is ending at this moment */
	/* the block of a joined thread still names its last descriptor, which may serve another thread
	 * by now */
	*gone = !t->stack || !t->stack->has_tcb || t->stack->tcb.pthread != (uintptr_t)id;
	return *gone ? NULL : t;
}

/* ---- by number ------------------------------------------------------------------------------- */

bool kbi_posix_lives(const struct kb_thread *t)
{
	/* acquire: partner is the release in kbi_thread_dispose */
	enum kbi_task_kind kind = kbi_state_kind(a_load_acq(&t->task.state));

	/* acquire: partner is the release in posix/thread.c, publish_light_thread */
	return !kbi_posix_forked && kind != KBI_TASK_FREE && kind != KBI_TASK_DONE &&
	       kind != KBI_TASK_FOREIGN &&
	       __atomic_load_n(&t->posix, __ATOMIC_ACQUIRE);
}

struct kb_thread *kbi_posix_find(long number)
{
	if (kbi_posix_forked || !kbi_vp_n || (number < (long)KBI_TID_BASE && number != getpid()))
		return NULL;
	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++) {
		struct kb_thread *t = kbi_descriptor_at(i);

		if (t && (long)a_load_rlx(&t->number) == number && kbi_posix_lives(t))
			return t;
	}
	return NULL;
}

int kbi_posix_owner_tid(void)
{
	struct kbi_task *self = kbi_posix_light();

	/* a lightweight thread on a kernel thread of its own, for a call or for good, keeps its
	 * number */
	if (!self)
		self = kbi_self_raw();
	if (!self || kbi_posix_forked || (!self->vp && !kbi_handoff_is_away(kbi_thread_of(self))))
		return kbi_sys_gettid();
	if (kbi_thread_of(self)->is_main)
		return getpid();
	return (int)kbi_tcb_tid(&kbi_thread_of(self)->stack->tcb);
}

/* ---- the first frame ------------------------------------------------------------------------- */

static void *call_thread_function(void *(*fn)(void *), void *arg)
{
	if (kbi_posix_me.c11)
		return (void *)(intptr_t)((int (*)(void *))(uintptr_t)fn)(arg);
	return fn(arg);
}

/* Waits until each signal that another thread is sending to the caller for a cancellation has
 * arrived. Otherwise the next thread on this kernel thread could get EINTR from that signal. */
void kbi_posix_settle(void)
{
	struct kbi_task *self = kbi_posix_light();

	if (!self)
		return;
	/* acquire: partner is the release in posix/cancel.c, call_out */
	for (unsigned n = 0; a_load_acq(&kbi_thread_of(self)->calling); n++)
		kbi_sys_yield_to_holder(n);
	kbi_sys_gettid();
}

/* Runs fn(arg) above a jump buffer. pthread_exit and cancellation unwind the stack to this buffer,
 * through destructors and cleanup handlers, and jump. */
void *kbi_posix_frame(void *(*fn)(void *), void *arg)
{
	__pthread_unwind_buf_t buf KBI_ALIGNED(16);
	void *result;

	if (kbi_posix_setjmp(buf.__cancel_jmp_buf, 0)) {
		if (!kbi_posix_me.exiting) /* cancelled; main's frame must know that main does not return */
			kbi_posix_me.exit_value = PTHREAD_CANCELED;
		kbi_posix_me.exiting = 1;
		result = kbi_posix_me.exit_value;
		kbi_posix_settle();
	} else {
		__pthread_register_cancel(&buf);
		kbi_posix_me.frame = (struct __jmp_buf_tag *)(void *)buf.__cancel_jmp_buf;
		result = call_thread_function(fn, arg);
	}
	__pthread_unregister_cancel(&buf);
	return result;
}

KBI_POSIX_API void pthread_exit(void *value)
{
	kbi_posix_me.exit_value = value;
	kbi_posix_me.exiting = 1;
	kbi_libc()->pthread_exit(value);
	__builtin_unreachable();
}

void kbi_posix_exit_by_number(void)
{
	kbi_posix_me.exit_value = NULL;
	kbi_posix_me.exiting = kbi_posix_me.at_once = 1;
	kbi_libc()->siglongjmp(kbi_posix_me.frame, 1);
	__builtin_unreachable();
}

KBI_POSIX_API void thrd_exit(int value)
{
	pthread_exit((void *)(intptr_t)value);
}
