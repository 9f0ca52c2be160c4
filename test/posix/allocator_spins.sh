#!/bin/bash
# timeout: 600
# An allocator of the program with a spinlock. A thread that holds the lock is switched away like
# any thread, so a thread that spins for the lock must be switched away, too: also where the runtime
# or libc's loader asks for memory to make a thread, where a thread's end frees memory, on a stack
# of the program's own, and while other threads fork.
set -u
BUILD=${BUILD:-build}
KOCHAB_BIN=${KOCHAB_BIN:-$BUILD/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0

cat >"$T/own.c" <<'END_OF_C'
/* The loader makes this variable when a thread first uses it, and frees it at the thread's end. */
static __thread char much[5000];
char *own(void)
{
	return much;
}
END_OF_C
cat >"$T/spins.c" <<'END_OF_C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOGS = 2, MAKERS = 2, ROUNDS = 60, AT_ONCE = 6, FORKS = 40, STACK = 128 << 10 };

void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t m),
	*__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t a, size_t n);
void __libc_free(void *p);

static volatile int lock;
static int stop;

static void enter(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		;
	for (volatile int i = 0; i < 300; i++)
		;
}

static void leave(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

#define LOCKED(type, call) do { type r_; enter(); r_ = call; leave(); return r_; } while (0)
void *malloc(size_t n) { LOCKED(void *, __libc_malloc(n)); }
void *calloc(size_t n, size_t m) { LOCKED(void *, __libc_calloc(n, m)); }
void *realloc(void *p, size_t n) { LOCKED(void *, __libc_realloc(p, n)); }
void *memalign(size_t a, size_t n) { LOCKED(void *, __libc_memalign(a, n)); }
void *aligned_alloc(size_t a, size_t n) { LOCKED(void *, __libc_memalign(a, n)); }
int posix_memalign(void **p, size_t a, size_t n)
{
	LOCKED(int, (*p = __libc_memalign(a, n)) ? 0 : 12);
}
void free(void *p) { enter(); __libc_free(p); leave(); }

static char *(*own)(void);

static void *hog(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
	{
		free(malloc(50));
		for (volatile int i = 0; i < 3000; i++)
			;
	}
	return arg;
}

static void *uses_own(void *arg)
{
	own()[(size_t)arg % 5000] = 1;
	return arg;
}

static void make(pthread_t *t, void *stack, size_t i)
{
	pthread_attr_t a;

	pthread_attr_init(&a);
	if (stack && pthread_attr_setstack(&a, stack, STACK))
		_exit(1);
	if (pthread_create(t, &a, uses_own, (void *)i))
		_exit(2);
	pthread_attr_destroy(&a);
}

/* Makes threads; the last is detached, on a stack of the program that is not used again. */
static void *maker(void *arg)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		*other;
	pthread_t t[AT_ONCE], left;

	for (size_t i = 0; i < ROUNDS; i++) {
		for (size_t k = 0; k < AT_ONCE; k++)
			make(&t[k], k ? NULL : stack, i + k);
		for (size_t k = 0; k < AT_ONCE; k++)
			if (pthread_join(t[k], NULL))
				_exit(3);
		if (i % 3)
			continue;
		other = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		make(&left, other, i);
		if (pthread_detach(left))
			_exit(4);
	}
	return arg;
}

static void *forker(void *arg)
{
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(7);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 7 << 8)
			_exit(5);
		usleep(5000);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t hogs[HOGS], makers[MAKERS], forks;
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	own = lib ? (char *(*)(void))(unsigned long)dlsym(lib, "own") : NULL;
	if (!own)
		return 6;
	for (int i = 0; i < HOGS; i++)
		pthread_create(&hogs[i], NULL, hog, NULL);
	for (int i = 0; i < MAKERS; i++)
		pthread_create(&makers[i], NULL, maker, NULL);
	pthread_create(&forks, NULL, forker, NULL);
	pthread_join(forks, NULL);
	for (int i = 0; i < MAKERS; i++)
		pthread_join(makers[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < HOGS; i++)
		pthread_join(hogs[i], NULL);
	return 0;
}
END_OF_C
"$CC" -O1 -ftls-model=global-dynamic -shared -fPIC -o "$T/own.so" "$T/own.c" &&
	"$CC" -O1 -fno-builtin -pthread -o "$T/spins" "$T/spins.c" -ldl || exit 1
for sched in rotator steal; do
	for vps in 1 2; do
		timeout -s QUIT -k 5 60 "$KOCHAB_BIN" run --sched $sched --vps $vps --quantum 1000 -- \
			"$T/spins" "$T/own.so" >"$T/out" 2>&1 && continue
		echo "$sched, $vps virtual processors: exit $?"
		tail -n 40 "$T/out"
		failed=1
	done
done
exit $failed
