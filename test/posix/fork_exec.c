/* fork from a thread of several: the child execs, exits, runs system and popen, uses mutexes, keys
 * and conditions, makes and joins threads; atfork handlers run; the parent goes on. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int prepared, parents, children, stop, go;
static __thread int own;

static void prepare(void)
{
	pthread_mutex_lock(&busy);
	prepared++;
}

static void parent(void)
{
	parents++;
	pthread_mutex_unlock(&busy);
}

static void child(void)
{
	children++;
	pthread_mutex_unlock(&busy);
}

static void *disturb(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&busy);
		usleep(50);
		pthread_mutex_unlock(&busy);
		usleep(50);
	}
	return arg;
}

static void *in_child(void *arg)
{
	pthread_mutex_lock(&m);
	go = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return arg;
}

static int use_everything(void)
{
	struct timespec t;
	pthread_t th;
	void *r;

	pthread_mutex_lock(&busy);
	pthread_mutex_unlock(&busy);
	if (own != 5 || children != 1)
		return 10;
	if (pthread_create(&th, NULL, in_child, &t))
		return 11;
	pthread_mutex_lock(&m);
	while (!go)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	if (pthread_join(th, &r) || r != &t)
		return 12;
	clock_gettime(CLOCK_REALTIME, &t);
	pthread_mutex_lock(&m);
	if (pthread_cond_timedwait(&c, &m, &t) != ETIMEDOUT)
		return 13;
	usleep(1000);
	return system("exit 3") == 3 << 8 ? 0 : 14;
}

static int status_of(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void *forker(void *arg)
{
	char *argv[] = { "sh", "-c", "exit 6", NULL }, buf[32] = "";
	pid_t pid = fork();
	FILE *f;

	own = 5;
	if (pid == 0) {
		execv("/bin/sh", argv);
		_exit(9);
	}
	CHECK_EQ(status_of(pid), 6);
	children = 0;
	pid = fork();
	if (pid == 0)
		_exit(use_everything());
	CHECK_EQ(status_of(pid), 0);
	pid = fork();
	if (pid == 0)
		exit(8);
	CHECK_EQ(status_of(pid), 8);
	CHECK_EQ(system("exit 4"), 4 << 8);
	f = popen("echo hello", "r");
	CHECK(f != NULL);
	CHECK(fgets(buf, sizeof(buf), f) != NULL);
	CHECK_EQ(strcmp(buf, "hello\n"), 0);
	CHECK_EQ(pclose(f), 0);
	CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	CHECK_EQ(status_of(pid), 6);
	return arg;
}

int main(void)
{
	pthread_t t, d[4];

	CHECK_EQ(pthread_atfork(prepare, parent, child), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&d[i], NULL, disturb, NULL), 0);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(pthread_create(&t, NULL, forker, NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	own = 4;
	forker(NULL); /* and from main */
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(d[i], NULL), 0);
	CHECK_EQ(prepared, parents);
	CHECK(parents >= 18);
	return 0;
}
