/* All threads of a program wait for signals only, in pause, sigsuspend, sigwait, or a single thread
 * does and the rest wait for the work of its handler. Another process may send a signal, so no
 * deadlock is reported, and the signal comes.
 * sleeps: yes */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/child.h"

enum { LONG = 2500 /* ms; a deadlock is told after 1 s */ };

static sem_t never;

static void *pauses(void *arg)
{
	pause();
	return arg;
}

static void *suspends(void *arg)
{
	sigset_t none;

	sigemptyset(&none);
	sigsuspend(&none);
	return arg;
}

static void *pauses_by_number(void *arg)
{
#ifdef SYS_pause
	syscall(SYS_pause);
#else
	pause();
#endif
	return arg;
}

static void *waits(void *arg)
{
	sem_wait(&never);
	return arg;
}

static void *sigwaits(void *arg)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
	return arg;
}

struct part {
	void *(*thread)(void *), *(*main)(void *);
	struct child c;
};

/* Its signals have no handlers: a signal ends it. */
static void program(void *arg)
{
	const struct part *p = arg;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, p->thread, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
	p->main(NULL);
}

static void check(struct part *p)
{
	CHECK_EQ(kill(p->c.pid, SIGTERM), 0);
	child_end(&p->c, 30000);
	if (p->c.n > 0)
		fprintf(stderr, "%s", p->c.text);
	CHECK_EQ(p->c.n, 0);
	CHECK(WIFSIGNALED(p->c.status));
	CHECK_EQ(WTERMSIG(p->c.status), SIGTERM);
}

static struct part parts[] = {
	{ .thread = pauses, .main = pauses },
	{ .thread = suspends, .main = suspends },
	{ .thread = waits, .main = pauses_by_number },
	{ .thread = sigwaits, .main = waits },
	{ .thread = pauses, .main = waits },
};
enum { PARTS = sizeof parts / sizeof parts[0] };

int main(void)
{
	sem_init(&never, 0, 0);
	for (int i = 0; i < PARTS; i++)
		child_start(&parts[i].c, program, &parts[i]);
	usleep(LONG * 1000);
	for (int i = 0; i < PARTS; i++)
		check(&parts[i]);
	return 0;
}
