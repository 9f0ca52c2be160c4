/* mpi/native.c - waits for requests with a deadline: <kochab/mpi.h>. Runs in the program's
 * threads. */
#include "layer.h"

#include <errno.h>
#include <kochab/mpi.h>

struct all {
	struct kbm_wait wait;
	int n;
	int complete; /* this many requests, from the first on, have been seen complete */
	MPI_Request *requests;
	MPI_Status *status;
};

static bool test_request(struct kbm_wait *w)
{
	struct all *a = kbi_container(w, struct all, wait);
	int flag = 0;

	w->error = kbm_real.Test(a->requests, &flag, a->status);
	return flag || w->error;
}

/* Returns whether all requests are complete. A complete request stays complete until MPI_Waitall
 * takes it; the final MPI_Waitall finds all complete and does not wait. MPI_Testall would not do:
 * doc/why/mpi.md. A request that has failed is complete, and MPI_Waitall returns its error. */
static bool test_all(struct kbm_wait *w)
{
	struct all *a = kbi_container(w, struct all, wait);

	for (; a->requests && a->complete < a->n; a->complete++) {
		int flag = 0;

		if (!kbm_real.Request_get_status(a->requests[a->complete], &flag,
						 MPI_STATUS_IGNORE) &&
		    !flag)
			return false;
	}
	w->error = kbm_real.Waitall(a->n, a->requests, a->status);
	return true;
}

/* Tests until the deadline, in the program's only thread. */
static bool test_until_deadline(struct all *a, uint64_t deadline)
{
	bool done;

	while (!(done = a->wait.test(&a->wait)) && kb_now() < deadline)
		continue;
	return done;
}

static int wait_for_requests(struct all *a, uint64_t deadline)
{
	a->wait.deadline = deadline;
	if (deadline && kbm_straight())
		return test_until_deadline(a, deadline) ? a->wait.error : KB_MPI_TIMEDOUT;
	if (a->wait.test(&a->wait))
		return a->wait.error;
	return deadline == 0 || kbm_wait(&a->wait) ? KB_MPI_TIMEDOUT : a->wait.error;
}

KBM_API int kb_mpi_wait(MPI_Request *request, MPI_Status *status, uint64_t deadline)
{
	struct all a = { .wait = { .test = test_request, .call = "kb_mpi_wait" }, .n = 1,
			 .requests = request, .status = status };

	return wait_for_requests(&a, deadline);
}

KBM_API int kb_mpi_waitall(int n, MPI_Request requests[], MPI_Status statuses[], uint64_t deadline)
{
	struct all a = { .wait = { .test = test_all, .call = "kb_mpi_waitall" }, .n = n,
			 .requests = requests, .status = statuses };

	return wait_for_requests(&a, deadline);
}
