/* MAP_FIXED_NOREPLACE maps only where nothing is mapped, and leaves existing mappings unchanged. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "test.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { PAGE = 4096, PAGES = 16 };

static char here[PAGE] __attribute__((aligned(4096)));

static void *place(void *at, size_t pages)
{
	return mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void is_taken(void *at, size_t pages)
{
	errno = 0;
	CHECK(place(at, pages) == MAP_FAILED);
	CHECK_EQ(errno, EEXIST);
}

/* Fills a gap between mappings: only the gap is free again. */
static void fills_gap(char *gap)
{
	CHECK_EQ(munmap(gap, 4 * PAGE), 0);
	is_taken(gap - PAGE, 2);
	is_taken(gap + 3 * PAGE, 2);
	CHECK(place(gap + PAGE, 2) == gap + PAGE);
	CHECK_EQ(gap[PAGE], 0);
	memset(gap + PAGE, 'p', 2 * PAGE);
	is_taken(gap, 2);
	is_taken(gap + 2 * PAGE, 1);
	CHECK(place(gap, 1) == gap);
	CHECK(place(gap + 3 * PAGE, 1) == gap + 3 * PAGE);
	CHECK(gap[0] == 0 && gap[4 * PAGE - 1] == 0);
	memset(gap, 'p', PAGE);
	memset(gap + 3 * PAGE, 'p', PAGE);
}

static void *tries(void *unused)
{
	char on_stack[PAGE], *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 'p', PAGES * PAGE);
	memset(here, 'h', PAGE);
	memset(on_stack, 's', PAGE);
	is_taken(p, 1);
	is_taken(p + (PAGES - 1) * PAGE, 1);
	is_taken(here, 1);
	is_taken((char *)((uintptr_t)on_stack & -(uintptr_t)PAGE), 1);
	fills_gap(p + 4 * PAGE);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		CHECK_EQ(p[i], 'p');
	for (size_t i = 0; i < PAGE; i++)
		CHECK(here[i] == 'h' && on_stack[i] == 's');
	CHECK_EQ(munmap(p, PAGES * PAGE), 0);
	return unused;
}

int main(void)
{
	pthread_t t;

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_create(&t, NULL, tries, NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	tries(NULL);
	return 0;
}
