/* A handler that runs on a thread which waits for a descriptor ends the call with EINTR where the kernel would: always
 * without SA_RESTART; with it where calls are never restarted, and at sockets with a time limit. What is restarted gets
 * what comes later. Time limits hold. */
#include "io_calls.h"

static const struct quiet *now;
static int fd, out, ready, handled;
static long result;
static int error;

static void handler(int sig)
{
	(void)sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void *waits(void *arg)
{
	(void)arg;
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	result = now->call(fd);
	error = errno;
	__atomic_store_n(&ready, 2, __ATOMIC_RELEASE);
	return NULL;
}

static pthread_t start(void)
{
	pthread_t t;

	ready = 0;
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(500);
	usleep(5000);
	return t;
}

static bool is_over(void) { return __atomic_load_n(&ready, __ATOMIC_ACQUIRE) == 2; }

static void must_be(long r, int e)
{
	if (result != r || (r < 0 && error != e)) {
		fprintf(stderr, "%s: %ld, %s\n", now->name, result, strerror(error));
		CHECK_EQ(result, r);
		CHECK_EQ(error, e);
	}
}

/* The first signal may have come before the call. */
static void until_over(pthread_t t, int sig)
{
	for (int i = 0; !is_over(); i++) {
		usleep(1000);
		if (i % 20 == 19)
			CHECK_EQ(pthread_kill(t, sig), 0);
	}
}

static void interrupt(int sig, bool ends)
{
	int before = __atomic_load_n(&handled, __ATOMIC_RELAXED);
	pthread_t t;

	now->open(&fd, &out);
	t = start();
	CHECK(!is_over());
	CHECK_EQ(pthread_kill(t, sig), 0);
	for (int i = 0; i < 2000 && __atomic_load_n(&handled, __ATOMIC_RELAXED) == before; i++)
		usleep(500);
	CHECK_EQ(handled, before + 1);
	if (ends)
		until_over(t, sig);
	if (!ends) {
		usleep(3000);
		CHECK(!is_over());
		CHECK_EQ(pthread_cancel(t), 0);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	if (ends)
		must_be(-1, EINTR);
	quiet_close(fd, out);
}

static void limit(int which, int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, which, &t, sizeof t), 0);
}

static void limited(void)
{
	uint64_t begin;
	pthread_t t;

	now->open(&fd, &out);
	limit(now->limit, 30);
	begin = test_now_ns();
	CHECK_EQ(pthread_join(start(), NULL), 0);
	CHECK(test_now_ns() - begin >= 29000000);
	must_be(-1, EAGAIN);
	limit(now->limit, 60000);
	t = start();
	CHECK_EQ(pthread_kill(t, SIGUSR2), 0);
	until_over(t, SIGUSR2);
	CHECK_EQ(pthread_join(t, NULL), 0);
	must_be(-1, EINTR);
	quiet_close(fd, out);
}

/* Restarted, it gets what comes then. */
static void goes_on(void)
{
	pthread_t t;

	quiet_socket(&fd, &out);
	t = start();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_kill(t, SIGUSR2), 0);
	usleep(2000);
	CHECK_EQ(write(out, "x", 1), 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
	must_be(1, 0);
	quiet_close(fd, out);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	sa.sa_flags = SA_RESTART;
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	for (int i = 0; i < QUIETS; i++) {
		now = &quiets[i];
		interrupt(SIGUSR1, true);
		interrupt(SIGUSR2, now->restart == NEVER);
		if (now->limit)
			limited();
	}
	now = &quiets[4];
	goes_on();
	return 0;
}
