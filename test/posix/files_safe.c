/* Threads that sync files: each writes to a file of its own and to a common file, by fsync,
 * fdatasync, msync and close of a deleted file, while threads wait for a mutex and take turns. The
 * bytes arrive, and only the owner of the mutex runs its critical section. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 20, ROUNDS = 12, BLOCK = 4096 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int all, inside, total;

static int new_file(void)
{
	char name[] = "./kochab-safe-XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0);
	CHECK_EQ(unlink(name), 0);
	return fd;
}

static void count(void)
{
	pthread_mutex_lock(&m);
	CHECK_EQ(inside++, 0);
	sched_yield();
	total++;
	CHECK_EQ(--inside, 0);
	pthread_mutex_unlock(&m);
}

static void round_of(unsigned me, unsigned i)
{
	char b[BLOCK], back[BLOCK], *p;
	off_t at = (off_t)(me * ROUNDS + i) * BLOCK;
	int fd = new_file();

	memset(b, (int)(me + i), sizeof b);
	CHECK_EQ(pwrite(fd, b, sizeof b, 0), BLOCK);
	CHECK_EQ(i % 2 ? fsync(fd) : fdatasync(fd), 0);
	count();
	CHECK_EQ(pwrite(all, b, sizeof b, at), BLOCK);
	CHECK_EQ(i % 2 ? fdatasync(all) : fsync(all), 0);
	CHECK_EQ(pread(all, back, sizeof back, at), BLOCK);
	CHECK_EQ(memcmp(b, back, sizeof b), 0);
	p = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(memcmp(p, b, sizeof b), 0);
	p[i] = 1;
	CHECK_EQ(msync(p, BLOCK, MS_SYNC), 0);
	CHECK_EQ(munmap(p, BLOCK), 0);
	count();
	CHECK_EQ(close(fd), 0);
}

static void *makes_safe(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < ROUNDS; i++)
		round_of(me, i);
	errno = 0;
	CHECK_EQ(fsync(-1), -1);
	CHECK_EQ(errno, EBADF);
	return NULL;
}

static void *takes_turns(void *arg)
{
	const int *over = arg;

	while (!__atomic_load_n(over, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS], other;
	int over = 0;

	all = new_file();
	CHECK_EQ(pthread_create(&other, NULL, takes_turns, &over), 0);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, makes_safe, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(other, NULL), 0);
	CHECK_EQ(total, 2 * THREADS * ROUNDS);
	return 0;
}
