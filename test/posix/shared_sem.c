/* posix/standin_libc: threads that wait long for a process-shared semaphore that another process posts.
 * They do not look again and again meanwhile; and no post is lost, whether a waiter runs out of
 * time, is interrupted by a handler, or is cancelled, or a handler leaves the wait by a jump.
 * matrix: run-only */
#include "looks.h"
#include "spares.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAITERS = 6, POSTS = 150, PAUSE_US = 1000, QUIET = 16, QUIET_S = 1, LOOKS = 1000 };
enum { TIMED, INTERRUPTED, CANCELLED, PATIENT, KINDS };

static sem_t *sem; /* in memory that is the child's, too */
static atomic_int got, over, ended, jumped;
static sigjmp_buf out;
static volatile sig_atomic_t jumps;

static void handler(int sig)
{
	(void)sig;
	if (jumps)
		siglongjmp(out, 1);
}

static struct timespec soon(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 3000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void had(int r)
{
	if (r == 0)
		got++;
	else
		CHECK(errno == EINTR || errno == ETIMEDOUT);
}

/* Which ends where it waits. */
static void *is_cancelled(void *arg)
{
	while (!over)
		had(sem_wait(sem));
	return arg;
}

static void cancels(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, is_cancelled, NULL), 0);
	usleep(3000);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void waits_as(int kind)
{
	struct timespec until = soon();

	if (kind == TIMED)
		had(sem_timedwait(sem, &until));
	else if (kind == CANCELLED)
		cancels();
	else
		had(sem_wait(sem));
}

static void *waits(void *arg)
{
	while (!over)
		waits_as((int)(intptr_t)arg);
	ended++;
	return NULL;
}

static pid_t posts(unsigned n, unsigned pause_us)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (unsigned i = 0; i < n; i++) {
			usleep(pause_us);
			sem_post(sem);
		}
		_exit(0);
	}
	CHECK(pid > 0);
	return pid;
}

static void ends_well(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* A lost token is waited for in vain. */
static void none_lost(void)
{
	pthread_t t[WAITERS];
	pid_t child = posts(POSTS, PAUSE_US);
	int left;

	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waits, (void *)(intptr_t)(i % KINDS)), 0);
	while (got < POSTS) {
		usleep(2000);
		for (int i = 0; i < WAITERS; i++)
			if (i % KINDS == INTERRUPTED)
				pthread_kill(t[i], SIGUSR1);
	}
	ends_well(child);
	over = 1;
	while (ended < WAITERS) {
		CHECK_EQ(sem_post(sem), 0);
		usleep(1000);
	}
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(sem_getvalue(sem, &left), 0);
	while (left-- > 0)
		CHECK_EQ(sem_trywait(sem), 0);
}

static void *jumps_out(void *arg)
{
	if (sigsetjmp(out, 1) == 0) {
		jumps = 1;
		CHECK_EQ(sem_wait(sem), 0);
	}
	jumps = 0;
	jumped = 1;
	return arg;
}

/* No stand-in thread waits in its place any more that would take the next token. */
static void leaves_by_a_jump(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, jumps_out, NULL), 0);
	do {
		usleep(20000);
		if (jumps)
			pthread_kill(t, SIGUSR1);
	} while (!jumped);
	CHECK_EQ(pthread_join(t, NULL), 0);
	ends_well(posts(1, 0));
	usleep(50000);
	CHECK_EQ(sem_trywait(sem), 0);
}

static void *waits_quietly(void *arg)
{
	CHECK_EQ(sem_wait(sem), 0);
	return arg;
}

static void looks_seldom(void)
{
	pthread_t t[QUIET];
	long before;

	for (int i = 0; i < QUIET; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waits_quietly, NULL), 0);
	usleep(50000);
	before = looks();
	sleep(QUIET_S);
	before = looks() - before;
	for (int i = 0; i < QUIET; i++)
		CHECK_EQ(sem_post(sem), 0);
	for (int i = 0; i < QUIET; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	printf("%ld looks\n", before);
	CHECK(before < LOOKS);
}

int main(int argc, char **argv)
{
	pid_t few = begin_with_few_spares(argv);
	struct sigaction sa = { .sa_handler = handler };

	(void)argc;
	sem = mmap(NULL, sizeof(*sem), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(sem != MAP_FAILED);
	CHECK_EQ(sem_init(sem, 1, 0), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	if (!has_processes())
		looks_seldom();
	leaves_by_a_jump();
	none_lost();
	end_with_few_spares(few);
	return 0;
}
