/* Semaphores of libc (process-shared and named) and Kochab's own: a wait is ended by a
 * cancellation, and by a handler with EINTR; a handler with SA_RESTART ends only waits with a time
 * limit, as on libc. The token that comes then is not lost. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { KINDS = 3, SETTLE_US = 20000, PATIENCE = 250 /* times SETTLE_US */ };

static sem_t mine, shared, *sems[KINDS];
static volatile int waiting, handled, cleaned;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void clean(void *unused)
{
	(void)unused;
	cleaned++;
}

static int wait_for(sem_t *s, int timed)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 60;
	waiting = 1;
	return (timed ? sem_timedwait(s, &t) : sem_wait(s)) ? errno : 0;
}

struct call { sem_t *s; int timed, result; };

static void *waits(void *arg)
{
	struct call *c = arg;

	pthread_cleanup_push(clean, NULL);
	c->result = wait_for(c->s, c->timed);
	pthread_cleanup_pop(0);
	return NULL;
}

static pthread_t start(struct call *c)
{
	pthread_t t;

	waiting = 0;
	CHECK_EQ(pthread_create(&t, NULL, waits, c), 0);
	while (!waiting)
		usleep(100);
	usleep(SETTLE_US);
	return t;
}

static void cancelled(sem_t *s, int timed)
{
	struct call c = { s, timed, -1 };
	pthread_t t = start(&c);
	void *r;

	cleaned = 0;
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK(r == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 1);
	CHECK_EQ(sem_trywait(s), -1);
}

static void interrupted(sem_t *s, int timed, int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };
	struct call c = { s, timed, -1 };
	int goes_on = flags && !timed, sent = 1;
	pthread_t t;

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	t = start(&c);
	handled = 0;
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	/* on a busy machine it may have come before the wait */
	for (int i = 1; !goes_on && *(volatile int *)&c.result == -1; i++) {
		usleep(SETTLE_US);
		if (i % PATIENCE == 0) {
			CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
			sent++;
		}
	}
	if (goes_on) {
		usleep(SETTLE_US);
		CHECK_EQ(c.result, -1);
		CHECK_EQ(sem_post(s), 0);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(handled, sent);
	CHECK_EQ(c.result, goes_on ? 0 : EINTR);
}

int main(void)
{
	char name[40];

	snprintf(name, sizeof name, "/kochab-interrupted-%d", (int)getpid());
	CHECK_EQ(sem_init(&mine, 0, 0), 0);
	CHECK_EQ(sem_init(&shared, 1, 0), 0);
	sems[0] = &mine;
	sems[1] = &shared;
	sems[2] = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
	CHECK(sems[2] != SEM_FAILED);
	CHECK_EQ(sem_unlink(name), 0);
	for (int i = 0; i < KINDS; i++)
		for (int timed = 0; timed < 2; timed++) {
			cancelled(sems[i], timed);
			interrupted(sems[i], timed, 0);
			interrupted(sems[i], timed, SA_RESTART);
		}
	return 0;
}
