/* posix/fork: a child closes descriptors, or puts another file at their numbers, while threads of
 * its parent wait for them, are about to wait, or have just waited: the child ends, and the
 * parent's waits go on. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAIRS = 4, FORKS = 100 };

static struct pair {
	int ping[2], pong[2];
} pairs[PAIRS];

static atomic_int over;

static void *asks(void *arg)
{
	struct pair *p = arg;
	char c = 'x';

	while (!over) {
		CHECK_EQ(write(p->ping[1], &c, 1), 1);
		CHECK_EQ(read(p->pong[0], &c, 1), 1);
	}
	c = 'e';
	CHECK_EQ(write(p->ping[1], &c, 1), 1);
	return NULL;
}

static void *answers(void *arg)
{
	struct pair *p = arg;
	char c;

	do {
		CHECK_EQ(read(p->ping[0], &c, 1), 1);
		CHECK_EQ(write(p->pong[1], &c, 1), 1);
	} while (c != 'e');
	return NULL;
}

static void in_child(int i)
{
	for (int k = 0; k < PAIRS; k++)
		if (close(pairs[k].ping[0]) || dup2(pairs[k].ping[1], pairs[k].pong[0]) < 0 ||
			close(pairs[k].pong[0]))
			_exit(1);
	_exit(i % 100 + 2);
}

int main(void)
{
	pthread_t t[2 * PAIRS];
	int status;

	for (int k = 0; k < PAIRS; k++) {
		CHECK_EQ(pipe(pairs[k].ping), 0);
		CHECK_EQ(pipe(pairs[k].pong), 0);
		CHECK_EQ(pthread_create(&t[2 * k], NULL, asks, &pairs[k]), 0);
		CHECK_EQ(pthread_create(&t[2 * k + 1], NULL, answers, &pairs[k]), 0);
	}
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			in_child(i);
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), i % 100 + 2);
	}
	over = 1;
	for (int k = 0; k < 2 * PAIRS; k++)
		CHECK_EQ(pthread_join(t[k], NULL), 0);
	return 0;
}
