/* kochab/task.h - tasks: functions that are run to their end by a few threads, for programs that split work into far
 * more pieces than threads are worth. A task costs no stack and no descriptor unless it suspends.
 *
 * Each virtual processor keeps a list of its tasks: it takes the newest, and processors that have none
 * take the oldest of another. A thread that waits for a group runs tasks of that group itself, newest first, on its
 * own stack; the rest are run by servers, lightweight threads with 256 KiB of stack (more by the option stack_size, if
 * that is larger) and TLS of their own. A task may suspend like any thread: on a mutex, a channel, a group, in kb_io
 * calls. Then another server goes on with the tasks, so a task that waits delays only threads for which it works.
 * A thread that waits for a group never runs
 * tasks of another group meanwhile: it may hold a mutex that such a task wants.
 * Conventions as in kochab/kochab.h. Calls that "may suspend" may also run tasks. No call is a cancellation
 * point. */
#ifndef KOCHAB_TASK_H
#define KOCHAB_TASK_H

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- groups --------------------------------------------------------------------------------------- */

/* Tasks that are waited for together. Belongs to the thread that has initialised it, which alone waits for it; any thread,
 * and its own tasks, may run tasks in it. Lies where you like, mostly on the stack; it must stay until the wait returns:
 * nothing looks whether it does, and tasks that end later write there.
 * Allocates nothing. */
typedef struct kb_group {
	void *owner;
	int64_t own;
	int64_t others;
	uint32_t error;
	uint32_t stopped;
	uint64_t reserved[2];
} kb_group_t;

/* Begins an empty group of the calling thread; starts the runtime. 0, and kb_init's errors. Does not suspend. */
KB_API int kb_group_init(kb_group_t *g);
/* Makes fn(arg) a task of the group. fn returns 0 or an errno value. 0; EINVAL: fn is NULL; EAGAIN: there is no thread
 * that could run it and none can be made; ENOMEM: 4,096 tasks wait on this virtual processor, or the caller is on
 * none, and there is no
 * memory: then the task has not been made. Does not suspend and does not run the task, so locks may be held. In a
 * thread on a virtual processor it costs some nanoseconds and allocates nothing while less than 4,096 wait there. */
KB_API int kb_group_run(kb_group_t *g, int (*fn)(void *), void *arg);
/* Waits until all tasks of the group have ended, runs some meanwhile; the group is empty and may be used again. The
 * first error of a task; ECANCELED: none, but kb_group_cancel was called; 0. EPERM: the group is another thread's. May
 * suspend. The caller sees the tasks' effects. */
KB_API int kb_group_wait(kb_group_t *g);
/* Tasks of the group that have not begun will not run, until the wait has returned; an error of a task does the same. Tasks
 * that run go on and may ask. Groups that they wait for are not told. Never suspend. */
KB_API void kb_group_cancel(kb_group_t *g);
KB_API int kb_group_cancelled(const kb_group_t *g);

/* ---- loops ---------------------------------------------------------------------------------------- */

/* fn(from, to, arg) for pieces of begin .. end - 1, in parallel, each of at most `grain` indices (0: some eight
 * pieces for each virtual processor). Each index is in a single piece. A piece's error (not 0) is returned, the first;
 * pieces that have not begun then are left out. EINVAL, EAGAIN and ENOMEM: as in kb_group_run, only before any piece has
 * begun; later the caller does by itself the work that cannot be given away. May suspend. */
KB_API int kb_parallel_for(size_t begin, size_t end, size_t grain, int (*fn)(size_t from, size_t to, void *arg), void *arg);

enum { KB_REDUCE_MAX = 1024 };
typedef int (*kb_part_t)(size_t from, size_t to, void *part, void *arg);
typedef void (*kb_join_t)(void *left, const void *right, void *arg);
/* Reduces begin .. end - 1 to a value of `n` bytes (EINVAL: 0, or above KB_REDUCE_MAX, or a function is NULL). *value holds
 * the neutral element at first and the result at the end. add(from, to, part, a) adds a piece to *part, which began as the
 * neutral element; join(left, right, a) adds *right to *left, its neighbour: the order is kept, so join need not be
 * commutative. With a grain that is not 0 the pieces and their joins are the same on any number of processors: so are
 * sums of floating-point numbers, to the last bit. Errors as kb_parallel_for; *value is undefined then. May suspend. */
KB_API int kb_reduce(size_t begin, size_t end, size_t grain, void *value, size_t n, kb_part_t add, kb_join_t join, void *a);

/* ---- futures -------------------------------------------------------------------------------------- */

/* A value that comes once. All zero: a future without a value. Any number of threads may wait. */
typedef struct kb_future {
	uint32_t word;
	uint32_t reserved;
	void *value;
	void *(*fn)(void *);
	void *arg;
} kb_future_t;
#define KB_FUTURE_INIT { 0, 0, 0, 0, 0 }

KB_API int kb_future_init(kb_future_t *f);
/* A task computes the value: fn(arg). Errors as kb_group_run; EBUSY: it has a function or a value. Does not suspend. */
KB_API int kb_future_run(kb_future_t *f, void *(*fn)(void *), void *arg);
/* Gives the value. EBUSY: it has a value, or a function that computes it. Never suspends. Touches nothing of the
 * future once a waiter may have seen the value: that thread may free it. */
KB_API int kb_future_set(kb_future_t *f, void *value);
/* Waits for the value (value may be NULL); runs the task itself if that has not begun and is the newest here. May suspend.
 * timed: ETIMEDOUT; it waits only. try: EAGAIN, never suspends. */
KB_API int kb_future_get(kb_future_t *f, void **value);
KB_API int kb_future_timedget(kb_future_t *f, void **value, uint64_t deadline);
KB_API int kb_future_try(kb_future_t *f, void **value);

#ifdef __cplusplus
}
#endif

#endif
