/* OpenMP: a parallel sum, tasks that make tasks, a critical section and a lock, with more threads than processors.
 * Prints the same numbers whatever runs its threads. */
#include <omp.h>
#include <stdio.h>

static long fibonacci(int n)
{
	long a, b;

	if (n < 2)
		return n;
#pragma omp task shared(a) if (n > 8)
	a = fibonacci(n - 1);
	b = fibonacci(n - 2);
#pragma omp taskwait
	return a + b;
}

int main(void)
{
	long sum = 0, entered = 0, locked = 0, f = 0;
	omp_lock_t lock;

	omp_set_dynamic(0);
	omp_set_num_threads(8);
	omp_init_lock(&lock);
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 64)
	for (long i = 0; i < 100000; i++)
		sum += i * i % 7;
#pragma omp parallel
	for (int i = 0; i < 200; i++) {
#pragma omp critical
		entered++;
		omp_set_lock(&lock);
		locked++;
		omp_unset_lock(&lock);
#pragma omp barrier
	}
#pragma omp parallel
#pragma omp single
	f = fibonacci(18);
	printf("sum %ld critical %ld lock %ld fibonacci %ld\n", sum, entered, locked, f);
	return 0;
}
