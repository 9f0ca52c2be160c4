/* kb_io_recv, kb_io_send: threads whose calls find their data at once do not keep the
 * virtual processor from each other. Counted: the calls that the first thread has
 * made when the second begins.
 * matrix: vps=1 sched=rotator,rotator-paper,lb2,steal
 * body: thread: another virtual processor, asleep, begins when the kernel lets it */
#include <kochab/io.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

/* WORK_NS: more than a turn that a call may end. A thread that sends keeps the
 * virtual processor for longer. */
enum { CALLS = 2000, WORK_NS = 20000, FEW = 100, FEW_GIVEN = 1000 };

struct caller {
	int fd[2];
	bool gives;
	atomic_int calls;
	struct caller *other;
	int others_at_begin; /* calls that the other thread has made when this begins */
};

static void *calls(void *arg)
{
	struct caller *c = arg;
	char b = 0;

	c->others_at_begin = atomic_load(&c->other->calls);
	for (int i = 0; i < CALLS; i++) {
		CHECK_EQ(c->gives ? kb_io_send(c->fd[1], &b, 1, 0, KB_FOREVER) :
			kb_io_recv(c->fd[0], &b, 1, 0, KB_FOREVER), 1);
		test_compute_ns(WORK_NS);
		atomic_fetch_add(&c->calls, 1);
	}
	return NULL;
}

static void run(bool gives)
{
	static char many[CALLS];
	struct caller c[2] = { { .gives = gives, .other = &c[1] }, { .gives = gives, .other = &c[0] } };
	kb_thread_t t[2];
	int room = 1 << 20;

	for (int i = 0; i < 2; i++) {
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c[i].fd), 0);
		CHECK_EQ(setsockopt(c[i].fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
		if (!gives)
			CHECK_EQ(kb_io_send(c[i].fd[1], many, sizeof many, 0, KB_FOREVER), sizeof many);
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, calls, &c[i]), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	printf("%s: the second begins after %d calls of the first\n", gives ? "send" : "receive",
	       c[0].others_at_begin + c[1].others_at_begin);
	CHECK(c[0].others_at_begin + c[1].others_at_begin <= (gives ? FEW_GIVEN : FEW));
	for (int i = 0; i < 2; i++) {
		close(c[i].fd[0]);
		close(c[i].fd[1]);
	}
}

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	run(false);
	run(true);
	return 0;
}
