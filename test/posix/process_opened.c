/* libc/emulate_private: memory that could not be written to when the threads' processes were made,
 * and is opened later by mprotect, is shared by all threads: a file's private map, a second map
 * after the first thread, and pages with code. */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 3, PAGE = 4096, BYTES = PAGES * PAGE, MAPS = 3, THREADS = 8, TIMES = 2000 };

static char *map[MAPS];
static int fd, opened;

static char *map_file(void)
{
	char *p = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Several open the same page at once, as handlers of faults do. */
static void open_page(int i, int page)
{
	int code = i == 1 ? PROT_EXEC : 0;

	CHECK_EQ(mprotect(map[i] + page * PAGE, PAGE, PROT_READ | PROT_WRITE | code), 0);
}

static void *adds(void *arg)
{
	while (!__atomic_load_n(&opened, __ATOMIC_ACQUIRE))
		sched_yield();
	for (int n = 0; n < TIMES; n++)
		for (int i = 0; i < MAPS; i++) {
			int page = n % PAGES;

			if (n < PAGES)
				open_page(i, page);
			__atomic_add_fetch((int *)(void *)(map[i] + page * PAGE), 1, __ATOMIC_RELAXED);
			if (n % 16 == 0)
				sched_yield();
		}
	return arg;
}

int main(void)
{
	char path[] = "/tmp/process_openedXXXXXX", page[PAGE];
	pthread_t id[THREADS];

	memset(page, 7, sizeof page);
	memset(page, 0, sizeof(int));
	fd = mkstemp(path);
	CHECK(fd >= 0 && unlink(path) == 0);
	for (int i = 0; i < PAGES; i++)
		CHECK_EQ(write(fd, page, PAGE), PAGE);
	map[0] = map_file();
	map[1] = mmap(NULL, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map[1] != MAP_FAILED);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, adds, (void *)i), 0);
	map[2] = map_file();
	__atomic_store_n(&opened, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	for (int i = 0; i < MAPS; i++) {
		int sum = 0;

		for (int k = 0; k < PAGES; k++) {
			sum += *(int *)(void *)(map[i] + k * PAGE);
			CHECK_EQ(map[i][k * PAGE + PAGE - 1], i == 1 ? 0 : 7);
		}
		CHECK_EQ(sum, THREADS * TIMES);
	}
	CHECK_EQ(pread(fd, page, sizeof(int), 0), sizeof(int));
	CHECK_EQ(*(int *)(void *)page, 0);
	return 0;
}
