/* crowd.h - makes n threads, each with its number, and joins them. */
#ifndef CROWD_H
#define CROWD_H

#include "test.h"

#include <pthread.h>

static inline void crowd_run(void *(*fn)(void *), long n)
{
	pthread_t t[n];

	for (long i = 0; i < n; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, fn, (void *)i), 0);
	for (long i = 0; i < n; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

#endif
