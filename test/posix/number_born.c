/* posix/thread: a thread that is found by its number, in /proc/self/task, while it is being
 * created, is complete: the signal that it is sent at once comes, and its mask is its creator's. */
#define _GNU_SOURCE
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AT_ONCE = 16, ROUNDS = 40, SECONDS = 20 };

static struct born {
	pthread_t id;
	int number, over;
	int came;
} born[AT_ONCE];

static __thread struct born *volatile mine;
static __thread volatile int early; /* signals that come before it knows its place */
static int sent_to[AT_ONCE * 2], n_sent, round_is, begun, listed, over, self_number;

static void handler(int sig)
{
	(void)sig;
	if (mine)
		__atomic_add_fetch(&mine->came, 1, __ATOMIC_RELAXED);
	else
		early++;
}

static void *lives(void *arg)
{
	struct born *b = arg;

	b->number = gettid();
	mine = b;
	__atomic_add_fetch(&b->came, early, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&b->over, __ATOMIC_ACQUIRE))
		usleep(500);
	return arg;
}

static int was_sent(int number)
{
	for (int i = 0; i < n_sent; i++)
		if (sent_to[i] == number)
			return 1;
	return 0;
}

static void send_to_each(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	CHECK(d != NULL);
	while ((e = readdir(d))) {
		int number = atoi(e->d_name);

		if (number <= 0 || number == getpid() || number == self_number || was_sent(number) || n_sent == AT_ONCE * 2)
			continue;
		if (syscall(SYS_tgkill, getpid(), number, SIGUSR1) == 0)
			sent_to[n_sent++] = number;
	}
	closedir(d);
}

/* While round_is is odd. */
static void *lists(void *unused)
{
	self_number = gettid();
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		int now = __atomic_load_n(&round_is, __ATOMIC_ACQUIRE);

		if (now % 2 == 0 || now == listed) {
			sched_yield();
			continue;
		}
		n_sent = 0;
		__atomic_store_n(&begun, now, __ATOMIC_RELEASE);
		while (__atomic_load_n(&round_is, __ATOMIC_ACQUIRE) == now)
			send_to_each();
		__atomic_store_n(&listed, now, __ATOMIC_RELEASE);
	}
	return unused;
}

static void await_signal(const struct born *b)
{
	for (int i = 0; i < SECONDS * 1000 && !__atomic_load_n(&b->came, __ATOMIC_RELAXED); i++)
		usleep(1000);
	CHECK_EQ(b->came, 1);
}

static void one_round(void)
{
	int now = round_is;

	for (int i = 0; i < AT_ONCE; i++)
		born[i] = (struct born){ 0 };
	__atomic_store_n(&round_is, now + 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) != now + 1)
		usleep(100);
	for (int i = 0; i < AT_ONCE; i++)
		CHECK_EQ(pthread_create(&born[i].id, NULL, lives, &born[i]), 0);
	for (int i = 0; i < AT_ONCE; i++)
		while (!__atomic_load_n(&born[i].number, __ATOMIC_RELAXED))
			usleep(100);
	__atomic_store_n(&round_is, now + 2, __ATOMIC_RELEASE);
	while (__atomic_load_n(&listed, __ATOMIC_ACQUIRE) != now + 1)
		usleep(100);
	for (int i = 0; i < AT_ONCE; i++)
		if (was_sent(born[i].number))
			await_signal(&born[i]);
	for (int i = 0; i < AT_ONCE; i++) {
		__atomic_store_n(&born[i].over, 1, __ATOMIC_RELEASE);
		CHECK_EQ(pthread_join(born[i].id, NULL), 0);
	}
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t lister;

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&lister, NULL, lists, NULL), 0);
	while (!self_number)
		usleep(100);
	for (int i = 0; i < ROUNDS; i++)
		one_round();
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(lister, NULL), 0);
	return 0;
}
