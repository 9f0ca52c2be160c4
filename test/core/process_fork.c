/* core/process_fork, os/memory_leave: a child of fork has a copy of all memory of the program, at the
 * same addresses; it goes on as any child does, while the program's threads allocate and fork, too.
 * matrix: none
 * body: thread (it chooses by itself) */
#include <kochab/kochab.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { FORKS = 10, N = 3, BYTES = 1 << 20, PAGE = 4096 };

static int data = 5;
static int bss;
static char *heap, *map, *constant;
static pid_t program;
static uint32_t stop;
static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	handled += sig == SIGUSR1;
}

static void *kernel_thread(void *arg)
{
	return arg;
}

static int status_of(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void check_same(const int *on_stack, int n)
{
	CHECK_EQ(data, 5);
	CHECK_EQ(bss, 0);
	CHECK_EQ(*on_stack, n);
	for (int i = 0; i < BYTES; i++) {
		CHECK_EQ(heap[i], 'h');
		CHECK_EQ(map[i], 'm');
	}
	CHECK_EQ(constant[0], 'c');
}

/* Memory that the parent may not write to is not writable here either. */
static void *writes(void *unused)
{
	(void)unused;
	constant[0] = 'x';
	return NULL;
}

static void change_all(int *on_stack)
{
	data = bss = *on_stack = -1;
	memset(heap, 'x', BYTES);
	memset(map, 'x', BYTES);
	free(heap);
	CHECK_EQ(munmap(map, BYTES), 0);
	heap = malloc(64 * BYTES);
	CHECK(heap != NULL);
	memset(heap, 'y', 64 * BYTES);
	CHECK(sbrk(PAGE) != (void *)-1);
	signal(SIGUSR1, SIG_IGN);
}

/* A normal process: it has children, kernel threads, a number of its own. */
static void live(void)
{
	pthread_t t;
	void *result;
	pid_t pid;

	CHECK(getpid() != program);
	CHECK_EQ(getppid(), program);
	CHECK_EQ(waitpid(-1, NULL, 0), -1);
	pid = fork();
	if (pid == 0)
		_exit(getppid() == program ? 1 : 9);
	CHECK_EQ(status_of(pid), 9);
	CHECK_EQ(system("exit 4"), 4 << 8);
	CHECK_EQ(pthread_create(&t, NULL, kernel_thread, &data), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == &data);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		writes(NULL);
	}
	CHECK_EQ(status_of(pid), -SIGSEGV);
}

static void *forks(void *arg)
{
	int n = (int)(uintptr_t)arg;

	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			alarm(60);
			check_same(&n, (int)(uintptr_t)arg);
			live();
			change_all(&n);
			exit(n == -1 ? 11 + i : 1);
		}
		CHECK_EQ(status_of(pid), 11 + i);
		check_same(&n, (int)(uintptr_t)arg);
	}
	return NULL;
}

static void *allocates(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		char *p = malloc(300000);

		memset(p, 1, 300000);
		free(p);
		kb_yield();
	}
	return NULL;
}

int main(void)
{
	kb_thread_t t[N], noise;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_VPS", "2", 1);
	program = getpid();
	heap = malloc(BYTES);
	memset(heap, 'h', BYTES);
	if (kb_init() != 0)
		SKIP("no process bodies here");
	map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED);
	memset(map, 'm', BYTES);
	constant = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(constant != MAP_FAILED);
	constant[0] = 'c';
	CHECK_EQ(mprotect(constant, PAGE, PROT_READ), 0);
	signal(SIGUSR1, on_signal);
	CHECK_EQ(kb_thread_create(&noise, NULL, allocates, NULL), 0);
	for (uintptr_t i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, forks, (void *)i), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_thread_join(noise, NULL), 0);
	CHECK_EQ(handled, 0);
	return 0;
}
