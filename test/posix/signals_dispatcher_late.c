/* posix/signal_settle: a signal to the process that all threads block is sent before the signal
 * dispatcher's kernel thread has come to run, which then takes the signal first of all. A
 * sigtimedwait without time finds the signal all the same. A debugger holds the dispatcher's kernel
 * thread: until the signal has been sent, and then with the signal in hand.
 * matrix: run-only vps=1,2 sched=rotator
 * body: thread */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

enum { HOLD_MS = 100, CALL_STOP = SIGTRAP | 0x80 };
/* It blocks all but two that are libc's own. */
#define ITS_MASK (~((uint64_t)3 << 31))

static int orders[2], reports[2]; /* pipes: to the debugger, from him */
static pid_t traced;              /* the process */

/* ---- the debugger ---------------------------------------------------------------------------- */

static pid_t dispatcher; /* 0: not seen yet */

static void report(char c)
{
	if (write(reports[1], &c, 1) != 1)
		_exit(0);
}

/* At its stop for a system call: the first one of the kernel thread that is sought for. */
static int is_dispatcher(pid_t tid)
{
	struct user_regs_struct regs;

	return ptrace(PTRACE_GETREGS, tid, NULL, &regs) == 0 && regs.orig_rax == SYS_rt_sigprocmask &&
	       regs.rdi == SIG_SETMASK && regs.rsi && (uint64_t)ptrace(PTRACE_PEEKDATA, tid, regs.rsi, NULL) == ITS_MASK;
}

static int has_signal(pid_t tid)
{
	struct user_regs_struct regs;

	return ptrace(PTRACE_GETREGS, tid, NULL, &regs) == 0 && regs.orig_rax == SYS_rt_sigtimedwait && regs.rax == SIGUSR1;
}

/* Continues a stopped kernel thread; new kernel threads stop at each of their calls until the
 * wanted kernel thread is found. */
static void go_on(pid_t tid, int status)
{
	int event = status >> 8, sig = event == CALL_STOP || event > 0xff || event == SIGTRAP ? 0 : WSTOPSIG(status);

	ptrace(tid == traced || (dispatcher && tid != dispatcher) ? PTRACE_CONT : PTRACE_SYSCALL, tid, NULL, sig);
}

/* The next stop of another kernel thread than `held`; false: none for that long. */
static int next_stop(pid_t held, int ms, pid_t *tid, int *status)
{
	for (int i = 0; ms < 0 || i < ms; i++) {
		*tid = waitpid(-1, status, __WALL | (ms < 0 ? 0 : WNOHANG));
		if (*tid < 0)
			_exit(0);
		if (*tid > 0 && WIFSTOPPED(*status) && *tid != held)
			return 1;
		if (*tid == 0)
			usleep(1000);
	}
	return 0;
}

static int has_order(void)
{
	struct timespec none = { 0, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(orders[0], &set);
	return pselect(orders[0] + 1, &set, NULL, NULL, &none, NULL) == 1;
}

static void debug(void)
{
	pid_t tid;
	int status;

	if (ptrace(PTRACE_SEIZE, traced, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE)) != 0) {
		report('n');
		_exit(0);
	}
	report('r');
	while (!dispatcher && next_stop(0, -1, &tid, &status))
		if (status >> 8 == CALL_STOP && is_dispatcher(tid))
			dispatcher = tid;
		else
			go_on(tid, status);
	report('h');
	while (!has_order())
		if (next_stop(dispatcher, 1, &tid, &status))
			go_on(tid, status);
	ptrace(PTRACE_SYSCALL, dispatcher, NULL, NULL);
	while (next_stop(0, -1, &tid, &status) && !(tid == dispatcher && status >> 8 == CALL_STOP && has_signal(tid)))
		go_on(tid, status);
	report('g');
	while (next_stop(dispatcher, HOLD_MS, &tid, &status))
		go_on(tid, status);
	ptrace(PTRACE_CONT, dispatcher, NULL, NULL);
	dispatcher = -1;
	while (next_stop(0, -1, &tid, &status))
		go_on(tid, status);
	_exit(0);
}

/* ---- the program ----------------------------------------------------------------------------- */

static char reported(void)
{
	char c = 0;

	CHECK_EQ(read(reports[0], &c, 1), 1);
	return c;
}

static void handler(int sig)
{
	(void)sig;
}

static void *nothing(void *unused)
{
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	const struct timespec none = { 0, 0 };
	sigset_t usr1;
	pthread_t t;

	traced = getpid();
	CHECK(pipe(orders) == 0 && pipe(reports) == 0);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (fork() == 0) {
		close(orders[1]);
		debug();
	}
	close(reports[1]);
	if (reported() != 'r')
		SKIP("nobody may trace here");
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(reported(), 'h');
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0); /* it was let through until now */
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(write(orders[1], "g", 1), 1);
	CHECK_EQ(reported(), 'g');
	CHECK_EQ(sigtimedwait(&usr1, NULL, &none), SIGUSR1);
	return 0;
}

#else

int main(void)
{
	SKIP("not with sanitizers, and written for x86-64");
}

#endif
