/* io/ready: a child of fork waits for its own descriptors and has none of the
 * runtime's; the parent goes on.
 * body: thread */
#include <sys/wait.h>

#include "io_test.h"

static unsigned before; /* number of descriptors */

static char byte_from(int fd)
{
	char c = 0;

	CHECK_EQ(ready_read(fd, &c, 1, ready_until(KB_FOREVER)), 1);
	return c;
}

static void *sends(void *arg)
{
	kb_sleep(3000000);
	CHECK_EQ(write(*(int *)arg, "p", 1), 1);
	return NULL;
}

static unsigned count_open(void)
{
	unsigned n = 0;

	for (int fd = 3; fd < 1100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void in_child(const int p[2])
{
	CHECK_EQ(count_open(), before + 4);
	CHECK_EQ(ready_wait(p[0], POLLIN, ready_until(2000000), 1), ETIMEDOUT);
	if (fork() == 0) {
		usleep(3000);
		CHECK_EQ(write(p[1], "c", 1), 1);
		_exit(0);
	}
	CHECK_EQ(byte_from(p[0]), 'c');
	_exit(7);
}

int main(void)
{
	int p[2], q[2], status;
	kb_thread_t t;
	pid_t pid;

	CHECK_EQ(kb_init(), 0);
	before = count_open();
	ready_pair(p);
	ready_pair(q);
	CHECK_EQ(kb_thread_create(&t, NULL, sends, &p[1]), 0);
	CHECK_EQ(byte_from(p[0]), 'p');
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		in_child(p);
	CHECK_EQ(kb_thread_create(&t, NULL, sends, &q[1]), 0);
	CHECK_EQ(byte_from(q[0]), 'p');
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return 0;
}
