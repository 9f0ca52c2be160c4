/* kb_io_recv: data that are there already are received without yielding the processor, also by a
 * thread that has had a conversation before.
 * matrix: vps=1 sched=rotator,steal
 * body: thread: on two virtual processors the thread that counts runs at the same time */
#include <kochab/io.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "test.h"

enum { TALKS = 400, MESSAGES = 200, FEW = MESSAGES / 10 };

static int fd[2];
static atomic_long turns;
static atomic_bool over;

static void put(int to)
{
	uint64_t m = 1;

	CHECK_EQ(kb_io_send(to, &m, sizeof m, 0, KB_FOREVER), sizeof m);
}

static void get(int from)
{
	uint64_t m = 0;

	CHECK_EQ(kb_io_recv(from, &m, sizeof m, 0, KB_FOREVER), sizeof m);
	CHECK_EQ(m, 1);
}

static void *answers(void *unused)
{
	for (int i = 0; i < TALKS; i++) {
		get(fd[1]);
		put(fd[1]);
	}
	return unused;
}

static void *counts(void *unused)
{
	while (!atomic_load(&over)) {
		atomic_fetch_add(&turns, 1);
		kb_yield();
	}
	return unused;
}

static void talk(void)
{
	kb_thread_t t;

	CHECK_EQ(kb_thread_create(&t, NULL, answers, NULL), 0);
	for (int i = 0; i < TALKS; i++) {
		put(fd[0]);
		get(fd[0]);
	}
	CHECK_EQ(kb_thread_join(t, NULL), 0);
}

int main(void)
{
	kb_thread_t t;
	long before;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	for (int round = 0; round < 3; round++) {
		talk();
		atomic_store(&over, false);
		CHECK_EQ(kb_thread_create(&t, NULL, counts, NULL), 0);
		for (int i = 0; i < MESSAGES; i++)
			put(fd[1]);
		before = atomic_load(&turns);
		for (int i = 0; i < MESSAGES; i++)
			get(fd[0]);
		printf("%ld turns of others\n", atomic_load(&turns) - before);
		CHECK(atomic_load(&turns) - before <= FEW);
		atomic_store(&over, true);
		CHECK_EQ(kb_thread_join(t, NULL), 0);
	}
	return 0;
}
