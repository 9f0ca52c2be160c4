/* child.h - runs a part of a test in a child process; reports its end and its output. Call it
 * before the runtime has started here: the child is forked and starts a runtime. */
#ifndef KB_TEST_CHILD_H
#define KB_TEST_CHILD_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

struct child {
	pid_t pid;
	int status; /* of waitpid */
	int late;   /* 1: the child had to be killed */
	size_t n;
	char text[1 << 20]; /* standard output and error */
	int pipe;
};

/* Starts fn(arg) in a child. When fn returns the child ends as by return from main. */
static inline void child_start(struct child *c, void (*fn)(void *), void *arg)
{
	int p[2];

	fflush(NULL);
	CHECK_EQ(pipe(p), 0);
	c->pid = fork();
	CHECK(c->pid >= 0);
	if (c->pid == 0) {
		close(p[0]);
		dup2(p[1], 1);
		dup2(p[1], 2);
		if (p[1] > 2)
			close(p[1]);
		fn(arg);
		exit(0);
	}
	close(p[1]);
	c->pipe = p[0];
	c->n = 0;
	c->late = 0;
}

/* Reads until `until` is in the text (NULL: until the end) or the time is over. Returns true if
 * `until` was found. */
static inline int child_read(struct child *c, const char *until, int ms)
{
	uint64_t end = test_now_ns() + (uint64_t)ms * 1000000u;

	for (;;) {
		struct pollfd p = { .fd = c->pipe, .events = POLLIN, .revents = 0 };
		uint64_t now = test_now_ns();
		ssize_t n;

		c->text[c->n] = 0;
		if (until && strstr(c->text, until))
			return 1;
		if (now >= end || poll(&p, 1, (int)((end - now) / 1000000u) + 1) <= 0)
			return 0;
		if (c->n >= sizeof c->text - 1)
			return until == NULL;
		n = read(c->pipe, c->text + c->n, sizeof c->text - 1 - c->n);
		if (n <= 0)
			return until == NULL;
		c->n += (size_t)n;
	}
}

/* Waits for the child's end, within `ms`; the output is in text. */
static inline void child_end(struct child *c, int ms)
{
	if (!child_read(c, NULL, ms)) {
		c->late = 1;
		kill(c->pid, SIGQUIT); /* prints its threads */
		child_read(c, "\1", 2000);
		kill(c->pid, SIGKILL);
	}
	CHECK_EQ(waitpid(c->pid, &c->status, 0), c->pid);
	close(c->pipe);
}

static inline void child_run(struct child *c, void (*fn)(void *), void *arg)
{
	child_start(c, fn, arg);
	child_end(c, 90000);
}

/* Checks that the child ended by exit(code). */
static inline void child_exited(const struct child *c, int code)
{
	if (!c->late && WIFEXITED(c->status) && WEXITSTATUS(c->status) == code)
		return;
	fprintf(stderr, "child: late %d, status 0x%x instead of exit %d; it said:\n%s\n", c->late,
		(unsigned)c->status, code,
		c->text);
	_Exit(1);
}

enum { CHILD_CANNOT = 77 }; /* exit status of a child that cannot do the test */

/* Runs fn in a child and checks that the child ended by exit(code). Returns false if the test
 * cannot be done here. */
static inline bool child_does(struct child *c, void (*fn)(void *), void *arg, int code)
{
	child_run(c, fn, arg);
	if (WIFEXITED(c->status) && WEXITSTATUS(c->status) == CHILD_CANNOT)
		return false;
	child_exited(c, code);
	return true;
}

/* Checks that the child was killed by this signal. */
static inline void child_killed(const struct child *c, int sig)
{
	if (!c->late && WIFSIGNALED(c->status) && WTERMSIG(c->status) == sig)
		return;
	fprintf(stderr, "child: late %d, status 0x%x instead of signal %d; it said:\n%s\n", c->late,
		(unsigned)c->status,
		sig, c->text);
	_Exit(1);
}

/* Checks that the child printed this text. */
static inline void child_said(const struct child *c, const char *what)
{
	if (strstr(c->text, what))
		return;
	fprintf(stderr, "child did not say '%s' but:\n%s\n", what, c->text);
	_Exit(1);
}

#endif
