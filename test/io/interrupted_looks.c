/* os/sys kbi_sys_poll_now: a signal that comes while the kernel is asked for readiness is no
 * answer: a call that may block is not made because of it, and poll does not end by it. Each wait
 * here has a deadline and no event. */
#include <arpa/inet.h>
#include <errno.h>
#include <kochab/io.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 20000, PERIOD_US = 30, LIMIT_S = 60 };

static int listener, idle;
static unsigned signals;

static void handler(int sig)
{
	(void)sig;
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
}

static void still(int sig)
{
	static const char text[] = "a call stands still that has a deadline\n";

	(void)sig;
	(void)!write(2, text, sizeof text - 1);
	_exit(1);
}

static void listening(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_EQ(listen(listener, 8), 0);
}

static void storm(long period_us)
{
	struct itimerval t = { { 0, period_us }, { 0, period_us } };

	CHECK_EQ(setitimer(ITIMER_REAL, &t, NULL), 0);
}

static void *waits(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct pollfd p = { idle, POLLIN, 0 };

		CHECK_EQ(kb_io_accept4(listener, NULL, NULL, 0, kb_now() + 1000), -ETIMEDOUT);
		CHECK_EQ(kb_io_poll(&p, 1, 0), 0);
	}
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct sigaction end = { .sa_handler = still };
	struct sigevent e;
	struct itimerspec limit = { .it_value = { LIMIT_S, 0 } };
	kb_thread_t t[2];
	timer_t timer;
	int p[2];

	memset(&e, 0, sizeof e);
	e.sigev_notify = SIGEV_SIGNAL;
	e.sigev_signo = SIGUSR2;
	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &end, NULL), 0);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &e, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &limit, NULL), 0);
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), 0);
	idle = p[0];
	listening();
	storm(PERIOD_US);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, waits, NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	storm(0);
	CHECK(signals > 0);
	return 0;
}
