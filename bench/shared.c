/* bench/shared.c - threads of two processes that wait for each other through process-shared objects of POSIX, which keep
 * libc's layout: a condition variable with its mutex, semaphores, a barrier. Time for one of two to wake the other,
 * and for a meeting at the barrier. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static struct shared {
	pthread_mutex_t m;
	pthread_cond_t turned;
	pthread_barrier_t both;
	sem_t ask, answer;
	int turn; /* whose: 0, 1 */
	int over; /* questions; the other side looks between a message and its answer */
} *s;

static const struct bench_case *asked;

static void make(void)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	pthread_barrierattr_t ba;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED || pthread_mutexattr_init(&ma) || pthread_mutexattr_setpshared(&ma, 1) ||
	    pthread_mutex_init(&s->m, &ma) || pthread_condattr_init(&ca) || pthread_condattr_setpshared(&ca, 1) ||
	    pthread_cond_init(&s->turned, &ca) || pthread_barrierattr_init(&ba) || pthread_barrierattr_setpshared(&ba, 1) ||
	    pthread_barrier_init(&s->both, &ba, 2) || sem_init(&s->ask, 1, 0) || sem_init(&s->answer, 1, 0))
		bench_fail("cannot make process-shared objects");
}

/* Until it is this side's turn; then it is the other's. The mutex is held. How many questions are over. */
static int take_turn(int side)
{
	int over;

	while (s->turn != side)
		pthread_cond_wait(&s->turned, &s->m);
	over = s->over;
	s->turn = !side;
	pthread_cond_signal(&s->turned);
	return over;
}

static double conditions(void *unused, uint64_t n)
{
	double start = bench_now();

	(void)unused;
	pthread_mutex_lock(&s->m);
	for (uint64_t i = 0; i < n; i++)
		take_turn(0);
	pthread_mutex_unlock(&s->m);
	return bench_now() - start;
}

static double semaphores(void *unused, uint64_t n)
{
	double start = bench_now();

	(void)unused;
	for (uint64_t i = 0; i < n; i++) {
		sem_post(&s->ask);
		sem_wait(&s->answer);
	}
	return bench_now() - start;
}

static double meetings(void *unused, uint64_t n)
{
	double start = bench_now();

	(void)unused;
	for (uint64_t i = 0; i < n; i++)
		pthread_barrier_wait(&s->both);
	return bench_now() - start;
}

static void *measure(void *unused)
{
	double turn = bench_scale(asked, conditions, NULL), post;

	s->over = 1;
	conditions(NULL, 1);
	post = bench_scale(asked, semaphores, NULL);
	s->over = 2;
	semaphores(NULL, 1);
	bench_report("condition", "ns", turn / 2 * 1e9);
	bench_report("semaphore", "ns", post / 2 * 1e9);
	bench_report("barrier", "ns", bench_scale(asked, meetings, NULL) * 1e9);
	return unused;
}

static int answer_post(void)
{
	int over;

	sem_wait(&s->ask);
	over = s->over;
	sem_post(&s->answer);
	return over;
}

/* Until the process is killed. */
static void *answer(void *unused)
{
	pthread_mutex_lock(&s->m);
	while (take_turn(1) < 1)
		;
	pthread_mutex_unlock(&s->m);
	while (answer_post() < 2)
		;
	for (;;)
		pthread_barrier_wait(&s->both);
	return unused;
}

static void one_thread(void *(*fn)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, NULL) || pthread_join(t, NULL))
		bench_fail("no thread");
}

static void run(const struct bench_case *c)
{
	pid_t pid;

	asked = c;
	make();
	pid = fork();
	if (pid < 0)
		bench_fail("no process");
	if (!pid) {
		one_thread(answer);
		_exit(0);
	}
	one_thread(measure);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static const struct bench_method methods[] = {
	{ "nptl", run, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_shared = {
	.name = "shared",
	.question = "threads of two processes wait for each other through process-shared objects of POSIX",
	.methods = methods,
	.threads = "2",
	.vps = "1,cores",
	.reference = "nptl",
	.both_bodies = 1,
};
