/* core/thread: a bound thread runs only on its VP, whatever wakes it and whichever thread creates
 * it. */
#include <kochab/kochab.h>
#include <pthread.h>

#include "core/own_tls.h"
#include "test.h"

enum { PER_VP = 6, ROUNDS = 150 };

static kb_sem_t pool = KB_SEM_INIT(3);
static uint32_t word;

static void *bound(void *arg)
{
	int vp = (int)(intptr_t)arg;
	uint64_t rand = test_seed() + (uintptr_t)arg * 31 + 1;

	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK_EQ(kb_vp_self(), vp);
		switch (test_rand(&rand) % 5) {
		case 0:
			kb_sleep(test_rand(&rand) % 50000);
			break;
		case 1:
			kb_sem_wait(&pool);
			CHECK_EQ(kb_vp_self(), vp);
			kb_yield();
			kb_sem_post(&pool);
			break;
		case 2:
			kb_watch32(&word, __atomic_load_n(&word, __ATOMIC_RELAXED), kb_now() + 200000);
			break;
		case 3:
			__atomic_add_fetch(&word, 1, __ATOMIC_RELAXED);
			break;
		default:
			kb_yield();
		}
	}
	return NULL;
}

static void create(kb_thread_t *t, unsigned vp, enum kb_tls tls)
{
	kb_attr_t a;

	kb_attr_init(&a);
	CHECK_EQ(kb_attr_settls(&a, own_tls_or_light(tls)), 0);
	CHECK_EQ(kb_attr_setvp(&a, (int)(vp + kb_vp_count())), 0); /* modulo their number */
	CHECK_EQ(kb_thread_create(t, &a, bound, (void *)(intptr_t)vp), 0);
}

static void *foreign(void *arg)
{
	kb_thread_t t[64];
	unsigned n = 0;

	for (unsigned vp = 0; vp < kb_vp_count() && n < 64; vp++)
		for (unsigned i = 0; i < PER_VP; i++)
			create(&t[n++], vp, (enum kb_tls)(i % 2));
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	return arg;
}

int main(void)
{
	pthread_t p;

	test_seed(); /* settles the seed, before threads ask for it at once */
	CHECK_EQ(kb_init(), 0);
	foreign(NULL);
	CHECK_EQ(pthread_create(&p, NULL, foreign, NULL), 0);
	while (pthread_tryjoin_np(p, NULL))
		kb_sleep(1000000);
	return 0;
}
