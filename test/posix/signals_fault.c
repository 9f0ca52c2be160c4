/* posix/signals_fault: a handler of SIGSEGV that sleeps, set before the first thread and set again
 * later. Garbage collectors that protect pages to notice writes have such handlers. The handler
 * runs on its thread, with its mask and on its stack, whatever else faults meanwhile on that
 * processor. sigaction returns the handler, and the default where there is none.
 * matrix: vps=1,2 sched=rotator,steal */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 6, PAGES = 40, FILL = 500 };

static __thread int id;
static __thread char *mine;
static __thread volatile int faults;
static long page;

static void check_mask(int sig)
{
	sigset_t now;

	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
	CHECK_EQ(sigismember(&now, sig), 1);
	CHECK_EQ(sigismember(&now, SIGUSR2), 1);
	CHECK_EQ(sigismember(&now, SIGUSR1), 0);
}

static bool is_mine(const char *at)
{
	return at >= mine && at < mine + PAGES * page;
}

/* Another thread's fault in the time of this one's sleep must leave all of it alone. */
static void handler(int sig, siginfo_t *info, void *context)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	volatile char fill[FILL];
	char *at = info->si_addr;
	int e = errno;

	(void)context;
	CHECK(is_mine(at));
	check_mask(sig);
	for (int i = 0; i < FILL; i++)
		fill[i] = (char)id;
	if (faults++ % 4 == 0)
		nanosleep(&nap, NULL);
	for (int i = 0; i < FILL; i++)
		CHECK_EQ(fill[i], id);
	CHECK(info->si_addr == at);
	CHECK_EQ(mprotect(mine + (at - mine) / page * page, (size_t)page, PROT_READ | PROT_WRITE), 0);
	errno = e;
}

static void *writes(void *arg)
{
	sigset_t none;

	id = (int)(intptr_t)arg;
	mine = mmap(NULL, (size_t)(PAGES * page), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mine != MAP_FAILED);
	for (int i = 0; i < PAGES; i++) {
		errno = i;
		*(volatile char *)(mine + i * page + i) = (char)id;
		CHECK_EQ(errno, i);
		CHECK_EQ(faults, i + 1);
	}
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &none), 0);
	CHECK_EQ(sigismember(&none, SIGSEGV), 0);
	CHECK_EQ(munmap(mine, (size_t)(PAGES * page)), 0);
	return arg;
}

static void set(int flags)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags }, is;

	sigaddset(&sa.sa_mask, SIGUSR2);
	CHECK_EQ(sigaction(SIGSEGV, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGSEGV, NULL, &is), 0);
	CHECK(is.sa_sigaction == handler);
}

static void all(void)
{
	pthread_t t[THREADS];
	struct sigaction is;

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, writes, (void *)(i + 1)), 0);
	CHECK_EQ(sigaction(SIGSEGV, NULL, &is), 0);
	CHECK(is.sa_sigaction == handler);
	CHECK_EQ(sigismember(&is.sa_mask, SIGUSR2), 1);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* What the program never had, or has no more. */
static void by_default(void)
{
	struct sigaction is;

	CHECK_EQ(sigaction(SIGBUS, NULL, &is), 0);
	CHECK(is.sa_handler == SIG_DFL);
	CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
	CHECK_EQ(sigaction(SIGSEGV, NULL, &is), 0);
	CHECK(is.sa_handler == SIG_DFL);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer has handlers of faults itself");
#endif
	page = sysconf(_SC_PAGESIZE);
	set(SA_RESTART);
	all();
	set(SA_NODEFER | SA_RESTART);
	set(0);
	all();
	by_default();
	set(SA_RESTART);
	all();
}
