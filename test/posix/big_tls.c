/* libc/tcb: static TLS far larger than usual, as in programs that contain numeric libraries. Each
 * thread has its own copy, as the program initialised it, on default stacks, small stacks and the
 * program's own stacks; a stack that is too small for the TLS gives EINVAL. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { BYTES = 300000, THREADS = 50, ROUNDS = 3 };

static __thread struct {
	unsigned char begins[16], middle[BYTES], ends[16];
} own = { "begins", { 7 }, "ends" };
static __thread unsigned char aligned[4096] __attribute__((aligned(4096))) = { 9 };

static void *uses(void *arg)
{
	unsigned char mine = (unsigned char)(uintptr_t)arg;

	CHECK(strcmp((char *)own.begins, "begins") == 0 && strcmp((char *)own.ends, "ends") == 0);
	CHECK(own.middle[0] == 7 && own.middle[1] == 0 && own.middle[BYTES - 1] == 0 &&
		aligned[0] == 9);
	CHECK_EQ((uintptr_t)aligned % 4096, 0);
	memset(&own, mine, sizeof own);
	memset(aligned, mine, sizeof aligned);
	sched_yield();
	for (size_t i = 0; i < BYTES; i += 997)
		CHECK_EQ(own.middle[i], mine);
	CHECK_EQ(own.ends[15] + aligned[4095], 2 * mine);
	return arg;
}

static void many(size_t stack)
{
	pthread_t t[THREADS];
	pthread_attr_t a;
	void *result;

	CHECK_EQ(pthread_attr_init(&a), 0);
	if (stack)
		CHECK_EQ(pthread_attr_setstacksize(&a, stack), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], &a, uses, (void *)(i + 1)), 0);
	for (uintptr_t i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(t[i], &result), 0);
		CHECK(result == (void *)(i + 1));
	}
	CHECK_EQ(pthread_attr_destroy(&a), 0);
}

static void on_own_stack(void)
{
	size_t size = BYTES + (256 << 10);
	pthread_attr_t a;
	pthread_t t;
	void *stack = NULL;

	CHECK_EQ(posix_memalign(&stack, 4096, size), 0);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstack(&a, stack, size), 0);
	CHECK_EQ(pthread_create(&t, &a, uses, (void *)3), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_attr_setstack(&a, stack, BYTES / 2), 0);
	CHECK_EQ(pthread_create(&t, &a, uses, NULL), EINVAL);
	free(stack);
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		many(0);
		many(BYTES + (128 << 10));
	}
	on_own_stack();
	return 0;
}
