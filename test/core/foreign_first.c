/* core/boot: kernel threads use objects before the runtime is started, with a limit on threads that
 * is smaller than the default; then main starts it. */
#include <kochab/kochab.h>
#include <pthread.h>

#include "test.h"

static kb_mutex_t mutex;
static unsigned counter;
static kb_sem_t sem;

static void *counts(void *arg)
{
	for (int i = 0; i < 5000; i++) {
		kb_mutex_lock(&mutex);
		counter++;
		kb_mutex_unlock(&mutex);
	}
	return arg;
}

static void *waits(void *arg)
{
	CHECK_EQ(kb_sem_wait(&sem), 0);
	return arg;
}

int main(void)
{
	pthread_t p[4];
	static kb_thread_t t[3000];
	unsigned n = 0;

	CHECK_EQ(setenv("KOCHAB_MAX_THREADS", "2000", 1), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&p[i], NULL, counts, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(p[i], NULL), 0);
	CHECK_EQ(counter, 20000);
	CHECK_EQ(kb_init(), 0);
	while (n < 3000 && kb_thread_create(&t[n], NULL, waits, NULL) == 0)
		n++;
	CHECK(n > 200 && n < 2000);
	for (unsigned i = 0; i < n; i++)
		kb_sem_post(&sem);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	return 0;
}
