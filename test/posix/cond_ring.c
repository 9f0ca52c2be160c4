/* A token goes round 1000 threads that each wait on a condition variable of their own. */
#include "test.h"

#include <pthread.h>
#include <unistd.h>

enum { THREADS = 1000, ROUNDS = 20 };

static struct seat {
	pthread_mutex_t m;
	pthread_cond_t c;
	int here;
} seats[THREADS];
static long passed;

static void *sit(void *arg)
{
	struct seat *s = arg, *next = s == &seats[THREADS - 1] ? &seats[0] : s + 1;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&s->m);
		while (!s->here)
			CHECK_EQ(pthread_cond_wait(&s->c, &s->m), 0);
		s->here = 0;
		passed++; /* only the thread that has the token writes */
		pthread_mutex_unlock(&s->m);
		pthread_mutex_lock(&next->m);
		next->here = 1;
		pthread_cond_signal(&next->c);
		pthread_mutex_unlock(&next->m);
	}
	return NULL;
}

int main(void)
{
	static pthread_t t[THREADS];
	size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN); /* aarch64: 128 KiB */
	pthread_attr_t a;

	pthread_attr_init(&a);
	CHECK_EQ(pthread_attr_setstacksize(&a, least < 65536 ? 65536 : least), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_mutex_init(&seats[i].m, NULL);
		pthread_cond_init(&seats[i].c, NULL);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], &a, sit, &seats[i]), 0);
	pthread_mutex_lock(&seats[0].m);
	seats[0].here = 1;
	pthread_cond_signal(&seats[0].c);
	pthread_mutex_unlock(&seats[0].m);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(passed, (long)THREADS * ROUNDS);
	return 0;
}
