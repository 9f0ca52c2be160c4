/* mpi/layer.h - shared by the layer's files: whether a call goes straight to MPI, and how a thread waits for a request.
 *
 * A call goes straight while the program has a single thread: then nobody gains from letting it wait, and the call costs a
 * load and a branch more than without the layer. With more threads a call is begun in its non-blocking form; a thread
 * with an incomplete request waits (poll.c). Callers: all of mpi/. */
#ifndef KBM_LAYER_H
#define KBM_LAYER_H

#include <kochab/kochab.h>

#include "base/atom.h"
#include "real.h"

/* Without the runtime the layer is not there: all calls go straight. */
#pragma weak kb_thread_ever
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

/* Constant between MPI_Init and MPI_Finalize, but for `told` and `dynamic`. */
struct kbm_layer {
	const uint32_t *ever;  /* not 0: there may be several threads. Before and after MPI: a word that is 0 */
	uint64_t poll_ns;      /* option mpi_poll */
	uint64_t tell_ns;      /* option mpi_tell */
	bool drop_in;          /* POSIX's threads are the runtime's: none is cancelled while it asks for all */
	bool nonblocking;      /* collective calls are begun in their non-blocking form, on all ranks */
	a32 told;              /* the program has set an error handler of a communicator: which runs is exact from then on */
	a32 dynamic;           /* it has met processes of another MPI_COMM_WORLD */
};
extern KBI_HIDDEN struct kbm_layer kbm_layer;

/* The calling kernel thread is inside MPI: MPI's own calls by its public names go straight. */
extern KBI_HIDDEN __thread int kbm_inside;

/* The rest of kbm_straight: false if other threads may run while the caller, a lightweight thread, waits. */
bool kbm_is_alone(void);

static inline bool kbm_straight(void)
{
	return kbi_likely(!*kbm_layer.ever) || kbm_is_alone();
}

/* A collective call on comm has its blocking form. The same on all ranks of comm. */
bool kbm_is_blocking(MPI_Comm comm);
/* The same for a call in which neighbours exchange blocks (mend.c). */
bool kbm_neighbours_block(MPI_Comm comm);
/* Puts right what is wrong in this MPI's non-blocking forms: behind kbm_real. */
void kbm_mend(void);

/* Between the two the caller may block in MPI; the second wants the answer of the first. */
bool kbm_lend(void);
void kbm_lent(bool lent);

/* Waits until *request is complete, as MPI_Wait. call: its name in reports, constant. */
int kbm_finish(MPI_Request *request, MPI_Status *status, const char *call);

/* The thing that a thread waits for besides a request. On the waiting thread's stack. */
struct kbm_wait;
typedef bool kbm_test(struct kbm_wait *w);

enum kbm_state {
	KBM_PENDING, /* in the poller's table, or on the way there */
	KBM_LEADS,   /* the same, and its thread polls for all */
	KBM_DONE,    /* its thread alone has it */
	KBM_LEFT,    /* the same: given up before it was complete */
};

struct kbm_wait {
	kbm_test *test;      /* NULL: a request. Else true when complete; sets error. Called by the thread that polls */
	MPI_Request request; /* its handle when complete */
	MPI_Status status;   /* of a request */
	int error;           /* when complete */
	const char *call;
	const void *about;   /* a report names it: the communicator's handle, or NULL */
	int peer, tag;       /* the same */
	uint64_t deadline;
	a32 state;           /* enum kbm_state. Written by the thread that polls */
	a32 leaves;          /* its thread has given up. Written by that thread */
	kb_sem_t sem;        /* the thread sleeps here */
	struct kbm_wait *next;
};

/* Waits until w is complete; w->test, or w->request, and w->call are set, all else is zero but deadline. 0; ETIMEDOUT: the
 * deadline came first. */
int kbm_wait(struct kbm_wait *w);

#endif
