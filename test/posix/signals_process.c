/* Signals to the process reach a thread that has them unblocked: parked in sem_wait, sleeping, in
 * sigsuspend, pause or sigwait, or running, while further threads block them. The handler runs in
 * that thread, sees its pthread_self and errno, and ends its wait with EINTR. A signal that all
 * threads block stays pending until a thread unblocks it. kill of the own process has delivered
 * when it returns. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYSTANDERS = 6 };

static pthread_t target;
static volatile int ready, stop, wrong, handled;
static sem_t s;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	(void)sig;
	if (!pthread_equal(pthread_self(), target))
		wrong++;
	CHECK_EQ(info->si_pid, getpid());
	CHECK_EQ(info->si_errno, 0);
	CHECK_EQ(info->si_code, SI_USER);
	errno = E2BIG;
	handled++;
}

static sigset_t one(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return set;
}

static void *bystander(void *arg)
{
	while (!stop) {
		for (size_t i = 0; i < (size_t)arg; i++)
			sched_yield();
		usleep(500);
	}
	return arg;
}

static void in_sem(void)
{
	errno = 0;
	CHECK_EQ(sem_wait(&s), -1);
	CHECK_EQ(errno, EINTR);
}

static void in_sleep(void)
{
	struct timespec t = { 100, 0 };

	CHECK_EQ(nanosleep(&t, NULL), -1);
	CHECK_EQ(errno, EINTR);
}

static void in_pause(void)
{
	CHECK_EQ(pause(), -1);
	CHECK_EQ(errno, EINTR);
}

static void in_sigsuspend(void)
{
	sigset_t set = one(SIGUSR1), none, now;

	sigemptyset(&none);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	CHECK_EQ(sigsuspend(&none), -1);
	CHECK_EQ(errno, EINTR);
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	CHECK_EQ(sigismember(&now, SIGUSR1), 1);
}

static void running(void)
{
	while (!handled)
		;
}

static void opening(void)
{
	sigset_t set = one(SIGUSR1), there;

	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ready = 2;
	do {
		usleep(1000);
		sigpending(&there);
	} while (!sigismember(&there, SIGUSR1));
	usleep(2000);
	CHECK_EQ(handled, 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	for (int i = 0; i < 2000 && !handled; i++)
		usleep(1000);
	CHECK_EQ(handled, 1);
}

static void *run(void *arg)
{
	sigset_t set = one(SIGUSR1);
	void (*fn)(void) = *(void (**)(void))arg;

	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	if (fn != opening)
		ready = 2;
	errno = 0;
	fn();
	CHECK_EQ(handled, 1);
	return NULL;
}

static void *waiting(void *arg)
{
	sigset_t set = one(SIGUSR2);
	siginfo_t info;

	ready = 1;
	CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR2);
	CHECK_EQ(info.si_code, SI_QUEUE);
	CHECK_EQ(info.si_value.sival_int, 815);
	return arg;
}

static void hit(void (*fn)(void))
{
	ready = handled = wrong = 0;
	CHECK_EQ(pthread_create(&target, NULL, run, &fn), 0);
	while (ready < 2)
		usleep(100);
	usleep(5000);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(pthread_join(target, NULL), 0);
	CHECK_EQ(handled, 1);
	CHECK_EQ(wrong, 0);
}

static int alone(void)
{
	const char *n = getenv("KOCHAB_VPS");

	return n && atoi(n) == 1;
}

/* The default action of a signal that only a parked thread lets through. */
static void default_action(void)
{
	sigset_t set = one(SIGTERM);
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		pthread_t t;

		pthread_create(&t, NULL, bystander, NULL);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		kill(getpid(), SIGTERM);
		pthread_join(t, NULL);
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigset_t set = one(SIGUSR1), both = set;
	pthread_t b[BYSTANDERS], w;

	default_action();
	sigaddset(&both, SIGUSR2);
	sem_init(&s, 0, 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &both, NULL), 0);
	for (size_t i = 0; i < BYSTANDERS; i++)
		CHECK_EQ(pthread_create(&b[i], NULL, bystander, (void *)i), 0);
	for (int i = 0; i < 10; i++) {
		hit(in_sem);
		hit(in_sleep);
		hit(in_pause);
		hit(in_sigsuspend);
		if (!alone())
			hit(running);
		hit(opening);
		ready = 0;
		CHECK_EQ(pthread_create(&w, NULL, waiting, NULL), 0);
		while (!ready)
			usleep(100);
		if (i % 2)
			usleep(2000);
		CHECK_EQ(sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 815 }), 0);
		CHECK_EQ(pthread_join(w, NULL), 0);
	}
	target = pthread_self();
	handled = wrong = 0;
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, 1);
	CHECK_EQ(wrong, 0);
	stop = 1;
	for (int i = 0; i < BYSTANDERS; i++)
		CHECK_EQ(pthread_join(b[i], NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &sa), 0);
	CHECK(sa.sa_sigaction == handler);
	CHECK_EQ(sa.sa_flags & SA_SIGINFO, SA_SIGINFO);
	return 0;
}
