/* aio_suspend: other threads run meanwhile. It is ended by a handler that its thread runs, by its
 * time limit, and by the end of the request. lio_listio waits for all requests, and other threads
 * run. */
#include <aio.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static struct aiocb request;
static const struct aiocb *const list[] = { &request };
static char byte;
static int inside, handled;

static void handler(int sig)
{
	(void)sig;
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void *suspended(void *arg)
{
	__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
	CHECK_EQ(aio_suspend(list, 1, arg), -1);
	CHECK_EQ(errno, EINTR);
	CHECK(__atomic_load_n(&handled, __ATOMIC_RELAXED) > 0);
	__atomic_store_n(&inside, 2, __ATOMIC_RELEASE);
	return NULL;
}

/* Waits a while first: the caller's VP then runs other threads. */
static void *interrupts(void *who)
{
	while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(100000);
	for (int kills = 0; __atomic_load_n(&inside, __ATOMIC_ACQUIRE) != 2; kills++) {
		CHECK(kills < 3); /* a single signal suffices, except for signals before the call */
		CHECK_EQ(pthread_kill(*(pthread_t *)who, SIGUSR1), 0);
		for (int i = 0; i < 500 && __atomic_load_n(&inside, __ATOMIC_ACQUIRE) != 2; i++)
			usleep(2000);
	}
	return NULL;
}

static void interrupted(const struct timespec *limit)
{
	pthread_t t, other, main_itself = pthread_self();

	inside = handled = 0;
	CHECK_EQ(pthread_create(&t, NULL, suspended, (void *)limit), 0);
	interrupts(&t);
	CHECK_EQ(pthread_join(t, NULL), 0);
	inside = handled = 0;
	CHECK_EQ(pthread_create(&other, NULL, interrupts, &main_itself), 0);
	suspended((void *)limit);
	CHECK_EQ(pthread_join(other, NULL), 0);
}

static void *waits(void *arg)
{
	(void)arg;
	while (aio_suspend(list, 1, NULL))
		CHECK_EQ(errno, EINTR);
	return NULL;
}

static void *times_out(void *arg)
{
	struct timespec limit = { 0, 30000000 }, none = { 0, 0 }, begun, end;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	CHECK_EQ(aio_suspend(list, 1, &limit), -1);
	CHECK_EQ(errno, EAGAIN);
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK((end.tv_sec - begun.tv_sec) * 1000000000ll + end.tv_nsec - begun.tv_nsec >= 30000000);
	CHECK_EQ(aio_suspend(list, 1, &none), -1);
	CHECK_EQ(errno, EAGAIN);
	return arg;
}

static int two[2][2];

static void *writes_two(void *unused)
{
	usleep(3000);
	CHECK_EQ(write(two[1][1], "y", 1), 1);
	usleep(3000);
	CHECK_EQ(write(two[0][1], "x", 1), 1);
	return unused;
}

static void lists(void)
{
	static char c[2];
	static struct aiocb a[2], bad = { .aio_fildes = -1, .aio_lio_opcode = LIO_READ };
	struct aiocb *const both[] = { &a[0], NULL, &a[1] }, *const failing[] = { &bad };
	pthread_t t;

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(pipe(two[i]), 0);
		a[i] = (struct aiocb){ .aio_fildes = two[i][0], .aio_buf = &c[i], .aio_nbytes = 1,
			.aio_lio_opcode = LIO_READ };
	}
	CHECK_EQ(pthread_create(&t, NULL, writes_two, NULL), 0);
	CHECK_EQ(lio_listio(LIO_WAIT, both, 3, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(c[0] == 'x' && c[1] == 'y');
	CHECK(aio_return(&a[0]) == 1 && aio_return(&a[1]) == 1);
	CHECK_EQ(lio_listio(LIO_WAIT, failing, 1, NULL), -1);
	CHECK_EQ(errno, EIO);
	CHECK_EQ(lio_listio(77, both, 3, NULL), -1);
	CHECK_EQ(errno, EINVAL);
}

int main(void)
{
	static const struct timespec limit = { 20, 0 };
	struct sigaction a = { .sa_handler = handler };
	pthread_t t;
	int fd[2];

	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	/* the first thread must come first: where VPs are processes, libc must have no thread of its
	 * own yet */
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	request = (struct aiocb){ .aio_fildes = fd[0], .aio_buf = &byte, .aio_nbytes = 1 };
	CHECK_EQ(aio_read(&request), 0);
	CHECK_EQ(pthread_create(&t, NULL, times_out, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	interrupted(NULL);
	interrupted(&limit);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	usleep(10000);
	CHECK_EQ(write(fd[1], "x", 1), 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(aio_return(&request), 1);
	lists();
	return 0;
}
