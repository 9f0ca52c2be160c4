/* mpi/calls.c - makes functions of the rows of calls.def, each under both of its names. They run in
 * the program's threads and may switch. */
#include "layer.h"

#define MAKE_SENDS(name, start, parameters, ...) \
	KBM_API int PMPI_##name parameters \
	{ \
		MPI_Request request; \
		int e; \
\
		if (kbm_straight()) \
			return kbm_real.name(__VA_ARGS__); \
		e = kbm_real.start(__VA_ARGS__, &request); \
		return e ? e : kbm_finish(&request, MPI_STATUS_IGNORE, "MPI_" #name); \
	} \
	KBM_API int MPI_##name parameters __attribute__((alias("PMPI_" #name)));

#define MAKE_GATHERS(is_blocking, name, start, parameters, ...) \
	KBM_API int PMPI_##name parameters \
	{ \
		MPI_Request request; \
		int e; \
\
		if (is_blocking(comm)) { \
			bool lent; \
\
			if (kbm_straight()) \
				return kbm_real.name(__VA_ARGS__); \
			lent = kbm_lend(); \
			e = kbm_real.name(__VA_ARGS__); \
			kbm_lent(lent); \
			return e; \
		} \
		e = kbm_real.start(__VA_ARGS__, &request); \
		if (e) \
			return e; \
		return kbm_straight() ? kbm_real.Wait(&request, MPI_STATUS_IGNORE) \
				      : kbm_finish(&request, MPI_STATUS_IGNORE, "MPI_" #name); \
	} \
	KBM_API int MPI_##name parameters __attribute__((alias("PMPI_" #name)));

#define MAKE_LENDS(name, parameters, ...) \
	KBM_API int PMPI_##name parameters \
	{ \
		bool lent = kbm_lend(); \
		int e = kbm_real.name(__VA_ARGS__); \
\
		kbm_lent(lent); \
		return e; \
	} \
	KBM_API int MPI_##name parameters __attribute__((alias("PMPI_" #name)));

#define MAKE_TESTS(name, flag, parameters, ...) \
	KBM_API int PMPI_##name parameters \
	{ \
		int e = kbm_real.name(__VA_ARGS__); \
\
		if (!e && !*flag && !kbm_straight()) \
			kb_yield(); \
		return e; \
	} \
	KBM_API int MPI_##name parameters __attribute__((alias("PMPI_" #name)));

#define SENDS(name, start, parameters, ...) MAKE_SENDS(name, start, parameters, __VA_ARGS__)
#define GATHERS(name, start, parameters, ...) \
	MAKE_GATHERS(kbm_is_blocking, name, start, parameters, __VA_ARGS__)
#define SWAPS(name, start, parameters, ...) \
	MAKE_GATHERS(kbm_neighbours_block, name, start, parameters, __VA_ARGS__)
#define LENDS(name, parameters, ...) MAKE_LENDS(name, parameters, __VA_ARGS__)
#define TESTS(name, flag, parameters, ...) MAKE_TESTS(name, flag, parameters, __VA_ARGS__)
#include "calls.def"
#if MPI_VERSION >= 4
#define SENDS(name, start, parameters, ...) MAKE_SENDS(name, start, parameters, __VA_ARGS__)
#define GATHERS(name, start, parameters, ...) \
	MAKE_GATHERS(kbm_is_blocking, name, start, parameters, __VA_ARGS__)
#define SWAPS(name, start, parameters, ...) \
	MAKE_GATHERS(kbm_neighbours_block, name, start, parameters, __VA_ARGS__)
#define KBM_LARGE
#include "calls.def"
#endif
