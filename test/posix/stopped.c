/* A process is stopped and continued, again and again: none of its threads sees an error from it,
 * no wait ends before its time or goes on for ever, and the threads' common results are whole.
 * Waits for pipes, sleeps, timed waits, and computing. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STOPS = 12, SHORT_US = 20000, NAPS = 100, SPAN_MS = 3, PIPES = 2, LONG_S = 100 };

static int over, pipes[PIPES][2], idle[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static bool goes_on(void) { return !__atomic_load_n(&over, __ATOMIC_ACQUIRE); }

static struct timespec in_a_while(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += SPAN_MS * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static bool is_past(struct timespec t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec > t.tv_sec || (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec);
}

static void *naps(void *unused)
{
	while (goes_on())
		CHECK_EQ(usleep(1000), 0);
	return unused;
}

static void *waits_on_cond(void *unused)
{
	while (goes_on()) {
		struct timespec t = in_a_while();
		int e;

		CHECK_EQ(pthread_mutex_lock(&lock), 0);
		e = pthread_cond_timedwait(&cond, &lock, &t);
		CHECK(e == 0 || (e == ETIMEDOUT && is_past(t)));
		CHECK_EQ(pthread_mutex_unlock(&lock), 0);
	}
	return unused;
}

static void *waits_on_sem(void *unused)
{
	sem_t s;

	CHECK_EQ(sem_init(&s, 0, 0), 0);
	while (goes_on()) {
		struct timespec t = in_a_while();

		CHECK_EQ(sem_timedwait(&s, &t), -1);
		CHECK(errno == ETIMEDOUT && is_past(t));
	}
	return unused;
}

static void *polls(void *unused)
{
	struct pollfd p = { .fd = idle[0], .events = POLLIN };

	while (goes_on())
		CHECK_EQ(poll(&p, 1, SPAN_MS), 0);
	return unused;
}

/* Passes bytes in their order, from a pipe to the next. */
static void *passes_on(void *unused)
{
	unsigned char c, next = 0;

	while (read(pipes[0][0], &c, 1) == 1) {
		CHECK_EQ(c, next);
		next++;
		CHECK_EQ(write(pipes[1][1], &c, 1), 1);
	}
	close(pipes[1][1]);
	return unused;
}

static void *asks(void *unused)
{
	unsigned char c, next = 0;

	for (; goes_on(); next++) {
		CHECK_EQ(write(pipes[0][1], &next, 1), 1);
		CHECK_EQ(read(pipes[1][0], &c, 1), 1);
		CHECK_EQ(c, next);
	}
	close(pipes[0][1]);
	return unused;
}

static void *computes(void *unused)
{
	while (goes_on())
		;
	return unused;
}

static void program(void)
{
	static void *(*const fns[])(void *) = { naps, waits_on_cond, waits_on_sem, polls, passes_on, asks, computes };
	enum { N = sizeof fns / sizeof *fns };
	pthread_t t[N];

	alarm(LONG_S);
	for (int i = 0; i < PIPES; i++)
		CHECK_EQ(pipe(pipes[i]), 0);
	CHECK_EQ(pipe(idle), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, fns[i], NULL), 0);
	for (int i = 0; i < NAPS; i++)
		CHECK_EQ(usleep(10000), 0);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < N; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

int main(void)
{
	pid_t child;
	int status;

#if defined(__SANITIZE_THREAD__)
	SKIP("its threads are not a child's");
#endif
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		program();
		return 0;
	}
	for (int i = 0; i < STOPS; i++) {
		usleep(SHORT_US);
		CHECK_EQ(kill(child, SIGSTOP), 0);
		CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
		CHECK(WIFSTOPPED(status));
		usleep(SHORT_US);
		CHECK_EQ(kill(child, SIGCONT), 0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return 0;
}
