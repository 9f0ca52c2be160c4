/* pthread_cancel of threads inside system calls that are cancellation points (read, recv, pause,
 * poll, select, a sleep by another clock) interrupts them. Of a thread that joins: the joined
 * thread stays joinable. Of a thread that is asynchronous, and computes or waits for a mutex or at
 * a barrier: acts at once. The next thread in that place is not disturbed. */
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ready, cleaned;
static int fds[2];
static pthread_t other;
static sem_t end;
static pthread_mutex_t locked = PTHREAD_MUTEX_INITIALIZER;

static void count(void *unused)
{
	(void)unused;
	cleaned++;
}

static void in_read(void)
{
	char c;

	CHECK_EQ(read(fds[0], &c, 1), -2);
}

static void in_poll(void)
{
	struct pollfd p = { fds[0], POLLIN, 0 };

	CHECK_EQ(poll(&p, 1, -1), -2);
}

static void in_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	CHECK_EQ(select(fds[0] + 1, &set, NULL, NULL, NULL), -2);
}

static void in_recv(void)
{
	char c;
	int s[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	CHECK_EQ(recv(s[0], &c, 1, 0), -2);
}

static void in_pause(void)
{
	CHECK_EQ(pause(), -2);
}

static void in_clock(void)
{
	struct timespec t = { 1000, 0 };

	CHECK_EQ(clock_nanosleep(CLOCK_BOOTTIME, 0, &t, NULL), -2);
}

static void in_join(void)
{
	CHECK_EQ(pthread_join(other, NULL), -2);
}

/* Contains no cancellation point. */
static void asynchronous(void)
{
	int old;

	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old), 0);
	CHECK_EQ(old, PTHREAD_CANCEL_DEFERRED);
	for (;;)
		__asm__ volatile("");
}

static void asynchronous_yielding(void)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		sched_yield();
}

static void asynchronous_in_mutex(void)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_mutex_lock(&locked);
}

static void asynchronous_in_barrier(void)
{
	pthread_barrier_t b;

	pthread_barrier_init(&b, NULL, 2);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_barrier_wait(&b);
}

static void *run(void *arg)
{
	pthread_cleanup_push(count, NULL);
	ready = 1;
	(*(void (**)(void))arg)();
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel(void (*fn)(void), int settle)
{
	pthread_t t;
	void *r;

	ready = cleaned = 0;
	CHECK_EQ(pthread_create(&t, NULL, run, &fn), 0);
	while (!ready)
		sched_yield();
	if (settle)
		usleep(10000);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK(r == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 1);
}

static void *wait_for_end(void *arg)
{
	while (sem_wait(&end))
		;
	return arg;
}

/* With a single VP, a thread that blocks the VP or never yields cannot be cancelled by another: no
 * other thread runs. */
static int alone(void)
{
	const char *n = getenv("KOCHAB_VPS");

	return n && atoi(n) == 1;
}

int main(void)
{
	sem_init(&end, 0, 0);
	pthread_mutex_lock(&locked);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(pthread_create(&other, NULL, wait_for_end, NULL), 0);
	for (int i = 0; i < 10; i++) {
		cancel(in_join, i % 2);
		cancel(asynchronous_yielding, i % 2);
		cancel(asynchronous_in_mutex, i % 2);
		cancel(asynchronous_in_barrier, i % 2);
		if (alone())
			continue;
		cancel(in_read, i % 2);
		cancel(in_poll, i % 2);
		cancel(in_select, i % 2);
		cancel(in_recv, i % 2);
		cancel(in_pause, i % 2);
		cancel(in_clock, i % 2);
		cancel(asynchronous, i % 2);
	}
	sem_post(&end);
	CHECK_EQ(pthread_join(other, NULL), 0);
	return 0;
}
