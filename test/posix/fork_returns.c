/* A forked thread's function returns in the child: the process ends with 0, as at the end of the
 * last thread. */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_key_t key;
static int ended_fd;

static void note(void *v)
{
	CHECK_EQ(write(ended_fd, v, 1), 1);
}

static void *body(void *arg)
{
	pid_t *pid = arg;

	CHECK_EQ(pthread_setspecific(key, "x"), 0);
	*pid = fork();
	if (*pid == 0)
		return NULL;
	CHECK_EQ(pthread_setspecific(key, NULL), 0);
	return NULL;
}

int main(void)
{
	pthread_t t;
	pid_t pid;
	char c;
	int p[2], status;

	CHECK_EQ(pipe(p), 0);
	ended_fd = p[1];
	CHECK_EQ(pthread_key_create(&key, note), 0);
	CHECK_EQ(pthread_create(&t, NULL, body, &pid), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(read(p[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	return 0;
}
