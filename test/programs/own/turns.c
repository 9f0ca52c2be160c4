/* Starts threads in turns, as stressors of threads do: in two children, 32 threads a turn, each of which asks the kernel
 * about itself, waits for the turn's end at a condition variable with a limit, and takes the signal that was queued for it.
 * All are joined. Prints the counts, and as the last line on stderr a thread's time on a processor, in ns. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 2, TURNS = 40, THREADS = 32 };

static struct counts {
	int started, asked, signals, values, joined, faults;
} *counts; /* of all children: shared memory */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static pthread_spinlock_t lock;
static bool go_on;
static int running;

static void expect(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	__atomic_add_fetch(&counts->faults, 1, __ATOMIC_RELAXED);
}

static void ask(void)
{
	const pid_t tgid = getpid(), tid = gettid();
	struct robust_list_head *head;
	size_t bytes;
	int fd;

	expect(syscall(SYS_get_robust_list, 0, &head, &bytes) == 0, "get_robust_list");
	expect(syscall(SYS_set_robust_list, head, bytes) == 0, "set_robust_list");
	expect(syscall(SYS_set_robust_list, head, 0) < 0 && errno == EINVAL, "set_robust_list of no length");
	expect(syscall(SYS_tgkill, tgid, tid, 0) == 0, "tgkill");
	expect(syscall(SYS_tgkill, tgid, tid, -1) < 0 && errno == EINVAL, "tgkill of no signal");
	expect(syscall(SYS_tkill, tid, 0) == 0, "tkill");
	expect(syscall(SYS_tkill, -1, 0) < 0 && errno == EINVAL, "tkill of no thread");
	fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
	expect(fd >= 0 && close(fd) == 0, "/proc/self/ns/uts");
	__atomic_add_fetch(&counts->asked, 1, __ATOMIC_RELAXED);
}

static void wait_for_the_end(void)
{
	pthread_mutex_lock(&mutex);
	while (go_on) {
		struct timespec t;
		int e;

		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += 10000000;
		if (t.tv_nsec >= 1000000000) {
			t.tv_nsec -= 1000000000;
			t.tv_sec++;
		}
		e = pthread_cond_timedwait(&cond, &mutex, &t);
		expect(e == 0 || e == ETIMEDOUT, "pthread_cond_timedwait");
		sched_yield();
	}
	pthread_mutex_unlock(&mutex);
}

static void *thread(void *unused)
{
	const struct timespec limit = { 30, 0 };
	siginfo_t info;
	sigset_t set;

	ask();
	pthread_spin_lock(&lock);
	running++;
	pthread_spin_unlock(&lock);
	wait_for_the_end();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigtimedwait(&set, &info, &limit) == SIGUSR1) {
		__atomic_add_fetch(&counts->signals, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&counts->values, info.si_value.sival_int, __ATOMIC_RELAXED);
	}
	return unused;
}

static void turn(void)
{
	pthread_t t[THREADS];
	int started = 0;
	bool all;

	go_on = true;
	running = 0;
	while (started < THREADS && pthread_create(&t[started], NULL, thread, NULL) == 0)
		started++;
	do {
		sched_yield();
		pthread_spin_lock(&lock);
		all = running == started;
		pthread_spin_unlock(&lock);
	} while (!all);
	for (int i = 0; i < started; i++)
		expect(pthread_sigqueue(t[i], SIGUSR1, (union sigval){ .sival_int = i }) == 0, "pthread_sigqueue");
	pthread_mutex_lock(&mutex);
	go_on = false;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	__atomic_add_fetch(&counts->started, started, __ATOMIC_RELAXED);
	for (int i = 0; i < started; i++)
		if (pthread_join(t[i], NULL) == 0)
			__atomic_add_fetch(&counts->joined, 1, __ATOMIC_RELAXED);
}

static void child(void)
{
	pthread_condattr_t attr;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&cond, &attr);
	pthread_spin_init(&lock, PTHREAD_PROCESS_SHARED);
	for (int i = 0; i < TURNS; i++)
		turn();
	pthread_cond_destroy(&cond);
	pthread_mutex_destroy(&mutex);
	exit(0);
}

int main(void)
{
	int status, ended = 0;
	struct rusage u;
	double took;

	counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		return perror("mmap"), 1;
	for (int i = 0; i < CHILDREN; i++)
		if (fork() == 0)
			child();
	while (wait(&status) > 0)
		ended += status == 0;
	printf("ended %d started %d asked %d joined %d signals %d values %d faults %d\n", ended, counts->started, counts->asked,
	       counts->joined, counts->signals, counts->values, counts->faults);
	getrusage(RUSAGE_CHILDREN, &u);
	took = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
	fprintf(stderr, "%.0f\n", took / (counts->started + 1));
	return 0;
}
