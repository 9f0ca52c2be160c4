/* mem/stack kbi_stack_trim: memory of stacks goes back to the system when their threads have ended,
 * also where many lived at once, and later threads have whole stacks. */
/* timeout: 60 */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 300, DEEP = 512 << 10, PAGE = 4096, ROUNDS = 3 };

static pthread_barrier_t all;
static size_t deep;

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, resident;

	CHECK(f != NULL);
	CHECK_EQ(fscanf(f, "%ld %ld", &size, &resident), 2);
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A page at a time; at the bottom it waits for all threads. */
static void descend(size_t depth)
{
	volatile char page[PAGE];

	page[0] = (char)(depth / PAGE);
	if (depth > PAGE)
		descend(depth - PAGE);
	else
		pthread_barrier_wait(&all);
	CHECK_EQ(page[0], (char)(depth / PAGE));
}

static void *goes_deep(void *arg)
{
	descend(deep);
	return arg;
}

static void run(unsigned n, size_t depth)
{
	pthread_t id[THREADS];

	deep = depth;
	CHECK_EQ(pthread_barrier_init(&all, NULL, n), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, goes_deep, NULL), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	CHECK_EQ(pthread_barrier_destroy(&all), 0);
}

/* A test's limit ends it if it never does. */
static void expect_less_than(long kib)
{
	while (resident_kib() >= kib)
		usleep(20000);
}

int main(void)
{
	long shallow;

	run(THREADS, PAGE);
	shallow = resident_kib();
	for (int i = 0; i < ROUNDS; i++) {
		run(THREADS, DEEP);
		expect_less_than(shallow + THREADS * DEEP / 1024 / 8);
	}
	/* few of them are in use, and the others' memory goes all the same */
	run(THREADS, DEEP);
	for (int i = 0; i < 20; i++)
		run(4, PAGE);
	expect_less_than(shallow + THREADS * DEEP / 1024 / 8);
	return 0;
}
