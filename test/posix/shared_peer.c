/* Objects in memory shared with a process on plain libc, which is this program again without
 * LD_PRELOAD: mutexes of several kinds, robust ones whose owner is killed on either side, condition
 * variable, semaphore, barrier, readers-writer lock, spin lock. Both sides have several threads. */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, SIDES = 2, TIMES = 300, ROUNDS = 40, SHARED_FD = 9 };
enum { RECURSIVE, ERRORCHECK, NORMAL, ROBUST, MUTEXES };

struct shared {
	pthread_mutex_t m[MUTEXES], dying, turns;
	pthread_cond_t c, monotonic;
	sem_t s[SIDES];
	pthread_barrier_t b;
	pthread_rwlock_t rw;
	pthread_spinlock_t spin;
	volatile int inside[MUTEXES];
	volatile long count[MUTEXES], spun, turn, arrived, left, right;
	volatile int held;
};

extern char **environ;
static struct shared *sh;

/* ---- mutexes --------------------------------------------------------------------------------- */

static void make_mutex(pthread_mutex_t *m, int type, int robust)
{
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, robust), 0);
	CHECK_EQ(pthread_mutex_init(m, &a), 0);
}

static void lock_some(int k, int i)
{
	struct timespec t;

	if (i % 3 == 0) {
		CHECK_EQ(clock_gettime(CLOCK_REALTIME, &t), 0);
		t.tv_sec += 50;
		CHECK_EQ(pthread_mutex_timedlock(&sh->m[k], &t), 0);
	} else if (i % 3 == 1 || pthread_mutex_trylock(&sh->m[k])) {
		CHECK_EQ(pthread_mutex_lock(&sh->m[k]), 0);
	}
}

static void add(int k, int i)
{
	lock_some(k, i);
	CHECK_EQ(sh->inside[k], 0);
	sh->inside[k] = 1;
	sh->count[k]++;
	if (i % 64 == 0)
		usleep(10);
	sh->inside[k] = 0;
	CHECK_EQ(pthread_mutex_unlock(&sh->m[k]), 0);
}

static void errors(void)
{
	CHECK_EQ(pthread_mutex_lock(&sh->m[RECURSIVE]), 0);
	CHECK_EQ(pthread_mutex_lock(&sh->m[RECURSIVE]), 0);
	CHECK_EQ(pthread_mutex_unlock(&sh->m[RECURSIVE]), 0);
	CHECK_EQ(pthread_mutex_unlock(&sh->m[RECURSIVE]), 0);
	CHECK_EQ(pthread_mutex_lock(&sh->m[ERRORCHECK]), 0);
	CHECK_EQ(pthread_mutex_lock(&sh->m[ERRORCHECK]), EDEADLK);
	CHECK_EQ(pthread_mutex_unlock(&sh->m[ERRORCHECK]), 0);
	CHECK_EQ(pthread_mutex_unlock(&sh->m[ERRORCHECK]), EPERM);
	CHECK_EQ(pthread_mutex_unlock(&sh->m[RECURSIVE]), EPERM);
}

/* ---- one side -------------------------------------------------------------------------------- */

static int me_of(int side, int i)
{
	return i * SIDES + side;
}

/* All threads of both sides take turns. */
static void turns(int me)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_mutex_lock(&sh->turns), 0);
		while (sh->turn % (THREADS * SIDES) != me)
			CHECK_EQ(pthread_cond_wait(&sh->c, &sh->turns), 0);
		sh->turn++;
		CHECK_EQ(pthread_cond_broadcast(&sh->c), 0);
		CHECK_EQ(pthread_mutex_unlock(&sh->turns), 0);
	}
}

static void time_out(void)
{
	struct timespec t;

	CHECK_EQ(pthread_mutex_lock(&sh->turns), 0);
	CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	t.tv_sec++;
	CHECK_EQ(pthread_cond_timedwait(&sh->monotonic, &sh->turns, &t), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_unlock(&sh->turns), 0);
}

static void barrier(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		int e;

		__atomic_add_fetch(&sh->arrived, 1, __ATOMIC_RELAXED);
		e = pthread_barrier_wait(&sh->b);
		CHECK(e == 0 || e == PTHREAD_BARRIER_SERIAL_THREAD);
		CHECK(__atomic_load_n(&sh->arrived, __ATOMIC_RELAXED) >= (i + 1) * THREADS * SIDES);
		pthread_barrier_wait(&sh->b);
	}
}

static void readers_and_writers(int me)
{
	for (int i = 0; i < TIMES; i++) {
		if ((i + me) % 4 == 0) {
			CHECK_EQ(pthread_rwlock_wrlock(&sh->rw), 0);
			sh->left++;
			sh->right++;
		} else {
			CHECK_EQ(pthread_rwlock_rdlock(&sh->rw), 0);
			CHECK_EQ(sh->left, sh->right);
		}
		CHECK_EQ(pthread_rwlock_unlock(&sh->rw), 0);
	}
}

static void spin(void)
{
	for (int i = 0; i < TIMES; i++) {
		CHECK_EQ(pthread_spin_lock(&sh->spin), 0);
		sh->spun++;
		CHECK_EQ(pthread_spin_unlock(&sh->spin), 0);
	}
}

static void *work(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < TIMES; i++)
		for (int k = 0; k < MUTEXES; k++)
			add(k, i);
	errors();
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(sem_wait(&sh->s[me % SIDES]), 0);
		CHECK_EQ(sem_post(&sh->s[(me + 1) % SIDES]), 0);
	}
	barrier();
	turns(me);
	readers_and_writers(me);
	spin();
	if (me < SIDES)
		time_out();
	return NULL;
}

static void side(int number)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, work, (void *)(long)me_of(number, i)), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* ---- an owner that is killed ----------------------------------------------------------------- */

static void *hold(void *arg)
{
	(void)arg;
	CHECK_EQ(pthread_mutex_lock(&sh->m[ROBUST]), 0);
	CHECK_EQ(pthread_mutex_lock(&sh->dying), 0);
	CHECK_EQ(pthread_mutex_unlock(&sh->m[ROBUST]), 0);
	__atomic_store_n(&sh->held, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
	return NULL;
}

static void hold_for_ever(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, hold, NULL), 0);
	pthread_join(t, NULL);
}

static void *inherit(void *arg)
{
	(void)arg;
	CHECK_EQ(pthread_mutex_lock(&sh->dying), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(&sh->dying), 0);
	CHECK_EQ(pthread_mutex_unlock(&sh->dying), 0);
	return NULL;
}

static void expect_dead(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, inherit, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- processes ------------------------------------------------------------------------------- */

static pid_t start(const char *what, int plain)
{
	char *argv[] = { "shared_peer", (char *)what, NULL }, *bare[256], **env = environ;
	int n = 0;
	pid_t pid;

	for (char **e = environ; *e && n < 255; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) != 0)
			bare[n++] = *e;
	bare[n] = NULL;
	if (plain)
		env = bare;
	CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, env), 0);
	return pid;
}

static void expect_good(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* The one side's owner is killed while the other waits already, or before. */
static void owner_killed(int owner_plain, int waits)
{
	pid_t owner, heir = 0;

	sh->held = 0;
	owner = start("hold", owner_plain);
	while (!__atomic_load_n(&sh->held, __ATOMIC_ACQUIRE))
		usleep(1000);
	if (waits) {
		heir = start("inherit", !owner_plain);
		usleep(100000);
	}
	CHECK_EQ(kill(owner, SIGKILL), 0);
	CHECK_EQ(waitpid(owner, NULL, 0), owner);
	if (!waits)
		heir = start("inherit", !owner_plain);
	expect_good(heir);
}

static void make_all(void)
{
	pthread_barrierattr_t ba;
	pthread_rwlockattr_t ra;
	pthread_condattr_t ca;

	make_mutex(&sh->m[RECURSIVE], PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
	make_mutex(&sh->m[ERRORCHECK], PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
	make_mutex(&sh->m[NORMAL], PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
	make_mutex(&sh->m[ROBUST], PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
	make_mutex(&sh->dying, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST);
	make_mutex(&sh->turns, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
	pthread_condattr_init(&ca);
	CHECK_EQ(pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(&sh->c, &ca), 0);
	CHECK_EQ(pthread_condattr_setclock(&ca, CLOCK_MONOTONIC), 0);
	CHECK_EQ(pthread_cond_init(&sh->monotonic, &ca), 0);
	CHECK_EQ(sem_init(&sh->s[0], 1, 1), 0);
	CHECK_EQ(sem_init(&sh->s[1], 1, 0), 0);
	pthread_barrierattr_init(&ba);
	CHECK_EQ(pthread_barrierattr_setpshared(&ba, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_barrier_init(&sh->b, &ba, THREADS * SIDES), 0);
	pthread_rwlockattr_init(&ra);
	CHECK_EQ(pthread_rwlockattr_setpshared(&ra, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_rwlock_init(&sh->rw, &ra), 0);
	CHECK_EQ(pthread_spin_init(&sh->spin, PTHREAD_PROCESS_SHARED), 0);
}

static void map(int fd)
{
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(sh != MAP_FAILED);
}

static int peer(const char *what)
{
	map(SHARED_FD);
	if (strcmp(what, "side") == 0) {
		CHECK(dlsym(RTLD_DEFAULT, "kb_thread_create") == NULL);
		side(1);
	} else if (strcmp(what, "hold") == 0) {
		hold_for_ever();
	} else {
		expect_dead();
	}
	return 0;
}

int main(int argc, char **argv)
{
	pid_t other;
	int fd;

	if (argc > 1)
		return peer(argv[1]);
	fd = memfd_create("shared", 0);
	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, sizeof(*sh)), 0);
	CHECK_EQ(dup2(fd, SHARED_FD), SHARED_FD);
	map(fd);
	make_all();
	other = start("side", 1);
	side(0);
	expect_good(other);
	for (int k = 0; k < MUTEXES; k++)
		CHECK_EQ(sh->count[k], (long)TIMES * THREADS * SIDES);
	CHECK_EQ(sh->spun, (long)TIMES * THREADS * SIDES);
	CHECK_EQ(sh->turn, (long)ROUNDS * THREADS * SIDES);
	for (int i = 0; i < 4; i++)
		owner_killed(i & 1, i & 2);
	return 0;
}
