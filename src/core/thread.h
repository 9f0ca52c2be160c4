/* core/thread.h - life of a lightweight thread: create, end, join, detach, yield.
 * Callers: api, boot, contain, sync, posix. Calls wait, timer, run, mem/stack, libc/tcb. */
#ifndef KBI_THREAD_H
#define KBI_THREAD_H

#include "core/descriptor.h"

struct kbi_thread_attr {
	size_t stack_size;  /* bytes; 0: default */
	void *stack_low;    /* the user's own stack, or NULL */
	int bound;          /* the VP that it is bound to, or -1 */
	bool detached;
	bool own_tls;
	bool system_scope;  /* a kernel thread of its own */
	const char *name;
	void *posix;        /* stored in kb_thread.posix before the thread can run */
	/* called on the new descriptor before the thread can run (posix: to publish the pthread_t), or
	 * NULL */
	void (*publish)(struct kb_thread *t, void *arg);
	void *publish_arg;
};

/* Creates a thread, after kbi_boot. Returns 0, EAGAIN, EINVAL, or ENOTSUP (own TLS on this
 * machine). */
int kbi_thread_create(struct kb_thread **out, const struct kbi_thread_attr *attr,
	void *(*fn)(void *), void *arg);
/* Creates a thread with plain attributes. self: the caller, on a VP. */
int kbi_thread_create_light(struct kbi_task *self, struct kb_thread **out, void *(*fn)(void *),
	void *arg);
/* Returns an errno value to end a wait early; 0: the wait goes on. */
typedef int kbi_stop(struct kbi_task *self);

/* Does kb_thread_join. At the deadline: ETIMEDOUT; deadline KBI_FOREVER: none; 0: EBUSY if t has
 * not ended. stop (or NULL) is asked before each sleep; any result but 0 ends the wait with it, and
 * t stays joinable. */
KBI_SWITCHES int kbi_thread_join(struct kb_thread *t, void **result, uint64_t deadline,
	kbi_stop *stop);
/* Detaches t. Returns 0, EINVAL: it is detached or has a joiner, or ESRCH. */
int kbi_thread_detach(struct kb_thread *t);
/* Joins t in the child of fork, where t, another thread of the parent, does not exist: as if t had
 * ended, with a NULL result if it had not ended before the fork. Its memory stays as it was.
 * Returns 0, EINVAL: it is detached, or ESRCH. */
int kbi_thread_join_left(struct kb_thread *t, void **result);
/* Returns true if t is detached and has not ended. */
bool kbi_thread_is_detached(const struct kb_thread *t);
/* Ends the calling thread with this result. */
KBI_SWITCHES void kbi_thread_exit(void *result) KBI_NORETURN;

/* Ends t as a thread that has crashed; called as t, on another stack than t's, on a VP. No
 * destructors run; join returns EOWNERDEAD. done(arg) is called on the next context's stack. */
KBI_SWITCHES void kbi_thread_lose(struct kb_thread *t, void (*done)(void *),
	void *arg) KBI_NORETURN;
/* Ends the threads of system scope that ran in process pid, which has ended. Returns their number;
 * told is called for each. Any kernel thread. */
unsigned kbi_thread_lose_system(int pid, void (*told)(struct kb_thread *t));
/* Frees a lost thread that has been joined or detached. Returns EOWNERDEAD. */
int kbi_thread_bury(struct kb_thread *t);

/* Prepares creation; once, at start, after kbi_stack_setup. Returns 0 or ENOMEM. */
int kbi_thread_setup(void);

/* Hooks of the posix room, NULL without it. entry: runs fn(arg) with its own unwinding frame and
 * returns the result; exit: runs destructors of pthread keys kept in libc etc., called on the
 * thread at its end; lost: called instead of exit in the place of a crashed thread. */
struct kbi_thread_hooks {
	void *(*entry)(struct kb_thread *t);
	void (*exit)(struct kb_thread *t);
	void (*lost)(struct kb_thread *t);
};
extern KBI_HIDDEN struct kbi_thread_hooks kbi_thread_hooks;

#endif
