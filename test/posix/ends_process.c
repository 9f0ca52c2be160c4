/* posix/thread: a thread other than main ends the process, while threads wait, compute and hold
 * locks: by abort, with and without a handler of SIGABRT, by quick_exit, by exit and by _Exit. The
 * process's status is libc's, and exactly the handlers for this kind of end have run once, on that
 * thread. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static int said; /* the descriptor to which the end is reported */
static __thread bool ends;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void say(char what)
{
	if (ends)
		CHECK_EQ(write(said, &what, 1), 1);
	else
		CHECK_EQ(write(said, "!", 1), 1);
}

static void at_exit(void)
{
	say('e');
}

static void at_quick_exit_too(void)
{
	say('q');
}

static void on_abort(int sig)
{
	say(sig == SIGABRT ? 'a' : '?');
}

static void by_abort(void)
{
	abort();
}

static void by_abort_handled(void)
{
	CHECK(signal(SIGABRT, on_abort) != SIG_ERR);
	abort();
}

static void by_abort_blocked(void)
{
	sigset_t set;

	sigfillset(&set);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	abort();
}

static void by_quick_exit(void)
{
	quick_exit(3);
}

static void by_exit(void)
{
	exit(4);
}

static void by_exit_at_once(void)
{
	_Exit(5);
}

static const struct way {
	void (*end)(void);
	int signal, status;
	const char *says;
} ways[] = {
	{ by_abort, SIGABRT, 0, "" },
	{ by_abort_handled, SIGABRT, 0, "a" },
	{ by_abort_blocked, SIGABRT, 0, "" },
	{ by_quick_exit, 0, 3, "q" },
	{ by_exit, 0, 4, "e" },
	{ by_exit_at_once, 0, 5, "" },
};

static void *waits(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&held), 0);
	return arg;
}

static void *computes(void *arg)
{
	for (;;)
		__asm__ volatile("");
	return arg;
}

static void *ends_it(void *arg)
{
	const struct way *w = arg;

	ends = true;
	usleep(1000);
	w->end();
	return NULL;
}

static void child(const struct way *w)
{
	struct rlimit no_core = { 0, 0 };
	pthread_t t;

	CHECK_EQ(setrlimit(RLIMIT_CORE, &no_core), 0);
	CHECK_EQ(atexit(at_exit), 0);
	CHECK_EQ(at_quick_exit(at_quick_exit_too), 0);
	CHECK_EQ(pthread_mutex_lock(&held), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, ends_it, (void *)(uintptr_t)w), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	_exit(100);
}

static void one(const struct way *w)
{
	char text[8] = "";
	int ends_of_pipe[2], status;
	pid_t pid;

	CHECK_EQ(pipe(ends_of_pipe), 0);
	pid = fork();
	if (pid == 0) {
		said = ends_of_pipe[1];
		child(w);
	}
	CHECK(pid > 0);
	CHECK_EQ(close(ends_of_pipe[1]), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, w->signal);
	CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, w->status);
	CHECK(read(ends_of_pipe[0], text, sizeof text - 1) >= 0);
	CHECK(strcmp(text, w->says) == 0);
	CHECK_EQ(close(ends_of_pipe[0]), 0);
}

int main(void)
{
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
		one(&ways[i]);
	return 0;
}
