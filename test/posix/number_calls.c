/* The calls that take a thread's number, by that of another thread that waits, by the caller's own
 * and by that of a thread that has ended: as if the kernel knew it. By their names and by
 * syscall(). */
#define _GNU_SOURCE
#include "test.h"
#include "libc_age.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIDFD_OPEN = 434, IO_OF_THREAD = 1, BEST_EFFORT = 2 << 13 };

static sem_t told, end;
static bool has_kcmp; /* a kernel may be built without */
static volatile pid_t number;
static volatile int handled;

int capget(void *header, void *data);

static void handler(int sig)
{
	(void)sig;
	handled++;
}

/* libc has these from 2.41 on; on Kochab they are there with every libc. */
static int (*get_attributes)(pid_t, void *, unsigned, unsigned), (*set_attributes)(pid_t, void *, unsigned);

static void find_attributes(void)
{
	*(void **)&get_attributes = dlsym(RTLD_DEFAULT, "sched_getattr");
	*(void **)&set_attributes = dlsym(RTLD_DEFAULT, "sched_setattr");
	if (under_kochab() || !libc_is_before("2.41"))
		CHECK(get_attributes && set_attributes);
}

/* Calls that return something of the thread, or of its process. */
static void asks(pid_t who)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, who };
	struct __user_cap_data_struct data[2];
	int value = 42, copy = 0;
	struct iovec to = { &copy, sizeof copy }, from = { &value, sizeof value };
	struct sched_param p = { .sched_priority = 77 };
	char attr[64] = "";
	struct rlimit limit;
	struct timespec t;
	void *list = NULL;
	size_t bytes = 0;

	errno = 0;
	CHECK_EQ(getpriority(PRIO_PROCESS, (id_t)who), getpriority(PRIO_PROCESS, 0));
	CHECK_EQ(errno, 0);
	CHECK_EQ(sched_getscheduler(who), SCHED_OTHER);
	CHECK_EQ(sched_getparam(who, &p), 0);
	CHECK_EQ(p.sched_priority, 0);
	CHECK_EQ(sched_rr_get_interval(who, &t), 0);
	CHECK_EQ(syscall(SYS_sched_getattr, who, attr, 48, 0), 0);
	if (get_attributes)
		CHECK_EQ(get_attributes(who, attr, 48, 0), 0);
	CHECK(syscall(SYS_ioprio_get, IO_OF_THREAD, who) >= 0);
	CHECK_EQ(prlimit(who, RLIMIT_NOFILE, NULL, &limit), 0);
	CHECK_EQ(getpgid(who), getpgid(0));
	CHECK_EQ(getsid(who), getsid(0));
	CHECK_EQ(capget(&header, data), 0);
	CHECK_EQ(header.pid, who);
	CHECK_EQ(process_vm_readv(who, &to, 1, &from, 1, 0), (ssize_t)sizeof value);
	CHECK_EQ(copy, value);
	CHECK_EQ(syscall(SYS_kcmp, who, getpid(), 1, 0, 0), has_kcmp ? 0 : -1);
	CHECK_EQ(syscall(SYS_get_robust_list, who, &list, &bytes), 0);
	CHECK_EQ(kill(who, 0), 0);
	CHECK_EQ(syscall(SYS_kill, who, 0), 0);
	CHECK_EQ(syscall(SYS_tgkill, getpid(), who, 0), 0);
	CHECK_EQ(syscall(SYS_tkill, who, 0), 0);
}

/* It is a thread's, and no process's. */
static void is_no_process(pid_t who)
{
	siginfo_t info;

	errno = 0;
	CHECK_EQ(setpgid(who, 0), -1);
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK_EQ(waitid(P_PID, (id_t)who, &info, WEXITED | WNOHANG), -1);
	CHECK_EQ(errno, ECHILD);
	errno = 0;
	CHECK_EQ(syscall(PIDFD_OPEN, who, 0), -1);
	CHECK(errno == EINVAL || errno == ENOENT || errno == ENOSYS);
}

static void is_gone(pid_t who)
{
	struct sched_param p = { 0 };
	uint32_t attr[12] = { sizeof attr };
	struct rlimit limit;
	cpu_set_t set;

#define GONE(call) \
	do { \
		errno = 0; \
		CHECK_EQ(call, -1); \
		CHECK_EQ(errno, ESRCH); \
	} while (0)
	GONE(getpriority(PRIO_PROCESS, (id_t)who));
	GONE(setpriority(PRIO_PROCESS, (id_t)who, 1));
	GONE(sched_getscheduler(who));
	GONE(sched_setscheduler(who, SCHED_BATCH, &p));
	GONE(sched_getparam(who, &p));
	GONE(sched_getaffinity(who, sizeof set, &set));
	GONE(prlimit(who, RLIMIT_NOFILE, NULL, &limit));
	GONE(getpgid(who));
	GONE(getsid(who));
	GONE(kill(who, 0));
	GONE(syscall(SYS_tkill, who, 0));
	GONE(syscall(SYS_tgkill, getpid(), who, 0));
	GONE(syscall(SYS_ioprio_get, IO_OF_THREAD, who));
	if (get_attributes)
		GONE(get_attributes(who, attr, sizeof attr, 0));
	if (set_attributes)
		GONE(set_attributes(who, attr, 0));
}

static void *waits(void *arg)
{
	number = (pid_t)syscall(SYS_gettid);
	if (arg)
		asks(number);
	sem_post(&told);
	while (sem_wait(&end))
		;
	return NULL;
}

/* To the process, whichever thread the number is of. */
static void signals(pid_t who)
{
	union sigval v = { 0 };

	handled = 0;
	CHECK_EQ(kill(who, SIGUSR1), 0);
	while (handled < 1)
		sched_yield();
	CHECK_EQ(sigqueue(who, SIGUSR1, v), 0);
	while (handled < 2)
		sched_yield();
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t t;

	find_attributes();
	has_kcmp = syscall(SYS_kcmp, getpid(), getpid(), 1, 0, 0) == 0;
	sem_init(&told, 0, 0);
	sem_init(&end, 0, 0);
	sigaction(SIGUSR1, &sa, NULL);
	for (int self = 0; self < 2; self++) {
		CHECK_EQ(pthread_create(&t, NULL, waits, self ? &end : NULL), 0);
		while (sem_wait(&told))
			;
		asks(number);
		is_no_process(number);
		signals(number);
		sem_post(&end);
		CHECK_EQ(pthread_join(t, NULL), 0);
		is_gone(number);
		asks(getpid());
	}
	return 0;
}
