/* The thread that a post releases may destroy the semaphore and reuse its memory at once. */
#include <string.h>

#include "threads.h"

enum { ROUNDS = 3000 };

static kb_sem_t *box;       /* on the waiter's stack */
static kb_sem_t ready, done;

static void *post(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(kb_sem_wait(&ready), 0);
		CHECK_EQ(kb_sem_post(box), 0);
		CHECK_EQ(kb_sem_post(&done), 0);
	}
	return NULL;
}

static void one_round(uint64_t *rnd)
{
	kb_sem_t s;

	CHECK_EQ(kb_sem_init(&s, 0), 0);
	box = &s;
	CHECK_EQ(kb_sem_post(&ready), 0);
	for (uint64_t n = test_rand(rnd) % 200; n > 0; n--)
		__asm__ volatile("");
	CHECK_EQ(kb_sem_wait(&s), 0);
	CHECK_EQ(kb_sem_destroy(&s), 0);
	memset(&s, 0x5a, sizeof s);
	CHECK_EQ(kb_sem_wait(&done), 0);
	for (size_t k = 0; k < sizeof s; k++)
		CHECK_EQ(((unsigned char *)&s)[k], 0x5a);
}

static void body(void)
{
	uint64_t rnd = test_stream();
	struct worker w;

	CHECK_EQ(kb_sem_init(&ready, 0), 0);
	CHECK_EQ(kb_sem_init(&done, 0), 0);
	worker_start(&w, post, NULL);
	for (int i = 0; i < ROUNDS; i++)
		one_round(&rnd);
	worker_join(&w);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
