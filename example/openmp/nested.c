/* example/openmp/nested.c - parallel regions inside parallel regions, which on kernel threads are slow: rows of a table are
 * added up in parallel, each of them by a team of its own. The program knows nothing of Kochab.
 * build: cc -O2 -fopenmp example/openmp/nested.c -o nested
 * run: kochab run ./nested */
#include <omp.h>
#include <stdio.h>

enum { ROWS = 64, COLUMNS = 4096 };

static int table[ROWS][COLUMNS];

static long add_row(const int *row)
{
	long sum = 0;

#pragma omp parallel for num_threads(8) reduction(+ : sum)
	for (int i = 0; i < COLUMNS; i++)
		sum += row[i];
	return sum;
}

int main(void)
{
	long sum = 0;
	double start;

	omp_set_max_active_levels(2);
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < COLUMNS; c++)
			table[r][c] = r ^ c;
	start = omp_get_wtime();
#pragma omp parallel for num_threads(4) reduction(+ : sum) schedule(dynamic)
	for (int r = 0; r < ROWS; r++)
		sum += add_row(table[r]);
	printf("%d regions inside a region, %.0f us each; the sum is %ld\n", ROWS, 1e6 * (omp_get_wtime() - start) / ROWS, sum);
	return sum == (long)ROWS * COLUMNS * (COLUMNS - 1) / 2 ? 0 : 1;
}
