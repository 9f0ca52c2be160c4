/* libc/tcb: a backtrace taken in a block ends at the block's first function. Libc's view of the
 * thread (its stack, sched_getcpu, raise) is right, and the lent tid returns to its owner.
 * matrix: none */
#include "tcb_runner.h"

#if defined(__GLIBC__)
#include <execinfo.h>
#else
#define backtrace(at, n) ((void)(at), 10) /* musl lacks it */
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

static int caught;

static uint32_t kernel_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void on_signal(int sig)
{
	(void)sig;
	caught++;
	errno = 12345;
}

static void __attribute__((noinline)) walk(int depth)
{
	void *at[64];
	int n;

	if (depth > 0) {
		walk(depth - 1);
		kbi_compiler_barrier();
		return;
	}
	n = backtrace(at, 64);
	CHECK(n < 24);
#if defined(__x86_64__) || defined(__aarch64__)
	CHECK(n >= 8); /* C code of other libcs may have no unwind tables */
#endif
}

static void check_stack(const struct kbi_tcb *t)
{
	pthread_attr_t attr;
	uint32_t before = kbi_tcb_settid((struct kbi_tcb *)t, kernel_tid());
	char *here = (char *)__builtin_frame_address(0);
	void *low;
	size_t size;

	CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
	CHECK_EQ(pthread_attr_getstack(&attr, &low, &size), 0);
#if defined(__GLIBC__)
	CHECK((char *)low == t->slab_low && size == t->slab_size);
#endif
	CHECK(here > (char *)low && here < (char *)low + size);
	pthread_attr_destroy(&attr);
	CHECK_EQ(before, kbi_tcb_own_tid(t));
	CHECK_EQ(kbi_tcb_settid((struct kbi_tcb *)t, before), kernel_tid());
}

static void body(void *arg)
{
	struct runner *r = arg;
	int cpu;

	walk(6);
	check_stack(&r->tcb);
	errno = 3;
#if defined(__GLIBC__)
	CHECK_EQ(raise(SIGUSR1), 0);
#else
	CHECK_EQ(syscall(SYS_tkill, kernel_tid(), SIGUSR1), 0); /* musl's raise uses the block's tid */
#endif
	CHECK_EQ(caught, 1);
	CHECK_EQ(errno, 12345); /* the handler ran on this block */
	cpu = sched_getcpu();
	CHECK(cpu >= 0 && cpu < 1024);
}

static void test(void)
{
	struct runner r;

	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 3; i++) {
		caught = 0;
		runner_make(&r, (unsigned)i);
		runner_run(&r, body, &r);
		runner_free(&r);
	}
}

int main(void)
{
	return runner_each_mode(test);
}
