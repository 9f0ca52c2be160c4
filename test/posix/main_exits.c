/* main leaves by pthread_exit: its cleanup handlers run, further threads go on, the last thread
 * ends the process with 0 and the atexit handlers. The child of a fork does this, so that its end
 * can be seen. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int *seen;

static void at_exit(void)
{
	seen[0]++;
}

static void cleanup(void *unused)
{
	(void)unused;
	seen[1]++;
}

static void *go_on(void *arg)
{
	usleep(30000);
	seen[2]++;
	return arg;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc > 1) {
		pthread_t t[3];

		seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
		atexit(at_exit);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, go_on, NULL), 0);
		pthread_cleanup_push(cleanup, NULL);
		pthread_exit(NULL);
		pthread_cleanup_pop(0);
		return 1;
	}
	CHECK_EQ(dup2(memfd_create("seen", 0), 3), 3);
	CHECK_EQ(ftruncate(3, 4096), 0);
	seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
	CHECK(seen != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", argv[0], "child", (char *)NULL);
		_exit(9);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(seen[0], 1);
	CHECK_EQ(seen[1], 1);
	CHECK_EQ(seen[2], 3);
	return 0;
}
