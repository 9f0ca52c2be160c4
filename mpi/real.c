/* mpi/real.c - finds MPI's own functions. Contract in real.h. Runs before any other code of the program calls MPI. */
#include "layer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

struct kbm_real kbm_real;

/* Name and place of each pointer. */
static const struct {
	const char *name;
	size_t offset;
} row[] = {
#define FIELD(name) { "PMPI_" #name, offsetof(struct kbm_real, name) },
#include "each.def"
};

/* The layer is linked with this library, so it is loaded. */
static void *library(void)
{
	void *mpi = dlopen(KBM_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);

	return mpi ? mpi : dlopen(KBM_LIBRARY, RTLD_LAZY | RTLD_GLOBAL);
}

/* The program's calls are for the library behind the layer, in the loader's order. Another MPI there has other handles. */
static void check_library(void *mpi)
{
	Dl_info its;
	void *behind = dlsym(RTLD_NEXT, "PMPI_Get_library_version");

	if (!behind || behind == dlsym(mpi, "PMPI_Get_library_version") || !dladdr(behind, &its))
		return;
	dprintf(STDERR_FILENO, "kochab: this layer is for %s, but the program is linked with %s\n", KBM_LIBRARY,
		its.dli_fname);
	_exit(126);
}

/* Says it and ends the program: whatever it called next would not be there. */
static KBI_NORETURN void miss(const char *name)
{
	dprintf(STDERR_FILENO, "kochab: %s has no %s: build libkochab-mpi again for this MPI, or run with --mpi no\n",
		KBM_LIBRARY, name);
	_exit(126);
}

__attribute__((constructor(101))) static void find_all(void)
{
	void *mpi = library();

	for (size_t i = 0; i < kbi_countof(row); i++) {
		void *f = mpi ? dlsym(mpi, row[i].name) : NULL;

		if (!f)
			miss(row[i].name);
		*(void **)((char *)&kbm_real + row[i].offset) = f;
	}
	check_library(mpi);
	kbm_mend();
}
