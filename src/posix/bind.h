/* posix/bind.h - binding a lightweight thread to a kernel thread. A lightweight thread that asks
 * the kernel for a property of kernel threads (a tracee, a namespace, a filter, a nice value) keeps
 * its kernel thread from then on; its VP gets another kernel thread. If the thread has changed its
 * kernel thread, the threads that it creates are kernel threads made by that kernel thread, so they
 * inherit its properties (posix/thread). The runtime has its own kernel threads made by unchanged
 * kernel threads (core/worker_thread). Also the number by which a program knows a thread (gettid):
 * its own and constant, on whichever kernel thread it is.
 * Callers: posix/thread_attrs, affinity, attribute, call_child, cputimer, deputy, fork,
 * futex_owner, identity, uring_owner, kernel_threads, naming, number, path, proc. Binding does not
 * switch; kbi_bind_undo may. */
#ifndef KBI_BIND_H
#define KBI_BIND_H

#include "posix/posix.h"

/* Why a thread is bound: bits of kbi_posix_thread.bound. */
enum kbi_bind_why {
	/* tracees, counters or timers refer to this kernel thread */
	KBI_BIND_WATCHED = 1,
	/* the kernel thread is changed for good: it serves no other thread afterwards */
	KBI_BIND_CHANGED = 2,
	KBI_BIND_PINNED = 4,  /* so far changed only by its affinity */
	KBI_BIND_MODEST = 8,  /* so far changed only by no_new_privs */
	KBI_BIND_ALONE = 16,  /* changed by properties that threads which it creates do not inherit */
	/* so far changed only by scheduling and similar properties, which other kernel threads can be
	 * given: os/clone_attrs */
	KBI_BIND_TURNED = 32,
	KBI_BIND_POLICY = 64, /* so far changed only by its memory policy, which may be reset */
	KBI_BIND_OWN = KBI_BIND_CHANGED | KBI_BIND_PINNED | KBI_BIND_MODEST | KBI_BIND_TURNED |
		KBI_BIND_POLICY,
	KBI_BIND_KEPT = KBI_BIND_OWN | KBI_BIND_ALONE,
};

/* Makes sure that the caller has a kernel thread of its own; reports each `what` once, NULL never.
 * On a kernel thread: records that the threads which the caller creates inherit from it. Does
 * nothing before there are other threads, and in a child of vfork or fork. False: there are no more
 * kernel threads; the caller must not change anything. */
bool kbi_bind_self(const char *what, enum kbi_bind_why why);
/* As kbi_bind_self; if that is false, sets errno to EAGAIN and prints a line. */
bool kbi_bind_change(const char *what, enum kbi_bind_why why);
/* Removes reason `why`. A lightweight thread whose kernel thread is like the rest again returns to
 * a VP. */
KBI_SWITCHES void kbi_bind_undo(enum kbi_bind_why why);
/* Tests whether the threads that the caller creates are to be made by its kernel thread. */
static inline bool kbi_bind_makes_kernel_threads(void)
{
	return kbi_unlikely(a_load_rlx(&kbi_posix_me.bound) & KBI_BIND_OWN);
}
/* Records that the caller, a kernel thread, inherits from its creator, which was bound for these
 * reasons. */
void kbi_bind_inherit(uint32_t bound);
/* Tests whether the caller is a lightweight thread, on a VP or on a kernel thread that it keeps. */
bool kbi_bind_is_light(void);
/* Returns the caller's number. */
int kbi_bind_number(void);
/* Tests whether the number is the caller's, for a function in which 0 means the caller. */
bool kbi_bind_is_self(long number);
/* Returns the lightweight thread that has the number. NULL: none (the number is a kernel thread's,
 * or unused). */
static inline struct kb_thread *kbi_bind_find(long number)
{
	return kbi_posix_find(number);
}
/* Tests whether t is a lightweight thread of the program that has a number and has not ended. */
static inline bool kbi_bind_lives(const struct kb_thread *t)
{
	return kbi_posix_lives(t);
}
/* Tests whether that thread still exists. */
bool kbi_bind_has(struct kbi_signal_to to);
/* Returns the kernel thread on which t is, or was last, or would be: one that no thread has
 * changed. */
int kbi_bind_shown(const struct kb_thread *t);
/* Returns the kernel thread that t keeps and has changed; 0: none. */
int kbi_bind_kept(const struct kb_thread *t);
/* Returns the thread that has kernel thread tid for a call or for good; NULL: none. */
struct kb_thread *kbi_bind_keeper(int tid);
/* Tests whether eight bytes there can be read, for a pointer of the program that the kernel has not
 * been asked about. */
bool kbi_bind_is_readable(const void *at);
/* Performs syscall() where the call concerns a thread's identity; *r: the result as kernels give
 * it. False: not performed, the call is for the kernel. */
bool kbi_bind_syscall(long n, const long *a, long *r);

#endif
