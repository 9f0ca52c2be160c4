/* core/wait, core/thread_join, posix/signal_action: a signal that comes between any two
 * instructions of a thread's way into a wait has its handler run: the thread does not go to sleep
 * over the signal. This also holds on the way out, from the moment in which a second thread has
 * ended the wait. A debugger moves the thread some instructions further each round, and lets the
 * signal come there. The thread needs the handler's work, so a signal that is kept back makes the
 * test stand still.
 * matrix: vps=1 sched=rotator
 * body: thread */
#define _GNU_SOURCE
#include "test.h"
#include "os/newer.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

enum {
	STEPS_MAX = 800,  /* of a way into a wait */
	BEHIND = 60,       /* instructions on another stack */
	FAR = 1 << 14,     /* bytes: that is another stack */
	STRIDE = 12,       /* instructions from round to round, but for the first kind; the first is random */
	OUT_MAX = 400,     /* instructions of a way out, from the other thread's on */
	LONG_S = 40,
	SYSCALL_CODE = 0x050f, /* the instruction */
};

static int to_debugger[2], from_debugger[2]; /* pipes */

enum kind {
	SEM, SEM_TIMED, COND, COND_TIMED, MUTEX, RWLOCK, BARRIER, JOIN, SLEEP, PAUSE, SUSPEND, SIGWAIT, READ, POLL, INS,
	SEM_OUT = INS, COND_OUT, MUTEX_OUT, RWLOCK_OUT, BARRIER_OUT, JOIN_OUT, READ_OUT, KINDS
};
static const char *const kinds[KINDS] = {
	"sem_wait", "sem_timedwait", "cond_wait", "cond_timedwait", "mutex_lock", "rwlock_wrlock", "barrier_wait", "join",
	"nanosleep", "pause", "sigsuspend", "sigwait", "read", "poll", "out of sem_wait", "out of cond_wait",
	"out of mutex_lock", "out of rwlock_wrlock", "out of barrier_wait", "out of join", "out of read",
};

/* ---- the debugger ---------------------------------------------------------------------------- */

static pid_t traced, traced_thread, walks_there; /* the last: where a wait begins */

static void give_up(const char *kind, int steps)
{
	fprintf(stderr, "%s: the signal behind instruction %d has no handler run\n", kind, steps);
	kill(traced, SIGKILL);
	_exit(1);
}

/* All kernel threads; later ones come by themselves. */
static int trace_all(void)
{
	char path[64];
	struct dirent *e;
	DIR *d;
	int n = 0;

	snprintf(path, sizeof path, "/proc/%d/task", traced);
	d = opendir(path);
	while (d && (e = readdir(d)))
		n += atoi(e->d_name) > 0 && ptrace(PTRACE_SEIZE, atoi(e->d_name), NULL, PTRACE_O_TRACECLONE) == 0;
	if (d)
		closedir(d);
	return n;
}

/* A kernel thread that has stopped, and its status. 0: none within a long time. The program may
 * end, and we with it. */
static pid_t wait_any(int *status)
{
	for (int ms = 0; ms < LONG_S * 1000; ms++) {
		pid_t p = waitpid(-1, status, __WALL | WNOHANG);

		if (p < 0 || (p == traced && !WIFSTOPPED(*status)))
			_exit(0);
		if (p > 0 && WIFSTOPPED(*status))
			return p;
		if (ms > 20)
			usleep(1000);
		else
			sched_yield();
	}
	return 0;
}

/* Until the kernel thread that walks, or any at its breakpoint, traps; signals come meanwhile. 0:
 * it stands still. */
static int wait_trap(int request)
{
	int status;
	pid_t p;

	while ((p = wait_any(&status))) {
		int sig = status >> 16 ? 0 : WSTOPSIG(status);

		if (sig == SIGTRAP) {
			traced_thread = p;
			return 1;
		}
		ptrace(p == traced_thread ? request : PTRACE_CONT, p, NULL, sig);
	}
	return 0;
}

/* Waits for the program's next report, while its kernel threads stop for signals; the program may
 * be at its breakpoint already, *trapped. 0: it is done. */
static int next_kind(int *kind, int *trapped)
{
	struct pollfd said = { to_debugger[0], POLLIN, 0 };
	int status;
	pid_t p;

	*trapped = 0;
	while (poll(&said, 1, 1) == 0)
		while ((p = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
			int sig = status >> 16 ? 0 : WSTOPSIG(status);

			if (WIFSTOPPED(status) && sig != SIGTRAP) {
				ptrace(PTRACE_CONT, p, NULL, sig);
			} else if (WIFSTOPPED(status)) {
				traced_thread = p;
				*trapped = 1;
			}
		}
	return read(to_debugger[0], kind, sizeof *kind) == sizeof *kind;
}

static int go_on(int request)
{
	ptrace(request, traced_thread, NULL, 0);
	return wait_trap(request);
}

static struct user_regs_struct registers(void)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, traced_thread, NULL, &regs) != 0)
		_exit(0);
	return regs;
}

/* At a call in which a thread may sleep or end, or a virtual processor. */
static int is_at_sleep(const struct user_regs_struct *regs)
{
	long n = (long)regs->rax;

	return (n == SYS_futex || n == SYS_ppoll || n == SYS_poll || n == SYS_read || n == SYS_epoll_wait ||
		n == SYS_epoll_pwait || n == SYS_epoll_pwait2 || n == SYS_io_uring_enter || n == SYS_clock_nanosleep ||
		n == SYS_pause || n == SYS_rt_sigsuspend || n == SYS_rt_sigtimedwait || n == SYS_exit) &&
	       (uint16_t)ptrace(PTRACE_PEEKTEXT, traced_thread, regs->rip, NULL) == SYSCALL_CODE;
}

/* So many steps; fewer if it is asleep by then, or past it: false. out: from another thread's stack
 * to its own. */
static int walk(int steps, int out)
{
	struct user_regs_struct regs = registers();
	uint64_t stack = regs.rsp;
	int behind = 0;

	for (int n = 0; n < steps; n++) {
		if (is_at_sleep(&regs) || (!out && behind > BEHIND))
			return 0;
		if (!go_on(PTRACE_SINGLESTEP))
			_exit(0);
		regs = registers();
		behind += regs.rsp - stack + FAR > 2 * FAR;
	}
	return 1;
}

/* To the kernel thread, or to the program, where the thread closes the kernel thread's mask itself. */
static void send_signal(int kind)
{
	if (kind >= PAUSE && kind <= SIGWAIT)
		CHECK_EQ(kill(traced, SIGUSR1), 0);
	else
		CHECK_EQ(syscall(SYS_tgkill, traced, walks_there, SIGUSR1), 0);
}

/* It comes to its own breakpoint before each wait, or the thread that ends the wait to its own
 * behind that. */
static void debug_kind(int kind)
{
	int more = 1, stride = kind == SEM ? 1 : STRIDE, first = (int)(test_seed() % (unsigned)stride), n;

	for (n = first; more; n += stride) {
		if (n > first && !go_on(PTRACE_CONT))
			give_up(kinds[kind], n - stride);
		if (kind < INS)
			walks_there = traced_thread;
		more = walk(n, kind >= INS) && n < (kind >= INS ? OUT_MAX : STEPS_MAX);
		send_signal(kind);
		CHECK_EQ(write(from_debugger[1], &more, sizeof more), sizeof more);
	}
	CHECK(n > 20);
	printf("%s: %d instructions\n", kinds[kind], n - stride);
	fflush(stdout);
}

static void debug(void)
{
	int kind, trapped;

	if (read(to_debugger[0], &kind, sizeof kind) != sizeof kind)
		_exit(0);
	kind = trace_all();
	CHECK_EQ(write(from_debugger[1], &kind, sizeof kind), sizeof kind);
	if (!kind)
		_exit(0);
	while (next_kind(&kind, &trapped)) {
		if (!trapped && !wait_trap(PTRACE_CONT))
			_exit(0);
		debug_kind(kind);
		if (!go_on(PTRACE_CONT))
			give_up(kinds[kind], STEPS_MAX);
		ptrace(PTRACE_CONT, traced_thread, NULL, 0);
	}
	_exit(0);
}

/* ---- the program ----------------------------------------------------------------------------- */

static sem_t gate, end;
static int tube[2];
static int kind_now, come, over;
static pthread_t walker;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;

static void handler(int sig)
{
	int saved = errno;

	(void)sig;
	come = 1;
	sem_post(&gate);
	if ((kind_now == READ || kind_now == POLL) && write(tube[1], "", 1) != 1)
		_exit(2);
	errno = saved;
}

static void nothing(int sig) { (void)sig; }

static void pass_gate(void)
{
	while (sem_wait(&gate) != 0)
		;
}

static int ready;

static void hold(void)
{
	if (kind_now == MUTEX || kind_now == MUTEX_OUT)
		CHECK_EQ(pthread_mutex_lock(&m), 0);
	if (kind_now == RWLOCK || kind_now == RWLOCK_OUT)
		CHECK_EQ(pthread_rwlock_rdlock(&lock), 0);
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}

/* A wait for any handler has missed the signal's, perhaps. */
static void interrupt_walker(void)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		CHECK_EQ(pthread_kill(walker, SIGUSR2), 0);
		usleep(500);
	}
}

static void end_wait(void)
{
	switch (kind_now) {
	case SEM_OUT:
		CHECK_EQ(sem_post(&end), 0);
		break;
	case COND:
	case COND_TIMED:
	case COND_OUT:
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		over = 1;
		CHECK_EQ(pthread_cond_signal(&c), 0);
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
		break;
	case MUTEX:
	case MUTEX_OUT:
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
		break;
	case RWLOCK:
	case RWLOCK_OUT:
		CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
		break;
	case BARRIER:
	case BARRIER_OUT:
		pthread_barrier_wait(&barrier);
		break;
	case READ_OUT:
		CHECK_EQ(write(tube[1], "", 1), 1);
		break;
	case SLEEP:
	case PAUSE:
		interrupt_walker();
		break;
	default:
		break;
	}
}

#define BREAKPOINT() __asm__ volatile("int3" : : : "memory")

/* Ends the wait of the other thread when the signal's handler has run; or at once, and the debugger
 * goes on from here. */
static void *helps(void *unused)
{
	hold();
	if (kind_now < INS) {
		pass_gate();
		end_wait();
	} else {
		sched_yield(); /* the other thread waits */
		end_wait();
		BREAKPOINT();
		if (kind_now != JOIN_OUT)
			sched_yield();
	}
	return unused;
}

static void break_in(void)
{
	if (kind_now < INS)
		BREAKPOINT();
}

static void wait_cond(const struct timespec *until)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	break_in();
	while (!over)
		CHECK_EQ(until ? pthread_cond_timedwait(&c, &m, until) : pthread_cond_wait(&c, &m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

static void wait_lock(void)
{
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		sched_yield();
	break_in();
	if (kind_now == MUTEX || kind_now == MUTEX_OUT) {
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	} else {
		CHECK_EQ(pthread_rwlock_wrlock(&lock), 0);
		CHECK_EQ(pthread_rwlock_unlock(&lock), 0);
	}
}

static void wait_byte(void)
{
	struct pollfd p = { tube[0], POLLIN, 0 };
	char byte;

	break_in();
	if (kind_now == POLL)
		while (poll(&p, 1, -1) != 1)
			CHECK_EQ(errno, EINTR);
	while (read(tube[0], &byte, 1) != 1)
		CHECK_EQ(errno, EINTR);
}

/* The signal is blocked but for that. */
static void wait_signal(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	if (kind_now == SUSPEND) {
		break_in();
		while (!come)
			CHECK_EQ(sigsuspend(&set), -1);
		pass_gate();
	} else {
		sigaddset(&set, SIGUSR1);
		break_in();
		CHECK_EQ(sigwait(&set, &sig), 0);
		come = sig == SIGUSR1;
	}
}

static void wait_sem(sem_t *s, const struct timespec *until)
{
	break_in();
	while ((until ? sem_timedwait(s, until) : sem_wait(s)) != 0)
		CHECK_EQ(errno, EINTR);
}

static void wait_once(void)
{
	struct timespec far, longest = { 10 * LONG_S, 0 };

	clock_gettime(CLOCK_REALTIME, &far);
	far.tv_sec += 10 * LONG_S;
	switch (kind_now) {
	case SEM:
	case SEM_TIMED:
		wait_sem(&gate, kind_now == SEM ? NULL : &far);
		break;
	case SEM_OUT:
		wait_sem(&end, NULL);
		break;
	case COND:
	case COND_TIMED:
	case COND_OUT:
		wait_cond(kind_now == COND_TIMED ? &far : NULL);
		break;
	case MUTEX:
	case MUTEX_OUT:
	case RWLOCK:
	case RWLOCK_OUT:
		wait_lock();
		break;
	case BARRIER:
	case BARRIER_OUT:
		break_in();
		pthread_barrier_wait(&barrier);
		break;
	case SLEEP:
		break_in();
		CHECK_EQ(nanosleep(&longest, NULL), -1);
		break;
	case PAUSE:
		break_in();
		CHECK_EQ(pause(), -1);
		break;
	case SUSPEND:
	case SIGWAIT:
		wait_signal();
		break;
	case READ:
	case POLL:
	case READ_OUT:
		wait_byte();
		break;
	default: /* a join */
		break_in();
	}
}

static int needs_helper(void)
{
	return kind_now >= INS || (kind_now >= COND && kind_now <= PAUSE);
}

static void set_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static void round_of_kind(int *more)
{
	pthread_t helper = 0;

	come = over = 0;
	__atomic_store_n(&ready, 0, __ATOMIC_RELEASE);
	if (needs_helper())
		CHECK_EQ(pthread_create(&helper, NULL, helps, NULL), 0);
	if (kind_now != SUSPEND && kind_now != SIGWAIT)
		set_mask(SIG_UNBLOCK);
	wait_once();
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	if (kind_now == READ || kind_now == POLL || (kind_now >= INS && kind_now != JOIN_OUT))
		pass_gate();
	if (needs_helper())
		CHECK_EQ(pthread_join(helper, NULL), 0);
	if (kind_now == JOIN_OUT)
		pass_gate();
	set_mask(SIG_BLOCK);
	CHECK(come);
	CHECK_EQ(read(from_debugger[0], more, sizeof *more), sizeof *more);
}

/* Helpers inherit a mask that blocks the signal: this thread alone takes it. */
static void *walks(void *unused)
{
	int answer = 0;

	walker = pthread_self();
	CHECK_EQ(write(to_debugger[1], &answer, sizeof answer), sizeof answer);
	CHECK_EQ(read(from_debugger[0], &answer, sizeof answer), sizeof answer);
	if (!answer)
		SKIP("nobody may trace here");
	for (int kind = 0; kind < KINDS; kind++) {
		int more = 1;

		kind_now = kind;
		CHECK_EQ(write(to_debugger[1], &kind, sizeof kind), sizeof kind);
		while (more)
			round_of_kind(&more);
		BREAKPOINT();
	}
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler }, other = { .sa_handler = nothing };
	pid_t debugger;
	pthread_t t;

	traced = getpid();
	CHECK(pipe(to_debugger) == 0 && pipe(from_debugger) == 0 && pipe(tube) == 0);
	CHECK(sem_init(&gate, 0, 0) == 0 && sem_init(&end, 0, 0) == 0);
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
	CHECK_EQ(sigaction(SIGUSR2, &other, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	debugger = fork();
	CHECK(debugger >= 0);
	if (debugger == 0) {
		close(to_debugger[1]);
		debug();
	}
	close(to_debugger[0]);
	close(from_debugger[1]);
	prctl(PR_SET_PTRACER, debugger);
	set_mask(SIG_BLOCK);
	CHECK_EQ(pthread_create(&t, NULL, walks, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	close(to_debugger[1]);
	CHECK_EQ(waitpid(debugger, NULL, 0), debugger);
	return 0;
}

#else

int main(void)
{
	SKIP("not with sanitizers, and written for x86-64");
}

#endif
