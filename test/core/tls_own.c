/* core/thread: own-TLS threads keep errno and __thread variables of their own wherever they run,
 * light threads in between do not touch them, and a recycled block starts as new. */
#include <errno.h>
#include <kochab/kochab.h>
#include <string.h>

#include "core/own_tls.h"
#include "test.h"

enum { N = 40, ROUNDS = 300, MOVED_WITHIN_S = 90 };

static __thread uint64_t zero, set = 0x1234;
static __thread char text[100] = "initial";
static uint32_t seen_vp[16], moved;
static uint32_t stop;

static void *own(void *arg)
{
	uint64_t me = (uintptr_t)arg;
	int vp = kb_vp_self();

	CHECK_EQ(zero, 0);
	CHECK_EQ(set, 0x1234);
	CHECK_EQ(strcmp(text, "initial"), 0);
	CHECK_EQ(errno, 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		errno = (int)me;
		zero = me;
		set = me + i;
		snprintf(text, sizeof text, "thread %u round %u", (unsigned)me, i);
		if (i % 16 == 0)
			kb_sleep(1000 * (me % 8));
		else
			kb_yield();
		CHECK_EQ(errno, me);
		CHECK_EQ(zero, me);
		CHECK_EQ(set, me + i);
		if (kb_vp_self() != vp)
			__atomic_add_fetch(&moved, 1, __ATOMIC_RELAXED);
		vp = kb_vp_self();
		seen_vp[vp % 16] = 1;
	}
	return NULL;
}

static void *light(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		errno = EBADMSG;
		kb_yield();
	}
	return arg;
}

int main(void)
{
	kb_thread_t t[N], l[4];
	uint64_t until = test_now_ns() + MOVED_WITHIN_S * 1000000000ull;
	kb_attr_t a;

	if (!own_tls_is_there())
		SKIP("threads with own TLS cannot be had here");
	kb_attr_init(&a);
	CHECK_EQ(kb_attr_settls(&a, KB_TLS_OWN), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(kb_thread_create(&l[i], NULL, light, NULL), 0);
	/* on a busy machine it may take a while until another VP is idle and takes some */
	for (int round = 0; round < 3 ||
	    (kb_vp_count() > 1 && !moved && test_now_ns() < until); round++) {
		errno = EDOM;
		for (uintptr_t i = 0; i < N; i++)
			CHECK_EQ(kb_thread_create(&t[i], &a, own, (void *)(i + 1)), 0);
		for (unsigned i = 0; i < N; i++)
			CHECK_EQ(kb_thread_join(t[i], NULL), 0);
		CHECK_EQ(errno, EDOM); /* main has its own, too */
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(kb_thread_join(l[i], NULL), 0);
	if (kb_vp_count() > 1)
		CHECK(moved > 0);
	return 0;
}
