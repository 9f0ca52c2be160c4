/* posix/signal_dispatcher: a signal wakes a thread that goes to sleep at that moment together with its
 * virtual processor: the signal does not wait at the kernel thread, which blocks all signals by
 * then. The sender is a kernel thread of its own, so nothing else wakes the virtual processor. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { ROUNDS = 60000, LONG_S = 3, LATE_S = 10, SWEEP = 256 };

static sem_t come; /* so that a signal before the sleep counts, too */
static int up, got, over;

static void handler(int sig)
{
	(void)sig;
	__atomic_store_n(&got, 1, __ATOMIC_RELEASE);
	sem_post(&come);
}

static void *sleeps(void *unused)
{
	for (int round = 1; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); round++) {
		__atomic_store_n(&up, round, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&got, __ATOMIC_ACQUIRE))
			CHECK(sem_wait(&come) == 0 || errno == EINTR);
		while (sem_trywait(&come) == 0)
			;
		__atomic_store_n(&got, 0, __ATOMIC_RELEASE);
	}
	return unused;
}

/* On a kernel thread of its own, beside the virtual processors. */
static void *sends(void *arg)
{
	pthread_t to = *(pthread_t *)arg;
	uint64_t end = test_now_ns() + LONG_S * 1000000000ull;
	int round;

	for (round = 1; round < ROUNDS && test_now_ns() < end; round++) {
		uint64_t late = test_now_ns() + LATE_S * 1000000000ull;

		for (volatile int i = 0; i < round % SWEEP * 16; i++)
			;
		CHECK_EQ(pthread_kill(to, SIGUSR1), 0);
		while (__atomic_load_n(&up, __ATOMIC_ACQUIRE) == round)
			CHECK(test_now_ns() < late);
	}
	printf("%d rounds\n", round);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_kill(to, SIGUSR1), 0);
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_attr_t a;
	pthread_t t, sender;

	if (!getenv("KOCHAB_SPIN_US")) {
		setenv("KOCHAB_SPIN_US", "0", 1);
		setenv("KOCHAB_SCOPE", "asked", 1);
		execl("/proc/self/exe", "signals_asleep", (char *)NULL);
	}
	CHECK_EQ(sem_init(&come, 0, 0), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, sleeps, NULL), 0);
	while (!__atomic_load_n(&up, __ATOMIC_ACQUIRE))
		sched_yield();
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM), 0);
	CHECK_EQ(pthread_create(&sender, &a, sends, &t), 0);
	CHECK_EQ(pthread_join(sender, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
