/* kb_io_*: a storm of signals, and a process that is stopped and goes on: no byte is lost, no call
 * ends with EINTR, deadlines that passed meanwhile are noticed.
 * matrix: vps=1,2 sched=rotator,steal */
#include <errno.h>
#include <kochab/io.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/child.h"
#include "test.h"

enum { PAIRS = 8, ROUNDS = 2000 };

static uint32_t handled;

static void handler(int sig)
{
	(void)sig;
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static int fd[PAIRS][2];
static uint32_t left;

static void *talks(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	int s = fd[me / 2][me % 2];

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned got = 0;

		if (me % 2 == 0)
			CHECK_EQ(kb_io_write(s, &i, sizeof i, KB_FOREVER), sizeof i);
		CHECK_EQ(kb_io_read(s, &got, sizeof got, KB_FOREVER), sizeof got);
		CHECK_EQ(got, i);
		if (me % 2 == 1)
			CHECK_EQ(kb_io_write(s, &i, sizeof i, KB_FOREVER), sizeof i);
		if (i % 256 == 0)
			kb_sleep(100000);
	}
	__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Runs in the child: signals come from its parent. */
static void storm(void *arg)
{
	struct sigaction a;
	kb_thread_t t[2 * PAIRS];

	(void)arg;
	memset(&a, 0, sizeof a);
	a.sa_handler = handler; /* no SA_RESTART */
	sigaction(SIGUSR1, &a, NULL);
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(write(1, "ready", 5), 5);
	for (unsigned i = 0; i < PAIRS; i++)
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[i]), 0);
	left = 2 * PAIRS;
	for (uintptr_t i = 0; i < 2 * PAIRS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, talks, (void *)i), 0);
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

static void waits_long(void *arg)
{
	char c;

	(void)arg;
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[0]), 0);
	CHECK_EQ(write(1, "ready", 5), 5);
	CHECK_EQ(kb_io_read(fd[0][0], &c, 1, kb_now() + 50000000), -ETIMEDOUT);
	CHECK_EQ(write(fd[0][1], "y", 1), 1);
	CHECK_EQ(kb_io_read(fd[0][0], &c, 1, KB_FOREVER), 1);
}

int main(void)
{
	static struct child c;

	child_start(&c, storm, NULL);
	CHECK(child_read(&c, "ready", 10000));
	signal(SIGUSR1, SIG_IGN);
	for (unsigned i = 0; i < 3000 && kill(c.pid, SIGUSR1) == 0; i++)
		usleep(20);
	child_end(&c, 60000);
	child_exited(&c, 0);

	child_start(&c, waits_long, NULL);
	CHECK(child_read(&c, "ready", 10000));
	usleep(5000);
	CHECK_EQ(kill(c.pid, SIGSTOP), 0);
	usleep(120000);
	CHECK_EQ(kill(c.pid, SIGCONT), 0);
	child_end(&c, 60000);
	child_exited(&c, 0);
	return 0;
}
