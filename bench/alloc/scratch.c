/* bench/alloc/scratch.c - a load of the cache-scratch kind: main takes a small block for each
 * thread, side by side; each thread gives its own back, takes a new block and writes the block many
 * times. An allocator that hands the old place out again lets processors fight for a cache line.
 *   scratch [THREADS 2] [BLOCKS 2000] [WRITES 20000] [BYTES 8] */
#include "alloc.h"

static long threads, blocks, writes, bytes;
static char *first[1024];

static void *work(void *arg)
{
	free(first[(uintptr_t)arg - 1]);
	for (long i = 0; i < blocks; i++) {
		volatile char *p = get_block((size_t)bytes);

		for (long w = 0; w < writes; w++)
			p[w % bytes]++;
		free((void *)p);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	threads = argument(argc, argv, 1, 2);
	blocks = argument(argc, argv, 2, 2000);
	writes = argument(argc, argv, 3, 20000);
	bytes = argument(argc, argv, 4, 8);
	for (long i = 0; i < threads && i < 1024; i++)
		first[i] = get_block((size_t)bytes);
	run_threads(threads < 1024 ? threads : 1024, work);
	return 0;
}
