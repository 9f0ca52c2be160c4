/* core/handoff under the drop-in: threads between kb_blocking_begin and kb_blocking_end. They are
 * cancelled and signalled where they block, they fork and exec from there, and end there. Handlers
 * run on them with their own pthread_self; their errno and masks stay theirs. A signal that comes
 * while its handler runs is handled afterwards, there and in a thread that computes.
 * matrix: run-only */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

__attribute__((weak)) int kb_blocking_begin(void); /* defined by the runtime */
__attribute__((weak)) int kb_blocking_end(void);

enum { THREADS = 12, HITS = 5 };

static int never[2]; /* a pipe that no thread writes to */
static int ends[2];  /* a pipe that brings a byte for each thread that is to end */

static int is_blocked_in_read(void)
{
	usleep(20000);
	return 1;
}

/* ---- cancellation ---------------------------------------------------------------------------- */

static int cleaned;

static void clean(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED);
}

static void *cancelled(void *unused)
{
	char c;

	(void)unused;
	pthread_cleanup_push(clean, NULL);
	CHECK_EQ(kb_blocking_begin(), 0);
	CHECK(read(never[0], &c, 1) < 0);
	CHECK_EQ(kb_blocking_end(), 0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancels(void)
{
	pthread_t t[THREADS];
	void *result;

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, cancelled, NULL), 0);
	CHECK(is_blocked_in_read());
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_cancel(t[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(t[i], &result), 0);
		CHECK(result == PTHREAD_CANCELED);
	}
	CHECK_EQ(cleaned, THREADS);
}

/* ---- signals --------------------------------------------------------------------------------- */

static __thread volatile int hits;
static __thread pthread_t hit_self;
static sem_t hit;

static void on_signal(int sig)
{
	(void)sig;
	hits++;
	hit_self = pthread_self();
	sem_post(&hit);
	errno = EDOM;
}

static void *signalled(void *unused)
{
	sigset_t set;
	char c;

	(void)unused;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(kb_blocking_begin(), 0);
	while (read(ends[0], &c, 1) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(hits, HITS);
	CHECK_EQ(kb_blocking_end(), 0);
	CHECK(pthread_equal(hit_self, pthread_self()));
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
	CHECK(sigismember(&set, SIGUSR2) && !sigismember(&set, SIGUSR1));
	return NULL;
}

static void signals(void)
{
	struct sigaction sa;
	pthread_t t[THREADS];

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	sem_init(&hit, 0, 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, signalled, NULL), 0);
	CHECK(is_blocked_in_read());
	for (int n = 0; n < HITS; n++)
		for (int i = 0; i < THREADS; i++) {
			CHECK_EQ(pthread_kill(t[i], SIGUSR1), 0);
			while (sem_wait(&hit))
				CHECK_EQ(errno, EINTR);
		}
	CHECK_EQ(write(ends[1], "............", THREADS), THREADS);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* ---- a second signal while the handler runs -------------------------------------------------- */

static volatile int begun, sent;

static void on_first(int sig)
{
	(void)sig;
	hits++;
	begun = 1;
	while (!sent)
		sched_yield();
}

static void *blocks_twice(void *unused)
{
	char c;

	(void)unused;
	CHECK_EQ(kb_blocking_begin(), 0);
	begun = -1;
	while (hits < 2 && read(never[0], &c, 1) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(kb_blocking_end(), 0);
	return NULL;
}

static void *computes_twice(void *unused)
{
	(void)unused;
	begun = -1;
	while (hits < 2)
		;
	return NULL;
}

static void again(void *(*fn)(void *))
{
	struct sigaction sa;
	pthread_t t;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_first;
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	begun = sent = 0;
	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	while (!begun)
		usleep(100);
	CHECK(is_blocked_in_read());
	CHECK_EQ(pthread_kill(t, SIGUSR2), 0);
	while (begun < 1)
		usleep(100);
	CHECK_EQ(pthread_kill(t, SIGUSR2), 0);
	sent = 1;
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- fork, exec, end ------------------------------------------------------------------------- */

static void *forks(void *arg)
{
	int status;
	pid_t pid;

	CHECK_EQ(kb_blocking_begin(), 0);
	usleep(3000); /* long enough for the VP to leave */
	pid = fork();
	if (pid == 0) {
		CHECK_EQ(kb_blocking_end(), 0);
		usleep(1000);
		if (arg)
			execl("/bin/true", "true", (char *)NULL);
		_exit(0);
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	if (arg)
		pthread_exit(arg); /* inside kb_blocking_begin */
	CHECK_EQ(kb_blocking_end(), 0);
	return NULL;
}

static void all_fork(void)
{
	pthread_t t[THREADS];
	void *result;

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, forks, (void *)(i % 2)), 0);
	for (intptr_t i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(t[i], &result), 0);
		CHECK(result == (void *)(i % 2));
	}
}

int main(void)
{
	CHECK_EQ(pipe(never), 0);
	CHECK_EQ(pipe(ends), 0);
	cancels();
	signals();
	again(blocks_twice);
	again(computes_twice);
	all_fork();
	cleaned = 0;
	cancels();
	return 0;
}
