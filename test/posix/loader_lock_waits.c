/* core/stock: threads hold the loader's locks and wait (a callback of dl_iterate_phdr that sleeps,
 * takes a mutex, is woken by another thread), and more threads than there are virtual processors
 * wait for these locks inside libc, in dl_iterate_phdr, dlopen, dlclose. The thread that ends the
 * wait runs all the same. */
/* timeout: 60 */
#define _GNU_SOURCE
#include "test.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

enum { WAITERS = 40, ROUNDS = 5 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t asked, answered;
static atomic_int inside, stop;

static int looks(struct dl_phdr_info *o, size_t size, void *n)
{
	(void)o, (void)size;
	++*(int *)n;
	return 0;
}

/* Called once in each walk: a thread that waits here has the loader's lock. */
static int waits(struct dl_phdr_info *o, size_t size, void *n)
{
	(void)o, (void)size;
	if ((*(int *)n)++)
		return 0;
	inside++;
	usleep(5000);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	sem_post(&asked);
	while (sem_wait(&answered))
		;
	return 0;
}

static void *holds(void *unused)
{
	while (!stop) {
		pthread_mutex_lock(&mutex);
		usleep(1500);
		pthread_mutex_unlock(&mutex);
		usleep(100);
	}
	return unused;
}

static void *answers(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (sem_wait(&asked))
			;
		usleep(1000);
		sem_post(&answered);
	}
	return unused;
}

static void *walks(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		int n = 0;

		CHECK_EQ(dl_iterate_phdr(waits, &n), 0);
		CHECK(n > 2);
	}
	return unused;
}

static void *wants_locks(void *arg)
{
	long me = (long)arg;

	while (!inside)
		usleep(500);
	for (int i = 0; i < ROUNDS; i++) {
		int n = 0;

		if (me % 4 == 0) {
			void *library = dlopen("libm.so.6", RTLD_NOW);

			CHECK(library != NULL);
			CHECK(dlsym(library, "cos") != NULL);
			CHECK_EQ(dlclose(library), 0);
		} else {
			CHECK_EQ(dl_iterate_phdr(looks, &n), 0);
			CHECK(n > 2);
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t holder, answerer, walker, id[WAITERS];

	CHECK_EQ(sem_init(&asked, 0, 0), 0);
	CHECK_EQ(sem_init(&answered, 0, 0), 0);
	CHECK_EQ(pthread_create(&holder, NULL, holds, NULL), 0);
	CHECK_EQ(pthread_create(&answerer, NULL, answers, NULL), 0);
	for (long i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, wants_locks, (void *)i), 0);
	CHECK_EQ(pthread_create(&walker, NULL, walks, NULL), 0);
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	CHECK_EQ(pthread_join(walker, NULL), 0);
	CHECK_EQ(pthread_join(answerer, NULL), 0);
	stop = 1;
	CHECK_EQ(pthread_join(holder, NULL), 0);
	return 0;
}
