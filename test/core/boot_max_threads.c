/* core/descriptor: the limit on threads: EAGAIN, for all kinds; threads that ended make room
 * again. */
#include <errno.h>
#include <kochab/kochab.h>

#include "core/own_tls.h"
#include "test.h"

enum { LIMIT = 2000 };

static kb_sem_t gate;

static void *waits(void *arg)
{
	CHECK_EQ(kb_sem_wait(&gate), 0);
	return arg;
}

static unsigned fill(kb_thread_t *t)
{
	static const enum kb_tls tls[] = { KB_TLS_LIGHT, KB_TLS_OWN };
	unsigned n = 0;
	kb_attr_t a;

	for (;; n++) {
		int e;

		CHECK(n <= LIMIT);
		kb_attr_init(&a);
		kb_attr_settls(&a, own_tls_or_light(tls[n % 50 == 0]));
		e = kb_thread_create(&t[n], &a, waits, NULL);
		if (e == 0)
			continue;
		CHECK_EQ(e, EAGAIN);
		kb_attr_setscope(&a, KB_SCOPE_SYSTEM);
		CHECK_EQ(kb_thread_create(&t[n], &a, waits, NULL), EAGAIN);
		return n;
	}
}

int main(void)
{
	static kb_thread_t t[LIMIT + 1];

	CHECK_EQ(setenv("KOCHAB_MAX_THREADS", "2000", 1), 0);
	for (int round = 0; round < 4; round++) {
		unsigned n = fill(t);

		/* each VP keeps some free descriptors for itself */
		CHECK(n >= LIMIT - 1 - kb_vp_count() * 512u || n >= LIMIT / 8);
		if (round == 0 && kb_vp_count() == 1)
			CHECK_EQ(n, LIMIT - 1);
		for (unsigned i = 0; i < n; i++)
			kb_sem_post(&gate);
		for (unsigned i = 0; i < n; i++)
			CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	}
	return 0;
}
