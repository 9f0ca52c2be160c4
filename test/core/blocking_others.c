/* core/handoff: between kb_blocking_begin and kb_blocking_end a thread may block in the kernel
 * while the remaining threads go on, also on a single virtual processor: threads in read, light and
 * with a TLS of their own, bound threads and main, beside threads that compute, talk and write the
 * data for the readers. errno is kept, pairs nest, stray ends are reported.
 * matrix: vps=1,2,4 sched=rotator,lb2,steal */
#include <errno.h>
#include <kochab/kochab.h>
#include <pthread.h>
#include <unistd.h>

#include "core/own_tls.h"
#include "test.h"

enum { READERS = 40, ROUNDS = 6 };

static struct reader {
	int pipe[2];
	kb_thread_t thread;
	uint64_t got;
	int bound;
} readers[READERS];

static kb_sem_t written[READERS];

/* A light thread's errno has another place afterwards, which the compiler must not keep. */
static __attribute__((noinline)) int get_errno(void)
{
	__asm__ volatile("" ::: "memory");
	return errno;
}

static void *reads(void *arg)
{
	struct reader *r = arg;
	int vp = kb_vp_self();
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		ssize_t n;

		CHECK_EQ(kb_blocking_begin(), 0);
		CHECK_EQ(kb_vp_self(), -1);
		CHECK_EQ(kb_blocking_begin(), 0);
		n = read(r->pipe[0], &c, 1);
		errno = 1000 + i;
		CHECK_EQ(kb_blocking_end(), 0);
		CHECK_EQ(kb_vp_self(), -1);
		CHECK_EQ(kb_blocking_end(), 0);
		CHECK_EQ(get_errno(), 1000 + i);
		CHECK_EQ(n, 1);
		CHECK_EQ(c, i);
		CHECK(kb_vp_self() >= 0);
		if (r->bound)
			CHECK_EQ(kb_vp_self(), vp);
		CHECK_EQ(kb_blocking_end(), EINVAL);
		r->got++;
		CHECK_EQ(kb_sem_post(&written[r - readers]), 0);
	}
	return r;
}

static void *writes(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < READERS; k++) {
			char c = (char)i;

			CHECK_EQ(write(readers[k].pipe[1], &c, 1), 1);
			if (k % 3 == 0)
				CHECK_EQ(kb_sem_wait(&written[k]), 0);
		}
	return NULL;
}

static void *system_scope(void *unused)
{
	(void)unused;
	CHECK_EQ(kb_blocking_begin(), 0);
	CHECK_EQ(kb_vp_self(), -1);
	CHECK_EQ(kb_blocking_end(), 0);
	return NULL;
}

static void *foreign(void *unused)
{
	return system_scope(unused);
}

static void elsewhere(void)
{
	kb_thread_t t;
	pthread_t id;
	kb_attr_t a;

	kb_attr_init(&a);
	CHECK_EQ(kb_attr_setscope(&a, KB_SCOPE_SYSTEM), 0);
	CHECK_EQ(kb_thread_create(&t, &a, system_scope, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(pthread_create(&id, NULL, foreign, NULL), 0);
	CHECK_EQ(pthread_join(id, NULL), 0);
}

static void start(int k)
{
	struct reader *r = &readers[k];
	kb_attr_t a;

	CHECK_EQ(pipe(r->pipe), 0);
	CHECK_EQ(kb_sem_init(&written[k], 0), 0);
	kb_attr_init(&a);
	CHECK_EQ(kb_attr_settls(&a, own_tls_or_light(k % 2 ? KB_TLS_OWN : KB_TLS_LIGHT)), 0);
	r->bound = k % 5 == 0;
	if (r->bound)
		CHECK_EQ(kb_attr_setvp(&a, k), 0);
	CHECK_EQ(kb_thread_create(&r->thread, &a, reads, r), 0);
}

/* main waits in the kernel for a thread: its own VP goes on without it. */
static void *writes_late(void *p)
{
	char c = 42;

	kb_sleep(5000000);
	CHECK_EQ(write(((int *)p)[1], &c, 1), 1);
	return NULL;
}

static void main_blocks(void)
{
	kb_thread_t t;
	int p[2];
	char c;

	CHECK_EQ(kb_blocking_begin(), 0);
	CHECK_EQ(pipe(p), 0);
	CHECK_EQ(kb_thread_create(&t, NULL, writes_late, p), 0);
	CHECK_EQ(read(p[0], &c, 1), 1);
	CHECK_EQ(kb_blocking_end(), 0);
	CHECK_EQ(c, 42);
	CHECK_EQ(kb_blocking_end(), EINVAL);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
}

int main(void)
{
	kb_thread_t writer;

	CHECK_EQ(kb_blocking_begin(), 0); /* before the runtime: nothing */
	CHECK_EQ(kb_blocking_end(), 0);
	CHECK_EQ(kb_init(), 0);
	main_blocks();
	for (int k = 0; k < READERS; k++)
		start(k);
	CHECK_EQ(kb_thread_create(&writer, NULL, writes, NULL), 0);
	CHECK_EQ(kb_thread_join(writer, NULL), 0);
	for (int k = 0; k < READERS; k++) {
		CHECK_EQ(kb_thread_join(readers[k].thread, NULL), 0);
		CHECK_EQ(readers[k].got, ROUNDS);
	}
	elsewhere();
	return 0;
}
