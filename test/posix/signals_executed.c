/* A program that a thread executes has that thread's signal mask. Signals that were sent to the
 * thread or to the process and were blocked stay pending for the program, real-time signals in
 * order; no further signals do. An exec that fails changes nothing. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EACH = 5 };

static sem_t ready, go;
static char *self;
static volatile int handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

/* One number at a time: the kernel looks first at what is for the thread. */
static void expect(int sig, int value)
{
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_EQ(sigtimedwait(&set, &info, &(struct timespec){ 0 }), sig);
	if (value >= 0)
		CHECK_EQ(info.si_value.sival_int, value);
}

static void fill(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGUSR1);
	sigaddset(set, SIGUSR2);
	sigaddset(set, SIGRTMIN + 2);
}

static void expect_all(void)
{
	sigset_t set;
	siginfo_t info;

	fill(&set);
	expect(SIGUSR1, -1);
	expect(SIGUSR2, -1);
	for (int i = 0; i < EACH; i++)
		expect(SIGRTMIN + 2, i);
	CHECK_EQ(sigtimedwait(&set, &info, &(struct timespec){ 0 }), -1);
}

/* The new program. */
static int after(void)
{
	sigset_t now, want;

	fill(&want);
	sigprocmask(SIG_BLOCK, NULL, &now);
	for (int sig = 1; sig < SIGRTMAX; sig++)
		CHECK_EQ(sigismember(&now, sig), sigismember(&want, sig));
	expect_all();
	return 0;
}

static void execute(int how)
{
	char *argv[] = { self, (char *)"after", NULL };

	switch (how) {
	case 0:
		execv(self, argv);
		break;
	case 1:
		execl(self, self, "after", (char *)NULL);
		break;
	case 2:
		execlp(self, self, "after", (char *)NULL);
		break;
	case 3:
		execle(self, self, "after", (char *)NULL, environ);
		break;
	case 4:
		syscall(SYS_execve, self, argv, environ);
		break;
	default:
		execvp(self, argv);
	}
}

static void *executes(void *arg)
{
	sigset_t set;

	fill(&set);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &set, NULL), 0);
	sem_post(&ready);
	while (sem_wait(&go))
		;
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(kill(getpid(), SIGUSR2), 0);
	for (int i = 0; i < EACH; i++)
		CHECK_EQ(pthread_sigqueue(pthread_self(), SIGRTMIN + 2, (union sigval){ .sival_int = i }), 0);
	execl("/nowhere/at/all", "x", (char *)NULL);
	CHECK_EQ(errno, ENOENT);
	if (*(int *)arg < 0) {
		expect_all();
		_exit(handled);
	}
	execute(*(int *)arg);
	_exit(2);
}

static void *busy(void *arg)
{
	for (;;)
		if (arg)
			usleep(500);
	return NULL;
}

static void in_child(int how)
{
	sigset_t set;
	pthread_t t;

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	fill(&set);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &set, NULL), 0);
	signal(SIGUSR1, handler);
	signal(SIGUSR2, handler);
	signal(SIGRTMIN + 2, handler);
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&t, NULL, busy, (void *)(i & 1)), 0);
	CHECK_EQ(pthread_create(&t, NULL, executes, &how), 0);
	sem_wait(&ready);
	sem_post(&go);
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "after") == 0)
		return after();
	self = argv[0];
	if (argc > 1) {
		in_child(atoi(argv[1]));
		return 1;
	}
	for (int how = -1; how <= 5; how++) {
		char text[8];
		int status;
		pid_t pid = fork();

		snprintf(text, sizeof(text), "%d", how);
		if (pid == 0) {
			execl(self, self, text, (char *)NULL);
			_exit(3);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	return 0;
}
