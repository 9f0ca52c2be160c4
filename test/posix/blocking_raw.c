/* core/quantum, core/handoff: blocking calls that the library does not see, made without libc:
 * read, poll and nanosleep by the bare instruction. The other threads go on beside them, also on a
 * single VP, and no call returns EINTR because of that. Afterwards the threads use the library as
 * before. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 12, ROUNDS = 3, NAP_NS = 30000000 };

static long bare(long n, long a, long b, long c)
{
#if defined(__x86_64__)
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
#else
	long r = syscall(n, a, b, c);

	return r < 0 ? -errno : r;
#endif
}

static int pipes[THREADS][2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static int done;

static long wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

#ifdef SYS_poll
	return bare(SYS_poll, (long)&p, 1, -1);
#else
	return poll(&p, 1, -1);
#endif
}

static void nap(void)
{
	struct timespec t = { 0, NAP_NS };
	uint64_t start = test_now_ns();

	CHECK_EQ(bare(SYS_nanosleep, (long)&t, 0, 0), 0);
	CHECK(test_now_ns() - start >= NAP_NS);
}

static void *blocks(void *arg)
{
	int *p = arg;
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		if ((p - pipes[0]) / 2 % 2)
			CHECK_EQ(wait_readable(p[0]), 1);
		CHECK_EQ(bare(SYS_read, p[0], (long)&c, 1), 1);
		CHECK_EQ(pthread_mutex_lock(&lock), 0);
		if (++done == THREADS * (i + 1))
			pthread_cond_broadcast(&all_done);
		while (done < THREADS * (i + 1))
			CHECK_EQ(pthread_cond_wait(&all_done, &lock), 0);
		CHECK_EQ(pthread_mutex_unlock(&lock), 0);
	}
	nap();
	return NULL;
}

/* Lets another process write while no thread here can. */
static pid_t writer(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < THREADS; k++) {
			usleep(2000);
			if (write(pipes[k][1], "x", 1) != 1)
				_exit(1);
		}
	_exit(0);
}

int main(void)
{
	pthread_t t[THREADS];
	int status;
	pid_t pid;

	for (int k = 0; k < THREADS; k++)
		CHECK_EQ(pipe(pipes[k]), 0);
	pid = writer();
	for (int k = 0; k < THREADS; k++)
		CHECK_EQ(pthread_create(&t[k], NULL, blocks, pipes[k]), 0);
	for (int k = 0; k < THREADS; k++)
		CHECK_EQ(pthread_join(t[k], NULL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return 0;
}
