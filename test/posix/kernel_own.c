/* State that the processor and the kernel keep for each kernel thread and a program may set: the
 * base of the register GS, rights that Landlock has taken away. And a state that no lightweight
 * thread can have, restartable sequences: the program is told so. The threads wait in between, so
 * that another kernel thread would run them. */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 6, TURNS = 100 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

/* Lets further threads run, on any kernel threads. */
static void mix(void)
{
	pthread_mutex_lock(&m);
	sched_yield();
	pthread_mutex_unlock(&m);
	usleep(50);
}

/* ---- GS ----------------------------------------------------------------------------------- */

#ifdef __x86_64__
enum { SET_GS = 0x1001 };

static void *own_gs(void *arg)
{
	long own = (long)arg + 100, *base = &own, found;

	CHECK_EQ(syscall(SYS_arch_prctl, SET_GS, base), 0);
	for (int i = 0; i < TURNS; i++) {
		__asm__ volatile("movq %%gs:0, %0" : "=r"(found));
		CHECK_EQ(found, own);
		mix();
	}
	return arg;
}
#endif

/* ---- Landlock ----------------------------------------------------------------------------- */

enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, READ_FILE = 1 << 2 };

static bool may_read(void)
{
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The first thread may not read any more; the further threads may. */
static void *reads(void *arg)
{
	struct {
		uint64_t handled;
	} rules = { READ_FILE };
	bool restricted = arg == NULL;
	int fd;

	if (restricted) {
		fd = (int)syscall(CREATE_RULESET, &rules, sizeof(rules), 0);
		if (fd < 0)
			return arg; /* there is no Landlock here */
		CHECK(geteuid() == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		CHECK_EQ(syscall(RESTRICT_SELF, fd, 0), 0);
		close(fd);
	}
	for (int i = 0; i < TURNS; i++) {
		CHECK_EQ(may_read(), !restricted);
		mix();
	}
	return arg;
}

/* ---- restartable sequences ---------------------------------------------------------------- */

#if defined(__clang__) || __GNUC__ > 10
#define THREAD_POINTER() ((char *)__builtin_thread_pointer())
#else
#define THREAD_POINTER() ((char *)pthread_self()) /* x86-64 */
#endif
extern const ptrdiff_t __rseq_offset __attribute__((weak)); /* glibc 2.35 */
extern const unsigned int __rseq_size __attribute__((weak));

struct area {
	int32_t cpu_start, cpu;
	uint64_t rest[3];
};

/* Either there are no sequences, or the thread's area is kept. */
static void *sequences(void *arg)
{
	static __thread struct area own __attribute__((aligned(32)));
	const unsigned signature = 0x53053053;

	if (&__rseq_size && __rseq_size)
		for (int i = 0; i < TURNS; i++) {
			const volatile struct area *libcs = (void *)(THREAD_POINTER() + __rseq_offset);

			CHECK(libcs->cpu >= 0 && libcs->cpu_start == libcs->cpu);
			mix();
		}
#ifdef SYS_rseq
	if (syscall(SYS_rseq, &own, sizeof(own), 0, signature) == 0)
		for (int i = 0; i < TURNS; i++) {
			CHECK(*(volatile int32_t *)&own.cpu >= 0);
			own.cpu = -1;
			usleep(1000); /* the kernel writes when the thread returns from it */
		}
#endif
	return arg;
}

int main(void)
{
#ifdef __x86_64__
	crowd_run(own_gs, THREADS);
#endif
	crowd_run(reads, THREADS);
	crowd_run(sequences, THREADS);
	return 0;
}
