/* posix/fork: a thread waits for a descriptor, as the first thread of the program, after another
 * thread's fork has begun and before there is a child. The parent's means of waiting are not the
 * child's: the child has none of them, and its closes do not affect the parent. */
#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 20 };

static int ends[2];
static atomic_int asked;

/* Alternating turns, so that the waits certainly happen. */
static void *answers(void *arg)
{
	char c;

	(void)arg;
	while (read(ends[0], &c, 1) == 1 && c != 'e')
		CHECK_EQ(write(ends[0], &c, 1), 1);
	return NULL;
}

static void asks(char c)
{
	CHECK_EQ(write(ends[1], &c, 1), 1);
	CHECK_EQ(read(ends[1], &c, 1), 1);
}

static void before(void)
{
	if (asked++)
		return;
	for (int i = 0; i < TURNS; i++)
		asks('x');
}

static int polls(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		char file[64] = "";

		if (readlinkat(dirfd(d), e->d_name, file, sizeof(file) - 1) > 0 &&
			strstr(file, "[eventpoll]"))
			n++;
	}
	closedir(d);
	return n;
}

static _Noreturn void in_child(void)
{
	char c = 'c';

	if (polls())
		_exit(1);
	if (close(ends[0]) || close(ends[1]) || pipe(ends))
		_exit(2);
	if (write(ends[1], &c, 1) != 1 || read(ends[0], &c, 1) != 1)
		_exit(3);
	_exit(7);
}

int main(void)
{
	pthread_t t;
	pid_t pid;
	int status;

	CHECK_EQ(pthread_atfork(before, NULL, NULL), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	CHECK_EQ(pthread_create(&t, NULL, answers, NULL), 0);
	pid = fork();
	if (pid == 0)
		in_child();
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 7);
	for (int i = 0; i < TURNS; i++)
		asks('y');
	CHECK_EQ(write(ends[1], "e", 1), 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
