/* posix/signal_action: a signal comes while its handler runs and no other thread has it unblocked:
 * it waits for the handler's end. Signals that come later, when all threads sleep, find a thread,
 * too. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 4, IN_A_ROUND = 3, WHILE_MS = 20, LONG_S = 60 };

static int orders[2]; /* a byte: one more signal, after a while */
static sem_t come;
static volatile sig_atomic_t handled;

static void order(void)
{
	CHECK_EQ(write(orders[1], "s", 1), 1);
}

/* The first of a round is at work until the second has come, most likely. */
static void handler(int sig)
{
	uint64_t begun = test_now_ns();

	(void)sig;
	if (handled++ % IN_A_ROUND == 0) {
		order();
		while (test_now_ns() - begun < 3 * WHILE_MS * 1000000ull)
			;
	}
	sem_post(&come);
}

static void send_all(pid_t to)
{
	char c;

	close(orders[1]);
	while (read(orders[0], &c, 1) == 1) {
		usleep(WHILE_MS * 1000);
		if (kill(to, SIGUSR1) != 0)
			break;
	}
	_exit(0);
}

static void wait_for(int count)
{
	struct timespec end;

	CHECK_EQ(clock_gettime(CLOCK_REALTIME, &end), 0);
	end.tv_sec += LONG_S;
	while (handled < count)
		CHECK(sem_timedwait(&come, &end) == 0 || errno == EINTR);
}

static void *nothing(void *unused)
{
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pid_t self = getpid(), sender;
	pthread_t t;

	CHECK(pipe(orders) == 0 && sem_init(&come, 0, 0) == 0);
	sender = fork();
	CHECK(sender >= 0);
	if (sender == 0)
		send_all(self);
	close(orders[0]);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		order();
		wait_for(i * IN_A_ROUND + 2);
		order();
		wait_for((i + 1) * IN_A_ROUND);
	}
	close(orders[1]);
	CHECK_EQ(waitpid(sender, NULL, 0), sender);
	CHECK_EQ(handled, ROUNDS * IN_A_ROUND);
	return 0;
}
