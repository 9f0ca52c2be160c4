/* core/foreign.h - kernel threads that Kochab did not create: they may use every object, and wait by blocking
 * their kernel thread in a futex. */
#ifndef KBI_FOREIGN_H
#define KBI_FOREIGN_H

#include "core/descriptor.h"

/* Gives the calling kernel thread a descriptor; it is returned when the kernel thread ends. Aborts with a
 * message when there is none. */
struct kbi_task *kbi_foreign_enter(void);
/* In the child of fork: who was making the key is not there. */
void kbi_foreign_after_fork(void);
/* Called on such a kernel thread at its end, as long as it has a descriptor: a
 * void (struct kb_thread *). NULL: nothing to do. */
extern KBI_HIDDEN aptr kbi_foreign_at_end;
/* Sleeps until woken (0), or the deadline (CLOCK_MONOTONIC ns, UINT64_MAX none) has come (ETIMEDOUT). */
int kbi_foreign_sleep(struct kbi_task *self, uint64_t deadline);
void kbi_foreign_wake(struct kbi_task *t);
/* The same until *word is not `seen` any more: one word for many, who are woken by one system call. A wake-up of self alone
 * does not end it, a signal's handler does (0). */
int kbi_foreign_sleep_at(struct kbi_task *self, const a32 *word, uint32_t seen, uint64_t deadline);
/* The calling kernel thread becomes the body of a VP, its descriptor a thread's. */
void kbi_foreign_leave(struct kb_thread *t);
/* A child of vfork goes on in the caller's place, in its memory: the caller, a lightweight thread that cannot be
 * preempted, is nobody until it shows itself. */
void kbi_foreign_hide(void);
void kbi_foreign_show(struct kbi_task *self);
/* The calling kernel thread is the library's own, and wakes nobody by itself: it counts no more. */
void kbi_foreign_disown(void);
/* The calling kernel thread has used objects, but will not any more before it says so: as if it had not, or, false, that
 * cannot be. */
bool kbi_foreign_undo(void);
/* How many there are. */
uint32_t kbi_foreign_count(void);

#endif
