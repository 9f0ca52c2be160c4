/* libc/tcb: a thread that continues on another kernel thread keeps errno, its TLS, its objects
 * owned by tid (recursive mutex, stdio lock) and its canary. Threads pass memory back and forth.
 * matrix: none */
#include "tcb_runner.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 20, STEPS = 50 };

static __thread int mine = 3;
static pthread_mutex_t recursive, checking;
static FILE *file;
static int moved;
static void *mailbox[THREADS];

static void note_kernel_thread(int *last)
{
	int now = (int)syscall(SYS_gettid); /* musl's gettid() returns the block's tid */

	moved += *last != 0 && *last != now;
	*last = now;
}

/* A value that a function saves at its start and compares at its end, maybe on another kernel
 * thread. */
static uintptr_t canary(void)
{
	uintptr_t c = 0;

#if defined(__x86_64__)
	__asm__ volatile("movq %%fs:0x28, %0" : "=r"(c));
#endif
	return c;
}

static void __attribute__((noinline)) guarded_pause(int i)
{
	uintptr_t c = canary();
	volatile char text[40];

	text[i % 40] = (char)i;
	runner_pause();
	CHECK_EQ(text[i % 40], (char)i);
	CHECK(c == canary());
}

static void exchange(int i, int step)
{
	int other = (i * 7 + step) % THREADS;
	char *p = malloc(16 + (size_t)(step * 37) % 1500);

	CHECK(p != NULL);
	p[0] = (char)i;
	free(mailbox[other]);
	mailbox[other] = p;
}

static void own_locks(void)
{
	CHECK_EQ(pthread_mutex_lock(&recursive), 0);
	CHECK_EQ(pthread_mutex_lock(&checking), 0);
	flockfile(file);
	runner_pause();
	CHECK_EQ(pthread_mutex_lock(&recursive), 0);
	CHECK_EQ(pthread_mutex_lock(&checking), EDEADLK);
	CHECK_EQ(ftrylockfile(file), 0);
	fprintf(file, "line\n");
	runner_pause();
	CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
	CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
	CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
	CHECK_EQ(pthread_mutex_unlock(&checking), 0);
	CHECK_EQ(pthread_mutex_unlock(&checking), EPERM);
	funlockfile(file);
	funlockfile(file);
}

static void locker(void *unused)
{
	(void)unused;
	for (int i = 0; i < 10; i++)
		own_locks();
}

static void wanderer(void *arg)
{
	int i = (int)(intptr_t)arg, last = 0;

	CHECK_EQ(mine, 3);
	mine = i;
	for (int step = 0; step < STEPS; step++) {
		errno = 1000 + i;
		exchange(i, step);
		note_kernel_thread(&last);
		guarded_pause(i);
		note_kernel_thread(&last);
		CHECK_EQ(errno, 1000 + i);
		CHECK_EQ(mine, i);
		CHECK_EQ(access("/nowhere/at/all", F_OK), -1);
		runner_pause();
		CHECK_EQ(errno, ENOENT);
	}
}

/* Kernel threads take turns with all runners: each runner changes its kernel thread every time. */
static struct runner runners[THREADS], lock_runner;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int whose;

static bool step_all(void)
{
	bool again = false;

	for (int i = 0; i < THREADS; i++)
		if (!runners[i].done) {
			runner_resume(&runners[i]);
			again = true;
		}
	if (!lock_runner.done) {
		runner_resume(&lock_runner);
		again = true;
	}
	return again;
}

static void *worker(void *arg)
{
	int me = (int)(intptr_t)arg;
	bool again;

	do {
		pthread_mutex_lock(&turn);
		while (whose != me)
			pthread_cond_wait(&turned, &turn);
		again = step_all();
		whose = !me;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&turn);
	} while (again);
	return NULL;
}

static void make_mutex(pthread_mutex_t *m, int type)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	CHECK_EQ(pthread_mutex_init(m, &attr), 0);
}

static void test(void)
{
	pthread_t workers[2];

	make_mutex(&recursive, PTHREAD_MUTEX_RECURSIVE);
	make_mutex(&checking, PTHREAD_MUTEX_ERRORCHECK);
	file = tmpfile();
	CHECK(file != NULL);
	for (int i = 0; i < THREADS; i++) {
		runner_make(&runners[i], (unsigned)i);
		runner_start(&runners[i], wanderer, (void *)(intptr_t)i);
	}
	runner_make(&lock_runner, THREADS);
	runner_start(&lock_runner, locker, NULL);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&workers[i], NULL, worker, (void *)(intptr_t)i), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(workers[i], NULL);
	CHECK_EQ(moved, THREADS * (2 * STEPS - 1));
	CHECK_EQ(fseek(file, 0, SEEK_END), 0);
	CHECK_EQ(ftell(file), 50);
	for (int i = 0; i < THREADS; i++) {
		runner_free(&runners[i]);
		free(mailbox[i]);
	}
	runner_free(&lock_runner);
}

int main(void)
{
	return runner_each_mode(test);
}
