/* kochab/task.h - tasks: functions that a few threads run to their end, for programs that split
 * work into far more pieces than it is worth to create threads. A task costs no stack and no
 * descriptor unless it suspends.
 *
 * Each virtual processor keeps a list of its tasks: it runs the newest first; a virtual processor
 * without tasks takes the oldest of another list. A thread that waits for a group runs tasks of
 * that group itself, newest first, on its own stack. All other tasks are run by servers:
 * lightweight threads with 256 KiB of stack (more if the option stack_size is larger) and TLS of
 * their own. A task may suspend like any thread: on a mutex, a channel, a group, in kb_io calls.
 * Then another server goes on with the tasks, so a waiting task delays only threads that wait for
 * its result. A thread that waits for a group never runs tasks of another group meanwhile, because
 * it may hold a mutex that such a task wants.
 *
 * Conventions as in kochab/kochab.h. Calls that "may suspend" may also run tasks. No call is a
 * cancellation point. */
#ifndef KOCHAB_TASK_H
#define KOCHAB_TASK_H

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- groups ---------------------------------------------------------------------------------- */

/* A set of tasks that are waited for together. It belongs to the thread that has initialised it:
 * only that thread waits for it; any thread, and the group's own tasks, may run tasks in it. It may
 * lie anywhere, usually on the stack, and must stay until the wait returns. Nothing checks this:
 * tasks that end later write to it. Allocates nothing. */
typedef struct kb_group {
	void *owner;
	int64_t own;
	int64_t others;
	uint32_t error;
	uint32_t stopped;
	uint64_t reserved[2];
} kb_group_t;

/* Begins an empty group that belongs to the calling thread; starts the runtime. Returns 0 or an
 * error of kb_init. Does not suspend. */
KB_API int kb_group_init(kb_group_t *g);
/* Makes fn(arg) a task of the group. fn returns 0 or an errno value. Returns 0; EINVAL: fn is NULL;
 * EAGAIN: there is no thread that could run the task and none can be made; ENOMEM: 4,096 tasks wait
 * on this virtual processor, or the caller is on none, and there is no memory. After an error the
 * task has not been made. Does not suspend and does not run the task, so the caller may hold locks.
 * In a thread on a virtual processor it costs some nanoseconds, and allocates nothing while less
 * than 4,096 tasks wait there. */
KB_API int kb_group_run(kb_group_t *g, int (*fn)(void *), void *arg);
/* Waits until all tasks of the group have ended, and runs some meanwhile. At return the group is
 * empty, may be used again, and the caller sees the tasks' effects. Returns the first error of a
 * task; else ECANCELED if kb_group_cancel was called; else 0. EPERM: the group belongs to another
 * thread. May suspend. */
KB_API int kb_group_wait(kb_group_t *g);
/* kb_group_cancel: until the wait has returned, tasks of the group that have not begun will not
 * run. An error of a task does the same. Tasks that run go on; they may ask kb_group_cancelled.
 * Groups that these tasks wait for are not cancelled. Never suspend. */
KB_API void kb_group_cancel(kb_group_t *g);
KB_API int kb_group_cancelled(const kb_group_t *g);

/* ---- loops ----------------------------------------------------------------------------------- */

/* Calls fn(from, to, arg) for pieces of begin .. end - 1, in parallel, each of at most `grain`
 * indices (0: some eight pieces for each virtual processor). Each index is in exactly one piece.
 * Returns the first error (not 0) of a piece; pieces that have not begun by then are left out.
 * EINVAL, EAGAIN and ENOMEM: as in kb_group_run, only before any piece has begun; later the caller
 * itself does the work that cannot be given away. May suspend. */
KB_API int kb_parallel_for(size_t begin, size_t end, size_t grain, int (*fn)(size_t from, size_t to, void *arg), void *arg);

enum { KB_REDUCE_MAX = 1024 };
typedef int (*kb_part_t)(size_t from, size_t to, void *part, void *arg);
typedef void (*kb_join_t)(void *left, const void *right, void *arg);
/* Reduces begin .. end - 1 to a value of `n` bytes. *value holds the neutral element at first and
 * the result at the end. add(from, to, part, a) adds a piece to *part, which began as the neutral
 * element. join(left, right, a) adds *right to *left, its neighbour; the order is kept, so join
 * need not be commutative. With a grain that is not 0 the pieces and their joins are the same on
 * any number of processors; so are sums of floating-point numbers, to the last bit. EINVAL: n is 0
 * or above KB_REDUCE_MAX, or a function is NULL. Other errors as kb_parallel_for. After an error
 * *value is undefined. May suspend. */
KB_API int kb_reduce(size_t begin, size_t end, size_t grain, void *value, size_t n, kb_part_t add, kb_join_t join, void *a);

/* ---- futures --------------------------------------------------------------------------------- */

/* A value that is set once. All zero: a future without a value. Any number of threads may wait for
 * it. */
typedef struct kb_future {
	uint32_t word;
	uint32_t reserved;
	void *value;
	void *(*fn)(void *);
	void *arg;
} kb_future_t;
#define KB_FUTURE_INIT { 0, 0, 0, 0, 0 }

KB_API int kb_future_init(kb_future_t *f);
/* Lets a task compute the value: fn(arg). Errors as kb_group_run; EBUSY: the future has a function
 * or a value. Does not suspend. */
KB_API int kb_future_run(kb_future_t *f, void *(*fn)(void *), void *arg);
/* Sets the value. EBUSY: the future has a value, or a function that computes it. Never suspends.
 * Once a waiter may have seen the value, kb_future_set touches nothing of the future: that thread
 * may free it. */
KB_API int kb_future_set(kb_future_t *f, void *value);
/* Wait for the value (value may be NULL). kb_future_get runs the task itself if it has not begun
 * and is the newest task here. May suspend. timed only waits: ETIMEDOUT. try: EAGAIN, never
 * suspends. */
KB_API int kb_future_get(kb_future_t *f, void **value);
KB_API int kb_future_timedget(kb_future_t *f, void **value, uint64_t deadline);
KB_API int kb_future_try(kb_future_t *f, void **value);

#ifdef __cplusplus
}
#endif

#endif
