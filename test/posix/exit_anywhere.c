/* exit from a thread while further threads wait: atexit handlers run there, the status is right,
 * output is flushed. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_t caller;

static void *park(void *arg)
{
	pthread_mutex_lock(&m);
	for (;;)
		pthread_cond_wait(&c, &m);
	return arg;
}

static void at_exit(void)
{
	printf("%s", pthread_equal(pthread_self(), caller) ? "handler" : "wrong thread");
}

static void *call_exit(void *arg)
{
	caller = pthread_self();
	usleep(5000);
	exit((int)(long)arg);
}

static void child(void)
{
	pthread_t t;

	atexit(at_exit);
	for (int i = 0; i < 20; i++)
		pthread_create(&t, NULL, park, NULL);
	pthread_create(&t, NULL, call_exit, (void *)42);
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	char buf[64] = "";
	int p[2], status;
	pid_t pid;

	if (argc > 1) {
		child();
		return 1;
	}
	CHECK_EQ(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		dup2(p[1], 1);
		execl("/proc/self/exe", argv[0], "child", (char *)NULL);
		_exit(9);
	}
	close(p[1]);
	CHECK(read(p[0], buf, sizeof(buf) - 1) > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 42);
	CHECK_EQ(strcmp(buf, "handler"), 0);
	return 0;
}
