/* A thread is cancelled in system() while its command runs: the thread ends, and so does the
 * command. libc waits for the command inside itself. The canceller knows that the command runs, not
 * that the wait has begun. */
#include "crowd.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5 };

static int from_command[2];
static bool cleaned;

static void clean(void *arg)
{
	(void)arg;
	cleaned = true;
}

static void *run(void *command)
{
	pthread_cleanup_push(clean, NULL);
	(void)!system(command);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(void)
{
	char command[64];
	pthread_t t;
	void *result;
	int pid;

	CHECK_EQ(pipe(from_command), 0);
	snprintf(command, sizeof(command), "echo $$ >&%d; exec sleep 60", from_command[1]);
	for (int i = 0; i < ROUNDS; i++) {
		char said[16] = { 0 };

		cleaned = false;
		CHECK_EQ(pthread_create(&t, NULL, run, command), 0);
		CHECK(read(from_command[0], said, sizeof(said) - 1) > 0);
		if (i % 2)
			usleep(20000);
		CHECK_EQ(pthread_cancel(t), 0);
		CHECK_EQ(pthread_join(t, &result), 0);
		CHECK(result == PTHREAD_CANCELED);
		CHECK(cleaned);
		pid = atoi(said);
		CHECK(pid > 0);
		CHECK_EQ(kill(pid, 0), -1);
		CHECK_EQ(errno, ESRCH);
	}
	CHECK_EQ(system("exit 3"), 3 << 8);
	return 0;
}
