/* core/quantum, core/handoff: a thread that touches a page which another thread has to supply
 * (userfaultfd) sleeps in the kernel at an instruction that is no system call. Further threads run
 * meanwhile, also on a single virtual processor, and so does the thread that supplies the page,
 * which waits by poll, or in a blocking read.
 * body: thread (the kernel watches the pages of one process) */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { PAGES = 6 };

static int uffd;
static char *pages;
static size_t page;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int touched;
static void *(*volatile copy_by)(void *, const void *, size_t) = memcpy;

static void open_it(void)
{
	struct uffdio_api api = { .api = UFFD_API };

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (uffd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL))
		SKIP("no userfaultfd here");
	CHECK(uffd >= 0);
	CHECK_EQ(ioctl(uffd, UFFDIO_API, &api), 0);
}

static void watch_pages(void)
{
	struct uffdio_register r = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	page = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	r.range.start = (uintptr_t)pages;
	r.range.len = PAGES * page;
	CHECK_EQ(ioctl(uffd, UFFDIO_REGISTER, &r), 0);
}

/* The page contains the number of pages that have come, and the thread uses the library as
 * before. */
static void *touches(void *arg)
{
	size_t n = (size_t)((char *)arg - pages) / page;
	char copy[64];

	if (n % 2)
		CHECK_EQ(*(volatile char *)arg, n + 1);
	else
		CHECK_EQ(((char *)copy_by(copy, arg, sizeof copy))[1], n + 1); /* inside libc */
	CHECK_EQ(pthread_mutex_lock(&lock), 0);
	touched++;
	CHECK_EQ(pthread_mutex_unlock(&lock), 0);
	return NULL;
}

static void bring(uintptr_t at)
{
	struct uffdio_copy c = { .dst = at & ~(uintptr_t)(page - 1), .len = page };
	static char content[65536];

	memset(content, (int)((c.dst - (uintptr_t)pages) / page + 1), page);
	c.src = (uintptr_t)content;
	CHECK_EQ(ioctl(uffd, UFFDIO_COPY, &c), 0);
}

static void *brings(void *blocks)
{
	struct pollfd p = { .fd = uffd, .events = POLLIN };

	for (int n = 0; n < PAGES;) {
		struct uffd_msg m;
		ssize_t r;

		if (!blocks)
			CHECK_EQ(poll(&p, 1, -1), 1);
		r = read(uffd, &m, sizeof m);
		if (r < 0) {
			CHECK(errno == EAGAIN || errno == EINTR);
			continue;
		}
		CHECK_EQ(m.event, UFFD_EVENT_PAGEFAULT);
		bring((uintptr_t)m.arg.pagefault.address);
		n++;
	}
	return NULL;
}

static void all_come(void *blocks)
{
	pthread_t bringer, t[PAGES];

	touched = 0;
	open_it();
	CHECK_EQ(fcntl(uffd, F_SETFL, blocks ? 0 : O_NONBLOCK), 0);
	watch_pages();
	CHECK_EQ(pthread_create(&bringer, NULL, brings, blocks), 0);
	for (int i = 0; i < PAGES; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, touches, pages + (size_t)i * page), 0);
	for (int i = 0; i < PAGES; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_join(bringer, NULL), 0);
	CHECK_EQ(touched, PAGES);
	CHECK_EQ(munmap(pages, PAGES * page), 0);
	CHECK_EQ(close(uffd), 0);
}

int main(void)
{
	all_come(NULL);
	all_come(&lock);
	return 0;
}
