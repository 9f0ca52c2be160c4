/* example/hello.c - ten thousand lightweight threads; each waits for its neighbour and wakes the next. */
#include <kochab/kochab.h>
#include <stdio.h>

enum { THREADS = 10000 };

static kb_sem_t turn[THREADS + 1];
static kb_thread_t thread[THREADS];
static unsigned passed;

static void *neighbour(void *arg)
{
	size_t i = (size_t)arg;

	kb_sem_wait(&turn[i]);
	passed++;
	kb_sem_post(&turn[i + 1]);
	return NULL;
}

int main(void)
{
	uint64_t start;

	for (size_t i = 0; i < THREADS; i++) {
		if (kb_thread_create(&thread[i], NULL, neighbour, (void *)i) != 0)
			return 1;
	}
	start = kb_now();
	kb_sem_post(&turn[0]);
	kb_sem_wait(&turn[THREADS]);
	printf("%u threads woke each other, %.0f ns each\n", passed, (double)(kb_now() - start) / THREADS);
	for (size_t i = 0; i < THREADS; i++)
		kb_thread_join(thread[i], NULL);
	return passed == THREADS ? 0 : 1;
}
