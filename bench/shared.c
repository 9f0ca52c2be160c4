/* bench/shared.c - threads of two processes that wait for each other through process-shared objects
 * of POSIX, which keep libc's layout: condition variables with their mutex, semaphores, a barrier.
 * A thread asks, and any thread of the other process answers: time until a thread has woken
 * another, and for a meeting of all at the barrier. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static struct shared {
	pthread_mutex_t m;
	pthread_cond_t asks, answers;
	pthread_barrier_t all;
	sem_t ask, answer;
	int asked_now, answered; /* under m */
	int over; /* kinds of questions; a woken thread looks at it first */
} *s;

static const struct bench_case *asked;
enum { STACK = 65536 };

static void make(unsigned threads)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;
	pthread_barrierattr_t ba;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED || pthread_mutexattr_init(&ma) || pthread_mutexattr_setpshared(&ma, 1) ||
	    pthread_mutex_init(&s->m, &ma) || pthread_condattr_init(&ca) || pthread_condattr_setpshared(&ca, 1) ||
	    pthread_cond_init(&s->asks, &ca) || pthread_cond_init(&s->answers, &ca) || pthread_barrierattr_init(&ba) ||
	    pthread_barrierattr_setpshared(&ba, 1) || pthread_barrier_init(&s->all, &ba, threads) ||
	    sem_init(&s->ask, 1, 0) || sem_init(&s->answer, 1, 0))
		bench_fail("cannot make process-shared objects");
}

/* The mutex is held. */
static void await(int *word, pthread_cond_t *c)
{
	while (!*word)
		pthread_cond_wait(c, &s->m);
	*word = 0;
}

static void tell(int *word, pthread_cond_t *c)
{
	*word = 1;
	pthread_cond_signal(c);
}

static double conditions(void *unused, uint64_t n)
{
	double start = bench_now();

	(void)unused;
	for (uint64_t i = 0; i < n; i++) {
		pthread_mutex_lock(&s->m);
		tell(&s->asked_now, &s->asks);
		await(&s->answered, &s->answers);
		pthread_mutex_unlock(&s->m);
	}
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
		pthread_barrier_wait(&s->all);
	return bench_now() - start;
}

/* All threads that wait for a question of this kind go on to the next kind. */
static void is_over(int kind, uint64_t threads)
{
	pthread_mutex_lock(&s->m);
	s->over = kind;
	pthread_cond_broadcast(&s->asks);
	pthread_mutex_unlock(&s->m);
	for (uint64_t i = 1; kind == 2 && i < threads; i++)
		sem_post(&s->ask);
}

static void *measure(void *unused)
{
	double turn, post;

	pthread_barrier_wait(&s->all);
	turn = bench_scale(asked, conditions, NULL);
	is_over(1, asked->threads);
	post = bench_scale(asked, semaphores, NULL);
	is_over(2, asked->threads);
	bench_report("condition", "ns", turn / 2 * 1e9);
	bench_report("semaphore", "ns", post / 2 * 1e9);
	bench_report("barrier", "ns", bench_scale(asked, meetings, NULL) * 1e9);
	return unused;
}

static void answer_signals(void)
{
	pthread_mutex_lock(&s->m);
	for (;;) {
		while (!s->asked_now && !s->over)
			pthread_cond_wait(&s->asks, &s->m);
		if (s->over)
			break;
		s->asked_now = 0;
		tell(&s->answered, &s->answers);
	}
	pthread_mutex_unlock(&s->m);
}

static void answer_posts(void)
{
	for (;;) {
		sem_wait(&s->ask);
		if (s->over == 2)
			break;
		sem_post(&s->answer);
	}
}

/* Until the process is killed. */
static void *answer(void *unused)
{
	pthread_barrier_wait(&s->all);
	answer_signals();
	answer_posts();
	for (;;)
		pthread_barrier_wait(&s->all);
	return unused;
}

static void threads(unsigned n, void *(*fn)(void *))
{
	pthread_t *t = bench_alloc(n, sizeof *t);
	pthread_attr_t a;

	if (pthread_attr_init(&a) || pthread_attr_setstacksize(&a, STACK))
		bench_fail("no attributes");
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&t[i], &a, fn, NULL))
			bench_fail("no thread");
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

static void run(const struct bench_case *c)
{
	/* each process has as many virtual processors: both are to have no more processors than kernel
	 * threads have */
	int e = bench_confine(c->vps);
	pid_t pid;

	if (e)
		bench_skip("affinity: %s", strerror(e));
	asked = c;
	make(c->threads);
	pid = fork();
	if (pid < 0)
		bench_fail("no process");
	if (!pid) {
		threads(c->threads - 1, answer);
		_exit(0);
	}
	threads(1, measure);
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
	.threads = "2,16,1000",
	.vps = "1,cores",
	.reference = "nptl",
	.both_bodies = 1,
};
