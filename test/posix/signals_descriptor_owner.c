/* posix/signals_descriptor_owner: a thread that has itself made the owner of a descriptor by its
 * number (F_OWNER_TID) gets the descriptor's signals, and no other thread does; the owner is told
 * by that number. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

enum { EVENTS = 20, OTHERS = 4 };

static atomic_int came, wrong, seen_fd;
static sem_t ready, go;
static int p[2];

static __thread int is_owner;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	wrong += !is_owner;
	seen_fd = info->si_fd;
	came++;
}

static void *owns(void *arg)
{
	struct f_owner_ex own = { F_OWNER_TID, gettid() }, is = { 0, 0 };
	char c;

	is_owner = 1;
	CHECK_EQ(fcntl(p[0], F_SETOWN_EX, &own), 0);
	CHECK_EQ(fcntl(p[0], F_GETOWN_EX, &is), 0);
	CHECK_EQ(is.type, F_OWNER_TID);
	CHECK_EQ(is.pid, gettid());
	CHECK_EQ(fcntl(p[0], F_SETSIG, SIGUSR1), 0);
	CHECK_EQ(fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK), 0);
	for (int i = 0; i < EVENTS; i++) {
		sem_post(&ready);
		while (came <= i)
			usleep(1000);
		CHECK_EQ(read(p[0], &c, 1), 1);
	}
	CHECK_EQ(seen_fd, p[0]);
	own.type = 77;
	CHECK_EQ(fcntl(p[0], F_SETOWN_EX, &own), -1);
	CHECK_EQ(errno, EINVAL);
	return arg;
}

static void *lets_in(void *arg)
{
	while (sem_wait(&go) != 0)
		CHECK_EQ(errno, EINTR);
	return arg;
}

int main(void)
{
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
	pthread_t t, others[OTHERS];

	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	CHECK_EQ(pipe(p), 0);
	CHECK_EQ(sem_init(&ready, 0, 0), 0);
	CHECK_EQ(sem_init(&go, 0, 0), 0);
	for (int i = 0; i < OTHERS; i++)
		CHECK_EQ(pthread_create(&others[i], NULL, lets_in, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, owns, NULL), 0);
	for (int i = 0; i < EVENTS; i++) {
		while (sem_wait(&ready) != 0)
			CHECK_EQ(errno, EINTR);
		CHECK_EQ(write(p[1], "x", 1), 1);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (int i = 0; i < OTHERS; i++)
		sem_post(&go);
	for (int i = 0; i < OTHERS; i++)
		CHECK_EQ(pthread_join(others[i], NULL), 0);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(came, EVENTS);
}
