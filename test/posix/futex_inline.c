/* Threads that wait for each other in futex system calls of their own instruction, as libgomp's and
 * Go's do: a module that makes such threads gets kernel threads, also on a single virtual
 * processor, and they work with the rest of the drop-in. */
#include "test.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>

enum { THREADS = 8, TURNS = 200 };

#if defined(__x86_64__)
#define FUTEX(word, op, value) \
	({ \
		register long r10_ __asm__("r10") = 0; \
		long r_; \
		__asm__ volatile("movl $202, %%eax; syscall" \
				 : "=&a"(r_) \
				 : "D"(word), "S"(op), "d"(value), "r"(r10_) \
				 : "rcx", "r11", "memory"); \
		r_; \
	})
#elif defined(__aarch64__) && defined(__linux__)
#define FUTEX(word, op, value) \
	({ \
		register long x0_ __asm__("x0") = (long)(word); \
		register long x1_ __asm__("x1") = (op); \
		register long x2_ __asm__("x2") = (value); \
		register long x3_ __asm__("x3") = 0; \
		__asm__ volatile("mov x8, #98; svc #0" : "+r"(x0_) : "r"(x1_), "r"(x2_), "r"(x3_) : "x8", \
			"memory"); \
		x0_; \
	})
#endif

#ifdef FUTEX
static int turn, passed;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t ended;

static void *take_turns(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < TURNS; i++) {
		int now;

		while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) % THREADS != me)
			FUTEX(&turn, FUTEX_WAIT_PRIVATE, now);
		__atomic_store_n(&turn, now + 1, __ATOMIC_RELEASE);
		FUTEX(&turn, FUTEX_WAKE_PRIVATE, THREADS);
	}
	pthread_mutex_lock(&m);
	passed++;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	sem_post(&ended);
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];
	void *result;

	CHECK_EQ(sem_init(&ended, 0, 0), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, take_turns, (void *)i), 0);
	pthread_mutex_lock(&m);
	while (passed < THREADS)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	for (long i = 0; i < THREADS; i++) {
		CHECK_EQ(sem_wait(&ended), 0);
		CHECK_EQ(pthread_join(t[i], &result), 0);
		CHECK(result == (void *)i);
	}
	CHECK_EQ(turn, THREADS * TURNS);
	return 0;
}
#else
int main(void)
{
	return 77;
}
#endif
