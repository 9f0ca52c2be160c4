/* io/own, os/memory_leave: a program that closes all descriptors that it might have, in each way,
 * closes none of the runtime's: threads run, wait for descriptors and fork afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { LAST = 1100, FIRST = 3 };

static int ends[2];

static void *receive(void *unused)
{
	char c;

	CHECK_EQ(read(ends[0], &c, 1), 1);
	return unused;
}

/* Makes a thread that sleeps until a byte comes. */
static void wait_once(void)
{
	pthread_t t;

	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(pthread_create(&t, NULL, receive, NULL), 0);
	usleep(2000);
	CHECK_EQ(write(ends[1], "x", 1), 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(close(ends[0]), 0);
	CHECK_EQ(close(ends[1]), 0);
}

static void fork_once(void)
{
	int status = 0;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		wait_once();
		_exit(7);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void by_close(void)
{
	for (int fd = FIRST; fd < LAST; fd++)
		close(fd);
}

static void by_number(void)
{
	for (int fd = FIRST; fd < LAST; fd++)
		syscall(SYS_close, fd);
}

/* Tests for close_range, which exists since Linux 5.9. */
static int has_range(void)
{
	return syscall(436 /* close_range */, ~0u, ~0u, 0) == 0;
}

static void by_range(void)
{
	if (has_range())
#if __GLIBC_PREREQ(2, 34)
		CHECK_EQ(close_range(FIRST, ~0u, 0), 0);
#else
		CHECK_EQ(syscall(436 /* close_range */, FIRST, ~0u, 0), 0);
#endif
	else
		by_close();
}

static void by_closefrom(void)
{
#if __GLIBC_PREREQ(2, 34)
	int high = dup2(2, LAST + 10);

	CHECK_EQ(high, LAST + 10);
	closefrom(FIRST);
	CHECK(close(high) == -1 && errno == EBADF);
#else
	by_range();
#endif
}

static void by_dup2(void)
{
	for (int fd = FIRST; fd < LAST; fd++)
		CHECK(dup2(2, fd) == fd || errno == EBUSY || errno == EBADF);
	by_close();
}

int main(void)
{
	void (*const ways[])(void) = { by_close, by_number, by_range, by_closefrom, by_dup2 };

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		wait_once();
		ways[i]();
		for (int fd = FIRST; fd < FIRST + 3; fd++)
			CHECK_EQ(open("/dev/null", O_RDONLY), fd);
		CHECK(close(900) == -1 && errno == EBADF);
		by_range();
		wait_once();
		fork_once();
	}
	if (!has_range())
		SKIP("no close_range here: the other ways passed");
	return 0;
}
