/* libc/emulate_map: advice that changes the contents of memory works where virtual processors are
 * processes, too: also under a changed protection, and in memory mapped before the first thread.
 * Memory that children must not have, or must have zeroed, is handled so. The advice holds for
 * threads, whichever process runs them. */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 65536, PAGE = 4096, THREADS = 6 };

static char *early, *early_wiped, *early_absent, *late;

static char *new_memory(int protection)
{
	char *p = mmap(NULL, BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static bool is_zero(const char *p)
{
	for (int i = 0; i < BYTES; i++)
		if (p[i])
			return false;
	return true;
}

static void discard(char *p, int protection)
{
	memset(p, 1, BYTES);
	CHECK_EQ(mprotect(p, BYTES, protection), 0);
	CHECK_EQ(madvise(p, BYTES, MADV_DONTNEED), 0);
	CHECK_EQ(mprotect(p, BYTES, PROT_READ | PROT_WRITE), 0);
	CHECK(is_zero(p));
}

static void *discards(void *arg)
{
	char *p = new_memory(PROT_READ | PROT_WRITE);

	discard(p, PROT_READ | PROT_WRITE);
	discard(p, PROT_READ);
	discard(p, PROT_NONE);
	CHECK_EQ(munmap(p, BYTES), 0);
	if (arg == NULL) {
		discard(early, PROT_READ | PROT_WRITE);
		discard(early, PROT_NONE);
	}
	return NULL;
}

static int status_of(bool (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn() ? 0 : 1);
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static bool all_wiped(void)
{
	return is_zero(early_wiped) && is_zero(late);
}

static bool late_is_not(void)
{
	return !is_zero(late);
}

static bool absent(void)
{
	unsigned char resident;

	return mincore(early_absent, PAGE, &resident) == -1 && errno == ENOMEM;
}

static void *writes(void *arg)
{
	for (int i = 0; i < 20; i++) {
		late[(long)arg] = 1;
		early_absent[(long)arg] = 1;
		usleep(500);
	}
	return NULL;
}

static void *forks(void *arg)
{
	late = new_memory(PROT_READ | PROT_WRITE);
	memset(late, 1, BYTES);
	memset(early_wiped, 1, BYTES);
	CHECK_EQ(madvise(late, BYTES, MADV_WIPEONFORK), 0);
	CHECK_EQ(status_of(all_wiped), 0);
	CHECK(!is_zero(early_wiped) && !is_zero(late));
	CHECK_EQ(madvise(late, BYTES, MADV_KEEPONFORK), 0);
	CHECK_EQ(status_of(late_is_not), 0);
	CHECK_EQ(status_of(absent), 0);
	CHECK_EQ(madvise(late, BYTES, MADV_DONTFORK), 0);
	return arg;
}

int main(void)
{
	early = new_memory(PROT_READ | PROT_WRITE);
	early_wiped = new_memory(PROT_READ | PROT_WRITE);
	early_absent = new_memory(PROT_READ | PROT_WRITE);
	CHECK_EQ(madvise(early_wiped, BYTES, MADV_WIPEONFORK), 0);
	CHECK_EQ(madvise(early_absent, BYTES, MADV_DONTFORK), 0);
	crowd_run(discards, THREADS);
	crowd_run(forks, 1);
	crowd_run(writes, THREADS);
	return 0;
}
