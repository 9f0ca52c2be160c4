/* libc/emulate: a timer that the program has made before its first thread is its timer afterwards,
 * too: set, asked, let go. Where virtual processors are processes it is the first one's, and main
 * is in another. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "test.h"
#include "libc_age.h"

static sem_t came;

static void handler(int sig)
{
	(void)sig;
	CHECK_EQ(sem_post(&came), 0);
}

static void *nothing(void *unused)
{
	return unused;
}

int main(void)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec set = { .it_value = { .tv_nsec = 5000000 } }, is;
	pthread_t t;
	timer_t id;

	CHECK_EQ(sem_init(&came, 0, 0), 0);
	CHECK(signal(SIGUSR1, handler) != SIG_ERR);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &e, &id), 0);
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(timer_settime(id, 0, &set, NULL), 0);
	while (sem_wait(&came) != 0)
		;
	CHECK_EQ(timer_gettime(id, &is), 0);
	CHECK(is.it_value.tv_sec == 0 && is.it_value.tv_nsec == 0);
	CHECK_EQ(timer_getoverrun(id), 0);
	CHECK_EQ(timer_delete(id), 0);
	/* before 2.34 librt has freed the object behind the number, and might free it again */
	if (!libc_is_before("2.34"))
		CHECK_EQ(timer_delete(id), -1);
	return 0;
}
