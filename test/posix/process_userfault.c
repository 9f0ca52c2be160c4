/* libc/emulate_owned: a program that has a userfaultfd when its first thread is created keeps
 * kernel threads, and has the pages that it gives; a program of several processes that asks later
 * is told that there is none. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { PAGE = 4096, PAGES = 16 };

static char *memory;

static int new_fd(void)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
}

static void *pages(void *arg)
{
	static char page[PAGE] __attribute__((aligned(4096)));
	int fd = *(int *)arg;

	for (int i = 0; i < PAGES; i++) {
		struct uffd_msg m;
		struct uffdio_copy copy = { .src = (uintptr_t)page, .len = PAGE };

		CHECK_EQ(read(fd, &m, sizeof m), sizeof m);
		copy.dst = m.arg.pagefault.address & ~(uintptr_t)(PAGE - 1);
		memset(page, 1 + (int)((copy.dst - (uintptr_t)memory) / PAGE), PAGE);
		CHECK_EQ(ioctl(fd, UFFDIO_COPY, &copy), 0);
	}
	return NULL;
}

static void use(int fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	pthread_t t;

	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	r.range.start = (uintptr_t)memory;
	r.range.len = PAGES * PAGE;
	CHECK_EQ(ioctl(fd, UFFDIO_API, &api), 0);
	CHECK_EQ(ioctl(fd, UFFDIO_REGISTER, &r), 0);
	CHECK_EQ(pthread_create(&t, NULL, pages, &fd), 0);
	for (int i = 0; i < PAGES; i++)
		CHECK_EQ(((volatile char *)memory)[i * PAGE], i + 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	int fd;

	if (argc > 1) {
		CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	fd = new_fd();
	if (fd < 0 && argc > 1) {
		CHECK(errno == ENOSYS || errno == EPERM);
		return 0;
	}
	if (fd < 0)
		SKIP("no userfaultfd here");
	use(fd);
	if (argc == 1)
		execv("/proc/self/exe", (char *[]){ argv[0], "later", NULL });
	return 0;
}
