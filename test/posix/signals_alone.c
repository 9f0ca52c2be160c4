/* A program with a handler and a blocked signal on one virtual processor: its threads run in
 * single-threaded mode although a kernel thread waits for signals beside them. Code that ends that
 * mode calls membarrier, and membarrier ends the program here. The counts stay whole while signals
 * come at any moment: to running threads, to a suspended thread, to a thread in sigwait.
 * matrix: run-only
 * body: thread */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 4, ROUNDS = 20000, EVERY = 100, SENT = 200, FENCE = 8 /* of membarrier's commands */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turns[THREADS], answered = PTHREAD_COND_INITIALIZER;
static long counter, hops, answers, turn;
static volatile int handled, alarms;

static void on_signal(int sig)
{
	if (sig == SIGALRM)
		alarms++;
	else
		handled++;
}

static sigset_t only(int sig)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, sig);
	return s;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Each thread wakes the next, in a ring. */
static void *hop(void *arg)
{
	long me = (long)arg;

	CHECK_EQ(pthread_mutex_lock(&lock), 0);
	for (int i = 0; i < ROUNDS / EVERY; i++) {
		while (turn != me)
			CHECK_EQ(pthread_cond_wait(&turns[me], &lock), 0);
		hops++;
		turn = (me + 1) % THREADS;
		CHECK_EQ(pthread_cond_signal(&turns[turn]), 0);
	}
	CHECK_EQ(pthread_mutex_unlock(&lock), 0);
	return NULL;
}

static void *add(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_mutex_lock(&lock), 0);
		counter++;
		CHECK_EQ(pthread_mutex_unlock(&lock), 0);
		if (i % EVERY == 0)
			CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	}
	return arg;
}

static void tell(void)
{
	CHECK_EQ(pthread_mutex_lock(&lock), 0);
	answers++;
	CHECK_EQ(pthread_cond_signal(&answered), 0);
	CHECK_EQ(pthread_mutex_unlock(&lock), 0);
}

/* Unblocks the signals that all further threads block. */
static void *suspend(void *arg)
{
	sigset_t none;

	sigemptyset(&none);
	for (int seen = 0; seen < SENT; seen++) {
		while (alarms == seen)
			CHECK_EQ(sigsuspend(&none), -1);
		tell();
	}
	return arg;
}

static void *answer(void *arg)
{
	sigset_t set = only(SIGUSR2);
	int sig;

	for (int i = 0; i < SENT; i++) {
		CHECK_EQ(sigwait(&set, &sig), 0);
		tell();
	}
	return arg;
}

static void ask(int sig)
{
	long before = answers;

	CHECK_EQ(kill(getpid(), sig), 0);
	CHECK_EQ(pthread_mutex_lock(&lock), 0);
	while (answers == before)
		CHECK_EQ(pthread_cond_wait(&answered, &lock), 0);
	CHECK_EQ(pthread_mutex_unlock(&lock), 0);
}

static void run_all(void *(*fn)(void *))
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, fn, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void ask_many(int sig, void *(*fn)(void *))
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	for (int i = 0; i < SENT; i++)
		ask(sig);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void set_up(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigset_t set = only(SIGUSR2);

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	sigaddset(&set, SIGALRM);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_cond_init(&turns[i], NULL), 0);
}

static void program(void)
{
	set_up();
	run_all(add);
	CHECK_EQ(counter, (long)THREADS * ROUNDS);
	CHECK(handled > 0);
	run_all(hop);
	CHECK_EQ(hops, (long)THREADS * (ROUNDS / EVERY));
	ask_many(SIGUSR2, answer);
	ask_many(SIGALRM, suspend);
	run_all(add);
	CHECK_EQ(counter, 2L * THREADS * ROUNDS);
}

/* A kernel thread is among its threads: none runs in single-threaded mode. */
static void with_kernel_thread(void)
{
	pthread_attr_t a;
	pthread_t t;

	run_all(add);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM), 0);
	CHECK_EQ(pthread_create(&t, &a, add, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* ---- its caller ------------------------------------------------------------------------------ */

static void end_at_fence(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FENCE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(77);
}

/* No quantum: a thread that computes for long on a busy machine stays alone, too. */
static int status_of(char *self, char *what, bool sends)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		CHECK(setenv("KOCHAB_VPS", "1", 1) == 0 && setenv("KOCHAB_QUANTUM", "0", 1) == 0);
		CHECK_EQ(setenv("KOCHAB_SCOPE", "asked", 1), 0);
		end_at_fence();
		execl(self, self, what, NULL);
		_exit(1);
	}
	while (waitpid(child, &status, sends ? WNOHANG : 0) == 0) {
		CHECK_EQ(kill(child, SIGUSR1), 0);
		usleep(100);
	}
	return status;
}

int main(int argc, char **argv)
{
	int status;

	if (argc > 1 && strcmp(argv[1], "kernel") == 0)
		return with_kernel_thread(), 0;
	if (argc > 1)
		return program(), 0;
	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR); /* the child's, too, until it has a handler */
	status = status_of(argv[0], "kernel", false);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
		SKIP("no seccomp, or threads do not run alone here");
	status = status_of(argv[0], "light", true);
	CHECK_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, 0);
	CHECK_EQ(WEXITSTATUS(status), 0);
	return 0;
}
