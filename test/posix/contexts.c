/* posix/ucontext, signal_action, signal_jump: the mask that a thread sees is its own. swapcontext
 * and setcontext take over the context's mask, also from one thread to another, when the first
 * function of a made context returns, and out of a handler. A pending signal that is let through by
 * that, by a handler's uc_sigmask or by siglongjmp has been handled before the next instruction.
 * Other threads with other masks run in between. Arguments and floating-point control words are
 * preserved. */
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 40, STACK = 65536, NOISE = 3 };

static __thread volatile int first, second;
static __thread ucontext_t main_context, other, link_context;
static __thread char stack[STACK];
static __thread sigjmp_buf back;
static __thread int ended;
static __thread enum { BLOCKS, OPENS, JUMPS, SWAPS, NOTHING } mode;
static int stop;

static bool blocks(int sig)
{
	sigset_t now;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	return sigismember(&now, sig);
}

static void change(int how, int sig)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, sig);
	CHECK_EQ(pthread_sigmask(how, &s, NULL), 0);
}

static void on_first(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig, (void)info;
	first++;
	CHECK(!sigismember(&uc->uc_sigmask, SIGUSR1));
	CHECK(blocks(SIGUSR1));
	if (mode == BLOCKS)
		sigaddset(&uc->uc_sigmask, SIGUSR2);
	if (mode == OPENS)
		sigdelset(&uc->uc_sigmask, SIGUSR2);
	if (mode == JUMPS)
		siglongjmp(back, 1);
	if (mode == SWAPS)
		CHECK_EQ(swapcontext(&other, &main_context), 0);
}

static void on_second(int sig)
{
	(void)sig;
	second++;
}

static void body(int a, int b, int c, int d, int e, int f, int g)
{
	CHECK(a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7);
	CHECK_EQ(fegetround(), FE_TONEAREST);
	fesetround(FE_UPWARD);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(!blocks(SIGUSR2));
		CHECK_EQ(second, i + 1);
		usleep(100);
		CHECK(!blocks(SIGUSR2));
		CHECK_EQ(fegetround(), FE_UPWARD);
		CHECK_EQ(swapcontext(&other, &main_context), 0);
	}
	ended = 1;
}

static void swaps(void)
{
	CHECK_EQ(getcontext(&other), 0);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = sizeof stack;
	other.uc_link = &link_context;
	makecontext(&other, (void (*)(void))(void *)body, 7, 1, 2, 3, 4, 5, 6, 7);
	change(SIG_BLOCK, SIGUSR2);
	change(SIG_BLOCK, SIGURG);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(raise(SIGUSR2), 0);
		CHECK_EQ(second, i);
		CHECK_EQ(swapcontext(&main_context, &other), 0);
		CHECK_EQ(second, i + 1);
		CHECK(blocks(SIGUSR2) && blocks(SIGURG));
		CHECK_EQ(fegetround(), FE_TONEAREST);
	}
	CHECK_EQ(getcontext(&link_context), 0);
	if (!ended)
		setcontext(&other);
	CHECK(blocks(SIGUSR2) && blocks(SIGURG));
	change(SIG_UNBLOCK, SIGUSR2);
	change(SIG_UNBLOCK, SIGURG);
	second = 0;
}

static void handlers(void)
{
	for (int i = 1; i <= ROUNDS; i++) {
		mode = BLOCKS;
		CHECK_EQ(raise(SIGUSR1), 0);
		CHECK(blocks(SIGUSR2));
		CHECK_EQ(raise(SIGUSR2), 0);
		usleep(100);
		CHECK(blocks(SIGUSR2));
		CHECK_EQ(second, i - 1);
		mode = OPENS;
		CHECK_EQ(raise(SIGUSR1), 0);
		CHECK_EQ(second, i);
		CHECK(!blocks(SIGUSR2));
		CHECK_EQ(first, 2 * i);
	}
	first = second = 0;
}

static void jumps(void)
{
	mode = JUMPS;
	change(SIG_BLOCK, SIGURG);
	for (volatile int i = 1; i <= ROUNDS; i++) {
		if (!sigsetjmp(back, 1)) {
			change(SIG_BLOCK, SIGUSR2);
			CHECK_EQ(raise(SIGUSR2), 0);
			CHECK_EQ(second, i - 1);
			raise(SIGUSR1);
		}
		CHECK_EQ(second, i);
		CHECK(!blocks(SIGUSR1) && !blocks(SIGUSR2) && blocks(SIGURG));
	}
	change(SIG_UNBLOCK, SIGURG);
	first = second = 0;
}

/* A thread's way to be switched by a timer. */
static void raises(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(!blocks(SIGUSR1) && !blocks(SIGUSR2));
		CHECK_EQ(raise(SIGUSR1), 0);
	}
	ended = 2;
	setcontext(&main_context);
}

static void switched(void)
{
	volatile int n = 0;

	mode = SWAPS;
	CHECK_EQ(getcontext(&other), 0);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = sizeof stack;
	makecontext(&other, raises, 0);
	change(SIG_BLOCK, SIGUSR2);
	while (ended != 2) {
		CHECK_EQ(swapcontext(&main_context, &other), 0);
		CHECK(blocks(SIGUSR2) && !blocks(SIGUSR1));
		n++;
	}
	CHECK_EQ(n, ROUNDS + 1);
	change(SIG_UNBLOCK, SIGUSR2);
	first = 0;
	mode = NOTHING;
}

static void *all(void *arg)
{
	swaps();
	handlers();
	jumps();
	switched();
	return arg;
}

static void *noise(void *arg)
{
	int mine = (intptr_t)arg & 1 ? SIGUSR1 : SIGUSR2;

	change(SIG_BLOCK, mine);
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		usleep(100);
		CHECK(blocks(mine));
		CHECK(!blocks(mine == SIGUSR1 ? SIGUSR2 : SIGUSR1));
	}
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_first, .sa_flags = SA_SIGINFO };
	pthread_t t[NOISE], one, two;

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK(signal(SIGUSR2, on_second) != SIG_ERR);
	for (int i = 0; i < NOISE; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, noise, (void *)(intptr_t)i), 0);
	CHECK_EQ(pthread_create(&one, NULL, all, NULL), 0);
	CHECK_EQ(pthread_create(&two, NULL, all, NULL), 0);
	all(NULL);
	CHECK_EQ(pthread_join(one, NULL), 0);
	CHECK_EQ(pthread_join(two, NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < NOISE; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
