/* mq_notify: a message that a waiting thread takes notifies no thread; a message without a waiting
 * thread notifies once, by a signal with its value or by a thread. A thread that waits in
 * mq_receive keeps its handlers, limits and cancellation. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t told, value;
static sem_t by_thread;
static mqd_t q;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	CHECK_EQ(info->si_code, SI_MESGQ);
	value = info->si_value.sival_int;
	told++;
}

static void in_thread(union sigval v)
{
	CHECK_EQ(v.sival_int, 8);
	sem_post(&by_thread);
}

static void *receive(void *arg)
{
	char c = 0;

	CHECK_EQ(mq_receive(q, &c, 1, NULL), 1);
	CHECK_EQ(c, *(char *)arg);
	return arg;
}

static void *wait_for_ever(void *arg)
{
	char c;

	mq_receive(q, &c, 1, NULL);
	return arg;
}

static void nap(void)
{
	usleep(50000);
}

static void ask(int how, int v)
{
	struct sigevent e = { .sigev_notify = how, .sigev_signo = SIGRTMIN,
		.sigev_value.sival_int = v };

	e.sigev_notify_function = in_thread;
	CHECK_EQ(mq_notify(q, &e), 0);
}

static void take(char expected)
{
	CHECK(*(char *)receive(&expected) == expected);
}

int main(void)
{
	struct mq_attr a = { .mq_maxmsg = 4, .mq_msgsize = 1 };
	struct sigaction s = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct timespec past = { 1, 0 };
	char name[40], c;
	pthread_t t;
	void *r;

	snprintf(name, sizeof(name), "/kochab-notify-%d", (int)getpid());
	q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &a);
	if (q == (mqd_t)-1)
		SKIP("no message queues here");
	mq_unlink(name);
	sem_init(&by_thread, 0, 0);
	CHECK_EQ(sigaction(SIGRTMIN, &s, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, receive, "a"), 0);
	for (int i = 0; i < 10; i++)
		nap(); /* it waits in the kernel by now, as far as a busy machine lets it */
	ask(SIGEV_SIGNAL, 7);
	CHECK_EQ(mq_send(q, "a", 1, 0), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	nap();
	CHECK_EQ(told, 0);
	CHECK_EQ(mq_send(q, "b", 1, 0), 0);
	while (!told)
		nap();
	CHECK_EQ(value, 7);
	take('b');
	CHECK_EQ(mq_send(q, "c", 1, 0), 0); /* it notifies once */
	nap();
	CHECK_EQ(told, 1);
	take('c');
	ask(SIGEV_THREAD, 8);
	CHECK_EQ(mq_send(q, "d", 1, 0), 0);
	while (sem_wait(&by_thread))
		;
	take('d');
	CHECK_EQ(mq_timedreceive(q, &c, 1, NULL, &past), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(pthread_create(&t, NULL, wait_for_ever, NULL), 0);
	nap();
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK(r == PTHREAD_CANCELED);
	mq_close(q);
	return 0;
}
