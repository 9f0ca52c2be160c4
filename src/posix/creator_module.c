/* posix/creator_module.c - the modules that make threads: a list that only grows. Contract in
 * creator_module.h. */
#include "posix/creator_module.h"

#include <stdlib.h>

#include "base/option.h"
#include "core/single_threaded.h"
#include "libc/module.h"
#include "os/sys.h"

/* A sanitizer makes the program's threads in place of the program; its own locks are short. */
void __sanitizer_print_stack_trace(void) __attribute__((weak));

aptr kbi_creator_module_last;
static aptr all; /* struct kbi_creator_module; any thread, atomic */

static struct kbi_creator_module *find_known_module(uintptr_t at)
{
	/* acquire: pairs with the compare-and-swap in add_caller_module */
	struct kbi_creator_module *c = a_load_acq(&all);

	while (c && at - c->low >= c->size)
		c = c->next;
	return c;
}

/* Adds a module. Two threads may both add it; that does no harm. */
static void add_caller_module(struct kbi_creator_module *c)
{
	void *first = a_load_rlx(&all);

	do
		c->next = first;
	/* release: pairs with the acquire in find_known_module */
	while (!a_cas_rel(&all, &first, c));
}

static bool report_kernel_waits(const struct kbi_module *m)
{
	kbi_sys_message(
		"%s waits in the kernel by system calls of its own: "
		"the threads that it makes are kernel threads",
			m->name);
	return true;
}

/* Replaces a module's futex calls. futex: NULL if another thread may be inside a call. */
static bool replace_futex_calls(uintptr_t at, kbi_intercept_call *futex)
{
	return futex && kbi_options.own_futex && kbi_intercept_module_replace(at, futex);
}

static struct kbi_creator_module *judge_module(uintptr_t at, kbi_intercept_call *futex)
{
	struct kbi_creator_module *c = calloc(1, sizeof(*c));
	struct kbi_module m;

	if (!c || !kbi_module_look(at, &m)) {
		free(c);
		return NULL;
	}
	c->low = m.low;
	c->size = m.high - m.low;
	c->kernel = m.waits_in_kernel && !__sanitizer_print_stack_trace &&
		!replace_futex_calls(at, futex) && report_kernel_waits(&m);
	add_caller_module(c);
	return c;
}

/* The module that is replaced before it makes threads. Its copy in a Python wheel has a longer
 * name. */
static const char libgomp[] = "libgomp";

static kbi_intercept_call *stands_for_futex;

/* Replaces libgomp's calls early: the program may make threads of its own before libgomp makes a
 * team. */
void kbi_creator_module_expect(kbi_intercept_call *futex)
{
	uintptr_t at = kbi_module_named(libgomp, 0);

	stands_for_futex = futex;
	if (at && !find_known_module(at) && kbi_single_threaded_is_only_one())
		judge_module(at, futex);
}

/* Called in libgomp's constructor, which makes a key (team.c): no other thread can be in its
 * functions yet. Another module may have lain at its address. Virtual processors that are processes
 * have a copy of its code each. */
void kbi_creator_module_loads(const void *at)
{
	if (!stands_for_futex || !kbi_module_named(libgomp, (uintptr_t)at))
		return;
	judge_module((uintptr_t)at,
		kbi_options.body == KBI_OPT_BODY_THREAD ? stands_for_futex : NULL);
	a_store_rlx(&kbi_creator_module_last, NULL);
}

bool kbi_creator_module_judge(const void *at, kbi_intercept_call *futex)
{
	struct kbi_creator_module *c = find_known_module((uintptr_t)at);

	if (!c)
		c = judge_module((uintptr_t)at, kbi_single_threaded_is_only_one() ? futex : NULL);
	if (!c)
		return false;
	/* release: pairs with the acquire in kbi_creator_module_wants_kernel */
	a_store_rel(&kbi_creator_module_last, c);
	return c->kernel;
}
