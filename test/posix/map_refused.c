/* libc/emulate_map: a file that cannot be mapped may refuse after the kernel has unmapped the
 * memory at its place. Where virtual processors are processes that place is given to another map
 * afterwards, or is equal in all of them. */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { PAGE = 4096, BYTES = 64 * PAGE, THREADS = 6, ROUNDS = 20 };

static char early[BYTES] __attribute__((aligned(4096)));
static char *late;
static bool early_is_gone;

static char *anonymous(void *at, int flags)
{
	char *p = mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static bool is_all(const char *p, char c)
{
	for (int i = 0; i < BYTES; i++)
		if (p[i] != c)
			return false;
	return true;
}

/* Sockets cannot be mapped. */
static void refuse(void *at, int flags)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	errno = 0;
	CHECK(mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0) == MAP_FAILED);
	CHECK(errno == ENODEV || (errno == EEXIST && flags));
	CHECK_EQ(close(fd), 0);
}

/* The next map may lie in that place. */
static void *maps_next(void *arg)
{
	char *p;

	for (int i = 0; i < ROUNDS; i++) {
		refuse(NULL, 0);
		p = anonymous(NULL, 0);
		CHECK_EQ(madvise(p, BYTES, MADV_DONTDUMP), 0);
		CHECK(is_all(p, 0));
		memset(p, 'p', BYTES);
		CHECK_EQ(munmap(p, BYTES), 0);
		refuse(p, MAP_FIXED_NOREPLACE);
		p = anonymous(NULL, 0);
		CHECK(is_all(p, 0));
		memset(p, 'q', BYTES);
		CHECK_EQ(munmap(p, BYTES), 0);
	}
	return arg;
}

static bool is_gone(void *p)
{
	unsigned char resident;

	return mincore(p, PAGE, &resident) == -1 && errno == ENOMEM;
}

/* Maps while no thread else maps anything. */
static void *maps_over(void *arg)
{
	late = anonymous(NULL, 0);
	memset(late, 'l', BYTES);
	memset(early, 'e', BYTES);
	errno = 0;
	CHECK(mmap(late, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, -1, 0) == MAP_FAILED);
	CHECK_EQ(errno, EBADF);
	CHECK(is_all(late, 'l'));
	late = mremap(late, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	CHECK(late != MAP_FAILED && is_all(late, 'l') && is_all(late + BYTES, 0));
	refuse(late, MAP_FIXED);
	CHECK(anonymous(late, MAP_FIXED) == late);
	CHECK(is_all(late, 0));
	memset(late, 'm', BYTES);
	refuse(early, MAP_FIXED);
	early_is_gone = is_gone(early);
	return arg;
}

static void *looks(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(is_gone(early), early_is_gone);
		CHECK(is_all(late, 'm'));
		usleep(300);
	}
	return arg;
}

static void *looks_again(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(is_all(early, 'f'));
		usleep(300);
	}
	return arg;
}

int main(void)
{
	crowd_run(maps_next, THREADS);
	crowd_run(maps_over, 1);
	crowd_run(looks, THREADS);
	CHECK(anonymous(early, MAP_FIXED) == early);
	CHECK(is_all(early, 0));
	memset(early, 'f', BYTES);
	crowd_run(looks_again, THREADS);
	return 0;
}
