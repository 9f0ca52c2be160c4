/* bench/alloc/alloc2.c - the lecture's second program: in each pair of threads the first takes
 * blocks of 4 to 256 bytes and the second gives them back; 1024 at a time through a ring of 10,240.
 *   alloc2 [PAIRS 16] [BLOCKS 8388608] */
#include <semaphore.h>

#include "alloc.h"

enum { SIZES = 64, BATCH = 1024, RING = 10240 };

struct pair {
	int *block[RING];
	unsigned in, out;
	sem_t empty, occupied;
	pthread_t producer, consumer;
};

static long batches;

static void *produce(void *arg)
{
	struct pair *b = arg;

	for (long i = 0; i < batches; i++) {
		sem_wait(&b->empty);
		for (long j = 0; j < BATCH; j++) {
			b->block[b->in] = malloc(sizeof(int) * ((size_t)(j % SIZES) + 1));
			if (++b->in >= RING)
				b->in = 0;
		}
		sem_post(&b->occupied);
	}
	return NULL;
}

static void *consume(void *arg)
{
	struct pair *b = arg;

	for (long i = 0; i < batches; i++) {
		sem_wait(&b->occupied);
		for (long j = 0; j < BATCH; j++) {
			free(b->block[b->out]);
			if (++b->out >= RING)
				b->out = 0;
		}
		sem_post(&b->empty);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long pairs = argument(argc, argv, 1, 16);
	struct pair *pair = calloc((size_t)pairs, sizeof *pair);

	batches = argument(argc, argv, 2, 8 << 20) / BATCH;
	for (long i = 0; i < pairs; i++) {
		sem_init(&pair[i].empty, 0, RING / BATCH);
		sem_init(&pair[i].occupied, 0, 0);
		pair[i].producer = start_thread(produce, &pair[i]);
		pair[i].consumer = start_thread(consume, &pair[i]);
	}
	for (long i = 0; i < pairs; i++) {
		pthread_join(pair[i].producer, NULL);
		pthread_join(pair[i].consumer, NULL);
	}
	free(pair);
	return 0;
}
