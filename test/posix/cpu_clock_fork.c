/* CPU clocks of a child begin at 0; the clocks of the thread that forks go on. */
#define _GNU_SOURCE
#include "cpu_time.h"

#include <sys/wait.h>

static void child(void)
{
	clockid_t own;

	CHECK(cpu_own() < NEAR_NOTHING);
	CHECK(cpu_of(CLOCK_PROCESS_CPUTIME_ID) < NEAR_NOTHING);
	CHECK_EQ(pthread_getcpuclockid(pthread_self(), &own), 0);
	CHECK(cpu_of(own) < NEAR_NOTHING);
	cpu_use(20 * MS);
	CHECK(cpu_of(own) >= 20 * MS);
	_exit(0);
}

static void *forks(void *arg)
{
	int64_t before = cpu_own();
	int status;
	pid_t pid;

	CHECK(before < NEAR_NOTHING);
	cpu_use(300 * MS);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(cpu_own() - before >= 300 * MS);
	return arg;
}

int main(void)
{
	pthread_t t;

	cpu_use_alone(300 * MS);
	CHECK_EQ(pthread_create(&t, NULL, forks, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
