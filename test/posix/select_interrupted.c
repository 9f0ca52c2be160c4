/* A select that a handler has ended, or that failed, leaves the sets as they were: programs ask
 * with them again. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <unistd.h>

static int ends[2];
static volatile sig_atomic_t told;

static void handler(int sig)
{
	(void)sig;
	told = 1;
	CHECK_EQ(write(ends[1], "x", 1), 1);
}

static void *nothing(void *arg)
{
	return arg;
}

static int ask(int precise, fd_set *in, fd_set *x)
{
	struct timeval t = { 20, 0 };
	struct timespec p = { 20, 0 };

	return precise ? pselect(ends[0] + 1, in, NULL, x, &p, NULL) : select(ends[0] + 1, in, NULL, x, &t);
}

static void interrupted(int precise)
{
	struct itimerval soon = { .it_value = { 0, 50000 } };
	fd_set in, x, before;
	char c;

	FD_ZERO(&in);
	FD_SET(ends[0], &in);
	before = x = in;
	told = 0;
	CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
	CHECK_EQ(ask(precise, &in, &x), -1);
	CHECK_EQ(errno, EINTR);
	CHECK(told);
	CHECK(memcmp(&in, &before, sizeof(in)) == 0);
	CHECK(memcmp(&x, &before, sizeof(x)) == 0);
	CHECK_EQ(ask(precise, &in, &x), 1);
	CHECK(FD_ISSET(ends[0], &in) && !FD_ISSET(ends[0], &x));
	CHECK_EQ(read(ends[0], &c, 1), 1);
}

static void failed(int precise)
{
	int closed = dup(ends[0]);
	struct timeval none = { 0, 0 };
	struct timespec p = { 0, 0 };
	fd_set in, before;

	close(closed);
	FD_ZERO(&in);
	FD_SET(ends[0], &in);
	FD_SET(closed, &in);
	before = in;
	CHECK_EQ(precise ? pselect(closed + 1, &in, NULL, NULL, &p, NULL) : select(closed + 1, &in, NULL, NULL, &none), -1);
	CHECK_EQ(errno, EBADF);
	CHECK(memcmp(&in, &before, sizeof(in)) == 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t t;

	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (int precise = 0; precise < 2; precise++) {
		interrupted(precise);
		failed(precise);
	}
	return 0;
}
