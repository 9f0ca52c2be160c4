/* libc/tcb: blocks that come and go leave nothing behind: no memory, no thread in libc's count or
 * list. A block that cannot be made is reported (slab too small: EINVAL; no kernel thread for a
 * donor: EAGAIN).
 * matrix: none */
#include "tcb_runner.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

extern void __asan_init(void) __attribute__((weak));

enum { WARM = 200, CYCLES = 1500 };

static void body(void *unused)
{
	void *blocks[40];

	(void)unused;
	for (size_t i = 0; i < 40; i++)
		blocks[i] = malloc(16 + i * 16);
	for (size_t i = 0; i < 40; i++)
		free(blocks[i]);
	CHECK(strerror(99999) != NULL); /* allocates the thread's text */
}

static size_t resident(void)
{
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu %lu", &size, &pages) == 2);
	fclose(f);
	return pages * 4096;
}

static void cycles(int n)
{
	for (int i = 0; i < n; i++) {
		struct runner r;

		runner_make(&r, 7);
		runner_run(&r, body, NULL);
		runner_free(&r);
	}
}

/* Returns the number of bytes that malloc has given out, if malloc tells. */
static size_t in_use(void)
{
#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 33)
	return mallinfo2().uordblks;
#endif
#endif
	return 0;
}

/* Sanitizers keep freed memory for a while; an emulator keeps data for each thread it has seen. */
static bool resident_tells(void)
{
	const char *emulator = getenv("RUNNER");

	return !__asan_init && !RUNNING_ON_VALGRIND && !(emulator && *emulator);
}

static void no_leak(void)
{
	size_t before, pages;
	struct runner r;

	runner_make(&r, 7);
	runner_run(&r, body, NULL);
	if (kbi_tcb_destroy(&r.tcb) == EBUSY)
		SKIP("blocks are pooled for ever with this libc");
	cycles(WARM);
	before = in_use();
	pages = resident();
	cycles(CYCLES);
	CHECK(in_use() <= before + 16384);
	if (resident_tells())
		CHECK(resident() <= pages + (512 << 10));
}

static void *in_thread(void *arg)
{
	return arg;
}

/* Libc ends the process when it counts that its last thread has ended, so the count must still be
 * right. */
static void count_is_right(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		CHECK_EQ(pthread_create(&t, NULL, in_thread, NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
}

static void too_small(void)
{
	struct kbi_tcb t;
	size_t size = kbi_tcb_slab_min() - 64;
	char *slab = malloc(size);

	CHECK_EQ(kbi_tcb_make(&t, slab, size, 1, NULL), EINVAL);
	free(slab);
}

static void no_kernel_thread(void)
{
	struct rlimit none = { 0, 0 };
	struct runner r;

	if (kbi_tcb_mode() != KBI_TCB_DONOR)
		return;
	CHECK_EQ(setuid(65534), 0); /* root has no limit */
	CHECK_EQ(setrlimit(RLIMIT_NPROC, &none), 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(runner_try_make(&r, 9, 4096), EAGAIN);
	_exit(0); /* a sanitizer's final check needs root again */
}

static void test(void)
{
	too_small();
	no_leak();
	count_is_right();
	if (geteuid() == 0)
		no_kernel_thread();
}

int main(void)
{
	return runner_each_mode(test);
}
