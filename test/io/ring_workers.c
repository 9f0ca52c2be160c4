/* io_uring's kernel threads inside file systems are as many as our workers that may be in blocking
 * calls (option spares): by itself the kernel has four for a processor, and 16 threads that wait
 * for a disk would wait for each other.
 * matrix: vps=1 sched=rotator */
#include <fcntl.h>
#include <kochab/io.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

enum { MOST_FD = 2048, MAX_WORKERS = 19 /* IORING_REGISTER_IOWQ_MAX_WORKERS */, SPARES = 256 };

/* Returns the ring's descriptor, -1: none. */
static int ring(void)
{
	char name[64], what[64];

	for (int fd = 0; fd < MOST_FD; fd++) {
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, what, sizeof(what) - 1);
		if (n <= 0)
			continue;
		what[n] = 0;
		if (!strcmp(what, "anon_inode:[io_uring]"))
			return fd;
	}
	return -1;
}

int main(void)
{
	unsigned most[2] = { 0, 0 }; /* zeros ask for the present values */
	int fd;

	CHECK_EQ(kb_init(), 0);
	fd = kb_io_open("/dev/null", O_RDONLY, 0, KB_FOREVER);

	CHECK(fd >= 0);
	CHECK_EQ(kb_io_close(fd), 0);
	fd = ring();
	if (fd < 0)
		SKIP("no io_uring here");
	if (syscall(SYS_io_uring_register, fd, MAX_WORKERS, most, 2))
		SKIP("a kernel before Linux 5.15");
#ifdef __SANITIZE_THREAD__
	if (!most[0])
		SKIP("here the kernel thread has made no request, and the kernel does not say");
#endif
	CHECK_EQ(most[0], SPARES);
	return 0;
}
