/* A program makes io_uring rings by its own instructions, as a program with a built-in liburing
 * does. The library cannot know that a ring is used by only one kernel thread, so all threads of
 * the program are kernel threads.
 * body: thread (a ring's memory, which the kernel maps, would be in one process) */
#define _GNU_SOURCE
#include "crowd.h"

#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#if !defined(__x86_64__)

int main(void) { SKIP("not written for this machine"); }

#else

enum { THREADS = 6, TURNS = 60, SINGLE_ISSUER = 1 << 12 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static long set_up(unsigned entries, struct io_uring_params *p)
{
	long r;

	__asm__ volatile("movl $425, %%eax; syscall" : "=&a"(r) : "D"(entries), "S"(p) : "rcx", "r11", "memory");
	return r;
}

static long enter(long fd, unsigned submit)
{
	register long flags __asm__("r10") = 0, set __asm__("r8") = 0;
	long r;

	__asm__ volatile("movl $426, %%eax; syscall"
			 : "=&a"(r)
			 : "D"(fd), "S"(submit), "d"(0), "r"(flags), "r"(set)
			 : "rcx", "r11", "memory");
	return r;
}

/* The kernel checks the caller before it finds that there is nothing to submit. */
static void *single(void *arg)
{
	struct io_uring_params p = { .flags = SINGLE_ISSUER };
	long fd = set_up(4, &p);

	if (fd < 0)
		return arg; /* Linux 6.0 */
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(enter(fd, 1), 0);
		pthread_mutex_lock(&m);
		sched_yield();
		pthread_mutex_unlock(&m);
		usleep(200);
	}
	close((int)fd);
	return arg;
}

int main(void)
{
	crowd_run(single, THREADS);
	return 0;
}

#endif
