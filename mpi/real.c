/* mpi/real.c - finds MPI's own functions. Contract in real.h. Runs in a constructor, before the
 * program calls MPI. */
#include "layer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

struct kbm_real kbm_real;

/* The name and the place of each pointer. */
static const struct {
	const char *name;
	size_t offset;
} row[] = {
#define FIELD(name) { "PMPI_" #name, offsetof(struct kbm_real, name) },
#include "each.def"
};

/* Returns MPI's library, which is loaded, because the layer is linked with it. */
static void *open_mpi_library(void)
{
	void *mpi = dlopen(KBM_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);

	return mpi ? mpi : dlopen(KBM_LIBRARY, RTLD_LAZY | RTLD_GLOBAL);
}

/* Ends the program if its calls, in the loader's order, are for another library than the layer's:
 * another MPI has other handles. */
static void check_library(void *mpi)
{
	Dl_info its;
	void *behind = dlsym(RTLD_NEXT, "PMPI_Get_library_version");

	if (!behind || behind == dlsym(mpi, "PMPI_Get_library_version") || !dladdr(behind, &its))
		return;
	dprintf(STDERR_FILENO, "kochab: this layer is for %s, but the program is linked with %s\n",
		KBM_LIBRARY, its.dli_fname);
	_exit(126);
}

/* Reports a missing function and ends the program, which could call it next. */
static KBI_NORETURN void report_missing_function(const char *name)
{
	dprintf(STDERR_FILENO,
		"kochab: %s has no %s: build libkochab-mpi again for this MPI, or run with --mpi no\n",
		KBM_LIBRARY, name);
	_exit(126);
}

__attribute__((constructor(101))) static void find_mpi_functions(void)
{
	void *mpi = open_mpi_library();

	for (size_t i = 0; i < kbi_countof(row); i++) {
		void *f = mpi ? dlsym(mpi, row[i].name) : NULL;

		if (!f)
			report_missing_function(row[i].name);
		*(void **)((char *)&kbm_real + row[i].offset) = f;
	}
	check_library(mpi);
	kbm_mend();
}
