/* posix/signal*: the effect of a signal on a thread that waits in pthread_cond_wait. Its handler
 * runs while the caller holds the mutex, and waits for the mutex; the wait goes on and is not
 * ended. A cancellation or pthread_exit inside the handler unwinds the wait, with the mutex held. A
 * signal without a handler ends the process at once, too. Signals to the process that arrive while
 * the first threads start are handled on threads of the program that have them unblocked. pause,
 * called by its number, is ended by handlers and by asynchronous cancellation. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 20, CHILDREN = 5 };

__attribute__((weak)) unsigned kb_vp_count(void); /* the runtime brings it */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t handled;
static bool go, returned;
static unsigned cleaned;

static void handler(int sig)
{
	int e = errno;

	CHECK_EQ(sem_post(&handled), 0);
	if (sig == SIGUSR2)
		pthread_exit(NULL);
	errno = e;
}

static void unlock(void *arg)
{
	(void)arg;
	cleaned++;
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
}

static void *waits(void *arg)
{
	struct timespec late = test_in_ms(CLOCK_REALTIME, 100000);

	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	pthread_cleanup_push(unlock, NULL);
	CHECK_EQ(sem_post(arg), 0);
	while (!go) {
		CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &late), 0);
		returned = !go;
	}
	pthread_cleanup_pop(1);
	return arg;
}

/* A thread that waits; the mutex is the caller's. */
static pthread_t waiter(void)
{
	sem_t there;
	pthread_t t;

	go = returned = false;
	CHECK_EQ(sem_init(&there, 0, 0), 0);
	CHECK_EQ(pthread_create(&t, NULL, waits, &there), 0);
	while (sem_wait(&there))
		CHECK_EQ(errno, EINTR);
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	return t;
}

static void the_handler_needs_no_mutex(void)
{
	pthread_t t = waiter();
	void *result;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
		CHECK_EQ(sem_wait(&handled), 0);
	}
	CHECK_EQ(pthread_mutex_destroy(&mutex), EBUSY);
	go = true;
	CHECK_EQ(pthread_cond_signal(&cond), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result != PTHREAD_CANCELED);
	CHECK(!returned);
}

static void an_exit_inside_unwinds_the_wait(void)
{
	pthread_t t = waiter();
	void *result;

	cleaned = 0;
	CHECK_EQ(pthread_kill(t, SIGUSR2), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == NULL);
	CHECK_EQ(cleaned, 1);
	CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
	/* nobody is left in the queue; a later destroy of it sometimes hangs on libc */
	CHECK_EQ(pthread_cond_signal(&cond), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(sem_wait(&handled), 0);
}

/* The broadcast has put all waiting threads into the mutex's queue, where a thread is unwound: the
 * thread has the mutex for the unwinding, and passes it on. On libc it would unlock a mutex that it
 * does not hold. */
static void an_exit_after_the_broadcast(void)
{
	enum { WAITERS = 4 };
	pthread_t t[WAITERS];

	for (int leaves = 0; kb_vp_count && leaves < WAITERS; leaves++) {
		for (int i = 0; i < WAITERS; i++) {
			t[i] = waiter();
			if (i < WAITERS - 1)
				CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
		}
		cleaned = 0;
		go = true;
		CHECK_EQ(pthread_cond_broadcast(&cond), 0);
		CHECK_EQ(pthread_kill(t[leaves], SIGUSR2), 0);
		CHECK_EQ(sem_wait(&handled), 0);
		CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
		for (int i = 0; i < WAITERS; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK_EQ(cleaned, WAITERS);
	}
}

static void no_handler_ends_the_process(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		CHECK_EQ(pthread_kill(waiter(), SIGTERM), 0);
		sleep(100);
		_exit(1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* ---- a signal while the first threads start -------------------------------------------------- */
static __thread bool lets_through;
static pthread_barrier_t ready;

static void on_process(int sig)
{
	(void)sig;
	CHECK(lets_through);
}

static void *takes(void *arg)
{
	lets_through = true;
	CHECK(pthread_barrier_wait(&ready) <= 0);
	CHECK(pthread_barrier_wait(&ready) <= 0);
	return arg;
}

static void first_threads(void)
{
	struct sigaction s = { .sa_handler = on_process };
	pthread_t t[2];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(sigaction(SIGUSR1, &s, NULL), 0);
	CHECK_EQ(pthread_barrier_init(&ready, NULL, 3), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, takes, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK(pthread_barrier_wait(&ready) <= 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	usleep(10000);
	CHECK(pthread_barrier_wait(&ready) <= 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void signals_while_starting(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			first_threads();
			_exit(0);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
	}
}

/* ---- pause by its number ---- */

#ifdef SYS_pause
static void *pauses(void *type)
{
	int old;

	CHECK_EQ(pthread_setcanceltype((int)(intptr_t)type, &old), 0);
	CHECK_EQ(sem_post(&handled), 0);
	CHECK_EQ(syscall(SYS_pause), -1);
	CHECK_EQ(errno, EINTR);
	__atomic_store_n(&returned, true, __ATOMIC_RELEASE);
	pthread_testcancel();
	return NULL;
}

static void pause_ends(int type, bool cancel)
{
	bool until_handler = type == PTHREAD_CANCEL_DEFERRED;
	void *result;
	pthread_t t;

	while (sem_trywait(&handled) == 0)
		;
	returned = false;
	CHECK_EQ(pthread_create(&t, NULL, pauses, (void *)(intptr_t)type), 0);
	CHECK_EQ(sem_wait(&handled), 0);
	usleep(30000); /* some ticks */
	CHECK(!__atomic_load_n(&returned, __ATOMIC_ACQUIRE));
	if (cancel)
		CHECK_EQ(pthread_cancel(t), 0);
	usleep(5000);
	/* some libcs' own way to cancel interrupts it */
	CHECK(!kb_vp_count || !__atomic_load_n(&returned, __ATOMIC_ACQUIRE));
	while (until_handler && !__atomic_load_n(&returned, __ATOMIC_ACQUIRE)) {
		pthread_kill(t, SIGUSR1);
		usleep(1000);
	}
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == (cancel ? PTHREAD_CANCELED : NULL));
}

static void pause_by_number(void)
{
	pause_ends(PTHREAD_CANCEL_DEFERRED, false);
	pause_ends(PTHREAD_CANCEL_DEFERRED, true);
	pause_ends(PTHREAD_CANCEL_ASYNCHRONOUS, true);
}
#else
static void pause_by_number(void) {}
#endif

int main(void)
{
	struct sigaction s = { .sa_handler = handler };

	/* before the first thread: children of a process with threads have none of ours */
	no_handler_ends_the_process();
	signals_while_starting();
	CHECK_EQ(sem_init(&handled, 0, 0), 0);
	CHECK_EQ(sigaction(SIGUSR1, &s, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &s, NULL), 0);
	the_handler_needs_no_mutex();
	an_exit_inside_unwinds_the_wait();
	an_exit_after_the_broadcast();
	pause_by_number();
	return 0;
}
