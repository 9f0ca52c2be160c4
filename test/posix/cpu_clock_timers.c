/* Timers on the CPU clock of another thread, as profilers make them. They expire each time that
 * thread has used the interval, notify the right thread, and do not expire while the measured
 * thread sleeps. By the id from pthread_getcpuclockid and by the id made of the thread's number, by
 * their names and by syscall(). Timers on the clock of an ended thread expire no more. */
#define _GNU_SOURCE
#include "cpu_time.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVERY = 5 * MS, USES = 150 * MS, AT_LEAST = 8, SETTLED_US = 100000 };
#define USES_AT_MOST (20000ll * MS)

static sem_t told, go;
static volatile pid_t number;
/* number of this attempt: a notification of the last attempt may be late */
static volatile int counted, wanted, elsewhere, attempt;
static volatile int64_t used;
static pthread_t computer;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	CHECK_EQ(info->si_code, SI_TIMER);
	if (info->si_value.sival_int == attempt)
		__atomic_add_fetch(&counted, 1 + info->si_overrun, __ATOMIC_RELAXED);
	if (!pthread_equal(pthread_self(), computer))
		elsewhere = 1;
}

static void notify(union sigval value)
{
	if (value.sival_int == attempt)
		__atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
}

static void *computes(void *arg)
{
	int64_t from;

	number = (pid_t)syscall(SYS_gettid);
	computer = pthread_self();
	from = cpu_own();
	sem_post(&told);
	while (sem_wait(&go))
		;
	/* notifications count once, however late they are */
	while (used = cpu_own() - from, used < USES || (counted < wanted && used < USES_AT_MOST))
		cpu_compute();
	sem_post(&told);
	while (sem_wait(&go))
		;
	return arg;
}

static clockid_t clock_of(pthread_t t, bool by_number)
{
	clockid_t clock;

	CHECK_EQ(pthread_getcpuclockid(t, &clock), 0);
	return by_number ? (clockid_t)((~(unsigned)number << 3) | 6) : clock;
}

static void try_on(int how, bool by_number)
{
	struct sigevent e = { .sigev_notify = how, .sigev_signo = SIGUSR1,
		.sigev_value.sival_int = ++attempt };
	struct itimerspec every = { { 0, EVERY }, { 0, EVERY } }, now;
	clockid_t clock;
	timer_t timer;
	pthread_t t;
	int id = -1, before;

	counted = elsewhere = 0;
	wanted = AT_LEAST;
	CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
	while (sem_wait(&told))
		;
	clock = clock_of(t, by_number);
	if (how == SIGEV_THREAD)
		e.sigev_notify_function = notify;
	if (how == SIGEV_THREAD_ID)
		e._sigev_un._tid = number;
	if (by_number && how != SIGEV_THREAD) {
		CHECK_EQ(syscall(SYS_timer_create, clock, &e, &id), 0);
		CHECK_EQ(syscall(SYS_timer_settime, id, 0, &every, NULL), 0);
		CHECK_EQ(syscall(SYS_timer_gettime, id, &now), 0);
	} else {
		CHECK_EQ(timer_create(clock, &e, &timer), 0);
		CHECK_EQ(timer_settime(timer, 0, &every, NULL), 0);
		CHECK_EQ(timer_gettime(timer, &now), 0);
	}
	CHECK_EQ(now.it_interval.tv_nsec, EVERY);
	CHECK(now.it_value.tv_sec == 0 && now.it_value.tv_nsec > 0 && now.it_value.tv_nsec <= EVERY);
	usleep(30000);
	CHECK_EQ(counted, 0);
	sem_post(&go);
	while (sem_wait(&told))
		;
	while (counted < AT_LEAST) /* late; the test's time limit ends this loop */
		usleep(1000);
	CHECK(counted <= used / EVERY + 2);
	if (how == SIGEV_THREAD_ID)
		CHECK_EQ(elsewhere, 0);
	sem_post(&go);
	CHECK_EQ(pthread_join(t, NULL), 0);
	/* as above: the count would never settle */
	do {
		before = counted;
		usleep(SETTLED_US);
	} while (counted != before);
	if (id >= 0) {
		CHECK_EQ(syscall(SYS_timer_settime, id, 0, &every, NULL), -1);
		CHECK_EQ(errno, ESRCH);
		CHECK(syscall(SYS_timer_getoverrun, id) >= 0);
		CHECK_EQ(syscall(SYS_timer_delete, id), 0);
	} else {
		CHECK_EQ(timer_delete(timer), 0);
	}
}

/* A timer that expires once, at an absolute time; and a sleep on that clock. */
static void once(void)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1,
		.sigev_value.sival_int = ++attempt };
	struct itimerspec at = { .it_value = { 0, USES / 2 } }, now;
	clockid_t clock;
	timer_t timer;
	pthread_t t;

	counted = 0;
	wanted = 1;
	CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
	while (sem_wait(&told))
		;
	clock = clock_of(t, false);
	CHECK_EQ(timer_create(clock, &e, &timer), 0);
	CHECK_EQ(timer_settime(timer, TIMER_ABSTIME, &at, NULL), 0);
	sem_post(&go);
	while (syscall(SYS_clock_nanosleep, clock, TIMER_ABSTIME, &at.it_value, NULL))
		CHECK_EQ(errno, EINTR);
	CHECK(cpu_of(clock) >= USES / 2);
	while (!counted)
		usleep(1000);
	CHECK_EQ(counted, 1);
	CHECK_EQ(timer_gettime(timer, &now), 0);
	CHECK(now.it_value.tv_sec == 0 && now.it_value.tv_nsec == 0);
	while (sem_wait(&told))
		;
	CHECK_EQ(counted, 1);
	sem_post(&go);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(timer_delete(timer), 0);
}

int main(void)
{
	static const int hows[] = { SIGEV_SIGNAL, SIGEV_THREAD_ID, SIGEV_THREAD };
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_RESTART | SA_SIGINFO };

	sem_init(&told, 0, 0);
	sem_init(&go, 0, 0);
	sigaction(SIGUSR1, &sa, NULL);
	for (unsigned i = 0; i < sizeof hows / sizeof *hows; i++)
		for (int by_number = 0; by_number < 2; by_number++)
			try_on(hows[i], by_number);
	once();
	return 0;
}
