/* Times at the ends of the range of struct timespec, for every function that takes a time. A time
 * before 1970 has passed already; a time later than any clock reaches is waited for until an event;
 * an invalid time is EINVAL; the rest of a long wait that a handler has ended is returned as the
 * kernel returns it. */
/* timeout: 60 */
#define _GNU_SOURCE
#include "test.h"
#include "libc_age.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

enum { NANO = 1000000000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem, let_go;
static mtx_t mtx;
static pthread_t holder;
static mqd_t queue = (mqd_t)-1;
static int sets = -1;

static int of(int r)
{
	return r == -1 ? errno : r;
}

/* ---- until a point of time ------------------------------------------------------------------- */

static int until_cond(const struct timespec *t)
{
	int e;

	pthread_mutex_lock(&mutex);
	e = pthread_cond_timedwait(&cond, &mutex, t);
	pthread_mutex_unlock(&mutex);
	return e;
}
static int until_cond_clock(const struct timespec *t)
{
	int e;

	pthread_mutex_lock(&mutex);
	e = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, t);
	pthread_mutex_unlock(&mutex);
	return e;
}
static int until_mutex(const struct timespec *t) { return pthread_mutex_timedlock(&held, t); }
static int until_mutex_clock(const struct timespec *t) { return pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, t); }
static int until_rdlock(const struct timespec *t) { return pthread_rwlock_timedrdlock(&lock, t); }
static int until_wrlock(const struct timespec *t) { return pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, t); }
static int until_sem(const struct timespec *t) { return of(sem_timedwait(&sem, t)); }
static int until_sem_clock(const struct timespec *t) { return of(sem_clockwait(&sem, CLOCK_MONOTONIC, t)); }
static int until_mtx(const struct timespec *t) { return mtx_timedlock(&mtx, t) == thrd_timedout ? ETIMEDOUT : EINVAL; }
static int until_join(const struct timespec *t) { return pthread_timedjoin_np(holder, NULL, t); }
static int until_join_clock(const struct timespec *t) { return pthread_clockjoin_np(holder, NULL, CLOCK_MONOTONIC, t); }

static const struct until {
	const char *name;
	int (*wait)(const struct timespec *t);
} until[] = {
	{ "cond", until_cond }, { "cond_clock", until_cond_clock }, { "mutex", until_mutex },
	{ "mutex_clock", until_mutex_clock }, { "rdlock", until_rdlock }, { "wrlock", until_wrlock }, { "sem", until_sem },
	{ "sem_clock", until_sem_clock }, { "mtx", until_mtx }, { "join", until_join }, { "join_clock", until_join_clock },
};

static void expect(const char *what, const struct timespec *t, int got, int want)
{
	if (got != want)
		fprintf(stderr, "%s until %ld.%ld: %d, not %d\n", what, (long)t->tv_sec, t->tv_nsec, got, want);
	CHECK_EQ(got, want);
}

static void is_over(void)
{
	static const struct timespec over[] = {
		{ LONG_MIN, 0 }, { LONG_MIN, NANO - 1 }, { LONG_MIN + 1, 5 }, { LONG_MIN / NANO, 5 },
		{ INT_MIN, 0 },  { -1, 0 },		  { 0, 0 },
	};

	for (size_t i = 0; i < sizeof until / sizeof *until; i++)
		for (size_t k = 0; k < sizeof over / sizeof *over; k++)
			expect(until[i].name, &over[k], until[i].wait(&over[k]), ETIMEDOUT);
}

static void is_no_time(void)
{
	static const struct timespec none[] = { { 5, -1 }, { 5, NANO }, { LONG_MAX, NANO }, { LONG_MAX, LONG_MIN } };

	/* joining comes last: libc tries again for ever */
	for (size_t i = 0; until[i].wait != until_join; i++)
		for (size_t k = 0; k < sizeof none / sizeof *none; k++)
			expect(until[i].name, &none[k], until[i].wait(&none[k]), EINVAL);
}

/* ---- so long, and how much is left ----------------------------------------------------------- */

static atomic_int handled, ended;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

enum sleeps {
	NANOSLEEP, CLOCK_NANOSLEEP, SELECT, BY_NUMBER, PPOLL, PPOLL_BY_NUMBER, PSELECT, SIGTIMEDWAIT, SEMTIMEDOP, FUTEX, SLEEPS,
};

struct sleeper {
	enum sleeps how;
	struct timespec t;
	atomic_int begun;
};

/* The time left, or t if the call does not return it. */
static struct timespec sleep_so(enum sleeps how, struct timespec t)
{
	struct timespec left = t;
	struct timeval v = { t.tv_sec, t.tv_nsec / 1000 };
	struct sembuf take = { 0, -1, 0 };
	uint32_t word = 0;
	sigset_t set;
	int r = -1;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	errno = 0;
	switch (how) {
	case NANOSLEEP:
		r = nanosleep(&t, &left);
		break;
	case CLOCK_NANOSLEEP:
		errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &left);
		break;
	case SELECT:
		r = select(0, NULL, NULL, NULL, &v);
		left = (struct timespec){ v.tv_sec, v.tv_usec * 1000 };
		break;
	case BY_NUMBER:
		r = (int)syscall(SYS_nanosleep, &t, &left);
		break;
	case PPOLL:
		r = ppoll(NULL, 0, &t, NULL);
		break;
	case PPOLL_BY_NUMBER:
		r = (int)syscall(SYS_ppoll, NULL, 0, &left, NULL, 8);
		break;
	case PSELECT:
		r = pselect(0, NULL, NULL, NULL, &t, NULL);
		break;
	case SIGTIMEDWAIT:
		r = sigtimedwait(&set, NULL, &t);
		break;
	case SEMTIMEDOP:
		r = semtimedop(sets, &take, 1, &t);
		break;
	default:
		r = (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
		break;
	}
	if (r != -1 || errno != EINTR)
		fprintf(stderr, "sleep %d of %ld.%ld: %d, errno %d\n", (int)how, (long)t.tv_sec, t.tv_nsec, r, errno);
	CHECK_EQ(r, -1);
	CHECK_EQ(errno, EINTR);
	return left;
}

/* The kernel's last time, as its clock has it, or the end of its seconds. */
static void check_left(const struct sleeper *s, struct timespec left)
{
	bool tells = s->how == NANOSLEEP || s->how == CLOCK_NANOSLEEP || s->how == SELECT || s->how == BY_NUMBER ||
		     s->how == PPOLL_BY_NUMBER;
	long most = s->how == SELECT || s->how == PPOLL_BY_NUMBER ? LONG_MAX : LONG_MAX / NANO;
	struct timespec now;

	if (!tells)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (s->t.tv_sec < most - now.tv_sec - 1)
		most = s->t.tv_sec;
	else
		most -= now.tv_sec;
	if (!(left.tv_sec <= most && left.tv_sec >= most - 30 && left.tv_nsec >= 0 && left.tv_nsec < NANO))
		fprintf(stderr, "sleep %d of %ld: %ld.%ld left, %ld expected\n", (int)s->how, (long)s->t.tv_sec,
			(long)left.tv_sec, left.tv_nsec, most);
	CHECK(left.tv_sec <= most && left.tv_sec >= most - 30);
	CHECK(left.tv_nsec >= 0 && left.tv_nsec < NANO);
}

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;

	s->begun = 1;
	check_left(s, sleep_so(s->how, s->t));
	ended = 1;
	return NULL;
}

/* The wait begins soon after the thread has said so; a handler that runs before that does not
 * count. */
static void goes_on_until_a_signal(enum sleeps how, struct timespec t)
{
	struct sleeper s = { .how = how, .t = t };
	struct timespec nap = { 0, 5000000 };
	pthread_t id;

	ended = 0;
	CHECK_EQ(pthread_create(&id, NULL, sleeps, &s), 0);
	do {
		nanosleep(&nap, NULL);
		CHECK(s.begun || !ended);
		if (!ended)
			pthread_kill(id, SIGUSR1);
	} while (!ended);
	CHECK_EQ(pthread_join(id, NULL), 0);
}

static void is_long(void)
{
	static const long sec[] = {
		LONG_MAX, LONG_MAX - 1, LONG_MAX / 2, LONG_MAX / NANO, LONG_MAX / NANO + 1, 1L << 40, 1L << 32, INT_MAX,
	};

	for (int how = 0; how < SLEEPS; how++)
		for (size_t i = 0; i < sizeof sec / sizeof *sec; i++)
			if (how != SEMTIMEDOP || sets >= 0)
				goes_on_until_a_signal((enum sleeps)how, (struct timespec){ sec[i], i % 2 ? 0 : NANO - 1 });
}

/* ---- lengths that are none ------------------------------------------------------------------- */

static void no_length(void)
{
	static const struct timespec none[] = { { -1, 0 }, { LONG_MIN, 0 }, { 1, -1 }, { 1, NANO }, { LONG_MAX, NANO } };
	struct sembuf take = { 0, -1, 0 };
	struct timeval before = { -1, 0 };
	uint32_t word = 0;
	sigset_t set;
	char text[64];
	struct mq_attr small = { .mq_maxmsg = 2, .mq_msgsize = sizeof text };

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(of(select(0, NULL, NULL, NULL, &before)), EINVAL);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		const struct timespec *t = &none[i];
		struct timespec copy = *t;

		CHECK_EQ(of(nanosleep(t, NULL)), EINVAL);
		CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, t, NULL), EINVAL);
		CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, t, NULL), EINVAL);
		CHECK_EQ(of(ppoll(NULL, 0, t, NULL)), EINVAL);
		CHECK_EQ(of(pselect(0, NULL, NULL, NULL, t, NULL)), EINVAL);
		CHECK_EQ(of(sigtimedwait(&set, NULL, t)), EINVAL);
		CHECK_EQ(of((int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, t, NULL, 0)), EINVAL);
		CHECK_EQ(of((int)syscall(SYS_ppoll, NULL, 0, &copy, NULL, 8)), EINVAL);
		if (sets >= 0)
			CHECK_EQ(of(semtimedop(sets, &take, 1, t)), EINVAL);
	}
	snprintf(text, sizeof text, "/time_extremes.%d", (int)getpid());
	queue = mq_open(text, O_RDWR | O_CREAT, 0600, &small);
	if (queue == (mqd_t)-1)
		return;
	mq_unlink(text);
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		CHECK_EQ(of((int)mq_timedreceive(queue, text, sizeof text, NULL, &none[i])), EINVAL);
		CHECK_EQ(of(mq_timedsend(queue, text, 1, 0, &none[i])), EINVAL);
	}
	CHECK_EQ(of((int)mq_timedreceive(queue, text, sizeof text, NULL, &(struct timespec){ 0, 0 })), ETIMEDOUT);
	mq_close(queue);
}

static void *holds(void *unused)
{
	pthread_mutex_lock(&held);
	pthread_rwlock_wrlock(&lock);
	mtx_lock(&mtx);
	sem_post(&sem);
	sem_wait(&let_go);
	mtx_unlock(&mtx);
	pthread_rwlock_unlock(&lock);
	pthread_mutex_unlock(&held);
	return unused;
}

int main(void)
{
	struct sigaction a = { .sa_handler = on_signal };
	sigset_t set;

	if (!under_kochab() && libc_is_before("2.34"))
		SKIP("this libc waits for ever until the first times that there are");
	sigaction(SIGUSR1, &a, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sets = semget(IPC_PRIVATE, 1, 0600);
	sem_init(&sem, 0, 0);
	sem_init(&let_go, 0, 0);
	mtx_init(&mtx, mtx_timed);
	CHECK_EQ(pthread_create(&holder, NULL, holds, NULL), 0);
	sem_wait(&sem);
	is_over();
	is_no_time();
	no_length();
	is_long();
	sem_post(&let_go);
	CHECK_EQ(pthread_join(holder, NULL), 0);
	if (sets >= 0)
		semctl(sets, 0, IPC_RMID);
	return 0;
}
