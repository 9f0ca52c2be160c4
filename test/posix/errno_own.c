/* errno is each thread's own, also where the compiler keeps its address over a switch. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { THREADS = 50 };

static void *set_and_look(void *arg)
{
	int mine = (int)(long)arg;

	for (int i = 0; i < 200; i++) {
		errno = mine;
		sched_yield();
		CHECK_EQ(errno, mine);
		if (i % 16 == 0) {
			close(-1);
			usleep(100);
			CHECK_EQ(errno, EBADF);
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, set_and_look, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
