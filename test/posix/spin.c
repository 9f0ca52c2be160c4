/* matrix: run-only
 * Spin locks: 20 threads, more than there are processors, the owner yields with the lock (on kernel
 * threads that takes half a minute). */
#include "crowd.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum { THREADS = 20, TIMES = 300 };

static pthread_spinlock_t l;
static volatile long n;

static void *add(void *arg)
{
	for (int i = 0; i < TIMES; i++) {
		long seen;

		CHECK_EQ(pthread_spin_lock(&l), 0);
		seen = n;
		if (i % 16 == 0)
			sched_yield();
		n = seen + 1;
		CHECK_EQ(pthread_spin_unlock(&l), 0);
	}
	return arg;
}

int main(void)
{
	CHECK_EQ(pthread_spin_init(&l, PTHREAD_PROCESS_PRIVATE), 0);
	CHECK_EQ(pthread_spin_lock(&l), 0);
	CHECK_EQ(pthread_spin_trylock(&l), EBUSY);
	CHECK_EQ(pthread_spin_unlock(&l), 0);
	crowd_run(add, THREADS);
	CHECK_EQ(n, (long)THREADS * TIMES);
	CHECK_EQ(pthread_spin_destroy(&l), 0);
	return 0;
}
