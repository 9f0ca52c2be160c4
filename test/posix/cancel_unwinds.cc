// A cancelled thread unwinds C++ frames: destructors run, inner frames first, also if the thread is
// inside a system call or asynchronous. catch (...) sees the cancellation and must rethrow it; a C
// cleanup handler between the frames is called. A thread that is cancelled while another thread
// wakes it, or while its time runs out, either returns from the wait or unwinds, never both.
#include "cancel_late.h"
#include "test.h"

#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static volatile int ready, order, rethrown, handlers;
static int fds[2];
static sem_t s;

struct Step {
	int n;
	explicit Step(int n_) : n(n_) {}
	~Step()
	{
		CHECK_EQ(order, n - 1);
		order = n;
	}
};

static void in_read()
{
	char c;

	CHECK_EQ(read(fds[0], &c, 1), -2);
}

static void in_sem()
{
	CHECK_EQ(sem_wait(&s), -2);
}

static void in_sleep()
{
	sleep(1000);
	CHECK(!"slept to the end");
}

static void reads(int)
{
	in_read();
}

// Unwinds out of the kernel, through the handler's frame and the frame of the interrupted call.
static void in_handler()
{
	CHECK(signal(SIGUSR2, reads) != SIG_ERR);
	raise(SIGUSR2);
	CHECK(!"came back");
}

static void count(void *)
{
	handlers = handlers + 1;
}

static void middle(void (*fn)())
{
	Step third(3);

	try {
		Step second(2);
		pthread_cleanup_push(count, nullptr);
		Step first(1);

		ready = 1;
		fn();
		pthread_cleanup_pop(0);
	} catch (...) {
		CHECK_EQ(order, 2);
		rethrown = 1;
		throw;
	}
}

static void *run(void *arg)
{
	Step fourth(4);

	middle(*static_cast<void (**)()>(arg));
	return nullptr;
}

static void cancel(void (*fn)())
{
	pthread_t t;
	void *r;

	ready = order = rethrown = handlers = 0;
	CHECK_EQ(pthread_create(&t, nullptr, run, &fn), 0);
	while (!ready)
		sched_yield();
	usleep(2000);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK(r == PTHREAD_CANCELED);
	CHECK_EQ(order, 4);
	CHECK_EQ(rethrown, 1);
	CHECK_EQ(handlers, 1);
}

// ---- cancel against wake and timeout ------------------------------------------------------------

static int taken, unwound;

static void count_unwound(void *)
{
	__atomic_add_fetch(&unwound, 1, __ATOMIC_RELAXED);
}

static void *racing(void *arg)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 50000 + reinterpret_cast<long>(arg) % 7 * 20000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	pthread_cleanup_push(count_unwound, nullptr);
	if (sem_timedwait(&s, &t) == 0)
		__atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
	else
		CHECK_EQ(errno, ETIMEDOUT);
	pthread_cleanup_pop(0);
	return nullptr;
}

static void race()
{
	enum { ROUNDS = 300 };
	int posted = 0, value, joined_cancelled = 0;
	void *r;

	for (long i = 0; i < ROUNDS; i++) {
		pthread_t t;

		CHECK_EQ(pthread_create(&t, nullptr, racing, reinterpret_cast<void *>(i)), 0);
		if (i % 3)
			usleep(static_cast<useconds_t>(i % 5 * 30));
		if (i % 2) {
			CHECK_EQ(sem_post(&s), 0);
			posted++;
		}
		CHECK_EQ(cancel_late(t), 0);
		CHECK_EQ(pthread_join(t, &r), 0);
		joined_cancelled += r == PTHREAD_CANCELED;
	}
	CHECK_EQ(joined_cancelled, unwound);
	CHECK_EQ(sem_getvalue(&s, &value), 0);
	CHECK_EQ(taken + value, posted);
}

static int alone()
{
	const char *n = getenv("KOCHAB_VPS");

	return n && atoi(n) == 1;
}

int main()
{
	sem_init(&s, 0, 0);
	CHECK_EQ(pipe(fds), 0);
	for (int i = 0; i < 5; i++) {
		cancel(in_sem);
		cancel(in_sleep);
		if (!alone()) {
			cancel(in_read);
			cancel(in_handler);
		}
	}
	race();
	return 0;
}
