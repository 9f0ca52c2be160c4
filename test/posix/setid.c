/* setuid and its family among threads concern every kernel thread of the process, running or
 * asleep. A kernel thread that cannot follow, because its thread has set a different identity by
 * syscall(), ends the process by SIGABRT, as on libc. Needs root. */
#include "test.h"

#include <dirent.h>
#include <grp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 12, NOBODY = 65534 };

static int stop;

static void *work(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (arg)
			usleep(500);
		else
			sched_yield();
	}
	CHECK_EQ(syscall(SYS_getuid), NOBODY);
	return NULL;
}

/* Every kernel thread's line that begins with `key` is `expected`. */
static void all_are(const char *key, const char *expected)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	CHECK(d != NULL);
	while ((e = readdir(d)) != NULL) {
		char path[300], line[300];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			if (strncmp(line, key, strlen(key)) == 0) {
				n++;
				if (strcmp(line, expected) != 0)
					fprintf(stderr, "%s is %s", path, line);
				CHECK_EQ(strcmp(line, expected), 0);
			}
		if (f)
			fclose(f);
	}
	closedir(d);
	CHECK(n > 0);
}

static void child(void)
{
	gid_t groups[] = { 7, 8 };
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, work, (void *)(i % 2)), 0);
	usleep(5000);
	CHECK_EQ(setgroups(2, groups), 0);
	all_are("Groups:", "Groups:\t7 8 \n");
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(seteuid(NOBODY), 0);
		all_are("Uid:", "Uid:\t0\t65534\t0\t65534\n");
		CHECK_EQ(seteuid(0), 0);
	}
	CHECK_EQ(setgid(NOBODY), 0);
	CHECK_EQ(setuid(NOBODY), 0);
	all_are("Uid:", "Uid:\t65534\t65534\t65534\t65534\n");
	all_are("Gid:", "Gid:\t65534\t65534\t65534\t65534\n");
	CHECK_EQ(setuid(0), -1);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static sem_t changed, never;

static void *go_alone(void *arg)
{
	CHECK_EQ(syscall(SYS_setresuid, 2001, 2002, 2003), 0);
	CHECK_EQ(sem_post(&changed), 0);
	sem_wait(&never);
	return arg;
}

static void ends_if_one_cannot_follow(void)
{
	struct rlimit none = { 0, 0 };
	pthread_t t;

	setrlimit(RLIMIT_CORE, &none);
	CHECK_EQ(sem_init(&changed, 0, 0), 0);
	CHECK_EQ(sem_init(&never, 0, 0), 0);
	CHECK_EQ(pthread_create(&t, NULL, go_alone, NULL), 0);
	CHECK_EQ(sem_wait(&changed), 0);
	CHECK_EQ(setresuid(1001, 1002, 1003), 0);
	sem_wait(&never);
}

int main(void)
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		SKIP("needs root");
	pid = fork();
	if (pid == 0) {
		child();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	pid = fork();
	if (pid == 0) {
		ends_if_one_cannot_follow();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGABRT);
	return 0;
}
