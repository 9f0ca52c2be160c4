/* posix/standin_futex, posix/standin_libc: threads wait long for a process-shared mutex, robust or not, or a
 * readers-writer lock that a second process holds. They do not poll meanwhile. A thread whose time
 * runs out takes no wake-up that a different thread needs. The death of the second process is
 * noticed.
 * matrix: run-only
 * sleeps: yes */
#include "looks.h"
#include "spares.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { QUIET = 16, QUIET_S = 1, LOOKS = 1000, WAITERS = 6, TURNS = 200, HELD_US = 500 };
enum { PLAIN, ROBUST, READ, WRITE, KINDS };

static struct shared {
	pthread_mutex_t m[READ];
	pthread_rwlock_t l;
	atomic_int held, release, over, inside;
	volatile long count;
} *sh; /* in memory that the child's is, too */

static atomic_int got;

static void handler(int sig)
{
	(void)sig;
}

static int lock(int kind)
{
	return kind == READ ? pthread_rwlock_rdlock(&sh->l) :
	       kind == WRITE ? pthread_rwlock_wrlock(&sh->l) : pthread_mutex_lock(&sh->m[kind]);
}

static int lock_until(int kind, const struct timespec *t)
{
	return kind == READ ? pthread_rwlock_timedrdlock(&sh->l, t) :
	       kind == WRITE ? pthread_rwlock_timedwrlock(&sh->l, t) : pthread_mutex_timedlock(&sh->m[kind], t);
}

static void unlock(int kind)
{
	CHECK_EQ(kind < READ ? pthread_mutex_unlock(&sh->m[kind]) : pthread_rwlock_unlock(&sh->l), 0);
}

static void make(void)
{
	pthread_mutexattr_t ma;
	pthread_rwlockattr_t la;

	CHECK_EQ(pthread_mutexattr_init(&ma), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutex_init(&sh->m[PLAIN], &ma), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&ma, PTHREAD_MUTEX_ROBUST), 0);
	CHECK_EQ(pthread_mutex_init(&sh->m[ROBUST], &ma), 0);
	CHECK_EQ(pthread_rwlockattr_init(&la), 0);
	CHECK_EQ(pthread_rwlockattr_setpshared(&la, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_rwlock_init(&sh->l, &la), 0);
}

static void ends(pid_t pid, int how)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, how);
}

/* ---- the holder is a second process ---------------------------------------------------------- */

static pid_t holds(int kind)
{
	pid_t pid;

	sh->held = sh->release = 0;
	pid = fork();
	if (pid == 0) {
		CHECK_EQ(lock(kind), 0);
		sh->held = 1;
		while (!sh->release)
			usleep(1000);
		unlock(kind);
		_exit(0);
	}
	CHECK(pid > 0);
	while (!sh->held)
		usleep(1000);
	return pid;
}

static void *waits(void *arg)
{
	int kind = (int)(intptr_t)arg, e = lock(kind);

	CHECK(e == 0 || e == EOWNERDEAD);
	if (e == EOWNERDEAD)
		CHECK_EQ(pthread_mutex_consistent(&sh->m[kind]), 0);
	got++;
	unlock(kind);
	return NULL;
}

static void start(pthread_t *t, int n, int kind)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, waits, (void *)(intptr_t)kind), 0);
}

static void join(pthread_t *t, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void looks_seldom(int kind)
{
	pthread_t t[QUIET];
	pid_t child = holds(kind == READ ? WRITE : kind);
	long before;

	got = 0;
	start(t, QUIET, kind);
	usleep(50000);
	before = looks();
	sleep(QUIET_S);
	before = looks() - before;
	CHECK_EQ(got, 0);
	sh->release = 1;
	join(t, QUIET);
	ends(child, 0);
	printf("%d: %ld looks\n", kind, before);
	CHECK(has_processes() || before < LOOKS);
}

static void notices_death(void)
{
	pthread_t t[WAITERS];
	pid_t child = holds(ROBUST);

	start(t, WAITERS, ROBUST);
	usleep(20000);
	CHECK_EQ(kill(child, SIGKILL), 0);
	join(t, WAITERS);
	ends(child, SIGKILL);
}

/* ---- both processes want it, some threads for a short time only ------------------------------ */

static void turn(int kind)
{
	if (kind != READ) {
		CHECK_EQ(sh->inside, 0);
		sh->inside = 1;
	}
	usleep(HELD_US);
	if (kind != READ) {
		sh->count++;
		sh->inside = 0;
	}
	unlock(kind);
}

static int try_for(int kind, long ns)
{
	struct timespec t;

	CHECK_EQ(clock_gettime(CLOCK_REALTIME, &t), 0);
	t.tv_nsec += ns;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return lock_until(kind, &t);
}

static void *patient(void *arg)
{
	int kind = (int)(intptr_t)arg;

	while (!sh->over) {
		CHECK_EQ(lock(kind), 0);
		turn(kind);
	}
	return NULL;
}

static void *impatient(void *arg)
{
	int kind = (int)(intptr_t)arg;

	while (!sh->over) {
		int e = try_for(kind, 700000);

		CHECK(e == 0 || e == ETIMEDOUT);
		if (e == 0)
			turn(kind);
	}
	return NULL;
}

static void some_of_each(int kind, pthread_t *interrupted)
{
	pthread_t t[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, i % 2 ? patient : impatient, (void *)(intptr_t)kind), 0);
	*interrupted = t[1];
	while (sh->count < TURNS) {
		usleep(2000);
		pthread_kill(*interrupted, SIGUSR1);
	}
	sh->over = 1;
	join(t, WAITERS);
}

/* A wake-up that is lost leaves somebody waiting in vain when all is over. */
static void none_lost(int kind)
{
	pthread_t interrupted;
	pid_t pid;

	sh->over = 0;
	sh->count = 0;
	pid = fork();
	if (pid == 0) {
		some_of_each(kind, &interrupted);
		_exit(0);
	}
	CHECK(pid > 0);
	some_of_each(kind, &interrupted);
	ends(pid, 0);
}

int main(int argc, char **argv)
{
	pid_t few = begin_with_few_spares(argv);
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	(void)argc;
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(sh != MAP_FAILED);
	make();
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (int kind = 0; kind < KINDS; kind++)
		looks_seldom(kind);
	notices_death();
	for (int kind = 0; kind < KINDS; kind++)
		if (kind != READ)
			none_lost(kind);
	end_with_few_spares(few);
	return 0;
}
