/* The option contain: a thread is lost, and the remaining threads wait for it. When only a signal
 * can wake them, the program ends (option on_crash). The program does not end while a thread is in
 * a call that may end, waits for signals, or has a deadline, and not if the option says that it
 * goes on.
 * matrix: run-only
 * sleeps: yes */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/crashers.h"
#include "test.h"

enum { LONG = 2500 /* ms; all threads have waited long enough after one second */ };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;

static void interrupted(int sig)
{
	(void)sig;
	sem_post(&sem);
}

static void *waits_for_nobody(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	return arg;
}

static void *posts_later(void *arg)
{
	usleep(LONG * 1000);
	sem_post(&sem);
	return arg;
}

/* Reads the bytes that the test sends later. */
static void *reads_and_posts(void *arg)
{
	char c;

	CHECK_EQ(read(0, &c, 1), 1);
	sem_post(&sem);
	return arg;
}

static void program(const char *what)
{
	pthread_t lost, other;

	if (strcmp(what, "no handler"))
		signal(SIGINT, interrupted);
	sem_init(&sem, 0, 0);
	CHECK_EQ(pthread_create(&lost, NULL, writes, NULL), 0);
	CHECK_EQ(pthread_join(lost, NULL), EOWNERDEAD);
	CHECK_EQ(pthread_create(&other, NULL, waits_for_nobody, NULL), 0);
	if (!strcmp(what, "deadline"))
		CHECK_EQ(pthread_create(&other, NULL, posts_later, NULL), 0);
	if (!strcmp(what, "call"))
		CHECK_EQ(pthread_create(&other, NULL, reads_and_posts, NULL), 0);
	CHECK_EQ(write(1, "x", 1), 1);
	if (!strcmp(what, "pause"))
		pause();
	while (sem_wait(&sem))
		CHECK_EQ(errno, EINTR);
	_exit(0);
}

struct run {
	const char *what, *on_crash;
	int signal; /* signal that is sent at the end */
	pid_t pid;
	int in[2];
};

/* Returns when the program has lost a thread. */
static void start(struct run *r, char *name)
{
	char *argv[] = { name, (char *)(uintptr_t)r->what, NULL }, c;
	int out[2];

	CHECK_EQ(pipe(r->in) | pipe(out), 0);
	r->pid = fork();
	CHECK(r->pid >= 0);
	if (r->pid == 0) {
		setenv("KOCHAB_CONTAIN", "1", 1);
		setenv("KOCHAB_ON_CRASH", r->on_crash, 1);
		dup2(r->in[0], 0);
		dup2(out[1], 1);
		close(r->in[1]);
		close(out[0]);
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	close(out[1]);
	CHECK_EQ(read(out[0], &c, 1), 1);
	close(out[0]);
}

static int end(const struct run *r)
{
	int status;

	CHECK_EQ(write(r->in[1], "x", 1), 1);
	if (r->signal)
		kill(r->pid, r->signal);
	CHECK_EQ(waitpid(r->pid, &status, 0), r->pid);
	close(r->in[0]);
	close(r->in[1]);
	return status;
}

static int aborted(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int main(int argc, char **argv)
{
	struct run run[] = {
		{ .what = "no handler", .on_crash = "abort" },
		{ .what = "handler", .on_crash = "abort" },
		{ .what = "deadline", .on_crash = "abort" },
		{ .what = "call", .on_crash = "abort" },
		{ .what = "handler", .on_crash = "release", .signal = SIGINT },
		{ .what = "pause", .on_crash = "abort", .signal = SIGINT },
	};

	if (argc > 1)
		program(argv[1]);
	skip_unless_contained();
	for (unsigned i = 0; i < sizeof run / sizeof *run; i++)
		start(&run[i], argv[0]);
	usleep(LONG * 1000);
	CHECK(aborted(end(&run[0])));
	CHECK(aborted(end(&run[1])));
	CHECK_EQ(end(&run[2]), 0);
	CHECK_EQ(end(&run[3]), 0);
	CHECK_EQ(end(&run[4]), 0);
	CHECK_EQ(end(&run[5]), 0);
	return 0;
}
