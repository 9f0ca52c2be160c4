/* core/foreign.h - kernel threads that Kochab did not create. They may use every object, and
 * wait by blocking their kernel thread in a futex.
 * Callers: core, sync/waitq, posix, on the foreign kernel thread's stack unless a comment says
 * otherwise. No locks held; never switches. */
#ifndef KBI_FOREIGN_H
#define KBI_FOREIGN_H

#include "core/descriptor.h"

/* Gives the calling kernel thread a descriptor and returns its task. The descriptor is freed
 * when the kernel thread ends. Aborts with a message if there is no descriptor. */
struct kbi_task *kbi_foreign_enter(void);
/* In the child of fork: resets the key if a kernel thread that is not in the child was making
 * it. */
void kbi_foreign_after_fork(void);
/* A void (struct kb_thread *), called on a foreign kernel thread at its end, while it has a
 * descriptor. NULL: nothing to do. */
extern KBI_HIDDEN aptr kbi_foreign_at_end;
/* Sleeps until woken (0) or until the deadline (CLOCK_MONOTONIC ns, UINT64_MAX: none) has come
 * (ETIMEDOUT). */
int kbi_foreign_sleep(struct kbi_task *self, uint64_t deadline);
void kbi_foreign_wake(struct kbi_task *t);
/* Sleeps until *word differs from `seen`: many kernel threads share the word and are woken by
 * one system call. A wake-up of self alone does not end the sleep; a signal handler does (0).
 * ETIMEDOUT as above. */
int kbi_foreign_sleep_at(struct kbi_task *self, const a32 *word, uint32_t seen, uint64_t deadline);
/* The calling kernel thread becomes a VP's worker, and its descriptor a thread's. */
void kbi_foreign_leave(struct kb_thread *t);
/* For a child of vfork, which goes on in the caller's place and memory: hide makes the caller, a
 * lightweight thread that cannot be preempted, a kernel thread without a task until show. */
void kbi_foreign_hide(void);
void kbi_foreign_show(struct kbi_task *self);
/* Uncounts the calling kernel thread, which is the library's own and wakes no thread by itself. */
void kbi_foreign_disown(void);
/* Undoes kbi_foreign_enter for the calling kernel thread, which will not use objects until it
 * says so. Returns false if this cannot be undone. */
bool kbi_foreign_undo(void);
/* Returns the number of foreign kernel threads. */
uint32_t kbi_foreign_count(void);

#endif
