// The option contain under the drop-in: a thread that crashes is lost, pthread_join returns
// EOWNERDEAD, its robust mutexes and streams are free, and the remaining threads go on. The crashed
// thread's destructors do not run.
// matrix: run-only
#include <errno.h>
#include <pthread.h>
#include <stdexcept>
#include <string.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "core/crashers.h"
#include "test.h"

static int destroyed;

struct noisy {
	int on = 0;
	~noisy()
	{
		destroyed += on;
	}
};
static thread_local noisy own;
static pthread_key_t key;

static void count(void *)
{
	destroyed++;
}

static void *throws(void *)
{
	throw std::runtime_error("as it should");
}

static int crashed(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	int e;

	CHECK_EQ(pthread_create(&t, nullptr, fn, arg), 0);
	e = pthread_join(t, nullptr);
	CHECK_EQ(pthread_join(t, nullptr), ESRCH);
	return e;
}

static void *with_values(void *arg)
{
	own.on = 1;
	pthread_setspecific(key, arg);
	return writes(nullptr);
}

static void *works(void *arg)
{
	for (int i = 0; i < 200; i++) {
		std::vector<int> v(100, i);

		CHECK_EQ(v[50], i);
		sched_yield();
	}
	return arg;
}

static void *locks_and_crashes(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(static_cast<pthread_mutex_t *>(arg)), 0);
	return writes(nullptr);
}

static void robust()
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;

	pthread_mutexattr_init(&a);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
	CHECK_EQ(crashed(locks_and_crashes, &m), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_lock(&m), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(crashed(locks_and_crashes, &m), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_lock(&m), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_mutex_lock(&m), ENOTRECOVERABLE);
}

static void *holds_stream(void *arg)
{
	flockfile(static_cast<FILE *>(arg));
	flockfile(static_cast<FILE *>(arg));
	return writes(nullptr);
}

static void streams()
{
	FILE *f = tmpfile();

	CHECK(f);
	CHECK_EQ(crashed(holds_stream, f), EOWNERDEAD);
	CHECK_EQ(crashed(holds_stream, stdout), EOWNERDEAD);
	CHECK_EQ(fputs("after", f) < 0, 0);
	CHECK_EQ(fclose(f), 0);
	CHECK_EQ(printf("streams work\n") < 0, 0);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	pthread_t others[8];
	void *result;

	if (argc == 1 && !getenv("KOCHAB_CONTAIN")) {
		setenv("KOCHAB_CONTAIN", "1", 1);
		execv("/proc/self/exe", argv);
	}
	CHECK_EQ(pthread_key_create(&key, count), 0);
	for (pthread_t &t : others)
		CHECK_EQ(pthread_create(&t, nullptr, works, others), 0);
	for (int round = 0; round < 3; round++)
		for (const fault &f : faults)
			if (f.signal)
				CHECK_EQ(crashed(f.fn, nullptr), EOWNERDEAD);
	CHECK_EQ(crashed(throws, nullptr), EOWNERDEAD);
	CHECK_EQ(crashed(with_values, &key), EOWNERDEAD);
	CHECK_EQ(destroyed, 0);
	robust();
	streams();
	for (pthread_t &t : others) {
		CHECK_EQ(pthread_join(t, &result), 0);
		CHECK(result == others);
	}
	return 0;
}
