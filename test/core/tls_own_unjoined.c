/* matrix: sched=rotator vps=1,2
 * core/thread: a thread with own TLS gives its block back when it ends; threads that have ended and
 * wait to be joined keep none, and the next thread finds the block as new. */
#include <kochab/kochab.h>

#include "core/own_tls.h"
#include "test.h"

enum { N = 500 };

static __thread uint64_t mine = 7;
static void *block[N];
static kb_sem_t runs;

static void *body(void *arg)
{
	CHECK_EQ(mine, 7);
	mine = (uintptr_t)arg;
	block[(uintptr_t)arg] = &mine;
	kb_sem_post(&runs);
	return arg;
}

static unsigned different(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++) {
		unsigned k = 0;

		while (block[k] != block[i])
			k++;
		n += k == i;
	}
	return n;
}

int main(void)
{
	kb_thread_t t[N];
	kb_attr_t a;

	if (!own_tls_is_there())
		SKIP("threads with own TLS cannot be had here");
	CHECK_EQ(kb_sem_init(&runs, 0), 0);
	CHECK_EQ(kb_attr_init(&a), 0);
	CHECK_EQ(kb_attr_settls(&a, KB_TLS_OWN), 0);
	for (uintptr_t i = 0; i < N; i++) {
		CHECK_EQ(kb_thread_create(&t[i], &a, body, (void *)i), 0);
		CHECK_EQ(kb_sem_wait(&runs), 0);
	}
	CHECK(different() < N / 4);
	for (uintptr_t i = 0; i < N; i++) {
		void *r;

		CHECK_EQ(kb_thread_join(t[i], &r), 0);
		CHECK_EQ((uintptr_t)r, i);
	}
	return 0;
}
