/* libc/emulate_odd: memory that was a part of a closed map is plain when it is mapped again, even
 * if the rest of that map is still closed, or was opened before: it can grow, and be moved. */
#define _GNU_SOURCE
#include "crowd.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 64, BYTES = PAGES * PAGE, ROUNDS = 8 };

static char *map(size_t bytes, int protection)
{
	char *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void grows(char *p, size_t bytes)
{
	memset(p, 'p', bytes);
	p = mremap(p, bytes, 2 * bytes, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(p[0], 'p');
	CHECK_EQ(p[bytes - 1], 'p');
	CHECK_EQ(p[bytes], 0);
	CHECK_EQ(p[2 * bytes - 1], 0);
	CHECK_EQ(munmap(p, 2 * bytes), 0);
}

/* from: the first page that goes. */
static void goes_in_part(int from, int open)
{
	char *p = map(BYTES, PROT_NONE), *part = p + (size_t)from * PAGE, *again;
	size_t bytes = BYTES / 4;

	if (open)
		CHECK_EQ(mprotect(part, bytes, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(munmap(part, bytes), 0);
	again = map(bytes, PROT_READ | PROT_WRITE); /* perhaps in the same place */
	grows(again, bytes);
	if (from)
		CHECK_EQ(munmap(p, (size_t)from * PAGE), 0);
	if (part + bytes < p + BYTES)
		CHECK_EQ(munmap(part + bytes, (size_t)(p + BYTES - part) - bytes), 0);
}

static void *maps(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		for (int from = 0; from < PAGES; from += PAGES / 4)
			goes_in_part(from, i % 2);
	return arg;
}

/* Opens the map in place: the guard below stays closed. */
static void *opens(void *arg)
{
	char *p = map(BYTES, PROT_NONE);

	CHECK_EQ(mprotect(p + BYTES / 2, BYTES / 2, PROT_READ | PROT_WRITE), 0);
	grows(p + BYTES / 2, BYTES / 2);
	CHECK_EQ(munmap(p, BYTES / 2), 0);
	return arg;
}

int main(void)
{
	crowd_run(maps, 1);
	crowd_run(opens, 1);
	crowd_run(maps, 4);
	return 0;
}
