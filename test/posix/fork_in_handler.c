/* A handler forks while its thread raises the signal, also when it was blocked and is let in later: the child
 * returns from the handler, goes on as the thread did, uses locks and creates threads, and ends well. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 10 };

static volatile int is_child;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void forker(int sig)
{
	pid_t pid = fork();
	(void)sig;

	CHECK(pid >= 0);
	if (pid == 0)
		is_child = 1;
}

static void *nothing(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return arg;
}

static void end_of_child(void)
{
	pthread_t t;

	if (!is_child)
		return;
	nothing(NULL);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	_exit(0);
}

static void *raises(void *arg)
{
	CHECK_EQ(raise(SIGUSR1), 0);
	end_of_child();
	return arg;
}

static void *lets_in(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK(!is_child);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	end_of_child();
	return arg;
}

static void one(void *(*fn)(void *))
{
	pthread_t t;
	int status;

	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(wait(&status) > 0);
	CHECK_EQ(status, 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = forker };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (int i = 0; i < TURNS; i++) {
		one(raises);
		one(lets_in);
	}
	return 0;
}
