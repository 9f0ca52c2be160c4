/* core/descriptor.h - the descriptor of a thread: a task with an entry, a stack, a result, keys and a name.
 * Descriptors are type-stable for ever, so that a stale pointer in a wake-up finds one, and numbered.
 * Callers: core, posix. */
#ifndef KBI_DESCRIPTOR_H
#define KBI_DESCRIPTOR_H

#include "base/heap.h"
#include "base/san.h"
#include "core/task.h"
#include "mem/stack.h"

struct kbi_cell;
struct kbi_watch;

struct kb_thread {
	struct kbi_task task; /* first */
	/* line 1. The thread itself, its creator, its joiner */
	void *(*fn)(void *);  /* constant from NEW on */
	void *arg;
	void *result;         /* written by the thread, read after DONE by its joiner */
	aptr join;            /* who joins: NULL, a task, or one of the marks in thread.c */
	struct kbi_stack *stack; /* its stack; light threads get it at their first run */
	void **keys;          /* thread-specific data, NULL until first used */
	void *posix;          /* the drop-in's own record, NULL otherwise */
	a32 futex;            /* FOREIGN: permit; the kernel thread sleeps on it */
	uint8_t stack_class;  /* of a light thread's stack, mem/stack.h */
	bool own_tls : 1;
	bool user_stack : 1;
	bool is_main : 1;
	bool named : 1;
	bool heir_runs : 1;   /* at its end: the joiner has been resumed already */
	/* line 2. Owner VP, or who holds its domain */
	struct kbi_heap_node deadline KBI_ALIGNED(KBI_CACHE_LINE); /* in the VP's heap while it waits with one */
	struct kbi_watch *watch;       /* the memory word it waits for, or NULL */
	struct kbi_cell *got;          /* KBI_ARMED_MAIL: the cell a message came for, */
	uint64_t got_value;            /* and the message */
	/* line 3 */
	char name[16];        /* empty unless named */
	struct kbi_san san;
} KBI_ALIGNED(KBI_CACHE_LINE);

_Static_assert(sizeof(struct kb_thread) == 256, "a parked thread costs a page of stack and this");

static inline struct kb_thread *kbi_thread_of(struct kbi_task *t)
{
	return (struct kb_thread *)t;
}

/* Offset of kbi_self_tls from the thread pointer: the same in all TLS blocks; set at boot. */
extern ptrdiff_t kbi_self_offset;

/* Memory for the table and the notification bytes; idempotent, any thread, before anything else. Aborts with a
 * message when there is no address space. */
void kbi_descriptor_setup(void);
/* A descriptor in state NEW, or NULL: all are in use. vp: the VP the caller runs on, NULL: none. */
struct kb_thread *kbi_descriptor_alloc(struct kbi_vp *vp);
void kbi_descriptor_free(struct kbi_vp *vp, struct kb_thread *t);
/* By index, NULL where never used; the indices in use are below kbi_descriptor_limit(). */
struct kb_thread *kbi_descriptor_at(uint32_t index);
uint32_t kbi_descriptor_limit(void);
/* Is it a descriptor in use? */
bool kbi_descriptor_valid(const struct kb_thread *t);

#endif
