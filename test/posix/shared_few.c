/* posix/standin_libc: the first few threads that wait for process-shared objects wait in libc themselves
 * and give up their virtual processor; each further thread has a kernel thread. Two processes talk
 * with few and with many threads each; a thread that computes beside them goes on; time limits,
 * handlers and cancellation end these waits as everywhere. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spares.h"
#include "test.h"

enum { FEW = 2, MANY = 40, TURNS = 60, NAP_NS = 20000000 };

static struct shared {
	pthread_mutex_t m;
	pthread_cond_t turned;
	pthread_barrier_t all;
	pthread_rwlock_t l;
	sem_t posted, never;
	int turn, threads; /* turns there have been; of each process */
	long count;
} *s;

static volatile int stop, handled, waiting, cleaned;
static int token;
static volatile long computed;

static void init(int threads)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	pthread_barrierattr_t ba;
	pthread_rwlockattr_t ra;

	memset(s, 0, sizeof(*s));
	CHECK(!pthread_mutexattr_init(&ma) && !pthread_mutexattr_setpshared(&ma, 1) && !pthread_mutex_init(&s->m, &ma));
	CHECK(!pthread_condattr_init(&ca) && !pthread_condattr_setpshared(&ca, 1) && !pthread_cond_init(&s->turned, &ca));
	CHECK(!pthread_barrierattr_init(&ba) && !pthread_barrierattr_setpshared(&ba, 1));
	CHECK_EQ(pthread_barrier_init(&s->all, &ba, 2 * (unsigned)threads), 0);
	CHECK(!pthread_rwlockattr_init(&ra) && !pthread_rwlockattr_setpshared(&ra, 1) && !pthread_rwlock_init(&s->l, &ra));
	CHECK(sem_init(&s->posted, 1, 0) == 0 && sem_init(&s->never, 1, 0) == 0);
	s->threads = threads;
}

/* ---- two processes talk ---------------------------------------------------------------------- */

struct seat {
	int side, i;
};

/* Turn t is thread t / 2's of the side t % 2. */
static void take_turns(const struct seat *me)
{
	for (int t = me->i * 2 + me->side; t < s->threads * TURNS; t += s->threads * 2) {
		CHECK_EQ(pthread_mutex_lock(&s->m), 0);
		while (s->turn != t)
			CHECK_EQ(pthread_cond_wait(&s->turned, &s->m), 0);
		s->turn++;
		CHECK_EQ(pthread_cond_broadcast(&s->turned), 0);
		CHECK_EQ(pthread_mutex_unlock(&s->m), 0);
	}
}

static void *talk(void *arg)
{
	const struct seat *me = arg;
	int e;

	take_turns(me);
	e = pthread_barrier_wait(&s->all);
	CHECK(e == 0 || e == PTHREAD_BARRIER_SERIAL_THREAD);
	for (int i = 0; i < TURNS; i++) {
		if (me->side) {
			CHECK_EQ(sem_wait(&s->posted), 0);
		} else {
			CHECK_EQ(sem_post(&s->posted), 0);
		}
		CHECK_EQ(pthread_rwlock_wrlock(&s->l), 0);
		s->count++;
		CHECK_EQ(pthread_rwlock_unlock(&s->l), 0);
	}
	return NULL;
}

static void one_side(int side)
{
	pthread_t t[MANY];
	struct seat seat[MANY];

	for (int i = 0; i < s->threads; i++) {
		seat[i] = (struct seat){ side, i };
		CHECK_EQ(pthread_create(&t[i], NULL, talk, &seat[i]), 0);
	}
	for (int i = 0; i < s->threads; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void conversation(int threads)
{
	int status;
	pid_t pid;

	init(threads);
	pid = fork();
	if (!pid) {
		one_side(1);
		_exit(0);
	}
	one_side(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_EQ(s->turn, threads * TURNS);
	CHECK_EQ(s->count, 2L * threads * TURNS);
}

/* ---- ends of a wait -------------------------------------------------------------------------- */

static struct timespec soon(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += NAP_NS;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void *limits(void *arg)
{
	struct timespec t = soon(CLOCK_REALTIME);

	CHECK_EQ(pthread_mutex_lock(&s->m), 0);
	CHECK_EQ(pthread_cond_timedwait(&s->turned, &s->m, &t), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_unlock(&s->m), 0);
	t = soon(CLOCK_REALTIME);
	CHECK(sem_timedwait(&s->never, &t) == -1 && errno == ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_wrlock(&s->l), 0);
	t = soon(CLOCK_REALTIME);
	CHECK_EQ(pthread_rwlock_timedrdlock(&s->l, &t), EDEADLK); /* its own */
	CHECK_EQ(pthread_rwlock_unlock(&s->l), 0);
	return arg;
}

static void *held_by_main(void *arg)
{
	struct timespec t = soon(CLOCK_REALTIME);

	CHECK_EQ(pthread_rwlock_timedrdlock(&s->l, &t), ETIMEDOUT);
	t = soon(CLOCK_REALTIME);
	CHECK_EQ(pthread_rwlock_timedwrlock(&s->l, &t), ETIMEDOUT);
	return arg;
}

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void unlock(void *arg)
{
	cleaned++;
	CHECK_EQ(pthread_mutex_unlock(arg), 0); /* it is held */
}

static void *waits_for_condition(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&s->m), 0);
	waiting = 1;
	pthread_cleanup_push(unlock, &s->m);
	while (!s->turn)
		CHECK_EQ(pthread_cond_wait(&s->turned, &s->m), 0);
	pthread_cleanup_pop(1);
	return arg;
}

static void *waits_for_post(void *arg)
{
	int r;

	waiting = 1;
	r = sem_wait(&s->never);
	CHECK(r == -1 && errno == EINTR && handled);
	waiting = 2;
	sem_wait(&s->never);
	CHECK(!"cancelled");
	return arg;
}

static void until(volatile int *word, int value)
{
	struct timespec ms = { 0, 1000000 };

	while (*word != value)
		nanosleep(&ms, NULL);
	for (int i = 0; i < 20; i++) /* and it waits */
		nanosleep(&ms, NULL);
}

static void ended(void)
{
	pthread_t t;
	void *result;

	/* a handler leaves a condition's wait as it is; main wakes it */
	CHECK_EQ(pthread_create(&t, NULL, waits_for_condition, &token), 0);
	until(&waiting, 1);
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	until(&handled, 1);
	CHECK_EQ(pthread_mutex_lock(&s->m), 0);
	s->turn = 1;
	CHECK_EQ(pthread_cond_signal(&s->turned), 0);
	CHECK_EQ(pthread_mutex_unlock(&s->m), 0);
	CHECK(pthread_join(t, &result) == 0 && result == &token && cleaned == 1);

	s->turn = waiting = 0;
	CHECK_EQ(pthread_create(&t, NULL, waits_for_condition, NULL), 0);
	until(&waiting, 1);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED && cleaned == 2);
	CHECK(pthread_mutex_trylock(&s->m) == 0 && pthread_mutex_unlock(&s->m) == 0);

	waiting = handled = 0;
	CHECK_EQ(pthread_create(&t, NULL, waits_for_post, NULL), 0);
	until(&waiting, 1);
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	until(&waiting, 2);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
}

static void *compute(void *arg)
{
	while (!stop)
		computed++;
	return arg;
}

/* On one virtual processor, too. */
static void others_go_on(void)
{
	struct timespec nap = { 0, NAP_NS };
	pthread_t waiter, busy;
	long before;

	s->turn = waiting = 0;
	CHECK_EQ(pthread_create(&waiter, NULL, waits_for_condition, NULL), 0);
	until(&waiting, 1);
	CHECK_EQ(pthread_create(&busy, NULL, compute, NULL), 0);
	nanosleep(&nap, NULL);
	before = computed;
	for (int i = 0; i < 20; i++)
		nanosleep(&nap, NULL);
	CHECK(computed > before);
	stop = 1;
	CHECK_EQ(pthread_join(busy, NULL), 0);
	CHECK_EQ(pthread_cancel(waiter), 0);
	CHECK_EQ(pthread_join(waiter, NULL), 0);
}

int main(int argc, char **argv)
{
	pid_t few = begin_with_few_spares(argv);
	struct sigaction sa = { .sa_handler = handler };
	pthread_t t;

	(void)argc;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(s != MAP_FAILED);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	conversation(FEW);
	conversation(MANY);
	init(1);
	CHECK_EQ(pthread_create(&t, NULL, limits, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&s->l), 0);
	CHECK_EQ(pthread_create(&t, NULL, held_by_main, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_rwlock_unlock(&s->l), 0);
	ended();
	others_go_on();
	end_with_few_spares(few);
	return 0;
}
