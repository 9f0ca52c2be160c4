/* fortran_threads.h - threads that call a function of Fortran's; compiled alone by fortran.sh. */
#ifndef KB_TEST_FORTRAN_THREADS_H
#define KB_TEST_FORTRAN_THREADS_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { FORTRAN_THREADS = 8 };

static void (*fortran_call)(int id);

static void *fortran_thread(void *arg)
{
	fortran_call((int)(intptr_t)arg);
	return NULL;
}

void run_threads(void (*f)(int id));
void run_threads(void (*f)(int id))
{
	pthread_t thread[FORTRAN_THREADS];

	fortran_call = f;
	for (int i = 0; i < FORTRAN_THREADS; i++)
		if (pthread_create(&thread[i], NULL, fortran_thread, (void *)(intptr_t)i))
			abort();
	for (int i = 0; i < FORTRAN_THREADS; i++)
		if (pthread_join(thread[i], NULL))
			abort();
}

#endif
