/* Threads that each multiply matrices with a BLAS that has threads of its own. Prints what does not depend on them. */
#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 256, THREADS = 4, TIMES = 5 };

static double trace[THREADS];

static void *multiply(void *arg)
{
	int me = (int)(long)arg;
	double *a = malloc(sizeof(double) * N * N), *b = malloc(sizeof(double) * N * N);
	double *c = malloc(sizeof(double) * N * N);

	for (int i = 0; i < N * N; i++) {
		a[i] = (i * 7 + me) % 11;
		b[i] = (i * 3) % 5;
	}
	for (int t = 0; t < TIMES; t++)
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, N, 1, a, N, b, N, 0, c, N);
	for (int i = 0; i < N; i++)
		trace[me] += c[i * N + i];
	free(a);
	free(b);
	free(c);
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, multiply, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		printf("%.0f\n", trace[i]);
	}
	return 0;
}
