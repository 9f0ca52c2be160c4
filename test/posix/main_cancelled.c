/* main is cancelled, in a wait or in a handler that has interrupted a wait: its cleanup handlers
 * run, innermost first, it can be joined, further threads go on, and the process ends with the
 * status of the last thread.
 * matrix: vps=1,2,4 sched=rotator,lb2,steal */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_t first;
static int order, depth, fd[2];
static long part;

static void note(void *arg)
{
	order = order * 10 + (int)(long)arg;
}

static void waits(void)
{
	char c;

	pthread_cleanup_push(note, (void *)1);
	__atomic_add_fetch(&depth, 1, __ATOMIC_RELEASE);
	CHECK_EQ(read(fd[0], &c, 1), -2); /* cancelled, it does not come back */
	pthread_cleanup_pop(0);
}

static void handler(int sig)
{
	(void)sig;
	pthread_cleanup_push(note, (void *)2);
	waits();
	pthread_cleanup_pop(0);
}

static void *other(void *arg)
{
	void *result;

	usleep(5000);
	if (part == 1) {
		CHECK_EQ(pthread_kill(first, SIGUSR1), 0);
		while (__atomic_load_n(&depth, __ATOMIC_ACQUIRE) < 2)
			usleep(1000);
	}
	CHECK_EQ(pthread_cancel(first), 0);
	CHECK_EQ(pthread_join(first, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(order, part == 1 ? 1213 : 13);
	exit(7);
	return arg;
}

static int child(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t t;

	first = pthread_self();
	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, other, NULL), 0);
	pthread_cleanup_push(note, (void *)3);
	waits();
	pthread_cleanup_pop(0);
	return 1;
}

int main(void)
{
	for (part = 0; part < 2; part++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			return child();
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), 7);
	}
	return 0;
}
