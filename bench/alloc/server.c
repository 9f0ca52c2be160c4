/* bench/alloc/server.c - a load of the larson kind, as of a server: threads replace random blocks
 * of a table, one thread after the next on each table. So a block is freed by a different thread
 * than its creator, which has ended.
 *   server [THREADS 4] [TURNS 50] [REPLACEMENTS 50000] [BLOCKS 1000] [LARGEST 1000] */
#include "alloc.h"

struct table {
	uint64_t seed;
	char *block[];
};

static long threads, turns, replacements, blocks, largest;

static size_t any_size(uint64_t *seed)
{
	return 8 + next_random(seed) % (uint64_t)(largest - 7);
}

static char *fresh(uint64_t *seed)
{
	size_t n = any_size(seed);
	char *p = get_block(n);

	p[0] = p[n - 1] = (char)n;
	return p;
}

static void *turn(void *arg)
{
	struct table *t = arg;

	for (long i = 0; i < replacements; i++) {
		size_t at = next_random(&t->seed) % (uint64_t)blocks;

		free(t->block[at]);
		t->block[at] = fresh(&t->seed);
	}
	return NULL;
}

static void *serve(void *arg)
{
	struct table *t = get_block(sizeof *t + (size_t)blocks * sizeof *t->block);

	t->seed = (uintptr_t)arg * 0x9e3779b97f4a7c15u;
	for (long i = 0; i < blocks; i++)
		t->block[i] = fresh(&t->seed);
	for (long i = 0; i < turns; i++)
		pthread_join(start_thread(turn, t), NULL);
	for (long i = 0; i < blocks; i++)
		free(t->block[i]);
	free(t);
	return NULL;
}

int main(int argc, char **argv)
{
	threads = argument(argc, argv, 1, 4);
	turns = argument(argc, argv, 2, 50);
	replacements = argument(argc, argv, 3, 50000);
	blocks = argument(argc, argv, 4, 1000);
	largest = argument(argc, argv, 5, 1000);
	run_threads(threads, serve);
	return 0;
}
