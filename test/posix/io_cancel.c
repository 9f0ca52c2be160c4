/* Cancellation of threads that wait for descriptors: each call ends, cleanup handlers run, nothing is taken from the
 * descriptor. A call of a thread that is marked already does not begin; one that has what it wants returns it. */
#include "io_calls.h"

enum { THREADS = 4 };

static const struct quiet *now;
static int fd, out, begun, cleaned;

static void cleanup(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED);
}

static void *waits(void *arg)
{
	pthread_cleanup_push(cleanup, NULL);
	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	now->call(fd);
	pthread_cleanup_pop(0);
	return arg;
}

static void *marked(void *arg)
{
	int old;

	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
	CHECK_EQ(pthread_cancel(pthread_self()), 0);
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
	return waits(arg);
}

static void join(pthread_t t)
{
	void *value;

	CHECK_EQ(pthread_join(t, &value), 0);
	if (value != PTHREAD_CANCELED)
		fprintf(stderr, "%s\n", now->name);
	CHECK(value == PTHREAD_CANCELED);
}

static void waiting(void)
{
	pthread_t t[THREADS];

	begun = cleaned = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waits, NULL), 0);
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < THREADS)
		usleep(500);
	usleep(3000);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_cancel(t[i]), 0);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	CHECK_EQ(cleaned, THREADS);
}

static void before(void)
{
	pthread_t t;

	if (out >= 0 && now->call == do_read)
		CHECK_EQ(write(out, "x", 1), 1);
	CHECK_EQ(pthread_create(&t, NULL, marked, NULL), 0);
	join(t);
	if (out >= 0 && now->call == do_read)
		CHECK_EQ(do_read(fd), 1); /* still there */
}

int main(void)
{
	for (int i = 0; i < QUIETS; i++) {
		now = &quiets[i];
		now->open(&fd, &out);
		waiting();
		before();
		quiet_close(fd, out);
	}
	return 0;
}
