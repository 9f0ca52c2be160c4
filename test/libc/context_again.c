/* libc/context_again: a call is made again after a signal of ours if calls noted for its
 * instruction identify it and the code in front of the instruction agrees. It is not made again if
 * the instruction makes further calls, if no call was noted, or if a handler of the program's has
 * ended the call.
 * matrix: none
 * body: thread */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "libc/context.h"
#include "test.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

enum { OURS = SIGUSR1, PROGRAMS = SIGUSR2, MS = 250, ENOUGH = 3 };

static int tid, epoll;
static bool notes;                  /* calls are noted */
static int first;                   /* number of the signal */
static pthread_barrier_t begin;
static volatile bool both;
static volatile bool sent, hit;     /* a signal was sent; it has ended a call */

static void see(const ucontext_t *uc)
{
	hit |= uc->uc_mcontext.gregs[REG_RAX] == -EINTR;
}

static void on_ours(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	see(context);
	kbi_context_make_any_again(context);
	if (both)
		CHECK_EQ(syscall(SYS_tgkill, getpid(), tid, PROGRAMS), 0);
}

static void on_programs(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	see(context);
	kbi_context_handled(context);
}

static void *sends(void *unused)
{
	struct kbi_context_call c;

	pthread_barrier_wait(&begin);
	for (int same = 0; same < ENOUGH; usleep(500)) {
		kbi_context_find_call(tid, &c);
		same = c.nr >= 0 && c.pc && c.nr != SYS_futex ? same + 1 : 0;
	}
	if (notes)
		kbi_context_note_call(&c);
	sent = true;
	CHECK_EQ(syscall(SYS_tgkill, getpid(), tid, first), 0);
	return unused;
}

#define BARE(nr, a, b, c, r10_) \
	({ \
		register long r10 __asm__("r10") = (r10_); \
		long r_; \
		__asm__ volatile("syscall" \
				 : "=a"(r_) \
				 : "a"((long)(nr)), "D"(a), "S"(b), "d"(c), "r"(r10) \
				 : "rcx", "r11", "memory"); \
		r_; \
	})

static const struct timespec nap = { 0, MS * 1000000 };
static struct epoll_event event;

static __attribute__((noinline)) long by_poll(void)
{
	struct pollfd p = { .fd = -1, .events = POLLIN };

	return BARE(SYS_poll, &p, 1, MS, 0);
}

static __attribute__((noinline)) long by_nanosleep(void)
{
	return BARE(SYS_nanosleep, &nap, NULL, 0, 0);
}

static __attribute__((noinline)) long by_clock_nanosleep(void)
{
	return BARE(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, 0);
}

static __attribute__((noinline)) long by_epoll(void)
{
	return BARE(SYS_epoll_wait, epoll, &event, 1, MS);
}

/* The number of the call is a parameter. */
static volatile long any = SYS_nanosleep;

static __attribute__((noinline)) long by_any(void)
{
	return BARE(any, &nap, NULL, 0, 0);
}

/* Repeats the test if the call was over before the signal came. */
static long beside(int sig, bool and_note, bool and_other, long (*call)(void))
{
	pthread_t t;
	long r = 0;

	first = sig;
	notes = and_note;
	both = and_other;
	for (hit = false; !hit;) {
		sent = false;
		CHECK_EQ(pthread_create(&t, NULL, sends, NULL), 0);
		pthread_barrier_wait(&begin);
		do
			r = call();
		while (r == 0 && !sent);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	return r;
}

int main(void)
{
	static long (*const known[])(void) = { by_poll, by_nanosleep, by_clock_nanosleep, by_epoll };
	struct sigaction sa = { .sa_sigaction = on_ours, .sa_flags = SA_SIGINFO | SA_RESTART };

	tid = (int)syscall(SYS_gettid);
	epoll = epoll_create1(0);
	sigfillset(&sa.sa_mask);
	CHECK_EQ(sigaction(OURS, &sa, NULL), 0);
	sa.sa_sigaction = on_programs;
	CHECK_EQ(sigaction(PROGRAMS, &sa, NULL), 0);
	CHECK_EQ(pthread_barrier_init(&begin, NULL, 2), 0);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		CHECK_EQ(beside(OURS, false, false, known[i]), -EINTR);
		CHECK_EQ(beside(OURS, true, false, known[i]), 0);
		CHECK_EQ(beside(OURS, false, false, known[i]), 0); /* noted earlier */
		CHECK_EQ(beside(OURS, false, true, known[i]), -EINTR);
		CHECK_EQ(beside(PROGRAMS, false, false, known[i]), -EINTR);
	}
	CHECK_EQ(beside(OURS, true, false, by_any), -EINTR);
	return 0;
}

#else

int main(void)
{
	SKIP("x86-64");
}

#endif
