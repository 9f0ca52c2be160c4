/* Two programs under `kochab run` share objects that record their owner. Corresponding created
 * threads of the two programs have different numbers, so a thread that does not hold the object is
 * not taken for its owner.
 * matrix: run-only */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SHARED_FD = 9, WAIT_NS = 20000000 };

static struct shared {
	pthread_mutex_t recursive, check;
	pthread_rwlock_t l;
} *sh;

extern char **environ;
static char *name;

static void attach(void)
{
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	CHECK(sh != MAP_FAILED);
}

static void make_mutex(pthread_mutex_t *m, int type)
{
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutex_init(m, &a), 0);
}

static void make(void)
{
	pthread_rwlockattr_t a;
	int fd = memfd_create("shared", 0);

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, sizeof(*sh)), 0);
	CHECK_EQ(dup2(fd, SHARED_FD), SHARED_FD);
	attach();
	make_mutex(&sh->recursive, PTHREAD_MUTEX_RECURSIVE);
	make_mutex(&sh->check, PTHREAD_MUTEX_ERRORCHECK);
	CHECK_EQ(pthread_rwlockattr_init(&a), 0);
	CHECK_EQ(pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_rwlock_init(&sh->l, &a), 0);
}

static struct timespec soon(void)
{
	struct timespec t;

	CHECK_EQ(clock_gettime(CLOCK_REALTIME, &t), 0);
	t.tv_nsec += WAIT_NS;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* The other program holds them all. */
static void *twin(void *arg)
{
	struct timespec t = soon();

	CHECK_EQ(pthread_mutex_trylock(&sh->recursive), EBUSY);
	CHECK_EQ(pthread_mutex_unlock(&sh->recursive), EPERM);
	CHECK_EQ(pthread_mutex_timedlock(&sh->check, &t), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_unlock(&sh->check), EPERM);
	CHECK_EQ(pthread_rwlock_timedwrlock(&sh->l, &t), ETIMEDOUT);
	return arg;
}

static void run_twin(void)
{
	char *argv[] = { name, (char *)"twin", NULL };
	int status;
	pid_t pid;

	CHECK_EQ(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void *first(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&sh->recursive), 0);
	CHECK_EQ(pthread_mutex_lock(&sh->check), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&sh->l), 0);
	run_twin();
	CHECK_EQ(pthread_mutex_lock(&sh->check), EDEADLK);
	CHECK_EQ(pthread_rwlock_wrlock(&sh->l), EDEADLK);
	CHECK_EQ(pthread_rwlock_unlock(&sh->l), 0);
	CHECK_EQ(pthread_mutex_unlock(&sh->check), 0);
	CHECK_EQ(pthread_mutex_unlock(&sh->recursive), 0);
	return arg;
}

static void on_a_thread(void *(*f)(void *))
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, f, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(int argc, char **argv)
{
	name = argv[0];
	if (argc > 1) {
		attach();
		on_a_thread(twin);
		return 0;
	}
	make();
	on_a_thread(first);
	return 0;
}
