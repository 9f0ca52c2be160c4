/* bench/sim/probe/probe.c - measures on this machine the times that the simulator charges, and
 * prints rows of a cost table. Two kernel threads are bound to the first two processors that
 * this process may use (with one processor, rows that need two are left out). The least of
 * several rounds counts, because a disturbance only adds time. Called by bench/sim/calibrate. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, N = 20000, LINES = 512, WAKES = 200, LONG_WAKES = 20, LONG_US = 6000 };

static int cpu[2];
static struct {
	_Alignas(128) volatile uint32_t ping;
	_Alignas(128) volatile uint32_t pong;
	_Alignas(128) uint32_t word;
	_Alignas(128) volatile uint32_t stop;
	_Alignas(128) volatile uint64_t signalled;
} s;
static struct {
	_Alignas(128) uint64_t v;
} line[LINES];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bind_to(int c)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(c, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void relax(void)
{
#if defined(__x86_64__)
	__asm__ volatile("pause");
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static void row(const char *name, double (*once)(void))
{
	double least = once();

	for (int i = 1; i < ROUNDS; i++) {
		double v = once();
		least = v < least ? v : least;
	}
	printf("%s\t%.2f\n", name, least);
	fflush(stdout);
}

/* ---- one processor --------------------------------------------------------------------------- */

#define LOOP(name, n, what)                     \
	static double name(void)                \
	{                                       \
		double t = now();               \
		for (int i = 0; i < (n); i++) { \
			what;                   \
		}                               \
		return (now() - t) / (n);       \
	}
LOOP(rmw, 100 * N, __atomic_fetch_add(&s.word, 1, __ATOMIC_SEQ_CST))
LOOP(fence, 100 * N, __atomic_store_n(&s.word, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST))
LOOP(call, N, syscall(SYS_futex, &s.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0))
LOOP(reads_clock, N, (void)now())
LOOP(relaxes, N, relax())

/* Returns the time of an access to words that the processor has, each in a line of its own; half
 * of them are read and looked at, half are written. */
static double hit(void)
{
	enum { WORDS = 16 };
	uint64_t found = 0;
	double t = now();

	for (int i = 0; i < 10 * N; i++)
		for (int k = 0; k < WORDS; k += 2) {
			found += __atomic_load_n(&line[k].v, __ATOMIC_ACQUIRE) == (uint64_t)-1;
			__atomic_store_n(&line[k + 1].v, (uint64_t)i, __ATOMIC_RELEASE);
		}
	t = now() - t;
	s.word += (uint32_t)found;
	return t / (10 * N) / WORDS;
}

static int sem = -1;
static struct sembuf up = { 0, 1, SEM_UNDO }, down = { 0, -1, SEM_UNDO };
LOOP(semops, N / 4, semop(sem, &up, 1); semop(sem, &down, 1))

static double half_semop(void)
{
	return semops() / 2;
}

/* ---- two processors -------------------------------------------------------------------------- */

static void *answer(void *arg)
{
	bind_to(cpu[1]);
	for (uint32_t i = 1; i <= N; i++) {
		while (s.ping != i)
			;
		s.pong = i;
	}
	return arg;
}

/* Returns half the time of a message there and back, a line each. */
static double one_way(void)
{
	pthread_t t;
	double start;

	s.ping = s.pong = 0;
	pthread_create(&t, NULL, answer, NULL);
	s.ping = 1;
	while (s.pong != 1)
		;
	start = now();
	for (uint32_t i = 2; i <= N; i++) {
		s.ping = i;
		while (s.pong != i)
			;
	}
	start = (now() - start) / (2 * (N - 1));
	pthread_join(t, NULL);
	return start;
}

static void *dirty(void *arg)
{
	bind_to(cpu[1]);
	for (uint32_t i = 1; i <= WAKES; i++) {
		while (s.ping != i)
			;
		for (int k = 0; k < LINES; k++)
			line[k].v++;
		__atomic_store_n(&s.pong, i, __ATOMIC_RELEASE);
	}
	return arg;
}

/* Returns the time of an access to a line that the second processor has just written. */
static double after_dirty(void (*all)(uint64_t round))
{
	pthread_t t;
	double took = 0;

	s.ping = s.pong = 0;
	pthread_create(&t, NULL, dirty, NULL);
	for (uint32_t i = 1; i <= WAKES; i++) {
		s.ping = i;
		while (__atomic_load_n(&s.pong, __ATOMIC_ACQUIRE) != i)
			;
		double start = now();
		all(i);
		took += now() - start;
	}
	pthread_join(t, NULL);
	return took / WAKES / LINES;
}

/* Reads the lines independently of each other. */
static void read_all(uint64_t round)
{
	uint64_t sum = round;

	for (int k = 0; k < LINES; k++)
		sum += line[(k * 37) % LINES].v;
	s.word += (uint32_t)sum;
}

/* Writes the lines and waits until the last store is visible. */
static void write_all(uint64_t round)
{
	for (int k = 0; k < LINES; k++)
		__atomic_store_n(&line[(k * 37) % LINES].v, round, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static double burst(void)
{
	return after_dirty(read_all);
}

static double drain(void)
{
	return after_dirty(write_all);
}

static volatile double woken_at; /* before s.pong */
static uint32_t wanted;
/* lines_took: an access to a line that the sleeper had before */
static double call_took, wake_took, lines_took;

/* Goes from line to line; each line names the next. */
static uint64_t chase(void)
{
	uint64_t at = 0;

	for (int i = 0; i < LINES; i++)
		at = line[at].v;
	return at;
}

static void *sleeper(void *arg)
{
	double start;

	bind_to(cpu[1]);
	for (uint64_t i = 0; i < LINES; i++)
		line[i * 37 % LINES].v = (i + 1) * 37 % LINES;
	lines_took = 0;
	for (uint32_t i = 1; i <= wanted; i++) {
		s.word += (uint32_t)(chase() + chase());
		while (s.ping != i)
			syscall(SYS_futex, &s.ping, FUTEX_WAIT_PRIVATE, i - 1, NULL, NULL, 0);
		woken_at = start = now();
		s.word += (uint32_t)chase();
		lines_took += (now() - start) / LINES / wanted;
		s.pong = i;
	}
	return arg;
}

/* Wakes n times a kernel thread that has slept for `us` on an idle processor. */
static void wakes(uint32_t n, unsigned us)
{
	pthread_t t;
	double call_sum = 0, wake_sum = 0;

	s.ping = s.pong = 0;
	wanted = n;
	pthread_create(&t, NULL, sleeper, NULL);
	for (uint32_t i = 1; i <= n; i++) {
		usleep(us);
		double start = now();
		s.ping = i;
		syscall(SYS_futex, &s.ping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		call_sum += now() - start;
		while (s.pong != i)
			;
		wake_sum += woken_at - start;
	}
	pthread_join(t, NULL);
	call_took = call_sum / n;
	wake_took = wake_sum / n;
}

static double wake_call(void)
{
	wakes(WAKES, 300);
	return call_took;
}

static double wake(void)
{
	wakes(WAKES, 300);
	return wake_took;
}

static double wake_long(void)
{
	wakes(LONG_WAKES, LONG_US);
	return wake_took;
}

static double chilled(void)
{
	wakes(LONG_WAKES, LONG_US);
	return lines_took;
}

static void handler(int sig)
{
	(void)sig;
	s.signalled++;
}

static void *computes(void *arg)
{
	bind_to(cpu[1]);
	s.pong = 1;
	while (!s.stop)
		;
	return arg;
}

static double tick(void)
{
	pthread_t t;
	double sum = 0;

	s.stop = s.pong = 0;
	s.signalled = 0;
	pthread_create(&t, NULL, computes, NULL);
	while (!s.pong)
		;
	for (uint64_t i = 1; i <= WAKES; i++) {
		double start = now();
		pthread_kill(t, SIGURG);
		while (s.signalled != i)
			;
		sum += now() - start;
	}
	s.stop = 1;
	pthread_join(t, NULL);
	return sum / WAKES;
}

int main(void)
{
	cpu_set_t set;
	int n = 0;

	sched_getaffinity(0, sizeof set, &set);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	bind_to(cpu[0]);
	signal(SIGURG, handler);
	row("hit", hit);
	row("rmw", rmw);
	row("fence", fence);
	row("syscall", call);
	row("clock", reads_clock);
	row("relax", relaxes);
	sem = semget(IPC_PRIVATE, 1, 0600);
	if (sem >= 0) {
		row("semop", half_semop);
		semctl(sem, 0, IPC_RMID);
	}
	if (n < 2)
		return 0;
	row("line", one_way);
	row("burst", burst);
	row("drain", drain);
	row("wake_call", wake_call);
	row("wake", wake);
	row("wake_long", wake_long);
	row("chilled", chilled);
	row("tick", tick);
	return 0;
}
