/* bench/programs/openmp.c - the stencil with OpenMP: a parallel loop over the rows and its barrier. */
#include <omp.h>

#include "stencil.h"

static void prepare(int threads)
{
	omp_set_dynamic(0);
	omp_set_num_threads(threads);
}

static void sweep(square to, square from)
{
#pragma omp parallel for schedule(static)
	for (int y = 1; y < SIDE - 1; y++)
		stencil_row(to, from, y);
}

int main(int argc, char **argv)
{
	return stencil_main(argc, argv, prepare, sweep);
}
