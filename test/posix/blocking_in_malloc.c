/* core/worker_maker: a thread blocks in the kernel while it holds the lock of the program's allocator,
 * and goes on after another thread has run. No kernel thread can be made meanwhile, because that
 * allocates: a kernel thread is kept ready. Other threads want the lock at that time.
 * matrix: vps=1,2,4 sched=rotator,lb2,steal */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

int main(void)
{
	printf("another allocator is not to be had here\n");
	return 77;
}

#else

enum { WAITERS = 4, ROUNDS = 3 };

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int reads_in_malloc; /* what its next malloc does while it holds the lock */
static int pipes[2], all_there, inside;

/* Reads without libc, if this machine's instruction for it is known here. */
static long bare_read(int fd, char *c)
{
#if defined(__x86_64__)
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(SYS_read), "D"(fd), "S"(c), "d"(1)
			 : "rcx", "r11", "memory");
	return r;
#else
	long r = syscall(SYS_read, fd, c, 1);

	return r < 0 ? -errno : r;
#endif
}

/* Also called by kernel threads of the runtime. */
static void enter(void)
{
	char c;

	pthread_mutex_lock(&heap);
	if (!reads_in_malloc)
		return;
	reads_in_malloc = 0;
	__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
	if (bare_read(pipes[0], &c) != 1)
		abort();
}

static void leave(void)
{
	pthread_mutex_unlock(&heap);
}

void *malloc(size_t n)
{
	void *p;

	enter();
	p = __libc_malloc(n);
	leave();
	return p;
}

void *calloc(size_t n, size_t size)
{
	void *p;

	enter();
	p = __libc_calloc(n, size);
	leave();
	return p;
}

void *realloc(void *old, size_t n)
{
	void *p;

	enter();
	p = __libc_realloc(old, n);
	leave();
	return p;
}

void free(void *p)
{
	enter();
	__libc_free(p);
	leave();
}

static void await(const int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void *blocks(void *unused)
{
	char *volatile p;

	await(&all_there); /* pthread_create allocates */
	reads_in_malloc = 1;
	p = malloc(100);
	CHECK(p != NULL);
	free(p);
	return unused;
}

static void *allocates(void *unused)
{
	await(&inside);
	for (int i = 0; i < 10; i++) {
		char *volatile p = malloc(50);

		CHECK(p != NULL);
		free(p);
	}
	return unused;
}

/* Nothing in this function allocates. */
static void *writes(void *unused)
{
	await(&inside);
	usleep(1000);
	CHECK_EQ(write(pipes[1], "x", 1), 1);
	return unused;
}

static void one_round(void)
{
	pthread_t t[WAITERS + 2];

	inside = all_there = 0;
	for (int i = 0; i < WAITERS + 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, i == WAITERS ? writes : i ? allocates : blocks, NULL),
			0);
	__atomic_store_n(&all_there, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < WAITERS + 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

int main(void)
{
	CHECK_EQ(pipe(pipes), 0);
	for (int i = 0; i < ROUNDS; i++)
		one_round();
	return 0;
}

#endif
