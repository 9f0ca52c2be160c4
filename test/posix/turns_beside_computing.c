/* core/slice: two threads whose calls find their data at once give way to each other, and pass over
 * threads that compute. Counted: the turns of a computing thread while the two make their calls.
 * Each of its turns lasts until the tick. With a turn at each of their calls the two would hardly
 * get on; without any turn the computing thread would wait for all of their calls.
 * matrix: run-only vps=1 sched=rotator,rotator-paper,lb2,steal
 * body: thread: another virtual processor, asleep, begins when the kernel lets it */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

/* The calls of both take a second or more: the computing threads have some tens of turns meanwhile. */
enum { CALLS = 10000, WORK_NS = 50000, COMPUTING = 3, MANY_TURNS = 2000 };

struct caller {
	pthread_t t;
	int fd[2];
	struct caller *other;
	atomic_int calls;
	int switches; /* calls before which the other had made some */
};

static struct caller caller[2];
static atomic_bool begun, over;
static atomic_int turns[COMPUTING];

static void *call(void *arg)
{
	struct caller *c = arg;
	int seen = 0, now;
	char b;

	while (!atomic_load(&begun))
		sched_yield();
	for (int i = 0; i < CALLS; i++) {
		CHECK_EQ(recv(c->fd[0], &b, 1, 0), 1);
		now = atomic_load(&c->other->calls);
		c->switches += now != seen;
		seen = now;
		test_compute_ns(WORK_NS);
		atomic_fetch_add(&c->calls, 1);
	}
	return NULL;
}

static int calls_of_both(void)
{
	return atomic_load(&caller[0].calls) + atomic_load(&caller[1].calls);
}

/* A turn: calls were made since it last looked. */
static void *compute(void *arg)
{
	atomic_int *n = arg;

	for (int seen = 0, now; !atomic_load(&over); seen = now) {
		now = calls_of_both();
		if (now != seen)
			atomic_fetch_add(n, 1);
	}
	return NULL;
}

int main(void)
{
	static char many[CALLS];
	pthread_t t[COMPUTING];
	int room = 1 << 20, sum = 0;

	for (int i = 0; i < 2; i++) {
		struct caller *c = &caller[i];

		c->other = &caller[!i];
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->fd), 0);
		CHECK_EQ(setsockopt(c->fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
		CHECK_EQ(write(c->fd[1], many, sizeof many), sizeof many);
		CHECK_EQ(pthread_create(&c->t, NULL, call, c), 0);
	}
	for (int i = 0; i < COMPUTING; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, compute, &turns[i]), 0);
	/* each has had a turn that the tick has ended, or will */
	atomic_store(&begun, true);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(caller[i].t, NULL), 0);
	atomic_store(&over, true);
	for (int i = 0; i < COMPUTING; i++) {
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		sum += atomic_load(&turns[i]);
		CHECK(atomic_load(&turns[i]) > 0);
	}
	printf("%d calls: %d turns of the computing threads, %d of the callers\n", 2 * CALLS, sum,
	       caller[0].switches + caller[1].switches);
	CHECK(sum < MANY_TURNS);
	CHECK(caller[0].switches > CALLS / 4 && caller[1].switches > CALLS / 4);
	return 0;
}
