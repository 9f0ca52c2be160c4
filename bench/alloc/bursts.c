/* bench/alloc/bursts.c - a load of the sh6bench kind: each thread takes bursts of blocks, small
 * blocks more often than large blocks, and gives them back partly in the order of taking, partly in
 * reverse order, partly later.
 *   bursts [THREADS 4] [BURSTS 3000] [BLOCKS 1000] [LARGEST 1000] */
#include "alloc.h"

static long threads, bursts, blocks, largest;

static char *sized(uint64_t *seed)
{
	uint64_t a = next_random(seed), size = 1 + (a >> 8) % (uint64_t)largest;
	char *p = get_block((a & 7 ? 1 + size / 8 : size));

	p[0] = 1;
	return p;
}

/* Frees all but each third block; the rest follow during the next burst. */
static void give_back(char **block, char **late, long order)
{
	for (long i = 0; i < blocks; i++) {
		long at = order ? blocks - 1 - i : i;

		if (at % 3 == 0) {
			free(late[at]);
			late[at] = block[at];
		} else {
			free(block[at]);
		}
	}
}

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 0x9e3779b97f4a7c15u;
	char **block = calloc((size_t)blocks, sizeof *block), **late = calloc((size_t)blocks, sizeof *late);

	for (long b = 0; b < bursts; b++) {
		for (long i = 0; i < blocks; i++)
			block[i] = sized(&seed);
		give_back(block, late, b % 2);
	}
	for (long i = 0; i < blocks; i++)
		free(late[i]);
	free(late);
	free(block);
	return NULL;
}

int main(int argc, char **argv)
{
	threads = argument(argc, argv, 1, 4);
	bursts = argument(argc, argv, 2, 3000);
	blocks = argument(argc, argv, 3, 1000);
	largest = argument(argc, argv, 4, 1000);
	run_threads(threads, work);
	return 0;
}
