/* `after` runs once per switch, with its argument, on the loaded stack, when the old context is
 * complete: a context may be resumed from the data that `after` publishes. Holds for the first
 * switch to a new context, for a switch to a suspended context, and for leave. */
#include "arch_test.h"

struct switched {
	struct kbi_ctx *from;
	void *sp_then; /* from->sp as `after` saw it */
};

static struct kbi_ctx home, a, b;
static struct switched from_home = {&home, NULL}, from_a = {&a, NULL}, from_b = {&b, NULL};
static void *stack_a, *stack_b;
static const char main_stack_is = 0;
static struct switched *published;
static int calls;

static void *after_on_a(void *arg)
{
	CHECK(on_stack((void *)here(), stack_a));
	published = arg;
	published->sp_then = published->from->sp;
	calls++;
	return arg;
}

static void *after_on_b(void *arg)
{
	CHECK(on_stack((void *)here(), stack_b));
	published = arg;
	published->sp_then = published->from->sp;
	calls++;
	return arg;
}

static void *after_at_home(void *arg)
{
	CHECK(!on_stack((void *)here(), stack_a) && !on_stack((void *)here(), stack_b));
	CHECK(arg == &main_stack_is);
	calls++;
	return NULL;
}

static void run_a(void *arg)
{
	CHECK(arg == &a);
	CHECK_EQ(calls, 1); /* the `after` of the first switch ran before entry */
	CHECK(published == &from_home && published->sp_then != NULL);
	kbi_ctx_switch(&a, &b, after_on_b, &from_a);
	CHECK_EQ(calls, 3); /* resumed by b's switch, whose `after` ran here before we continued */
	CHECK(published == &from_b && published->sp_then == b.sp && on_stack(b.sp, stack_b));
	kbi_ctx_leave(&home, after_at_home, (void *)&main_stack_is);
}

static void run_b(void *arg)
{
	CHECK(arg == &b);
	CHECK_EQ(calls, 2);
	CHECK(published == &from_a && published->sp_then == a.sp && on_stack(a.sp, stack_a));
	kbi_ctx_switch(&b, published->from, after_on_a, &from_b);
	CHECK(!"nobody resumes b");
}

int main(void)
{
	stack_a = new_stack();
	stack_b = new_stack();
	kbi_ctx_make(&a, stack_a, STACK_SIZE, run_a, &a);
	kbi_ctx_make(&b, stack_b, STACK_SIZE, run_b, &b);
	kbi_ctx_switch(&home, &a, after_on_a, &from_home);
	CHECK_EQ(calls, 4);
	return 0;
}
