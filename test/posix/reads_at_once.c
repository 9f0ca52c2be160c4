/* posix/reads_at_once: a read of data that are there already does not give the processor away, even
 * by a thread that had a conversation before while different threads computed. The test counts the
 * reads between which a second thread has run; all threads are on one processor.
 * matrix: run-only vps=1,2 sched=rotator,steal */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "test.h"

enum { TALKS = 40, PACKETS = 200, SHORT = 100, FEW = PACKETS / 10, ROUNDS = 3 };

/* main reads from `in`, into which `out` leads; its partner from `back`. */
struct way {
	int in, out, back, reply;
};

static atomic_ulong computed;
static atomic_bool over;

static void *computes(void *arg)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		atomic_fetch_add_explicit(&computed, 1, memory_order_relaxed);
	return arg;
}

static void get(int fd)
{
	char room[4 * SHORT];

	CHECK_EQ(read(fd, room, sizeof room), SHORT);
}

static void put(int fd)
{
	static const char packet[SHORT];

	CHECK_EQ(write(fd, packet, SHORT), SHORT);
}

static void *answers(void *arg)
{
	const struct way *w = arg;

	for (int i = 0; i < TALKS; i++) {
		get(w->back);
		put(w->out);
	}
	return NULL;
}

static void talk(struct way *w)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, answers, w), 0);
	for (int i = 0; i < TALKS; i++) {
		put(w->reply);
		get(w->in);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static int interrupted(const struct way *w)
{
	int n = 0;

	for (int i = 0; i < PACKETS; i++)
		put(w->out);
	for (int i = 0; i < PACKETS; i++) {
		unsigned long before = atomic_load(&computed);

		get(w->in);
		n += atomic_load(&computed) != before;
	}
	return n;
}

static void run(struct way *w)
{
	pthread_t t;
	int n = 0;

	for (int i = 0; i < ROUNDS; i++) {
		atomic_store(&over, false);
		talk(w);
		CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
		n += interrupted(w);
		atomic_store(&over, true);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	printf("%d of %d reads let others run\n", n, ROUNDS * PACKETS);
	CHECK(n <= ROUNDS * FEW);
}

int main(void)
{
	int a[2], b[2];
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	CHECK_EQ(sched_setaffinity(0, sizeof here, &here), 0); /* before there are virtual processors: theirs */

	/* packets; each read gets a single packet */
	CHECK_EQ(pipe2(a, O_DIRECT | O_CLOEXEC), 0);
	CHECK_EQ(pipe2(b, O_DIRECT | O_CLOEXEC), 0);
	if (fcntl(a[0], F_SETPIPE_SZ, 1 << 20) < 0)
		SKIP("no room for many packets in a pipe here");
	run(&(struct way){ a[0], a[1], b[0], b[1] });

	return 0;
}
