/* posix/bind: a signal by number to threads that end meanwhile, on stacks of the program's own that
 * go with them: each call finds the thread or says ESRCH, and nobody else gets the signal. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SENDERS = 2, AT_ONCE = 8, ROUNDS = 150, STACK = 256 << 10, NOBODY = 1 << 22 /* above the kernel's numbers */ };

static int last, over;
static int came, astray;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	__atomic_add_fetch(&came, 1, __ATOMIC_RELAXED);
	if (info->si_value.sival_int != gettid())
		__atomic_add_fetch(&astray, 1, __ATOMIC_RELAXED);
}

static int sends_to(int number)
{
	siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = number;
	return (int)syscall(SYS_rt_tgsigqueueinfo, getpid(), number, SIGUSR1, &info);
}

static void *ends(void *unused)
{
	__atomic_store_n(&last, gettid(), __ATOMIC_RELAXED);
	sched_yield();
	return unused;
}

static void *sends(void *unused)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		int to = __atomic_load_n(&last, __ATOMIC_RELAXED);

		CHECK_EQ(syscall(SYS_tgkill, getpid(), NOBODY, 0), -1);
		CHECK_EQ(errno, ESRCH);
		if (to && sends_to(to))
			CHECK(errno == ESRCH || errno == EAGAIN);
		if (to && syscall(SYS_tgkill, getpid(), to, 0))
			CHECK_EQ(errno, ESRCH);
		sched_yield();
	}
	return unused;
}

static void *on_its_stack(pthread_t *id)
{
	pthread_attr_t attr;
	void *low = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	CHECK(low != MAP_FAILED);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstack(&attr, low, STACK), 0);
	CHECK_EQ(pthread_create(id, &attr, ends, NULL), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
	return low;
}

static void round_of_threads(void)
{
	void *low[AT_ONCE];
	pthread_t id[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		low[i] = on_its_stack(&id[i]);
	for (int i = 0; i < AT_ONCE; i++) {
		CHECK_EQ(pthread_join(id[i], NULL), 0);
		CHECK_EQ(munmap(low[i], STACK), 0);
	}
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	pthread_t id[SENDERS];

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (int i = 0; i < SENDERS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, sends, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		round_of_threads();
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < SENDERS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	CHECK(came > 0);
	CHECK_EQ(astray, 0);
	return 0;
}
