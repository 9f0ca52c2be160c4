/* posix/cancel_word: main has been cancelled before there is another thread, and has not reached a
 * cancellation point yet. pthread_create is no cancellation point, nor is the runtime's look at
 * main's control block inside it.
 * matrix: vps=1,2 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { TOLD = 3 };

static pthread_t first;
static int made;

static void *waits_for_main(void *unused)
{
	void *result;

	(void)unused;
	CHECK_EQ(pthread_join(first, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK(made);
	exit(TOLD);
}

/* Without the other thread the process would end with main, and with status 0. */
static void child(void)
{
	pthread_t t;

	first = pthread_self();
	CHECK_EQ(pthread_cancel(first), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits_for_main, NULL), 0);
	made = 1;
	pthread_testcancel();
	CHECK(!"it has been cancelled");
}

int main(void)
{
	int status, pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		child();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), TOLD);
	return 0;
}
