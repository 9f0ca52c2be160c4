/* The option contain: a thread is lost that held a lock which the program has made of a mutex and a
 * condition variable, as interpreters do for a global lock. A thread that wants the lock waits
 * again and again for a limited time, so this is no deadlock; a message reports it. No message
 * comes while anything else happens.
 * matrix: run-only
 * sleeps: yes */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/child.h"
#include "core/crashers.h"

enum { INTERVAL = 5 /* ms */, LONG = 14 /* s; the message comes after ten */ };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool locked;
static sem_t ping, pong;

static void take_lock(void)
{
	pthread_mutex_lock(&mutex);
	while (locked) {
		struct timespec until = test_in_ms(CLOCK_MONOTONIC, INTERVAL);

		pthread_cond_timedwait(&changed, &mutex, &until);
	}
	locked = true;
	pthread_mutex_unlock(&mutex);
}

static void *crashes_with_lock(void *arg)
{
	take_lock();
	return writes(arg);
}

static void *answers(void *arg)
{
	for (;;) {
		sem_wait(&ping);
		sem_post(&pong);
	}
	return arg;
}

/* Two threads exchange messages. */
static void *talks(void *arg)
{
	for (;;) {
		struct timespec until = test_in_ms(CLOCK_REALTIME, 1000);

		sem_post(&ping);
		sem_timedwait(&pong, &until);
		usleep(20000);
	}
	return arg;
}

static void program(bool talk)
{
	pthread_condattr_t a;
	pthread_t t;

	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &a);
	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	CHECK_EQ(pthread_create(&t, NULL, crashes_with_lock, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), EOWNERDEAD);
	if (talk) {
		CHECK_EQ(pthread_create(&t, NULL, answers, NULL), 0);
		CHECK_EQ(pthread_create(&t, NULL, talks, NULL), 0);
	}
	take_lock();
}

/* Starts a new program, because options are read at the start of a program. */
static void start(void *what)
{
	char name[] = "contain_in_vain", *argv[] = { name, what, NULL };

	setenv("KOCHAB_CONTAIN", "1", 1);
	execv("/proc/self/exe", argv);
	_exit(1);
}

static char talks_too[] = "talk", nothing_else[] = "wait";

int main(int argc, char **argv)
{
	static struct child vain, busy;

	if (argc > 1)
		program(!strcmp(argv[1], talks_too));
	skip_unless_contained();
	child_start(&vain, start, nothing_else);
	child_start(&busy, start, talks_too);
	CHECK(child_read(&vain, "nothing has happened", 60000));
	sleep(LONG);
	CHECK_EQ(kill(vain.pid, SIGKILL), 0);
	CHECK_EQ(kill(busy.pid, SIGKILL), 0);
	child_end(&vain, 30000);
	child_end(&busy, 30000);
	CHECK(strstr(busy.text, "is lost"));
	CHECK(!strstr(busy.text, "nothing has happened"));
	return 0;
}
