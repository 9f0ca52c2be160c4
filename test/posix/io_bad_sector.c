/* A disk that fails: EIO reaches the reader, on any number of virtual processors.
 * matrix: vps=1,2 sched=rotator */
#include "crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

/* Reads from memory without a mapping, which fails like a bad sector. */
static void *reads_bad_sector(void *unused)
{
	char c;
	struct iovec v = { &c, 1 };
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	for (int i = 0; i < 3; i++) {
		errno = 0;
		CHECK_EQ(i == 0 ? read(fd, &c, 1) : i == 1 ? pread(fd, &c, 1, 0) : readv(fd, &v, 1), -1);
		CHECK_EQ(errno, EIO);
	}
	close(fd);
	return unused;
}

int main(void)
{
	crowd_run(reads_bad_sector, 8);
	return 0;
}
