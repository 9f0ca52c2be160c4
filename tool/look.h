/* tool/look.h - another process that runs on Kochab, or its core file, as it is seen from outside:
 * nothing of it runs or stops for that, its memory is read (process_vm_readv). The process may be
 * damaged or hostile: the amount that is read is bounded, its content may be anything, and text
 * from it is printed through tool/text.c. Callers: ps, stack, top. */
#ifndef KOCHAB_TOOL_LOOK_H
#define KOCHAB_TOOL_LOOK_H

#include <sys/types.h>

#include "core/outside.h"

enum { LOOK_MOST = 1 << 22, LOOK_VPS = 1024, LOOK_TEXT = 256, LOOK_NAME = 64 };

struct look_segment {
	uint64_t at, end, offset; /* in the core file */
};

struct look_vp {
	uint32_t id;
	int tid;
	uint32_t idle;
	uint64_t thread; /* address of the descriptor of the thread that it runs, 0 */
	uint64_t switches, sleeps; /* so far */
};

struct look {
	int pid;   /* of a core file: the number that the process had, 0: unknown */
	int core;  /* the file, -1: a process */
	struct look_segment *segment;
	unsigned n_segments;
	uint64_t base;                       /* of the module that has the record */
	struct kbi_outside outside;
	struct kbi_options options;
	struct kbi_descriptor_table table;
	struct kbi_worker *workers;          /* an address there */
	bool processes;                      /* virtual processors are processes */
	bool metered;                        /* table.charged has the processor time of each thread */
	struct look_vp *vp;
	unsigned n_vps;
	/* look_threads */
	struct kb_thread *thread;            /* copies of the descriptors that are not free, by index */
	uint32_t n;
	bool cut;                            /* there are more, or the table ends in nowhere */
	char why[LOOK_TEXT];                 /* why a function has failed */
};

enum look_found {
	LOOK_FOUND,
	LOOK_ABSENT,   /* it has no Kochab */
	LOOK_OTHER,    /* of another build */
	LOOK_IDLE,     /* it has Kochab, which has not begun */
	LOOK_DENIED,   /* or it is not there any more: `why` */
};

/* Finds the tables. look_close follows in each case. */
enum look_found look_open(struct look *l, int pid);
enum look_found look_open_core(struct look *l, const char *file);
void look_close(struct look *l);
/* Returns false if not all n bytes can be read. */
bool look_read(const struct look *l, uint64_t at, void *to, size_t n);
/* Reads `n` bytes at each of `count` addresses. If a part of the n bytes cannot be read, that part
 * or all n are zero. */
void look_read_many(const struct look *l, const uint64_t *at, unsigned count, void *to, size_t n);
/* Copies the threads. Returns false with l->why. */
bool look_threads(struct look *l);
/* Return the copy of the thread with this index, or with its descriptor at this address; NULL. */
const struct kb_thread *look_at_index(const struct look *l, uint32_t index);
const struct kb_thread *look_at_address(const struct look *l, uint64_t address);
/* Returns the address of its descriptor. */
static inline uint64_t look_address(const struct look *l, const struct kb_thread *t)
{
	return (uint64_t)(uintptr_t)l->table.at + (uint64_t)t->task.index * sizeof(*t);
}
static inline enum kbi_task_kind look_kind(const struct kb_thread *t)
{
	return kbi_state_kind(a_load_rlx(&t->task.state));
}
/* Returns the name of the thread's state: "waiting" ...; "damaged" if the state has no name. */
const char *look_state(const struct kb_thread *t);
/* Returns its name, as it may be shown. */
const char *look_name(const struct kb_thread *t, char to[LOOK_NAME]);
/* Reads a file of /proc/PID as text, "" if it cannot be read; returns its length. The second
 * returns the parent, 0. */
size_t look_proc(int pid, const char *what, char *to, size_t size);
int look_parent(int pid);
/* Returns the process of the program to which the kernel thread belongs; 0: it does not belong to
 * the program. */
int look_process(const struct look *l, int tid);
/* Returns the kernel thread that the thread is on; 0: it is on no kernel thread, or that is not
 * known. */
int look_tid(const struct look *l, const struct kb_thread *t);
/* Returns the stack pointer of the thread's saved context, where its registers lie; 0: no saved
 * context is known. */
uint64_t look_stack(const struct kb_thread *t);

/* Returns the processor time of each thread, ns, by index, up to the last of look_threads; the
 * caller frees it. NULL: the program is not metered, or the times cannot be read. */
uint64_t *look_charged(const struct look *l);

/* ---- look_wait.c: the waits of threads ---- */

struct look_wait {
	const char *what;      /* "mutex" ...; NULL: not known */
	uint64_t object;       /* its address, or a number; 0 */
	int64_t owner;         /* index of the thread that holds it, or whose end is waited for, -1 */
	/* barrier: threads that are there, that are needed; poll: all descriptors */
	uint32_t some, all;
	bool timed;
	/* s, until it wakes by itself: at its deadline, or to look at a clock that may be set */
	double left;
};

/* Returns the waits of all threads of look_threads; the caller frees them. NULL: no memory. */
struct look_wait *look_waits(const struct look *l);
/* look_descriptor.c: tells waits for descriptors, of threads whose wait is not known yet. */
void look_descriptors(const struct look *l, struct look_wait *wait);
/* Writes the wait in words and returns `to`. */
const char *look_words(const struct look_wait *w, char *to, size_t size);

#endif
