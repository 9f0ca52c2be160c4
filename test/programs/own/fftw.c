/* A transform there and back on FFTW's own threads, several times: what comes out is what went in. */
#include <fftw3.h>
#include <math.h>
#include <stdio.h>

enum { N = 128, THREADS = 6 };

int main(void)
{
	fftw_complex *a = fftw_alloc_complex((size_t)N * N);
	double worst = 0;

	if (!fftw_init_threads())
		return 1;
	for (int threads = 1; threads <= THREADS; threads++) {
		fftw_plan there, back;

		fftw_plan_with_nthreads(threads);
		there = fftw_plan_dft_2d(N, N, a, a, FFTW_FORWARD, FFTW_ESTIMATE);
		back = fftw_plan_dft_2d(N, N, a, a, FFTW_BACKWARD, FFTW_ESTIMATE);
		for (int i = 0; i < N * N; i++) {
			a[i][0] = i % 23;
			a[i][1] = i % 5;
		}
		fftw_execute(there);
		fftw_execute(back);
		for (int i = 0; i < N * N; i++)
			worst = fmax(worst, fabs(a[i][0] / (N * N) - i % 23));
		fftw_destroy_plan(there);
		fftw_destroy_plan(back);
	}
	fftw_free(a);
	puts(worst < 1e-9 ? "as it was" : "not as it was");
	return 0;
}
