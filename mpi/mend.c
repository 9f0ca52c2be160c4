/* mpi/mend.c - faults of an MPI that only threads with non-blocking calls meet. Collective calls
 * whose non-blocking form is wrong get other arguments, or the blocking form; one thread at a time
 * is in Open MPI's progress. kbm_mend runs before the program calls MPI, all other functions in the
 * program's threads. */
#include "layer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#ifdef OPEN_MPI
/* Open MPI 4.1, libnbc: where a count is not zero but its type has no bytes, one side waits for a
 * message that its partner does not send. Zero counts have the same meaning and work. libnbc reads
 * the counts before the call returns. */
static __typeof__(kbm_real.Ialltoallv) ialltoallv;
static __typeof__(kbm_real.Ialltoallw) ialltoallw;

static int count_partners(MPI_Comm comm)
{
	int n = 0, inter = 0;

	kbm_real.Comm_test_inter(comm, &inter);
	if ((inter ? kbm_real.Comm_remote_size : kbm_real.Comm_size)(comm, &n))
		return 0;
	return n;
}

static bool has_bytes(MPI_Datatype type)
{
	int size = 1;

	return type == MPI_DATATYPE_NULL || kbm_real.Type_size(type, &size) || size;
}

static int ialltoallv_mended(const void *from, const int n[], const int out[], MPI_Datatype type,
			     void *to, const int m[], const int in[], MPI_Datatype as, MPI_Comm comm,
			     MPI_Request *request)
{
	bool sends = from == MPI_IN_PLACE || has_bytes(type), receives = has_bytes(as);
	int *zeros, e;

	if (kbi_likely(sends && receives))
		return ialltoallv(from, n, out, type, to, m, in, as, comm, request);
	zeros = calloc((size_t)count_partners(comm) + 1, sizeof(*zeros));
	if (!zeros)
		return MPI_ERR_NO_MEM;
	e = ialltoallv(from, sends ? n : zeros, out, type, to, receives ? m : zeros, in, as, comm,
		       request);
	free(zeros);
	return e;
}

/* Returns counts that are zero where the type has no bytes; NULL: n needs no change, or there is no
 * memory. */
static int *mend_counts(const int n[], const MPI_Datatype types[], int count)
{
	int *mended = NULL;

	for (int i = 0; i < count; i++) {
		if (!n[i] || has_bytes(types[i]))
			continue;
		if (!mended) {
			mended = malloc((size_t)count * sizeof(*mended));
			if (!mended)
				return NULL;
			for (int k = 0; k < count; k++)
				mended[k] = n[k];
		}
		mended[i] = 0;
	}
	return mended;
}

static int ialltoallw_mended(const void *from, const int n[], const int out[],
			     const MPI_Datatype types[], void *to, const int m[], const int in[],
			     const MPI_Datatype as[], MPI_Comm comm, MPI_Request *request)
{
	int count = count_partners(comm), e;
	int *sends = from == MPI_IN_PLACE ? NULL : mend_counts(n, types, count),
	    *receives = mend_counts(m, as, count);

	e = ialltoallw(from, sends ? sends : n, out, types, to, receives ? receives : m, in, as, comm,
		       request);
	free(sends);
	free(receives);
	return e;
}

/* Open MPI 4.1: two threads in opal_progress at once complete a pending file request twice. Threads
 * that block in Open MPI take turns there, but MPI_Test does not ask whose turn it is; the leader
 * tests while another thread blocks in a call for which the virtual processor is lent. So one
 * thread at a time makes progress, for all; the function calls itself by way of its callbacks. */
static void (*progress)(void);
static a64 in_progress; /* pthread_self() of the thread in opal_progress; 0: none */

KBM_API void opal_progress(void);
void opal_progress(void)
{
	uint64_t self, holder;

	if (kbi_likely(!*kbm_layer.ever)) {
		progress();
		return;
	}
	self = (uint64_t)(uintptr_t)pthread_self();
	holder = a_load_rlx(&in_progress);
	if (holder == self) {
		progress();
		return;
	}
	/* acquire: partner is the release below */
	if (holder || !a_cas_acq(&in_progress, &holder, self)) {
		sched_yield();
		return;
	}
	progress();
	a_store_rel(&in_progress, 0);
}

static void mend_progress(void)
{
	*(void **)&progress = dlsym(RTLD_NEXT, "opal_progress");
}

void kbm_mend(void)
{
	mend_progress();
	ialltoallv = kbm_real.Ialltoallv;
	ialltoallw = kbm_real.Ialltoallw;
	kbm_real.Ialltoallv = ialltoallv_mended;
	kbm_real.Ialltoallw = ialltoallw_mended;
}

/* Chooses the blocking form for a ring of one or two ranks: left and right neighbour are then a
 * single rank, and libnbc confuses their blocks. */
bool kbm_neighbours_block(MPI_Comm comm)
{
	enum { MOST = 16 };
	int kind = MPI_UNDEFINED, n = 0, sizes[MOST], periods[MOST], at[MOST];

	if (kbm_is_blocking(comm))
		return true;
	if (kbm_real.Topo_test(comm, &kind) || kind != MPI_CART)
		return false;
	if (kbm_real.Cartdim_get(comm, &n) || n > MOST ||
	    kbm_real.Cart_get(comm, n, sizes, periods, at))
		return true;
	for (int i = 0; i < n; i++)
		if (periods[i] && sizes[i] <= 2)
			return true;
	return false;
}
#else
void kbm_mend(void)
{
}

bool kbm_neighbours_block(MPI_Comm comm)
{
	return kbm_is_blocking(comm);
}
#endif
