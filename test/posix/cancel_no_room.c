/* posix/cancel: a thread waits in libc, where only a signal finds it, and the user's limit of
 * queued signals is reached. The canceller gets an error, as with glibc. When there is room again,
 * it may try again; with glibc that would be in vain.
 * matrix: run-only */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

static int nothing[2];
static volatile int reads, cleaned;

static void handler(int sig)
{
	char c;

	(void)sig;
	reads = 1;
	if (read(nothing[0], &c, 1) >= 0)
		reads = 2;
}

static void cleanup(void *arg)
{
	(void)arg;
	cleaned = 1;
}

static void *waits(void *arg)
{
	pthread_cleanup_push(cleanup, NULL);
	pthread_kill(pthread_self(), SIGUSR2);
	pthread_cleanup_pop(0);
	return arg;
}

static void set_room(rlim_t n)
{
	struct rlimit r;

	CHECK_EQ(getrlimit(RLIMIT_SIGPENDING, &r), 0);
	r.rlim_cur = n;
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &r), 0);
}

int main(void)
{
	struct sigaction a = { .sa_handler = handler };
	struct rlimit before;
	pthread_t t;
	void *result;
	int e;

	CHECK_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
	CHECK_EQ(pipe(nothing), 0);
	CHECK_EQ(sigaction(SIGUSR2, &a, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	while (!reads)
		usleep(1000);
	usleep(50000); /* it is most likely in the call; if not, it finds the mark there */
	set_room(0);
	e = pthread_cancel(t);
	CHECK(e == 0 || e == EAGAIN);
	set_room(before.rlim_cur);
	if (e)
		CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 1);
	CHECK_EQ(reads, 1);
}
