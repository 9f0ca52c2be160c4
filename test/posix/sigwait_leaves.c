/* posix/signal_dispatcher: a signal to the process that all threads block. The only thread that waits for
 * it is chosen and gives up waiting at that moment. The signal is not lost and does not end the
 * program: the next waiting thread gets it. A debugger holds the signal dispatcher's kernel thread
 * until the waiting thread has left, each time some instructions later.
 * matrix: run-only vps=1,2 sched=rotator
 * body: thread */
#define _GNU_SOURCE
#include "test.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

enum {
	STEPS_MAX = 4096,
	BEFORE = 280, AFTER = 16, STRIDE = 3, /* instructions before and after the store that gives the signal to the thread */
	HOLD_MS = 200, LONG_S = 60,
	ENOUGH = 20,
	SYSCALL_CODE = 0x050f, /* the instruction */
};

static int orders[2], reports[2]; /* pipes: to the debugger, from him */
static pid_t traced;              /* the process */

/* ---- the debugger ---------------------------------------------------------------------------- */

/* Returns a thread that waits for signals and still waits a moment later, or 0. */
static pid_t who_waits(void)
{
	char name[300], text[16];
	struct dirent *e;
	pid_t found = 0;
	DIR *d;

	snprintf(name, sizeof name, "/proc/%d/task", traced);
	d = opendir(name);
	while (d && !found && (e = readdir(d))) {
		FILE *f;

		snprintf(name, sizeof name, "/proc/%d/task/%s/syscall", traced, e->d_name);
		f = fopen(name, "r");
		if (f && fgets(text, sizeof text, f) && atoi(text) == SYS_rt_sigtimedwait)
			found = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return found;
}

static pid_t find_dispatcher(void)
{
	pid_t before = 0, now;

	for (int same = 0; same < ENOUGH; usleep(1000)) {
		now = who_waits();
		same = now && now == before ? same + 1 : 0;
		before = now;
		CHECK(kill(traced, 0) == 0);
	}
	return before;
}

/* Until it stops; the program may end instead, and we with it. */
static void wait_stop(pid_t tid)
{
	int status;

	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		_exit(0);
}

static struct user_regs_struct registers(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) != 0)
		_exit(0);
	return regs;
}

/* To the begin of its next wait. */
static void to_wait(pid_t tid)
{
	struct __ptrace_syscall_info at = { 0 };

	do {
		ptrace(PTRACE_SYSCALL, tid, NULL, NULL);
		wait_stop(tid);
		ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof at, &at);
	} while (at.op != PTRACE_SYSCALL_INFO_ENTRY || at.entry.nr != SYS_rt_sigtimedwait);
}

/* From there until it has the signal; false: somebody else has. */
static int gets_signal(pid_t tid)
{
	int status, left = HOLD_MS;

	kill(traced, SIGUSR1);
	for (;;) {
		ptrace(PTRACE_SYSCALL, tid, NULL, NULL);
		for (; left && waitpid(tid, &status, __WALL | WNOHANG) == 0; left--)
			usleep(1000);
		if (!left) {
			ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
			wait_stop(tid);
			return 0;
		}
		if (registers(tid).rax == SIGUSR1)
			return 1;
		to_wait(tid); /* it was told of a change */
	}
}

/* False: it waits again. */
static int step(pid_t tid)
{
	struct user_regs_struct regs = registers(tid);

	if (regs.rax == SYS_rt_sigtimedwait && (uint16_t)ptrace(PTRACE_PEEKTEXT, tid, regs.rip, NULL) == SYSCALL_CODE)
		return 0;
	ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL);
	wait_stop(tid);
	return 1;
}

static void report(char c)
{
	if (write(reports[1], &c, 1) != 1)
		_exit(0);
}

/* The order is a number of steps; then, when the thread has left, anything. */
static void debug(void)
{
	pid_t tid = find_dispatcher();
	int n, any;

	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) != 0) {
		report('n');
		_exit(0);
	}
	for (report('r'); read(orders[0], &n, sizeof n) == sizeof n; report('d')) {
		struct pollfd left = { orders[0], POLLIN, 0 };

		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
		wait_stop(tid);
		to_wait(tid);
		if (gets_signal(tid))
			while (n-- > 0 && step(tid))
				;
		report('h');
		poll(&left, 1, HOLD_MS); /* he may have a lock that the thread needs */
		ptrace(PTRACE_CONT, tid, NULL, NULL);
		if (read(orders[0], &any, sizeof any) != sizeof any)
			break;
	}
	_exit(0);
}

/* ---- the program ----------------------------------------------------------------------------- */

static sigset_t usr1, both;
static int turn, got; /* the thread nearly waits; the signal that it has got */

static char reported(void)
{
	char c = 0;

	CHECK_EQ(read(reports[0], &c, 1), 1);
	return c;
}

static void order(int n)
{
	CHECK_EQ(write(orders[1], &n, sizeof n), sizeof n);
}

static int wait_for(long seconds)
{
	const struct timespec t = { seconds, 0 };

	return sigtimedwait(&usr1, NULL, &t);
}

static void *gives_up(void *unused)
{
	__atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
	got = sigwaitinfo(&both, NULL);
	return unused;
}

/* True: the thread has got it. */
static int round_of(int steps)
{
	pthread_t t;

	turn = 0;
	CHECK_EQ(pthread_create(&t, NULL, gives_up, NULL), 0);
	while (!__atomic_load_n(&turn, __ATOMIC_ACQUIRE))
		sched_yield();
	usleep(500);
	order(steps);
	CHECK_EQ(reported(), 'h');
	CHECK_EQ(pthread_kill(t, SIGUSR2), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	order(0);
	CHECK_EQ(reported(), 'd');
	if (got == SIGUSR1)
		return 1;
	CHECK_EQ(got, SIGUSR2);
	CHECK_EQ(wait_for(LONG_S), SIGUSR1);
	return 0;
}

/* After so many steps the thread gets it, as far as the machine's noise lets us see. */
static int where_given(void)
{
	int few = 0, many = STEPS_MAX;

	while (many - few > STRIDE) {
		int n = (few + many) / 2;

		if (round_of(n))
			many = n;
		else
			few = n;
	}
	return many;
}

static void *nothing(void *unused)
{
	return unused;
}

int main(void)
{
	pid_t debugger;
	pthread_t t;
	int given;

	traced = getpid();
	CHECK(pipe(orders) == 0 && pipe(reports) == 0);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	both = usr1;
	sigaddset(&both, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &both, NULL), 0);
	debugger = fork();
	CHECK(debugger >= 0);
	if (debugger == 0) {
		close(orders[1]);
		debug();
	}
	close(reports[1]);
	prctl(PR_SET_PTRACER, debugger);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(wait_for(0), -1); /* starts the signal dispatcher */
	if (reported() != 'r')
		SKIP("nobody may trace here");
	given = where_given();
	for (int n = given > BEFORE ? given - BEFORE : 0; n < given + AFTER; n += STRIDE)
		round_of(n);
	close(orders[1]);
	CHECK_EQ(waitpid(debugger, NULL, 0), debugger);
	return 0;
}

#else

int main(void)
{
	SKIP("not with sanitizers, and written for x86-64");
}

#endif
