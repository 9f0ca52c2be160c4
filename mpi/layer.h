/* mpi/layer.h - shared by the layer's files: whether a call goes straight to MPI, and how a thread
 * waits for a request.
 *
 * A call goes straight to MPI while the program has a single thread: then no other thread gains if
 * the caller waits otherwise, and the layer costs only a load and a branch. With more threads a
 * call is begun in its non-blocking form; a thread with an incomplete request waits (poll.c).
 * "Lending" means that the caller blocks in MPI while another kernel thread runs its virtual
 * processor (kb_blocking_begin).
 *
 * Callers: all of mpi/. */
#ifndef KBM_LAYER_H
#define KBM_LAYER_H

#include <kochab/kochab.h>

#include "base/atom.h"
#include "real.h"

/* Without the runtime these are NULL, and all calls go straight to MPI. */
#pragma weak kb_thread_ever
#pragma weak kb_thread_ever_reset
#pragma weak kb_thread_count
#pragma weak kb_option
#pragma weak kb_vp_self
#pragma weak kb_vp_count
#pragma weak kb_vp_idle
#pragma weak kb_now
#pragma weak kb_yield
#pragma weak kb_sem_wait
#pragma weak kb_sem_trywait
#pragma weak kb_sem_timedwait
#pragma weak kb_sem_post
#pragma weak kb_blocking_begin
#pragma weak kb_blocking_end

/* Constant between MPI_Init and MPI_Finalize, except `told` and `dynamic`. */
struct kbm_layer {
	/* points to 0: there is one thread besides MPI's own; before and after MPI: to a constant 0 */
	const uint32_t *ever;
	uint64_t poll_ns;      /* option mpi_poll, ns */
	uint64_t tell_ns;      /* option mpi_tell, ns */
	/* POSIX's functions are the runtime's, so a thread that polls for all must not be cancelled */
	bool drop_in;
	bool nonblocking;      /* collective calls are begun in their non-blocking form, on all ranks */
	/* 1: the program has set an error handler of a communicator; from then on each error must reach
	 * the right handler */
	a32 told;
	a32 dynamic;           /* 1: the program has met processes of another MPI_COMM_WORLD */
};
extern KBI_HIDDEN struct kbm_layer kbm_layer;

/* not 0: the calling kernel thread is inside MPI, so MPI's own calls by its public names go
 * straight */
extern KBI_HIDDEN __thread int kbm_inside;

/* The slow part of kbm_straight. Returns false if other threads may run while the caller, a
 * lightweight thread, waits. */
bool kbm_is_alone(void);

/* Returns whether the call goes straight to MPI. */
static inline bool kbm_straight(void)
{
	return kbi_likely(!*kbm_layer.ever) || kbm_is_alone();
}

/* Returns whether a collective call on comm is made in its blocking form; equal on all ranks of
 * comm. */
bool kbm_is_blocking(MPI_Comm comm);
/* As kbm_is_blocking, for a call in which neighbours exchange blocks (mend.c). */
bool kbm_neighbours_block(MPI_Comm comm);
/* Corrects this MPI's wrong non-blocking forms, by replacing pointers of kbm_real. */
void kbm_mend(void);

/* Between the two calls the caller may block in MPI. kbm_lend returns the argument for kbm_lent.
 * Both may suspend. */
bool kbm_lend(void);
void kbm_lent(bool lent);

/* Waits until *request is complete, as MPI_Wait, with its result. call: its name in reports,
 * constant. May suspend. */
int kbm_finish(MPI_Request *request, MPI_Status *status, const char *call);

/* An object that a thread waits for: a request, or a test. It lies on the waiting thread's
 * stack. */
struct kbm_wait;
typedef bool kbm_test(struct kbm_wait *w);

enum kbm_state {
	KBM_PENDING, /* in the poller's table, or on the way there */
	KBM_LEADS,   /* as PENDING, and its thread is the leader: it polls for all */
	KBM_DONE,    /* complete; only its thread uses it */
	KBM_LEFT,    /* given up before it was complete; only its thread uses it */
};

struct kbm_wait {
	/* NULL: a request. Else returns true when complete, and sets error; called by the leader */
	kbm_test *test;
	MPI_Request request; /* the handle; when complete, MPI's new handle */
	MPI_Status status;   /* of a request, when complete */
	int error;           /* when complete: MPI's error code */
	const char *call;
	const void *about;   /* for reports: the communicator's handle, or NULL */
	int peer, tag;       /* for reports, if about is set */
	uint64_t deadline;
	a32 state;           /* enum kbm_state; written by the leader */
	a32 leaves;          /* 1: its thread has given up; written by that thread */
	kb_sem_t sem;        /* the thread sleeps here */
	struct kbm_wait *next;
};

/* Waits until w is complete. The caller has set w->call, w->deadline and either w->test or
 * w->request; all other fields are zero. Returns 0; ETIMEDOUT: the deadline came first. May
 * suspend. */
int kbm_wait(struct kbm_wait *w);

#endif
