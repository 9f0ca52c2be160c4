/* A thread that has ended and is not joined yet: signals to it and its cancellation go well and do
 * nothing, all that the kernel would be asked for is not there, and its number is nobody's. As in
 * glibc from 2.35 on. */
#define _GNU_SOURCE
#include "test.h"
#include "libc_age.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 1 << 20, GUARD = 1 << 16 };

static volatile pid_t number;

static void *ends(void *arg)
{
	number = (pid_t)syscall(SYS_gettid);
	return arg;
}

/* Its attributes are told until it is joined. */
static void is_as_made(pthread_t t)
{
	pthread_attr_t attr;
	size_t size, guard;
	void *low;

	CHECK_EQ(pthread_getattr_np(t, &attr), 0);
	CHECK_EQ(pthread_attr_getstack(&attr, &low, &size), 0);
	CHECK(low != NULL);
	CHECK(size > STACK - STACK / 64 && size <= STACK); /* older ones tell less */
	CHECK_EQ(pthread_attr_getguardsize(&attr, &guard), 0);
	CHECK_EQ(guard, GUARD);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
}

int main(void)
{
	struct sched_param p = { 0 };
	char name[32], path[64];
	pthread_attr_t attr;
	clockid_t clock;
	pthread_t t;
	int policy;

	if (libc_is_before("2.35"))
		SKIP("an older libc");
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, STACK), 0);
	CHECK_EQ(pthread_attr_setguardsize(&attr, GUARD), 0);
	CHECK_EQ(pthread_create(&t, &attr, ends, NULL), 0);
	while (!number)
		usleep(1000);
	for (int i = 0; i < 5000 && syscall(SYS_tgkill, getpid(), number, 0) == 0; i++)
		usleep(1000);
	usleep(10000);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), number, 0), -1);
	CHECK_EQ(errno, ESRCH);
	CHECK_EQ(pthread_kill(t, 0), 0);
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_getcpuclockid(t, &clock), ESRCH);
	CHECK_EQ(pthread_setname_np(t, "name"), ENOENT);
	CHECK_EQ(pthread_getname_np(t, name, sizeof name), ENOENT);
	CHECK_EQ(pthread_getschedparam(t, &policy, &p), ESRCH);
	CHECK_EQ(pthread_setschedparam(t, SCHED_OTHER, &p), ESRCH);
	CHECK_EQ(pthread_setschedprio(t, 0), ESRCH);
	CHECK_EQ(pthread_sigqueue(t, SIGUSR1, (union sigval){ 0 }), ESRCH);
	CHECK_EQ(pthread_sigqueue(t, 0, (union sigval){ 0 }), ESRCH);
	is_as_made(t);
	snprintf(path, sizeof path, "/proc/self/task/%d", (int)number);
	CHECK_EQ(access(path, F_OK), -1);
	CHECK_EQ(errno, ENOENT);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
