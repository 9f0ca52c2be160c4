/* With a single virtual processor threads use mutexes and condition variables without atomic
 * operations, until a kernel thread that Kochab did not create comes: from then on both exclude
 * each other. That happens once in a process, so the test is many processes; each time the foreign
 * thread comes a little later. */
#include <sys/wait.h>
#include <unistd.h>

#include "threads.h"

enum { PROCESSES = 25, WORKERS = 3, ROUNDS = 4000 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static kb_cond_t cond = KB_COND_INIT;
static long counter, turns;
static int came;

static void add(void)
{
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	counter++;
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
}

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS || !__atomic_load_n(&came, __ATOMIC_ACQUIRE); i++) {
		add();
		if (i % 16 == 0)
			kb_yield();
		if (i >= ROUNDS)
			__atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

/* Waits until the foreign thread has come; is woken at times. */
static void *wait_for_it(void *arg)
{
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	while (!__atomic_load_n(&came, __ATOMIC_RELAXED))
		CHECK_EQ(kb_cond_wait(&cond, &mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	return arg;
}

static void *come(void *arg)
{
	for (volatile unsigned delay = *(unsigned *)arg; delay; delay--)
		;
	for (int i = 0; i < ROUNDS; i++) {
		add();
		if (i % 64 == 0)
			CHECK_EQ(kb_cond_signal(&cond), 0);
	}
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	__atomic_store_n(&came, 1, __ATOMIC_RELEASE);
	CHECK_EQ(kb_cond_broadcast(&cond), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	return NULL;
}

static void child(unsigned delay)
{
	kb_thread_t worker[WORKERS], waiter;
	pthread_t foreign;

	CHECK_EQ(kb_thread_create(&waiter, NULL, wait_for_it, NULL), 0);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(kb_thread_create(&worker[i], NULL, work, NULL), 0);
	for (int i = 0; i < 100; i++) {
		add();
		kb_yield();
	}
	CHECK_EQ(pthread_create(&foreign, NULL, come, &delay), 0);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(kb_thread_join(worker[i], NULL), 0);
	CHECK_EQ(kb_thread_join(waiter, NULL), 0);
	CHECK_EQ(pthread_join(foreign, NULL), 0);
	CHECK_EQ(counter, (WORKERS + 1L) * ROUNDS + turns + 100);
	CHECK_EQ(kb_cond_destroy(&cond), 0);
	CHECK_EQ(kb_mutex_destroy(&mutex), 0);
}

int main(void)
{
	uint64_t rnd;

	test_seed();
	rnd = test_stream();
	for (int i = 0; i < PROCESSES; i++) {
		unsigned delay = (unsigned)(test_rand(&rnd) % 20000);
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			child(delay);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	return 0;
}
