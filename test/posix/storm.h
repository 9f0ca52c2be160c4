/* storm.h - the actors' deeds of storm.c, each with the conditions that must hold for it whatever
 * happens to its thread. */
#ifndef KB_STORM_H
#define KB_STORM_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { DIRECTORS = 3, MAX_ACTORS = 16, US = 1000, ALT_STACK = 32768, TOKENS = 3 };

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define PUT(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)
#define ADD(x, n) __atomic_add_fetch(&(x), (n), __ATOMIC_ACQ_REL)

struct play;
struct actor {
	pthread_t thread;
	struct play *play;
	uint64_t rand;
	bool detached, cancelled;
	unsigned seen; /* signals handled; by itself */
	char alt[ALT_STACK];
};

struct play {
	pthread_mutex_t mutex, robust;
	pthread_cond_t cond;
	pthread_rwlock_t lock;
	sem_t tokens, gone;
	int pipe[2];
	unsigned turn, inside, readers, writers;
	bool stop;
	uint64_t rounds; /* by the director; read by the watchdog */
	struct actor actor[MAX_ACTORS];
};

static struct play plays[DIRECTORS];
static pthread_key_t key, second;
static uint64_t pushed, popped, values_set, values_gone, exact_sent, exact_seen, handled;
static uint64_t started, cancels, ended_cancelled, ended_exit;
static sem_t bell;
static bool curtain;
static __thread struct actor *me;

static unsigned below(uint64_t *rand, unsigned n)
{
	return (unsigned)((test_rand(rand) >> 16) % n);
}

static struct timespec in_us(clockid_t clock, unsigned us)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += (long)us * US;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* ---- signals: a handler sees the thread it runs on ------------------------------------------- */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct actor *a = me;
	int saved = errno;
	char here;

	(void)sig;
	(void)info;
	(void)context;
	if (a) {
		CHECK(pthread_equal(a->thread, pthread_self()) || !GET(a->thread));
		ADD(handled, 1);
		ADD(a->seen, 1);
	}
	/* an actor with an alternate stack is on it, whichever virtual processor it is on */
	if (a && pthread_getspecific(second) == a)
		CHECK(&here >= a->alt && &here < a->alt + ALT_STACK);
	CHECK_EQ(sem_post(&bell), 0);
	errno = saved;
}

static void on_exact(int sig)
{
	(void)sig;
	CHECK(me == NULL);
	ADD(exact_seen, 1);
}

static void handlers(void)
{
	struct sigaction s = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigfillset(&s.sa_mask);
	sigdelset(&s.sa_mask, SIGQUIT);
	CHECK_EQ(sigaction(SIGUSR1, &s, NULL), 0);
	CHECK_EQ(sigaction(SIGRTMIN, &s, NULL), 0);
	s.sa_flags |= SA_RESTART;
	CHECK_EQ(sigaction(SIGUSR2, &s, NULL), 0);
	s.sa_flags = 0;
	s.sa_handler = on_exact;
	CHECK_EQ(sigaction(SIGRTMIN + 2, &s, NULL), 0);
}

/* Actors unblock all signals except the counted signal and the signal that they take by
 * sigwaitinfo. */
static void mask_of_actor(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	sigaddset(&set, SIGRTMIN + 2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
}

/* ---- what an actor does ---------------------------------------------------------------------- */
static void popped_one(void *arg)
{
	(void)arg;
	ADD(popped, 1);
}

/* A cancelled wait has the mutex again when this runs. */
static void unlock_mutex(void *arg)
{
	struct play *p = arg;

	CHECK_EQ(p->inside++, 0);
	CHECK_EQ(--p->inside, 0);
	CHECK_EQ(pthread_mutex_unlock(&p->mutex), 0);
	ADD(popped, 1);
}

static int cond_wait(struct actor *a, unsigned how)
{
	struct play *p = a->play;
	struct timespec t = in_us(how == 1 ? CLOCK_REALTIME : CLOCK_MONOTONIC, below(&a->rand, 500));
	int e = how == 0   ? pthread_cond_wait(&p->cond, &p->mutex)
		: how == 1 ? pthread_cond_timedwait(&p->cond, &p->mutex, &t)
			   : pthread_cond_clockwait(&p->cond, &p->mutex, CLOCK_MONOTONIC, &t);

	CHECK(e == 0 || (how && e == ETIMEDOUT));
	CHECK_EQ(p->inside++, 0);
	CHECK_EQ(--p->inside, 0);
	return e;
}

static void do_cond(struct actor *a)
{
	struct play *p = a->play;
	unsigned turn, how = below(&a->rand, 3);

	CHECK_EQ(pthread_mutex_lock(&p->mutex), 0);
	ADD(pushed, 1);
	pthread_cleanup_push(unlock_mutex, p);
	for (turn = p->turn; turn == p->turn && !GET(p->stop);)
		if (cond_wait(a, how) == ETIMEDOUT)
			break;
	pthread_cleanup_pop(1);
}

static void do_turn(struct actor *a)
{
	struct play *p = a->play;
	struct timespec t = in_us(CLOCK_REALTIME, below(&a->rand, 300));
	unsigned how = below(&a->rand, 3);
	int e = how == 0   ? pthread_mutex_lock(&p->mutex)
		: how == 1 ? pthread_mutex_trylock(&p->mutex)
			   : pthread_mutex_timedlock(&p->mutex, &t);

	if (e) {
		CHECK_EQ(e, how == 1 ? EBUSY : ETIMEDOUT);
		return;
	}
	CHECK_EQ(p->inside++, 0);
	p->turn++;
	if (below(&a->rand, 2))
		sched_yield();
	CHECK_EQ(--p->inside, 0);
	CHECK_EQ(below(&a->rand, 2) ? pthread_cond_signal(&p->cond) : pthread_cond_broadcast(&p->cond), 0);
	CHECK_EQ(pthread_mutex_unlock(&p->mutex), 0);
}

static void return_token(void *arg)
{
	struct play *p = arg;

	CHECK_EQ(sem_post(&p->tokens), 0);
	ADD(popped, 1);
}

static void do_token(struct actor *a)
{
	struct play *p = a->play;
	struct timespec t = in_us(CLOCK_REALTIME, below(&a->rand, 500));
	unsigned timed = below(&a->rand, 2);

	if (timed ? sem_timedwait(&p->tokens, &t) : sem_wait(&p->tokens)) {
		CHECK(errno == EINTR || (timed && errno == ETIMEDOUT));
		return;
	}
	ADD(pushed, 1);
	pthread_cleanup_push(return_token, p);
	usleep(below(&a->rand, 100));
	pthread_cleanup_pop(1);
}

static void unlock_rw(void *arg)
{
	struct play *p = arg;

	CHECK_EQ(GET(p->writers), 0);
	ADD(p->readers, -1u);
	CHECK_EQ(pthread_rwlock_unlock(&p->lock), 0);
	ADD(popped, 1);
}

static void do_rwlock(struct actor *a)
{
	struct play *p = a->play;
	struct timespec t = in_us(CLOCK_REALTIME, below(&a->rand, 500));

	if (below(&a->rand, 3) == 0) {
		if (pthread_rwlock_timedwrlock(&p->lock, &t))
			return;
		CHECK_EQ(ADD(p->writers, 1), 1);
		CHECK_EQ(GET(p->readers), 0);
		sched_yield();
		ADD(p->writers, -1u);
		CHECK_EQ(pthread_rwlock_unlock(&p->lock), 0);
		return;
	}
	CHECK_EQ(pthread_rwlock_rdlock(&p->lock), 0);
	ADD(p->readers, 1);
	ADD(pushed, 1);
	pthread_cleanup_push(unlock_rw, p);
	usleep(below(&a->rand, 50));
	pthread_cleanup_pop(1);
}

static void do_sleep(struct actor *a)
{
	struct timespec t = { .tv_nsec = below(&a->rand, 300 * US) }, left, at;
	int e;

	if (below(&a->rand, 2)) {
		CHECK(nanosleep(&t, &left) == 0 || errno == EINTR);
		return;
	}
	at = in_us(CLOCK_MONOTONIC, below(&a->rand, 300));
	e = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	CHECK(e == 0 || e == EINTR);
	clock_gettime(CLOCK_MONOTONIC, &t);
	CHECK(e || t.tv_sec > at.tv_sec || (t.tv_sec == at.tv_sec && t.tv_nsec >= at.tv_nsec));
}

/* Nothing but computing while the cancellation is asynchronous. */
static void do_compute(struct actor *a)
{
	unsigned n = below(&a->rand, 100000);
	int old;

	ADD(pushed, 1);
	pthread_cleanup_push(popped_one, a);
	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old), 0);
	for (volatile unsigned i = 0; i < n; i++)
		;
	CHECK_EQ(pthread_setcanceltype(old, &old), 0);
	CHECK_EQ(old, PTHREAD_CANCEL_ASYNCHRONOUS);
	pthread_cleanup_pop(1);
}

static void *child(void *arg)
{
	struct timespec t = { .tv_nsec = below(&(uint64_t){ (uintptr_t)arg | 1 }, 200 * US) };

	nanosleep(&t, NULL);
	return arg;
}

static void join_child(void *arg)
{
	void *result;

	CHECK_EQ(pthread_join(*(pthread_t *)arg, &result), 0);
	ADD(popped, 1);
}

static void do_child(struct actor *a)
{
	void *arg = (void *)(uintptr_t)test_rand(&a->rand), *result = NULL;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, child, arg), 0);
	ADD(pushed, 1);
	pthread_cleanup_push(join_child, &t);
	CHECK_EQ(pthread_join(t, &result), 0);
	ADD(popped, 1);
	pthread_cleanup_pop(0);
	CHECK(result == arg);
}

static void do_raise(struct actor *a)
{
	sigset_t all, old;
	unsigned before;

	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, &old), 0);
	before = GET(a->seen);
	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	CHECK(GET(a->seen) > before); /* before the call returned */
}

static void do_sigwait(struct actor *a)
{
	union sigval v = { .sival_int = (int)below(&a->rand, 1000000) };
	sigset_t set;
	siginfo_t info;
	int s;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK_EQ(pthread_sigqueue(pthread_self(), SIGRTMIN + 1, v), 0);
	while ((s = sigwaitinfo(&set, &info)) < 0)
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(s, SIGRTMIN + 1);
	CHECK_EQ(info.si_value.sival_int, v.sival_int);
}

/* May be cancelled, or ends, with the robust mutex held. */
static void do_robust(struct actor *a)
{
	struct play *p = a->play;
	int e = pthread_mutex_lock(&p->robust);

	if (e == EOWNERDEAD)
		CHECK_EQ(pthread_mutex_consistent(&p->robust), 0);
	else
		CHECK_EQ(e, 0);
	usleep(below(&a->rand, 50));
	CHECK_EQ(pthread_mutex_unlock(&p->robust), 0);
}

static void do_pipe(struct actor *a)
{
	char c = 1;
	ssize_t n;

	CHECK_EQ(write(a->play->pipe[1], &c, 1), 1);
	n = read(a->play->pipe[0], &c, 1);
	CHECK(n == 1 || (n == -1 && errno == EINTR));
}

static void do_poll(struct actor *a)
{
	CHECK(poll(NULL, 0, (int)below(&a->rand, 2)) == 0 || errno == EINTR);
}

static void do_masked(struct actor *a)
{
	int old, type;

	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
	CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type), 0);
	do_child(a);
	CHECK_EQ(pthread_setcanceltype(type, NULL), 0);
	CHECK_EQ(pthread_setcancelstate(old, NULL), 0);
}

static void do_leave(struct actor *a)
{
	if (below(&a->rand, 8))
		return;
	ADD(pushed, 2);
	pthread_cleanup_push(popped_one, a);
	pthread_cleanup_push(popped_one, a);
	if (below(&a->rand, 2) && pthread_mutex_trylock(&a->play->robust) == EOWNERDEAD)
		CHECK_EQ(pthread_mutex_consistent(&a->play->robust), 0);
	ADD(ended_exit, 1);
	pthread_exit(a);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
}

static void (*const deeds[])(struct actor *) = { do_cond, do_cond, do_turn, do_turn, do_token, do_rwlock, do_sleep,
	do_compute, do_child, do_raise, do_sigwait, do_robust, do_pipe, do_poll, do_masked, do_leave };
enum { DEEDS = sizeof deeds / sizeof deeds[0] };

#endif
