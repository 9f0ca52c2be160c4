/* fork in a loop, from main and from further threads, while threads are made and joined and take
 * locks; atfork handlers hold the program's own locks over the fork. Each child makes threads that
 * use those locks, private and shared objects, and ends by exit, _exit, quick_exit or exec. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKERS = 3, FORKS = 100, WORKERS = 4, CHILD_THREADS = 4 };

extern char **environ;
static pthread_mutex_t guarded = PTHREAD_MUTEX_INITIALIZER, *shared;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static long under_lock[2];
static int stop, destroyed, flushed;
static __thread int own;

static void prepare(void)
{
	CHECK_EQ(pthread_mutex_lock(&guarded), 0);
}

static void release(void)
{
	CHECK_EQ(pthread_mutex_unlock(&guarded), 0);
}

static void change(void)
{
	CHECK_EQ(pthread_mutex_lock(&guarded), 0);
	CHECK_EQ(under_lock[0], under_lock[1]);
	under_lock[0]++;
	if (under_lock[0] % 8 == 0)
		sched_yield();
	under_lock[1]++;
	CHECK_EQ(pthread_mutex_unlock(&guarded), 0);
}

static void *brief(void *arg)
{
	char *p = malloc(100);

	change();
	free(p);
	return arg;
}

static void *busy(void *arg)
{
	pthread_t t;
	void *r;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		CHECK_EQ(pthread_create(&t, NULL, brief, &own), 0);
		change();
		CHECK_EQ(pthread_join(t, &r), 0);
		CHECK(r == &own);
	}
	return arg;
}

/* ---- in the child ------------------------------------------------------------------------- */

static void count_destroyed(void *p)
{
	(void)p;
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void make_key(void)
{
	CHECK_EQ(pthread_key_create(&key, count_destroyed), 0);
}

static void *in_child(void *arg)
{
	CHECK_EQ(pthread_once(&once, make_key), 0);
	CHECK_EQ(pthread_setspecific(key, arg), 0);
	brief(NULL);
	CHECK_EQ(pthread_rwlock_rdlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&rw), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rw), 0);
	CHECK_EQ(pthread_mutex_lock(shared), 0);
	CHECK_EQ(pthread_mutex_unlock(shared), 0);
	CHECK_EQ(sem_post(&s), 0);
	CHECK_EQ(pthread_mutex_lock(&guarded), 0);
	while (under_lock[0] >= 0)
		CHECK_EQ(pthread_cond_wait(&c, &guarded), 0);
	CHECK_EQ(pthread_mutex_unlock(&guarded), 0);
	return arg;
}

static void use_threads(int me)
{
	pthread_t t[CHILD_THREADS];
	void *r;

	CHECK_EQ(own, me);
	for (int i = 0; i < CHILD_THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, in_child, &own), 0);
	for (int i = 0; i < CHILD_THREADS; i++)
		CHECK_EQ(sem_wait(&s), 0);
	CHECK_EQ(pthread_mutex_lock(&guarded), 0);
	under_lock[0] = under_lock[1] = -1;
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	CHECK_EQ(pthread_mutex_unlock(&guarded), 0);
	for (int i = 0; i < CHILD_THREADS; i++) {
		CHECK_EQ(pthread_join(t[i], &r), 0);
		CHECK(r == &own);
	}
	CHECK_EQ(destroyed, CHILD_THREADS);
}

static void flush_status(void)
{
	flushed = 1;
}

static void quick(void)
{
	_exit(flushed ? 1 : 13);
}

/* Makes a grandchild: the child of a child has threads of its own, too. */
static void again(int me)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		use_threads(me);
		_exit(7);
	}
	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 7 << 8);
}

static void end_somehow(int me, int i)
{
	char *argv[] = { "sh", "-c", "exit 11", NULL };

	switch (i % 5) {
	case 0:
		use_threads(me);
		_exit(10);
	case 1:
		execv("/bin/sh", argv);
		_exit(1);
	case 2:
		use_threads(me);
		exit(12);
	case 3:
		atexit(flush_status);
		at_quick_exit(quick);
		quick_exit(1);
	default:
		again(me);
		_exit(14);
	}
}

static void *forker(void *arg)
{
	int me = (int)(long)arg, status;

	own = me;
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			end_somehow(me, i);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, (i % 5 + 10) << 8);
		CHECK_EQ(own, me);
	}
	return NULL;
}

static void *spawner(void *arg)
{
	char *argv[] = { "sh", "-c", "exit 6", NULL }, text[16];
	int status;
	pid_t pid;
	FILE *f;

	for (int i = 0; i < FORKS; i++) {
		CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 6 << 8);
		CHECK_EQ(system("exit 4"), 4 << 8);
		f = popen("echo hello", "r");
		CHECK(f && fgets(text, sizeof text, f));
		CHECK_EQ(strcmp(text, "hello\n"), 0);
		CHECK_EQ(pclose(f), 0);
	}
	return arg;
}

int main(void)
{
	pthread_t t[FORKERS], w[WORKERS], sp;
	pthread_mutexattr_t a;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	CHECK_EQ(pthread_mutex_init(shared, &a), 0);
	CHECK_EQ(sem_init(&s, 0, 0), 0);
	CHECK_EQ(pthread_atfork(prepare, release, release), 0);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_create(&w[i], NULL, busy, NULL), 0);
	CHECK_EQ(pthread_create(&sp, NULL, spawner, NULL), 0);
	for (int i = 0; i < FORKERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, forker, (void *)(long)(i + 1)), 0);
	forker((void *)(long)(FORKERS + 1));
	for (int i = 0; i < FORKERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_join(sp, NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_join(w[i], NULL), 0);
	return 0;
}
