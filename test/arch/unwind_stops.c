/* A stack walk from inside a context ends at its entry, with an end-of-stack verdict and after a
 * few frames: from functions called by entry, from an `after` on a new stack and from an `after` on
 * a resumed stack. The stack and the memory above it are full of old return addresses, as used
 * stacks are. */
#include <unwind.h>

#include "arch_test.h"

enum { MOST_FRAMES = 12 };

static struct kbi_ctx home, ctx;
static uintptr_t frames[MOST_FRAMES + 1];
static unsigned frame_count, walks;

static _Unwind_Reason_Code count(struct _Unwind_Context *c, void *arg)
{
	(void)arg;
	if (frame_count > MOST_FRAMES)
		return _URC_NORMAL_STOP;
	frames[frame_count++] = (uintptr_t)_Unwind_GetIP(c);
	return _URC_NO_REASON;
}

static bool walked_through(void (*f)(void *))
{
	for (unsigned i = 0; i < frame_count; i++)
		if (frames[i] - (uintptr_t)f < 4096)
			return true;
	return false;
}

KBI_NOINLINE static void walk(void)
{
	frame_count = 0;
	CHECK_EQ(_Unwind_Backtrace(count, NULL), _URC_END_OF_STACK);
	CHECK(frame_count >= 2 && frame_count <= MOST_FRAMES);
	walks++;
}

KBI_NOINLINE static int deeper(int n)
{
	int below = 0;

	if (n > 0)
		below = deeper(n - 1);
	else
		walk();
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

static void *walk_after(void *arg)
{
	(void)arg;
	walk();
	return NULL;
}

static void run(void *arg)
{
	(void)arg;
	CHECK_EQ(walks, 1);
	CHECK_EQ(deeper(3), 4);
	CHECK(walked_through(run));
	kbi_ctx_switch(&ctx, &home, NULL, NULL);
	CHECK_EQ(walks, 3); /* the walk in between may end at the switch */
	kbi_ctx_leave(&home, NULL, NULL);
}

int main(void)
{
	enum { ABOVE = 4096 };
	uintptr_t *stack = malloc(STACK_SIZE + ABOVE);

	CHECK(stack != NULL);
	for (size_t i = 0; i < (STACK_SIZE + ABOVE) / sizeof *stack; i++)
		stack[i] = (uintptr_t)deeper + 16;
	kbi_ctx_make(&ctx, stack, STACK_SIZE, run, NULL);
	kbi_ctx_switch(&home, &ctx, walk_after, NULL); /* before entry runs */
	kbi_ctx_switch(&home, &ctx, walk_after, NULL); /* inside the resumed switch */
	CHECK_EQ(walks, 3);
	return 0;
}
