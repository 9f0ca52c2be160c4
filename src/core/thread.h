/* core/thread.h - life of a lightweight thread: create, end, join, detach, yield.
 * Callers: api, posix. Calls wait, timer, run, mem/stack, os/tcb. */
#ifndef KBI_THREAD_H
#define KBI_THREAD_H

#include "core/descriptor.h"

struct kbi_thread_attr {
	size_t stack_size;  /* bytes, 0: default */
	void *stack_low;    /* the user's own stack, or NULL */
	int bound;          /* VP or -1 */
	bool detached;
	bool own_tls;
	bool system_scope;  /* a kernel thread of its own */
	const char *name;
	void *posix;        /* stored in kb_thread.posix before it can run */
	/* called on the new descriptor before it can run (posix: to publish the pthread_t), or NULL */
	void (*publish)(struct kb_thread *t, void *arg);
	void *publish_arg;
};

/* After kbi_boot. 0, EAGAIN, EINVAL, ENOTSUP (own TLS on this machine). */
int kbi_thread_create(struct kb_thread **out, const struct kbi_thread_attr *attr, void *(*fn)(void *), void *arg);
/* The same with all attributes plain, by a thread on a VP: self. */
int kbi_thread_create_light(struct kbi_task *self, struct kb_thread **out, void *(*fn)(void *), void *arg);
/* Why a wait should end early: an errno value; 0: it goes on. */
typedef int kbi_stop(struct kbi_task *self);

/* As kb_thread_join; deadline KBI_FOREVER or ETIMEDOUT; deadline 0: EBUSY if it has not ended.
 * stop (or NULL) is asked before each sleep; what it says other than 0 ends the wait, and t stays joinable. */
KBI_SWITCHES int kbi_thread_join(struct kb_thread *t, void **result, uint64_t deadline, kbi_stop *stop);
int kbi_thread_detach(struct kb_thread *t);
/* In the child of fork, t another thread of its parent, which has not come along: it is joined as if it had ended,
 * without a result if it had not done so before the fork. Its memory stays as it was. 0, EINVAL: it is detached, ESRCH. */
int kbi_thread_join_left(struct kb_thread *t, void **result);
bool kbi_thread_is_detached(const struct kb_thread *t);
KBI_SWITCHES void kbi_thread_exit(void *result) KBI_NORETURN;

/* The caller, on another stack than its thread's and on a VP, ends it as one that has crashed: no destructors run; join
 * says EOWNERDEAD. done(arg) is called on the next context's stack. */
KBI_SWITCHES void kbi_thread_lose(struct kb_thread *t, void (*done)(void *), void *arg) KBI_NORETURN;
/* Any kernel thread: those of system scope that ran in this process have ended with it. How many; each was told to. */
unsigned kbi_thread_lose_system(int pid, void (*told)(struct kb_thread *t));
/* One that was lost has been joined or detached. EOWNERDEAD. */
int kbi_thread_bury(struct kb_thread *t);

/* Once, at start, after kbi_stack_setup. ENOMEM. */
int kbi_thread_setup(void);

/* Hooks of the posix room, NULL without it. entry: runs fn(arg) with its own unwinding frame and returns
 * the result; exit: destructors of pthread keys kept in libc etc., called on the thread at its end; lost: instead of
 * exit in the place of one that has crashed. */
struct kbi_thread_hooks {
	void *(*entry)(struct kb_thread *t);
	void (*exit)(struct kb_thread *t);
	void (*lost)(struct kb_thread *t);
};
extern KBI_HIDDEN struct kbi_thread_hooks kbi_thread_hooks;

#endif
