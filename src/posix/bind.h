/* posix/bind.h - a lightweight thread that asks the kernel for something that kernel threads have each of their own
 * (a tracee, a namespace, a filter, a nice value) keeps its kernel thread from then on: its virtual processor gets another.
 * If it has made another of its kernel thread, the threads that it creates are kernel threads made by that one, which have
 * what it has (posix/thread), and the runtime has its own kernel threads made by others (core/body_thread).
 * And the number by which a program knows a thread (gettid): its own and always the same, whichever kernel thread it is on.
 * Callers: posix/identity, attribute, affinity, futex, call_apart, thread. Binding does not switch. */
#ifndef KBI_BIND_H
#define KBI_BIND_H

#include "posix/posix.h"

/* Bits of kbi_posix_thread.bound. */
enum kbi_bind_why {
	KBI_BIND_WATCHED = 1, /* others are about this kernel thread: tracees, counters, timers */
	KBI_BIND_CHANGED = 2, /* the kernel thread will be another for good: it serves no other thread afterwards */
	KBI_BIND_PINNED = 4,  /* so far only by its affinity */
	KBI_BIND_MODEST = 8,  /* so far only by no_new_privs */
	KBI_BIND_ALONE = 16,  /* by what threads that it creates do not have */
	KBI_BIND_TURNED = 32, /* so far only in its turns and the like, which others can be given: os/heritage */
	KBI_BIND_POLICY = 64, /* so far only by its memory policy, which may be set back */
	KBI_BIND_OWN = KBI_BIND_CHANGED | KBI_BIND_PINNED | KBI_BIND_MODEST | KBI_BIND_TURNED | KBI_BIND_POLICY,
	KBI_BIND_KEPT = KBI_BIND_OWN | KBI_BIND_ALONE,
};

/* The caller has a kernel thread of its own when this returns; said once for each `what`, not for NULL. On kernel threads
 * it is remembered that what the caller creates is to be as the caller. Before there are other threads, and in a child of
 * vfork or fork: nothing. False, and nothing is to be changed: there are no more kernel threads. */
bool kbi_bind_self(const char *what, enum kbi_bind_why why);
/* As that; and errno EAGAIN with a line, where it is false. */
bool kbi_bind_change(const char *what, enum kbi_bind_why why);
/* That is not so any more; a lightweight thread whose kernel thread is as the others again is on a virtual processor. */
KBI_SWITCHES void kbi_bind_undo(enum kbi_bind_why why);
/* The threads that the caller creates are to be made by its kernel thread. */
static inline bool kbi_bind_makes_kernel_threads(void)
{
	return kbi_unlikely(a_load_rlx(&kbi_posix_me.bound) & KBI_BIND_OWN);
}
/* The caller, a kernel thread, has what its creator had, which was so bound. */
void kbi_bind_inherit(uint32_t bound);
/* Is the caller a lightweight thread, on a virtual processor or on a kernel thread that it keeps? */
bool kbi_bind_is_light(void);
/* The caller's number. */
int kbi_bind_number(void);
/* Is it the caller, for a function whose 0 is the caller? */
bool kbi_bind_is_self(long number);
/* The lightweight thread that has the number; NULL: none (a kernel thread's, or nobody's). */
static inline struct kb_thread *kbi_bind_find(long number)
{
	return kbi_posix_find(number);
}
/* Is it a lightweight thread's of the program, which has a number and has not ended? */
static inline bool kbi_bind_lives(const struct kb_thread *t)
{
	return kbi_posix_lives(t);
}
/* Is that thread there still? */
bool kbi_bind_has(struct kbi_signal_to to);
/* The kernel thread that t is on, or was on last, or would be: it is as all are that no thread has changed. */
int kbi_bind_shown(const struct kb_thread *t);
/* The kernel thread that t keeps and has changed; 0: it has none. */
int kbi_bind_kept(const struct kb_thread *t);
/* The thread that the kernel thread is with, for a call or for good; NULL. */
struct kb_thread *kbi_bind_keeper(int tid);
/* Eight bytes there may be read. Nobody has asked the kernel yet whether the program's pointer is one. */
bool kbi_bind_is_readable(const void *at);
/* What syscall() is asked for, in words of identity; false: the kernel's affair. *r as kernels give it. */
bool kbi_bind_syscall(long n, const long *a, long *r);

#endif
