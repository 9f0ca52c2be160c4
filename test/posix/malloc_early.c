/* posix/libc: a program with an allocator of its own, which its first constructor sets up: no code
 * asks the allocator for memory earlier than it would without us, for example the loader for the
 * message about a missing function that we look up. And the allocator gets back only memory that it
 * has given.
 * matrix: vps=2 sched=rotator */
#include "test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 1 << 24, HEAD = 16 };

static char arena[BYTES] __attribute__((aligned(16)));
static atomic_size_t used;
static bool begun;
static int early;
static atomic_int strange;

void *malloc(size_t n)
{
	size_t at = atomic_fetch_add(&used, (n + HEAD + 15) & ~(size_t)15);

	if (!begun) {
		early++;
		syscall(SYS_getppid); /* as jemalloc does, to read its settings */
	}
	if (n > BYTES || at + HEAD + n > BYTES)
		return NULL;
	memcpy(arena + at, &n, sizeof n);
	return arena + at + HEAD;
}

void free(void *p)
{
	early += !begun;
	strange += p && ((char *)p < arena || (char *)p >= arena + BYTES);
}

void *calloc(size_t n, size_t size)
{
	return malloc(n * size); /* no memory is used twice */
}

void *realloc(void *old, size_t n)
{
	void *p = malloc(n);
	size_t had = 0;

	if (old)
		memcpy(&had, (char *)old - HEAD, sizeof had);
	if (p && old)
		memcpy(p, old, had < n ? had : n);
	return p;
}

__attribute__((constructor(101))) static void begin(void)
{
	begun = true;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(!dlerror()); /* all look-ups of the program have succeeded */
	CHECK_EQ(early, 0);
	free(malloc(1));
	CHECK_EQ(strange, 0);
	return 0;
}
