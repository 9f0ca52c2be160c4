/* core/api: attributes of threads to be created: limits, defaults, and refused values. */
#include <errno.h>
#include <kochab/kochab.h>
#include <string.h>

#include "core/own_tls.h"
#include "test.h"

static char stack[2 * KB_STACK_DEFAULT];

static void *nothing(void *arg)
{
	return arg;
}

static void refused(kb_attr_t *a)
{
	CHECK_EQ(kb_attr_setstacksize(a, KB_STACK_MIN - 1), EINVAL);
	CHECK_EQ(kb_attr_setstacksize(a, 0), EINVAL);
	CHECK_EQ(kb_attr_setstack(a, NULL, KB_STACK_DEFAULT), EINVAL);
	CHECK_EQ(kb_attr_setstack(a, stack, KB_STACK_MIN - 1), EINVAL);
	CHECK_EQ(kb_attr_settls(a, (enum kb_tls)2), EINVAL);
	CHECK_EQ(kb_attr_setscope(a, (enum kb_scope)7), EINVAL);
	CHECK_EQ(kb_attr_setvp(a, -2), EINVAL);
	CHECK_EQ(kb_attr_setname(a, NULL), EINVAL);
	CHECK_EQ(kb_attr_setname(a, "sixteen letters!"), ERANGE);
}

static void uninitialised(void)
{
	kb_thread_t t;
	kb_attr_t a;
	size_t n;

	memset(&a, 0x5a, sizeof a);
	CHECK_EQ(kb_attr_init(NULL), EINVAL);
	CHECK_EQ(kb_attr_setstacksize(&a, KB_STACK_DEFAULT), EINVAL);
	CHECK_EQ(kb_attr_getstacksize(&a, &n), EINVAL);
	CHECK_EQ(kb_attr_setstack(&a, stack, sizeof stack), EINVAL);
	CHECK_EQ(kb_attr_setdetached(&a, 1), EINVAL);
	CHECK_EQ(kb_attr_settls(&a, KB_TLS_OWN), EINVAL);
	CHECK_EQ(kb_attr_setscope(&a, KB_SCOPE_PROCESS), EINVAL);
	CHECK_EQ(kb_attr_setvp(&a, 0), EINVAL);
	CHECK_EQ(kb_attr_setname(&a, "x"), EINVAL);
	CHECK_EQ(kb_attr_setstacksize(NULL, KB_STACK_DEFAULT), EINVAL);
	CHECK_EQ(kb_thread_create(&t, &a, nothing, NULL), EINVAL);
}

/* Sizes that no machine has: refused, and nothing breaks. */
static void absurd(void)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, (size_t)1 << 47 };
	kb_thread_t t;
	kb_attr_t a;

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int tls = 0; tls < 2; tls++) {
			int e;

			kb_attr_init(&a);
			kb_attr_settls(&a, own_tls_or_light((enum kb_tls)tls));
			if (kb_attr_setstacksize(&a, sizes[i]) == EINVAL)
				continue;
			e = kb_thread_create(&t, &a, nothing, NULL);
			CHECK(e == EAGAIN || e == EINVAL);
		}
}

int main(void)
{
	kb_thread_t t;
	kb_attr_t a;
	size_t n;

	CHECK_EQ(kb_attr_init(&a), 0);
	CHECK_EQ(kb_attr_getstacksize(&a, &n), 0);
	CHECK_EQ(n, KB_STACK_DEFAULT);
	refused(&a);
	CHECK_EQ(kb_attr_getstacksize(&a, &n), 0);
	CHECK_EQ(n, KB_STACK_DEFAULT);
	CHECK_EQ(kb_attr_setstacksize(&a, KB_STACK_MIN), 0);
	CHECK_EQ(kb_attr_getstacksize(&a, &n), 0);
	CHECK_EQ(n, KB_STACK_MIN);
	CHECK_EQ(kb_attr_setname(&a, "fifteen letters"), 0);
	CHECK_EQ(kb_thread_create(&t, &a, nothing, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	uninitialised();
	absurd();
	CHECK_EQ(kb_thread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	return 0;
}
