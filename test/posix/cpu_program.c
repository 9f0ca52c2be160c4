/* core/process_clock: the program's CPU time is the sum of all its threads' times, on all kernel
 * threads and processes that run them: clock_gettime, clock, times, getrusage, sleeping on the
 * clock, timers and interval timers on the clock. */
#define _GNU_SOURCE
#include "libc_age.h"
#include "cpu_time.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>

enum { CPU = CLOCK_PROCESS_CPUTIME_ID, THREADS = 3, TICK = 10 * MS };

static atomic_bool stop;
static atomic_int signals;

static void counts(int sig)
{
	(void)sig;
	atomic_fetch_add(&signals, 1);
}

static void notified(union sigval v)
{
	(void)v;
	atomic_fetch_add(&signals, 1);
}

static void *computes(void *arg)
{
	while (!atomic_load(&stop))
		cpu_compute();
	return arg;
}

/* Computes until the program has used ns more. */
static void use(int64_t ns)
{
	int64_t until = cpu_of(CPU) + ns;
	pthread_t t[THREADS];

	atomic_store(&stop, false);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, computes, NULL), 0);
	while (cpu_of(CPU) < until)
		usleep(1000);
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

/* Computes until n signals have come. */
static void use_until_signals(int n)
{
	while (atomic_load(&signals) < n)
		use(TICK);
}

static int64_t of_usage(void)
{
	struct rusage r;

	CHECK_EQ(getrusage(RUSAGE_SELF, &r), 0);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000ll +
		(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000ll;
}

static int64_t of_times(void)
{
	struct tms t;

	CHECK(times(&t) != -1);
	return (t.tms_utime + t.tms_stime) * (1000000000ll / sysconf(_SC_CLK_TCK));
}

static void agree(void)
{
	int64_t before = cpu_of(CPU), after;

	CHECK(clock() * 1000ll >= before - 1000 && of_usage() >= before - 2000 &&
		of_times() >= before - 3 * TICK);
	after = cpu_of(CPU);
	CHECK(after >= before);
	CHECK(of_times() <= cpu_of(CPU) + 3 * TICK);
}

static void interval(int which, int sig)
{
	const struct itimerval each = { { 0, 20000 }, { 0, 20000 } }, none = { 0 };
	struct itimerval left;
	int64_t before = cpu_of(CPU);

	CHECK(signal(sig, counts) != SIG_ERR);
	atomic_store(&signals, 0);
	CHECK_EQ(setitimer(which, &each, NULL), 0);
	use_until_signals(3);
	CHECK(cpu_of(CPU) - before >= 3 * TICK);
	CHECK_EQ(getitimer(which, &left), 0);
	CHECK_EQ(left.it_interval.tv_usec, 20000);
	CHECK_EQ(setitimer(which, &none, &left), 0);
	CHECK(left.it_value.tv_usec > 0 || left.it_value.tv_sec > 0);
}

static void once(struct sigevent *e)
{
	const struct itimerspec at = { .it_value = { 0, 60 * MS } };
	struct itimerspec left;
	int64_t before = cpu_of(CPU);
	timer_t t;

	atomic_store(&signals, 0);
	CHECK_EQ(timer_create(CPU, e, &t), 0);
	CHECK_EQ(timer_settime(t, 0, &at, NULL), 0);
	CHECK_EQ(timer_gettime(t, &left), 0);
	CHECK(left.it_value.tv_nsec > 0 && left.it_value.tv_nsec <= 60 * MS && !left.it_value.tv_sec);
	use_until_signals(1);
	CHECK(cpu_of(CPU) - before >= 50 * MS);
	CHECK_EQ(timer_gettime(t, &left), 0);
	CHECK_EQ(left.it_value.tv_nsec, 0);
	use(TICK);
	CHECK_EQ(atomic_load(&signals), 1);
	CHECK_EQ(timer_delete(t), 0);
}

/* Any thread may set the timer, in any process that runs it, and long after its creation. */
static void *sets(void *arg)
{
	const struct itimerspec at = { .it_value = { 3600, 0 } };

	for (int i = 0; i < 20; i++) {
		CHECK_EQ(timer_settime(*(timer_t *)arg, 0, &at, NULL), 0);
		cpu_compute();
		usleep(300);
	}
	return NULL;
}

static void by_all(void)
{
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	pthread_t t[THREADS];
	timer_t timer;

	CHECK_EQ(timer_create(CPU, &none, &timer), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, sets, &timer), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(timer_delete(timer), 0);
	/* before 2.34 librt has freed the memory behind the number, and might free it again */
	if (!libc_is_before("2.34"))
		CHECK(timer_delete(timer) == -1 && errno == EINVAL);
}

static void sleep_on_it(void)
{
	const struct timespec for_so_long = { 0, 50 * MS };
	int64_t before = cpu_of(CPU);
	pthread_t t;

	atomic_store(&stop, false);
	CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
	CHECK_EQ(clock_nanosleep(CPU, 0, &for_so_long, NULL), 0);
	CHECK(cpu_of(CPU) - before >= 50 * MS);
	atomic_store(&stop, true);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void)
{
	struct sigevent by_signal = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct sigevent by_thread = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = notified };

	CHECK(signal(SIGUSR1, counts) != SIG_ERR);
	use(5 * TICK);
	agree();
	interval(ITIMER_PROF, SIGPROF);
	interval(ITIMER_VIRTUAL, SIGVTALRM);
	once(&by_signal);
	once(&by_thread);
	by_all();
	sleep_on_it();
	agree();
	return 0;
}
