/* bench/alloc/spent.c - runs a program and prints its costs: user, system and elapsed seconds, and
 * the peak of memory in KiB. A small program of its own, because a child begins with its parent's
 * peak.
 *   spent PRELOAD PROGRAM [ARGUMENT]... */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static pid_t start(char **argv)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (*argv[1])
		setenv("LD_PRELOAD", argv[1], 1);
	freopen("/dev/null", "w", stdout);
	execvp(argv[2], argv + 2);
	_exit(127);
}

int main(int argc, char **argv)
{
	double begin = now();
	struct rusage r;
	int status;

	if (argc < 3 || wait4(start(argv), &status, 0, &r) < 0)
		return 2;
	printf("%d %.3f %.3f %.3f %ld\n", status, seconds(r.ru_utime), seconds(r.ru_stime), now() - begin, r.ru_maxrss);
	return 0;
}
