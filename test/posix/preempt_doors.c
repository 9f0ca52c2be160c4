/* core/quantum, libc/return_hook: threads that spend nearly all time in libc are switched away each
 * 100 us when a libc function returns. They also leave libc in different ways meanwhile: a handler
 * jumps out, a cancellation unwinds, the process forks. The results that they read and print stay
 * right. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 5, CHILDREN = 8, CANCELS = 60, RUN_MS = 700 };

static struct worker {
	pthread_t id;
	sigjmp_buf away;
	volatile sig_atomic_t may_jump;
	volatile unsigned jumps, rounds;
} workers[WORKERS];
static __thread struct worker *me;
static int over;

/* Nothing of this has a lock, a block of memory or a cleanup. */
static void read_numbers(void)
{
	CHECK(strtod("3.14159265358979323846e10", NULL) > 3.14e10);
	CHECK(strtold("-2.71828182845904523536e-9", NULL) < -2.71e-9L);
	CHECK_EQ(fnmatch("*a*b?[c-d]", "xxaxxbyd", 0), 0);
}

static void convert(unsigned n)
{
	char text[100], word[20];
	double real;
	int whole;

	errno = (int)(n & 63);
	CHECK_EQ(snprintf(text, sizeof text, "%d %.3f %s", (int)(n % 1000 + 1000), (double)(n % 90 + 10) + 0.125, "end"), 15);
	CHECK_EQ(sscanf(text, "%d %lf %19s", &whole, &real, word), 3);
	CHECK_EQ(whole, n % 1000 + 1000);
	CHECK(real > n % 90 + 10 && real < n % 90 + 10.2);
	CHECK(strcmp(word, "end") == 0);
	CHECK(strtod(text + 5, NULL) == real && strtold(text + 5, NULL) > 10.1L);
	CHECK_EQ(errno, n & 63);
}

static void on_signal(int sig)
{
	(void)sig;
	if (me && me->may_jump) {
		me->may_jump = 0;
		siglongjmp(me->away, 1);
	}
}

static void *works(void *arg)
{
	me = arg;
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		if (sigsetjmp(me->away, 1)) {
			me->jumps++;
			continue;
		}
		me->may_jump = 1;
		for (int i = 0; i < 50; i++)
			read_numbers();
		me->may_jump = 0;
		for (int i = 0; i < 50; i++)
			convert(me->rounds + (unsigned)i);
		me->rounds++;
	}
	return NULL;
}

static void *converts_for_ever(void *arg)
{
	int old;

	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old), 0);
	while (strtod("3.14159265358979323846e10", NULL) > 0)
		;
	return arg;
}

static void cancel_one(void)
{
	pthread_t t;
	void *result;

	CHECK_EQ(pthread_create(&t, NULL, converts_for_ever, NULL), 0);
	usleep(1000);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

static void fork_one(unsigned n)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		convert(n);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	unsigned n = 0, rounds = 0;
	uint64_t end;

	(void)argc;
	if (!getenv("KOCHAB_QUANTUM")) { /* it is read when the process starts */
		setenv("KOCHAB_QUANTUM", "100us", 1);
		execv("/proc/self/exe", argv);
	}
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_create(&workers[i].id, NULL, works, &workers[i]), 0);
	for (end = test_now_ns() + RUN_MS * 1000000ull; test_now_ns() < end || n < CANCELS; n++) {
		for (int i = 0; i < WORKERS; i++)
			CHECK_EQ(pthread_kill(workers[i].id, SIGUSR1), 0);
		convert(n);
		cancel_one();
		if (n % (CANCELS / CHILDREN) == 0 && n < CANCELS)
			fork_one(n);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < WORKERS; i++) {
		CHECK_EQ(pthread_join(workers[i].id, NULL), 0);
		rounds += workers[i].rounds + workers[i].jumps;
	}
	CHECK(rounds > 0);
	return 0;
}
