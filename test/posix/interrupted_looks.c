/* os/sys kbi_sys_poll_now: a signal that comes while the kernel is asked for a connection does not
 * count as one: a thread in accept keeps no processor, and the thread that will connect runs. The
 * handler has SA_RESTART. */
#define _GNU_SOURCE
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ROUNDS = 3000, PERIOD_US = 40, YIELDS = 3 };

static int listener;
static struct sockaddr_in address = { .sin_family = AF_INET };
static sem_t next;

static void handler(int sig)
{
	(void)sig;
}

static void *accepts(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		int fd = accept(listener, NULL, NULL);

		CHECK(fd >= 0);
		CHECK_EQ(close(fd), 0);
		CHECK_EQ(sem_post(&next), 0);
	}
	return unused;
}

static void storm(long period_us)
{
	struct itimerval t = { { 0, period_us }, { 0, period_us } };

	CHECK_EQ(setitimer(ITIMER_REAL, &t, NULL), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	socklen_t n = sizeof address;
	pthread_t t;

	CHECK_EQ(sigaction(SIGALRM, &sa, NULL), 0);
	CHECK_EQ(sem_init(&next, 0, 0), 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &n), 0);
	CHECK_EQ(listen(listener, 8), 0);
	storm(PERIOD_US);
	CHECK_EQ(pthread_create(&t, NULL, accepts, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		for (int y = 0; y < YIELDS; y++)
			sched_yield();
		CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
		while (sem_wait(&next) != 0)
			;
		CHECK_EQ(close(fd), 0);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	storm(0);
	return 0;
}
