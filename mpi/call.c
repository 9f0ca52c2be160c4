/* mpi/call.c - the calls that calls.c does not generate: receiving, sending and receiving at once,
 * probing, waiting for requests. Each gives MPI's results of the call, by a non-blocking call and
 * the wait in poll.c. They run in the program's threads and may switch. */
#include "layer.h"

#include <stdlib.h>

/* ---- a request ------------------------------------------------------------------------------- */

/* Stores the status of a call for a single request: all fields but the error. */
static void give_status(MPI_Status *status, const MPI_Status *got)
{
	int error;

	if (status == MPI_STATUS_IGNORE)
		return;
	error = status->MPI_ERROR;
	*status = *got;
	status->MPI_ERROR = error;
}

static int finish_slowly(struct kbm_wait *w, MPI_Request *request, MPI_Status *status)
{
	w->request = *request;
	w->deadline = KB_FOREVER;
	kbm_wait(w);
	*request = w->request;
	give_status(status, &w->status);
	return w->error;
}

int kbm_finish(MPI_Request *request, MPI_Status *status, const char *call)
{
	struct kbm_wait w = { .call = call };
	int flag = 0, e = kbm_real.Test(request, &flag, status);

	return e || flag ? e : finish_slowly(&w, request, status);
}

static int finish_receive(MPI_Request *request, MPI_Status *status, const char *call, int source,
			  int tag, MPI_Comm comm)
{
	struct kbm_wait w = { .call = call, .peer = source, .tag = tag,
			      .about = (const void *)(uintptr_t)comm };
	int flag = 0, e = kbm_real.Test(request, &flag, status);

	return e || flag ? e : finish_slowly(&w, request, status);
}

/* ---- probing --------------------------------------------------------------------------------- */

struct probe {
	struct kbm_wait wait;
	MPI_Comm comm;
	int source, tag;
	MPI_Message *message; /* NULL: MPI_Probe */
	MPI_Status *status;
};

static bool test_probe(struct kbm_wait *w)
{
	struct probe *p = kbi_container(w, struct probe, wait);
	int flag = 0;

	w->error = p->message ?
			   kbm_real.Improbe(p->source, p->tag, p->comm, &flag, p->message, p->status) :
			   kbm_real.Iprobe(p->source, p->tag, p->comm, &flag, p->status);
	return flag || w->error;
}

static int wait_for_probe(struct probe *p, const char *call)
{
	p->wait = (struct kbm_wait){ .test = test_probe, .call = call, .deadline = KB_FOREVER,
				     .peer = p->source, .tag = p->tag,
				     .about = (const void *)(uintptr_t)p->comm };
	if (!test_probe(&p->wait))
		kbm_wait(&p->wait);
	return p->wait.error;
}

KBM_API int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct probe p = { .comm = comm, .source = source, .tag = tag, .status = status };

	return kbm_straight() || source == MPI_PROC_NULL ? kbm_real.Probe(source, tag, comm, status) :
							   wait_for_probe(&p, "MPI_Probe");
}

KBM_API int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message,
			MPI_Status *status)
{
	struct probe p = { .comm = comm, .source = source, .tag = tag, .message = message,
			   .status = status };

	return kbm_straight() || source == MPI_PROC_NULL ?
		       kbm_real.Mprobe(source, tag, comm, message, status) :
		       wait_for_probe(&p, "MPI_Mprobe");
}

/* Returns whether a receive must probe first. MPICH reports the errors of a receive request to
 * MPI_COMM_WORLD's handler, because the request does not know its communicator. So if the program
 * has set handlers, a receive probes for a message and then calls the blocking receive, which does
 * not wait. */
static bool tells_world(void)
{
#ifdef MPICH_VERSION
	return a_load_rlx(&kbm_layer.told);
#else
	return false;
#endif
}

static int await_message(int source, int tag, MPI_Comm comm, const char *call)
{
	struct probe p = { .comm = comm, .source = source, .tag = tag, .status = MPI_STATUS_IGNORE };

	return wait_for_probe(&p, call);
}

/* ---- many requests --------------------------------------------------------------------------- */

/* A wait by MPI_Waitany or MPI_Waitsome: the leader calls the matching MPI_Test... function on the
 * caller's own arrays. */
struct many {
	struct kbm_wait wait;
	int n;
	MPI_Request *requests;
	int *index; /* the index, or the indices */
	int *done;
	MPI_Status *status;
};

/* A wait by MPI_Waitall. It uses MPI_Testsome, because MPICH 4.0's MPI_Testall reports complete
 * persistent collective and partitioned requests as failed. */
struct all {
	struct kbm_wait wait;
	int n;
	MPI_Request *requests;
	MPI_Status *status; /* MPI_STATUSES_IGNORE, or the statuses so far */
	int *index;         /* index and part: room for n entries each */
	MPI_Status *part;
};

/* Completes the statuses. If some requests have failed, MPI_ERR_PENDING stays at requests that are
 * neither complete nor failed. */
static void complete_statuses(struct all *a)
{
	if (a->status == MPI_STATUSES_IGNORE)
		return;
	for (int i = 0; i < a->n; i++)
		if (a->status[i].MPI_ERROR == MPI_ERR_PENDING &&
		    (!a->wait.error || a->requests[i] == MPI_REQUEST_NULL))
			a->status[i].MPI_ERROR = MPI_SUCCESS;
}

static void store_statuses(struct all *a, int done)
{
	if (a->status == MPI_STATUSES_IGNORE)
		return;
	for (int i = 0; i < done; i++) {
		a->status[a->index[i]] = a->part[i];
		if (!a->wait.error)
			a->status[a->index[i]].MPI_ERROR = MPI_SUCCESS;
	}
}

static bool test_all(struct kbm_wait *w)
{
	struct all *a = kbi_container(w, struct all, wait);
	int done = 0;

	for (;;) {
		w->error = kbm_real.Testsome(a->n, a->requests, &done, a->index, a->part);
		if ((!w->error || w->error == MPI_ERR_IN_STATUS) && done != MPI_UNDEFINED)
			store_statuses(a, done);
		if (w->error || done == MPI_UNDEFINED) { /* no request is active */
			complete_statuses(a);
			return true;
		}
		if (!done)
			return false;
	}
}

/* Sets the statuses to MPI's values for requests that are not active. */
static void empty_statuses(struct all *a)
{
	MPI_Request none = MPI_REQUEST_NULL;
	MPI_Status empty;
	int flag;

	if (a->status == MPI_STATUSES_IGNORE || a->n <= 0)
		return;
	kbm_real.Test(&none, &flag, &empty);
	empty.MPI_ERROR = MPI_ERR_PENDING;
	for (int i = 0; i < a->n; i++)
		a->status[i] = empty;
}

static int wait_for_all(int n, MPI_Request requests[], MPI_Status *status)
{
	enum { FEW = 32 };
	int few[FEW], *index = n > FEW ? malloc((size_t)n * sizeof(*index)) : few;
	MPI_Status part_of_few[FEW], *part = n > FEW ? malloc((size_t)n * sizeof(*part)) :
						       part_of_few;
	struct all a = { { .test = test_all, .call = "MPI_Waitall", .deadline = KB_FOREVER },
			 n, requests, status, index, part };

	if (!index || !part) { /* without memory MPI itself waits, and with it the virtual processor */
		a.wait.error = kbm_real.Waitall(n, requests, status);
	} else {
		empty_statuses(&a);
		if (!test_all(&a.wait))
			kbm_wait(&a.wait);
	}
	if (n > FEW) {
		free(index);
		free(part);
	}
	return a.wait.error;
}

static bool test_any(struct kbm_wait *w)
{
	struct many *m = kbi_container(w, struct many, wait);
	int flag = 0;

	w->error = kbm_real.Testany(m->n, m->requests, m->index, &flag, m->status);
	return flag || w->error;
}

static bool test_some(struct kbm_wait *w)
{
	struct many *m = kbi_container(w, struct many, wait);

	w->error = kbm_real.Testsome(m->n, m->requests, m->done, m->index, m->status);
	return *m->done != 0 || w->error; /* MPI_UNDEFINED: no request is active */
}

static int wait_for_many(struct many *m, kbm_test *test, const char *call)
{
	m->wait = (struct kbm_wait){ .test = test, .call = call, .deadline = KB_FOREVER };
	if (!test(&m->wait))
		kbm_wait(&m->wait);
	return m->wait.error;
}

KBM_API int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
	return kbm_straight() ? kbm_real.Wait(request, status) :
				kbm_finish(request, status, "MPI_Wait");
}

KBM_API int PMPI_Waitall(int n, MPI_Request requests[], MPI_Status *status)
{
	return kbm_straight() || n < 0 ? kbm_real.Waitall(n, requests, status) :
					 wait_for_all(n, requests, status);
}

KBM_API int PMPI_Waitany(int n, MPI_Request requests[], int *index, MPI_Status *status)
{
	struct many m = { .n = n, .requests = requests, .index = index, .status = status };

	return kbm_straight() ? kbm_real.Waitany(n, requests, index, status) :
				wait_for_many(&m, test_any, "MPI_Waitany");
}

KBM_API int PMPI_Waitsome(int n, MPI_Request requests[], int *done, int indices[],
			  MPI_Status *status)
{
	struct many m = { .n = n, .requests = requests, .index = indices, .done = done,
			  .status = status };

	return kbm_straight() ? kbm_real.Waitsome(n, requests, done, indices, status)
			      : wait_for_many(&m, test_some, "MPI_Waitsome");
}

struct exposure {
	struct kbm_wait wait;
	MPI_Win win;
};

static bool test_exposure(struct kbm_wait *w)
{
	int flag = 0;

	w->error = kbm_real.Win_test(kbi_container(w, struct exposure, wait)->win, &flag);
	return flag || w->error;
}

KBM_API int PMPI_Win_wait(MPI_Win win)
{
	struct exposure x = { .wait = { .test = test_exposure, .call = "MPI_Win_wait",
					.deadline = KB_FOREVER },
			      .win = win };

	if (kbm_straight())
		return kbm_real.Win_wait(win);
	if (!test_exposure(&x.wait))
		kbm_wait(&x.wait);
	return x.wait.error;
}

KBM_API int MPI_Probe(int, int, MPI_Comm, MPI_Status *) __attribute__((alias("PMPI_Probe")));
KBM_API int MPI_Mprobe(int, int, MPI_Comm, MPI_Message *, MPI_Status *)
	__attribute__((alias("PMPI_Mprobe")));
KBM_API int MPI_Wait(MPI_Request *, MPI_Status *) __attribute__((alias("PMPI_Wait")));
KBM_API int MPI_Waitall(int, MPI_Request *, MPI_Status *) __attribute__((alias("PMPI_Waitall")));
KBM_API int MPI_Waitany(int, MPI_Request *, int *, MPI_Status *)
	__attribute__((alias("PMPI_Waitany")));
KBM_API int MPI_Waitsome(int, MPI_Request *, int *, int *, MPI_Status *)
	__attribute__((alias("PMPI_Waitsome")));
KBM_API int MPI_Win_wait(MPI_Win) __attribute__((alias("PMPI_Win_wait")));

/* ---- receiving, and sending at once; for both kinds of counts -------------------------------- */

#define C(name) name
#define COUNT int
#include "receive.h"
#undef C
#undef COUNT
#if MPI_VERSION >= 4
#define C(name) name##_c
#define COUNT MPI_Count
#include "receive.h"
#endif
