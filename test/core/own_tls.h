/* own_tls.h - threads with own TLS where they can be had. Under ThreadSanitizer and with the
 * generic port they cannot, and kb_thread_create returns ENOTSUP: the same test then runs with
 * light threads. */
#ifndef KB_TEST_OWN_TLS_H
#define KB_TEST_OWN_TLS_H

#include <errno.h>
#include <kochab/kochab.h>

#include "test.h"

static inline void *own_tls_nothing(void *arg)
{
	return arg;
}

/* Asks by making a thread. */
static inline int own_tls_is_there(void)
{
	static int known; /* 1 yes, 2 no */
	kb_thread_t t;
	kb_attr_t a;
	int e;

	if (!__atomic_load_n(&known, __ATOMIC_RELAXED)) {
		kb_attr_init(&a);
		kb_attr_settls(&a, KB_TLS_OWN);
		e = kb_thread_create(&t, &a, own_tls_nothing, NULL);
		CHECK(e == 0 || e == ENOTSUP);
		if (e == 0)
			CHECK_EQ(kb_thread_join(t, NULL), 0);
		__atomic_store_n(&known, e ? 2 : 1, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(&known, __ATOMIC_RELAXED) == 1;
}

static inline enum kb_tls own_tls_or_light(enum kb_tls wanted)
{
	return wanted == KB_TLS_OWN && !own_tls_is_there() ? KB_TLS_LIGHT : wanted;
}

#endif
