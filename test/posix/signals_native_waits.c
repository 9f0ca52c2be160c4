/* core/wait, posix/signal_native: a thread of an unmodified program that waits in the native
 * interface has its signals' handlers run at once, and goes on waiting: they do not come when the
 * wait is over.
 * matrix: run-only
 * sleeps: yes */
#include "test.h"

#include <dlfcn.h>
#include <kochab/kochab.h>
#include <kochab/sync.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIGNALS = 20, WAIT_MS = 20000 };

/* The program is not linked with the library: it finds these as a plugin would. */
#define FUNCTIONS(X) \
	X(kb_event_init) X(kb_event_wait) X(kb_event_timedwait) X(kb_event_notify) X(kb_sem_init) X(kb_sem_wait) \
	X(kb_sem_timedwait) X(kb_sem_post) X(kb_mutex_init) X(kb_mutex_lock) X(kb_mutex_timedlock) X(kb_mutex_unlock) \
	X(kb_cond_init) X(kb_cond_wait) X(kb_cond_signal) X(kb_rwlock_init) X(kb_rwlock_rdlock) X(kb_rwlock_wrlock) \
	X(kb_rwlock_unlock) X(kb_barrier_init) X(kb_barrier_wait) X(kb_chan_create) X(kb_chan_recv) X(kb_chan_send) \
	X(kb_select) X(kb_watch32) X(kb_thread_create) X(kb_thread_join) X(kb_thread_self) X(kb_sleep_until) X(kb_now)
static struct {
#define DECLARE(name) __typeof__(name) *name;
	FUNCTIONS(DECLARE)
} native;

static atomic_int handled, waiting, over;
static uint64_t end; /* far away, or, where nothing else ends it, when the wait is over */
static kb_event_t event;
static kb_sem_t sem;
static kb_mutex_t mutex;
static kb_cond_t cond;
static kb_rwlock_t rwlock;
static kb_barrier_t barrier;
static kb_chan_t *channel;
static kb_thread_t waiter;
static volatile uint32_t word;
static int opened;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* ---- a wait and its ends --------------------------------------------------------------------- */

static void event_init(void) { waiter = NULL; }
static void event_meet(void) { CHECK_EQ(native.kb_event_init(&event, native.kb_thread_self()), 0); }
static void event_wait(void) { CHECK_EQ(native.kb_event_wait(&event, NULL), 0); }
static void event_timed(void) { CHECK_EQ(native.kb_event_timedwait(&event, NULL, end), 0); }
static void event_end(void) { native.kb_event_notify(&event, 1); }

static void sem_start(void) { CHECK_EQ(native.kb_sem_init(&sem, 0), 0); }
static void sem_plain(void) { CHECK_EQ(native.kb_sem_wait(&sem), 0); }
static void sem_timed(void) { CHECK_EQ(native.kb_sem_timedwait(&sem, end), 0); }
static void sem_end(void) { CHECK_EQ(native.kb_sem_post(&sem), 0); }

static void mutex_start(void)
{
	CHECK_EQ(native.kb_mutex_init(&mutex, KB_MUTEX_NORMAL), 0);
	CHECK_EQ(native.kb_mutex_lock(&mutex), 0);
}

static void mutex_plain(void) { CHECK_EQ(native.kb_mutex_lock(&mutex), 0); }
static void mutex_timed(void) { CHECK_EQ(native.kb_mutex_timedlock(&mutex, end), 0); }
static void mutex_end(void) { CHECK_EQ(native.kb_mutex_unlock(&mutex), 0); }

static void cond_start(void)
{
	opened = 0;
	CHECK_EQ(native.kb_mutex_init(&mutex, KB_MUTEX_NORMAL), 0);
	CHECK_EQ(native.kb_cond_init(&cond), 0);
}

static void cond_wait(void)
{
	CHECK_EQ(native.kb_mutex_lock(&mutex), 0);
	while (!opened)
		CHECK_EQ(native.kb_cond_wait(&cond, &mutex), 0);
	CHECK_EQ(native.kb_mutex_unlock(&mutex), 0);
}

static void cond_end(void)
{
	CHECK_EQ(native.kb_mutex_lock(&mutex), 0);
	opened = 1;
	CHECK_EQ(native.kb_cond_signal(&cond), 0);
	CHECK_EQ(native.kb_mutex_unlock(&mutex), 0);
}

static void rwlock_start(void)
{
	CHECK_EQ(native.kb_rwlock_init(&rwlock, KB_RWLOCK_PREFER_WRITER), 0);
	CHECK_EQ(native.kb_rwlock_wrlock(&rwlock), 0);
}

static void rwlock_wait(void) { CHECK_EQ(native.kb_rwlock_rdlock(&rwlock), 0); }
static void rwlock_end(void) { CHECK_EQ(native.kb_rwlock_unlock(&rwlock), 0); }

static void barrier_start(void) { CHECK_EQ(native.kb_barrier_init(&barrier, 2), 0); }
static void barrier_wait(void) { CHECK(native.kb_barrier_wait(&barrier) <= 0); }
static void barrier_end(void) { barrier_wait(); }

static void channel_start(void) { CHECK_EQ(native.kb_chan_create(&channel, sizeof(int), 0), 0); }

static void channel_wait(void)
{
	int got = 0;

	CHECK_EQ(native.kb_chan_recv(channel, &got), 0);
	CHECK_EQ(got, 7);
}

static void channel_select(void)
{
	int got = 0;
	size_t chosen = 1;
	kb_select_case_t c = { .op = KB_SELECT_RECV, .chan = channel, .element = &got };

	CHECK_EQ(native.kb_select(&c, 1, end, &chosen), 0);
	CHECK_EQ(got, 7);
}

static void channel_end(void)
{
	int seven = 7;

	CHECK_EQ(native.kb_chan_send(channel, &seven), 0);
}

static void watch_start(void) { word = 0; }
static void watch_wait(void) { CHECK_EQ(native.kb_watch32(&word, 0, end), 0); }
static void watch_end(void) { __atomic_store_n(&word, 1, __ATOMIC_RELEASE); }

static void *sleeps(void *arg)
{
	CHECK_EQ(native.kb_sem_wait(&sem), 0);
	return arg;
}

static void join_wait(void)
{
	kb_thread_t t;
	void *result = NULL;

	CHECK_EQ(native.kb_thread_create(&t, NULL, sleeps, &sem), 0);
	CHECK_EQ(native.kb_thread_join(t, &result), 0);
	CHECK(result == &sem);
}

static void sleep_wait(void) { native.kb_sleep_until(end); }
static void nothing(void) {}

static const struct wait {
	const char *name;
	void (*start)(void), (*meet)(void), (*wait)(void), (*end)(void);
} waits[] = {
	{ "event", event_init, event_meet, event_wait, event_end },
	{ "event until", event_init, event_meet, event_timed, event_end },
	{ "semaphore", sem_start, nothing, sem_plain, sem_end },
	{ "semaphore until", sem_start, nothing, sem_timed, sem_end },
	{ "mutex", mutex_start, nothing, mutex_plain, mutex_end },
	{ "mutex until", mutex_start, nothing, mutex_timed, mutex_end },
	{ "condition", cond_start, nothing, cond_wait, cond_end },
	{ "readers-writer lock", rwlock_start, nothing, rwlock_wait, rwlock_end },
	{ "barrier", barrier_start, nothing, barrier_wait, barrier_end },
	{ "channel", channel_start, nothing, channel_wait, channel_end },
	{ "select", channel_start, nothing, channel_select, channel_end },
	{ "watch", watch_start, nothing, watch_wait, watch_end },
	{ "join", sem_start, nothing, join_wait, sem_end },
	{ "sleep", nothing, nothing, sleep_wait, nothing },
};

/* ---- signals meanwhile ----------------------------------------------------------------------- */

static const struct wait *now;

static void *waits_once(void *arg)
{
	now->meet();
	waiting = 1;
	now->wait();
	over = 1;
	return arg;
}

static void await_handler(const char *name, int n)
{
	for (int ms = 0; handled < n && ms < WAIT_MS; ms++)
		nap();
	if (handled < n) {
		fprintf(stderr, "%s: signal %d has no handler run while the thread waits\n", name, n);
		_exit(1);
	}
}

static void try(const struct wait *w)
{
	pthread_t t;

	now = w;
	waiting = over = handled = 0;
	end = native.kb_now() + (w->wait == sleep_wait ? UINT64_C(2000000000) : UINT64_C(3600000000000));
	w->start();
	CHECK_EQ(pthread_create(&t, NULL, waits_once, NULL), 0);
	while (!waiting)
		nap();
	for (int i = 1; i <= (w->wait == sleep_wait ? 3 : SIGNALS); i++) {
		nap();
		CHECK_EQ(pthread_kill(t, i % 2 ? SIGUSR1 : SIGRTMIN), 0);
		await_handler(w->name, i);
		CHECK(w->wait == sleep_wait || !over);
	}
	w->end();
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(over);
	CHECK(w->wait != sleep_wait || native.kb_now() >= end);
}

static void *comes_and_goes(void *arg) { return arg; }

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t t;

#define FIND(name) \
	native.name = (__typeof__(name) *)(uintptr_t)dlsym(RTLD_DEFAULT, #name); \
	if (!native.name) \
		SKIP("not under kochab run");
	FUNCTIONS(FIND)
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGRTMIN, &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, comes_and_goes, NULL), 0); /* so that main is a lightweight thread */
	CHECK_EQ(pthread_join(t, NULL), 0);
	for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++)
		try(&waits[i]);
	return 0;
}
