/* libc/context_call: a call that a signal of ours has ended is made again, but not a call that a
 * handler of the program's has ended. Either signal may come first, or during the handler of the
 * second.
 * matrix: none
 * body: thread */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "libc/context.h"
#include "test.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

enum { OURS = SIGUSR1, PROGRAMS = SIGUSR2, MS = 300, ENOUGH = 3 };

static int tid;
static struct kbi_context_call call; /* the call that the thread is in */
static volatile int ours, programs;  /* counts of signals handled */
static volatile bool both;           /* each signal is followed by the second signal */
static volatile bool sent, hit;      /* the first signal was sent; it has ended a call */
static pthread_barrier_t begin;

static void see(const ucontext_t *uc)
{
	hit |= uc->uc_mcontext.gregs[REG_RAX] == -EINTR;
}

static void send(int sig)
{
	CHECK_EQ(syscall(SYS_tgkill, getpid(), tid, sig), 0);
}

static void on_ours(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	ours++;
	see(context);
	if (kbi_context_is_in_call(context, &call))
		kbi_context_make_again(context, &call);
	if (both && !programs)
		send(PROGRAMS);
}

static void on_programs(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	programs++;
	see(context);
	if (both && !ours)
		send(OURS);
	kbi_context_handled(context);
}

static long bare_poll(int ms)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(SYS_poll), "D"(NULL), "S"(0), "d"(ms)
		: "rcx", "r11", "memory");
	return r;
}

/* Waits until the thread sleeps in the call. */
static void find_call(void)
{
	for (int same = 0; same < ENOUGH; usleep(1000)) {
		kbi_context_find_call(tid, &call);
		same = call.nr == SYS_poll ? same + 1 : 0;
	}
}

static void *sends(void *first)
{
	pthread_barrier_wait(&begin);
	find_call();
	sent = true;
	send((int)(intptr_t)first);
	return NULL;
}

/* Returns the result of poll in a thread that gets these signals. Repeats the call if it was over
 * before. */
static long poll_beside(int first, bool and_other)
{
	pthread_t t;
	long r = 0;

	both = and_other;
	for (hit = false; !hit;) {
		ours = programs = 0;
		sent = false;
		CHECK_EQ(pthread_create(&t, NULL, sends, (void *)(intptr_t)first), 0);
		pthread_barrier_wait(&begin);
		do
			r = bare_poll(MS);
		while (r == 0 && !sent);
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_EQ(ours, first == OURS || and_other);
		CHECK_EQ(programs, first == PROGRAMS || and_other);
	}
	return r;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_ours, .sa_flags = SA_SIGINFO | SA_RESTART };

	tid = (int)syscall(SYS_gettid);
	sigfillset(&sa.sa_mask);
	CHECK_EQ(sigaction(OURS, &sa, NULL), 0);
	sa.sa_sigaction = on_programs;
	CHECK_EQ(sigaction(PROGRAMS, &sa, NULL), 0);
	CHECK_EQ(pthread_barrier_init(&begin, NULL, 2), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(poll_beside(OURS, false), 0);
		CHECK_EQ(poll_beside(PROGRAMS, false), -EINTR);
		CHECK_EQ(poll_beside(OURS, true), -EINTR);
		CHECK_EQ(poll_beside(PROGRAMS, true), -EINTR);
	}
	return 0;
}

#else

int main(void)
{
	SKIP("x86-64");
}

#endif
