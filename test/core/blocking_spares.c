/* core/handoff, core/worker_pool: the option spares bounds the kernel threads; beyond it threads wait for
 * each other, with a single clear line, and all threads end. Surplus idle workers end after
 * spare_ms, but for one. A process for each of these tests.
 * matrix: vps=1,2 sched=rotator
 * body: thread */
#include <dirent.h>
#include <kochab/kochab.h>
#include <unistd.h>

#include "core/child.h"
#include "test.h"

enum { READERS = 24 };

/* ThreadSanitizer starts a kernel thread of its own at some time */
#ifdef __SANITIZE_THREAD__
enum { SANITIZERS = 1 };
#else
enum { SANITIZERS = 0 };
#endif

static int pipes[READERS][2], go[2];
static uint32_t inside, most, wanted;

static void *reads(void *arg)
{
	uint32_t n;
	char c;

	CHECK_EQ(kb_blocking_begin(), 0);
	n = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
	for (uint32_t old = __atomic_load_n(&most, __ATOMIC_RELAXED); n > old;)
		if (__atomic_compare_exchange_n(&most, &old, n, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			break;
	if (n == wanted)
		CHECK_EQ(write(go[1], "x", 1), 1);
	CHECK_EQ(read(((int *)arg)[0], &c, 1), 1);
	__atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_blocking_end(), 0);
	return NULL;
}

static unsigned kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	CHECK(d != NULL);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* A second process writes, a time after so many have begun: it needs no VP, which may all be
 * held at the bound. */
static void writer_process(int ms)
{
	char c;

	CHECK_EQ(read(go[0], &c, 1), 1);
	usleep((useconds_t)ms * 1000);
	for (int k = 0; k < READERS; k++) {
		CHECK_EQ(write(pipes[k][1], "x", 1), 1);
		usleep(1000);
	}
}

static void all_read(uint32_t at_once, int ms)
{
	kb_thread_t t[READERS];
	pid_t pid;

	wanted = at_once;
	for (int k = 0; k < READERS; k++)
		CHECK_EQ(pipe(pipes[k]), 0);
	CHECK_EQ(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		writer_process(ms);
		_exit(0);
	}
	for (int k = 0; k < READERS; k++)
		CHECK_EQ(kb_thread_create(&t[k], NULL, reads, pipes[k]), 0);
	for (int k = 0; k < READERS; k++)
		CHECK_EQ(kb_thread_join(t[k], NULL), 0);
}

static void bounded(void *unused)
{
	(void)unused;
	setenv("KOCHAB_SPARES", "4", 1);
	all_read(4, 300);
	CHECK(most >= 4 && most <= 4 + kb_vp_count());
}

static void ending(void *unused)
{
	unsigned before, n = 0;

	(void)unused;
	setenv("KOCHAB_SPARE_MS", "50", 1);
	CHECK_EQ(kb_init(), 0);
	before = kernel_threads();
	all_read(READERS, 0);
	CHECK_EQ(most, READERS);
	for (int i = 0; i < 100; i++) {
		kb_sleep(20000000);
		n = kernel_threads();
		if (n <= before + 4 + SANITIZERS)
			return; /* sysmon stays, the worker maker, an idle worker, and the first kernel thread
			         * of all */
	}
	fprintf(stderr, "%u kernel threads are left\n", n);
	_exit(1);
}

static void ending_twice(void *unused)
{
	ending(unused);
	most = 0;
	all_read(READERS, 0);
	CHECK_EQ(most, READERS);
}

static struct child c;

int main(void)
{
	child_run(&c, bounded, NULL);
	child_exited(&c, 0);
	child_said(&c, "no more kernel threads can be had (option spares)");
	child_run(&c, ending_twice, NULL);
	child_exited(&c, 0);
	return 0;
}
