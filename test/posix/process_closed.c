/* libc/emulate_owned: a program that closes itself (PR_SET_DUMPABLE) is closed to other processes
 * of its user in all of its processes, also in those that are made later: their descriptors are not
 * to be seen. */
#define _GNU_SOURCE
#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, THREADS = 4 };

static int ready[2];

/* Rights that would see everything go. */
static void become_nobody(void)
{
	if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		_exit(77);
}

static void *sleeps(void *arg)
{
	sleep(60);
	return arg;
}

static void start_threads(void)
{
	pthread_t t;

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t, NULL, sleeps, NULL), 0);
	usleep(50000);
}

static void run(int closes)
{
	become_nobody();
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
	start_threads();
	if (closes)
		CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
	start_threads();
	CHECK_EQ(write(ready[1], "", 1), 1);
	sleep(60); /* it is killed */
	_exit(1);
}

/* ---- another process of the user ------------------------------------------------------------- */

static int parent_of(int pid)
{
	char path[40], line[512] = "", *at;
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fgets(line, sizeof line, f) && (at = strrchr(line, ')')))
		sscanf(at + 1, " %*c %d", &parent);
	fclose(f);
	return parent;
}

static int is_of(int pid, int program)
{
	for (int n = 0; pid > 1 && n < 8; n++, pid = parent_of(pid))
		if (pid == program)
			return 1;
	return 0;
}

static int may_see(int pid)
{
	char path[40];
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	d = opendir(path);
	if (d)
		closedir(d);
	return d != NULL;
}

/* Exits with the number of the program's processes whose descriptors it sees. */
static void look(int program)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int seen = 0;

	become_nobody();
	while ((e = readdir(d))) {
		int pid = atoi(e->d_name);

		seen += pid > 0 && is_of(pid, program) && may_see(pid);
	}
	_exit(seen < 70 ? seen : 70);
}

static int count_seen(int closes)
{
	int status, seen;
	pid_t program, other;
	char c;

	CHECK_EQ(pipe(ready), 0);
	program = fork();
	CHECK(program >= 0);
	if (program == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(closes);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		SKIP("it cannot become nobody");
	other = fork();
	CHECK(other >= 0);
	if (other == 0)
		look(program);
	CHECK_EQ(waitpid(other, &status, 0), other);
	CHECK(WIFEXITED(status));
	seen = WEXITSTATUS(status);
	CHECK_EQ(kill(program, SIGKILL), 0);
	CHECK_EQ(waitpid(program, NULL, 0), program);
	close(ready[0]);
	if (seen == 77)
		SKIP("it cannot become nobody");
	return seen;
}

int main(void)
{
	int open = count_seen(0), closed = count_seen(1);

	printf("seen: %d of an open program, %d of a closed one\n", open, closed);
	if (open == 0)
		SKIP("other processes are not seen here");
	CHECK_EQ(closed, 0);
	return 0;
}
