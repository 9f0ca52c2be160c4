/* mpi/begin.c - MPI's begin and end. Between them the layer's settings are fixed. Also decides for
 * each call whether there are other threads to run, and whether a communicator reaches beyond this
 * program's ranks. Before MPI_Init and after MPI_Finalize all calls go straight to MPI. Runs in the
 * program's threads; may switch. */
#include "layer.h"

#include <dlfcn.h>
#include <stdlib.h>

static const uint32_t never;
struct kbm_layer kbm_layer = { .ever = &never };
__thread int kbm_inside;

/* The number of threads that MPI made for itself in MPI_Init: they watch descriptors, and gain
 * nothing from the layer. Lowered when fewer threads live, so that a thread of the program is not
 * taken for one of MPI's for long. */
static a32 helpers;

bool kbm_is_alone(void)
{
	uint32_t its = a_load_rlx(&helpers), n = kb_thread_count();

	if (kbi_unlikely(n < its + 1))
		a_store_rlx(&helpers, n ? n - 1 : 0);
	return n < its + 2 || kbm_inside || kb_vp_self() < 0;
}

/* Returns whether other threads, MPI's own included, may run while the caller blocks. */
static bool is_beside_threads(void)
{
	return kbm_layer.ever != &never && !kbm_inside && kb_vp_self() >= 0 && kb_thread_count() > 1;
}

/* ---- lending the virtual processor ----------------------------------------------------------- */

bool kbm_lend(void)
{
	bool lent = is_beside_threads() && kb_blocking_begin() == 0;

	kbm_inside++; /* from here to kbm_lent the thread keeps its kernel thread, alone */
	return lent;
}

void kbm_lent(bool lent)
{
	kbm_inside--;
	if (lent)
		kb_blocking_end();
}

/* ---- collective calls ------------------------------------------------------------------------ */

static bool has_foreign_ranks(MPI_Group group)
{
	MPI_Group world;
	int n = 0, *from, *to;
	bool beyond = false;

	kbm_real.Comm_group(MPI_COMM_WORLD, &world);
	kbm_real.Group_size(group, &n);
	from = calloc((size_t)n * 2 + 1, sizeof(*from));
	to = from + n;
	for (int i = 0; from && i < n; i++)
		from[i] = i;
	if (!from || kbm_real.Group_translate_ranks(group, n, from, world, to))
		beyond = true;
	for (int i = 0; !beyond && i < n; i++)
		beyond = to[i] == MPI_UNDEFINED;
	free(from);
	kbm_real.Group_free(&world);
	return beyond;
}

/* Returns whether comm reaches processes of another MPI_COMM_WORLD, which have chosen the form of
 * their calls by themselves. All ranks get an equal answer. */
static bool is_foreign_comm(MPI_Comm comm)
{
	MPI_Group group;
	int inter = 0;
	bool beyond;

	if (kbm_real.Comm_group(comm, &group))
		return true;
	beyond = has_foreign_ranks(group);
	kbm_real.Group_free(&group);
	kbm_real.Comm_test_inter(comm, &inter);
	if (beyond || !inter || kbm_real.Comm_remote_group(comm, &group))
		return beyond;
	beyond = has_foreign_ranks(group);
	kbm_real.Group_free(&group);
	return beyond;
}

bool kbm_is_blocking(MPI_Comm comm)
{
	if (!kbm_layer.nonblocking || kbm_inside)
		return true;
	return kbi_unlikely(a_load_rlx(&kbm_layer.dynamic)) && comm != MPI_COMM_NULL &&
	       is_foreign_comm(comm);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static uint64_t value_of_option(const char *name)
{
	uint64_t value = 0;

	kb_option(name, &value);
	return value;
}

/* Chooses one form of collective calls for all ranks; these may have asked for different levels of
 * threads. */
static void settle_collectives(void)
{
	int level = MPI_THREAD_SINGLE, least = MPI_THREAD_SINGLE;

	kbm_real.Query_thread(&level);
	kbm_real.Allreduce(&level, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	kbm_layer.nonblocking = least == MPI_THREAD_MULTIPLE;
}

/* Returns whether POSIX's functions are the runtime's. */
static bool is_drop_in(void)
{
	Dl_info ours, posix;
	void *f = dlsym(RTLD_DEFAULT, "pthread_setcancelstate");

	return f && dladdr(f, &posix) && dladdr((void *)(uintptr_t)kb_vp_self, &ours) &&
	       ours.dli_fbase == posix.dli_fbase;
}

/* Fixes the settings. before: the number of threads when MPI_Init began. If it was 1, the threads
 * that have come since are MPI's. */
static void fix_layer_settings(uint32_t before)
{
	MPI_Comm parent = MPI_COMM_NULL;
	uint32_t now;

	if (!kb_thread_ever || !kb_thread_ever_reset || !kb_thread_count || !kb_option)
		return;
	settle_collectives();
	kbm_layer.drop_in = is_drop_in();
	kbm_real.Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		a_store_rlx(&kbm_layer.dynamic, 1);
	kbm_layer.poll_ns = value_of_option("mpi_poll") == UINT32_MAX ? UINT64_MAX :
		value_of_option("mpi_poll") * 1000;
	kbm_layer.tell_ns = value_of_option("mpi_tell") * 1000000000;
	now = kb_thread_count();
	a_store_rlx(&helpers, before == 1 && now > 1 ? now - 1 : 0);
	if (before == 1)
		kb_thread_ever_reset(); /* so that calls go straight until the program creates a thread */
	kbm_layer.ever = kb_thread_ever();
}

static uint32_t threads_now(void)
{
	return kb_thread_count ? kb_thread_count() : 0;
}

KBM_API int PMPI_Init(int *argc, char ***argv)
{
	uint32_t before = threads_now();
	int e;

	kbm_inside++;
	e = kbm_real.Init(argc, argv);
	if (e == MPI_SUCCESS)
		fix_layer_settings(before);
	kbm_inside--;
	return e;
}

KBM_API int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	uint32_t before = threads_now();
	int e;

	kbm_inside++;
	e = kbm_real.Init_thread(argc, argv, required, provided);
	if (e == MPI_SUCCESS)
		fix_layer_settings(before);
	kbm_inside--;
	return e;
}

KBM_API int PMPI_Finalize(void)
{
	bool lent = kbm_lend();
	int e;

	kbm_layer.ever = &never;
	kbm_layer.nonblocking = false;
	e = kbm_real.Finalize();
	kbm_lent(lent);
	return e;
}

/* ---- records of the program's calls ---------------------------------------------------------- */

KBM_API int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
	a_store_rlx(&kbm_layer.told, 1);
	return kbm_real.Comm_set_errhandler(comm, handler);
}

/* Calls that meet processes of another MPI_COMM_WORLD. */
#define MEETS(name, parameters, ...) \
	KBM_API int PMPI_##name parameters \
	{ \
		bool lent = kbm_lend(); \
		int e = kbm_real.name(__VA_ARGS__); \
\
		kbm_lent(lent); \
		a_store_rlx(&kbm_layer.dynamic, 1); \
		return e; \
	} \
	KBM_API int MPI_##name parameters __attribute__((alias("PMPI_" #name)));

MEETS(Comm_spawn,
	(const char *command, char *argv[], int n, MPI_Info info, int root, MPI_Comm comm,
	 MPI_Comm *made, int errors[]),
	command, argv, n, info, root, comm, made, errors)
MEETS(Comm_spawn_multiple,
	(int count, char *commands[], char **argvs[], const int n[], const MPI_Info infos[], int root,
	 MPI_Comm comm, MPI_Comm *made, int errors[]),
	count, commands, argvs, n, infos, root, comm, made, errors)
MEETS(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
	port, info, root, comm, made)
MEETS(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
	port, info, root, comm, made)
MEETS(Comm_join, (int fd, MPI_Comm *made), fd, made)

KBM_API int MPI_Init(int *, char ***) __attribute__((alias("PMPI_Init")));
KBM_API int MPI_Init_thread(int *, char ***, int, int *) __attribute__((alias("PMPI_Init_thread")));
KBM_API int MPI_Finalize(void) __attribute__((alias("PMPI_Finalize")));
KBM_API int MPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler)
	__attribute__((alias("PMPI_Comm_set_errhandler")));
