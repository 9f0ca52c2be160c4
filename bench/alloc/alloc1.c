/* bench/alloc/alloc1.c - the lecture's first program: every thread takes blocks of 8 to 512 bytes
 * and gives each back at once; threads are detached, and main leaves before they end.
 *   alloc1 [THREADS 32] [BLOCKS 10000000] */
#include "alloc.h"

enum { SIZES = 64 };

static long blocks;

static void *work(void *arg)
{
	for (long i = 0; i < blocks; i++) {
		long *p = malloc(sizeof(long) * ((size_t)(i % SIZES) + 1));

		__asm__ volatile("" : : "r"(p) : "memory"); /* compilers know that the pair does nothing */
		free(p);
	}
	return arg;
}

int main(int argc, char **argv)
{
	long threads = argument(argc, argv, 1, 32);

	blocks = argument(argc, argv, 2, 10000000);
	for (long i = 0; i < threads; i++)
		pthread_detach(start_thread(work, NULL));
	pthread_exit(NULL);
}
