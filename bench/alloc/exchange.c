/* bench/alloc/exchange.c - a load of the xmalloc kind: every thread takes batches of blocks of
 * random sizes and leaves them for any thread; and it gives back the blocks of batches that threads
 * have left.
 *   exchange [THREADS 8] [BATCHES 20000] [BLOCKS 120] [LARGEST 1000] */
#include "alloc.h"

struct batch {
	struct batch *next;
	char *block[];
};

static long threads, batches, blocks, largest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct batch *left;

static struct batch *swap_batch(struct batch *mine)
{
	struct batch *b;

	pthread_mutex_lock(&lock);
	b = left;
	if (b)
		left = b->next;
	if (mine) {
		mine->next = left;
		left = mine;
	}
	pthread_mutex_unlock(&lock);
	return b;
}

static struct batch *make_batch(uint64_t *seed)
{
	struct batch *b = get_block(sizeof *b + (size_t)blocks * sizeof *b->block);

	for (long i = 0; i < blocks; i++) {
		b->block[i] = get_block(1 + next_random(seed) % (uint64_t)largest);
		b->block[i][0] = 1;
	}
	return b;
}

static void end_batch(struct batch *b)
{
	for (long i = 0; i < blocks; i++)
		free(b->block[i]);
	free(b);
}

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 0x9e3779b97f4a7c15u;

	for (long i = 0; i < batches; i++) {
		struct batch *b = swap_batch(make_batch(&seed));

		if (b)
			end_batch(b);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct batch *b;

	threads = argument(argc, argv, 1, 8);
	batches = argument(argc, argv, 2, 20000);
	blocks = argument(argc, argv, 3, 120);
	largest = argument(argc, argv, 4, 1000);
	run_threads(threads, work);
	while ((b = swap_batch(NULL)))
		end_batch(b);
	return 0;
}
