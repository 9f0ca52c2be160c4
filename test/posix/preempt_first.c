/* core/quantum: the very first turn of a virtual processor ends like every later turn. A main
 * thread that has never waited creates a thread and spins for it; it is switched away at the
 * quantum's end and not by luck. Each program has only one first turn, so the test runs several
 * programs.
 * matrix: vps=1,2 sched=rotator */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { PROGRAMS = 15, LONG_MS = 300 };

static volatile int has_run;

static void *run(void *unused)
{
	has_run = 1;
	return unused;
}

static int spin(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, run, NULL), 0);
	while (!has_run)
		;
	return pthread_join(t, NULL);
}

static unsigned program_ms(char *self)
{
	char *argv[] = { self, "spin", NULL };
	uint64_t start = test_now_ns();
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return (unsigned)((test_now_ns() - start) / 1000000);
}

static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	unsigned ms[PROGRAMS];

	if (argc > 1)
		return spin();
	for (unsigned i = 0; i < PROGRAMS; i++)
		ms[i] = program_ms(argv[0]);
	qsort(ms, PROGRAMS, sizeof(*ms), compare);
	printf("%u to %u ms, median %u ms\n", ms[0], ms[PROGRAMS - 1], ms[PROGRAMS / 2]);
	CHECK(ms[PROGRAMS / 2] < LONG_MS);
	return 0;
}
