/* mem/stack, core/preempt: a thread that overflows its stack is reported by name and size and dies by
 * SIGSEGV, light or with own TLS, on every VP, whatever kind of guard; other bad addresses are not called an
 * overflow. */
#include <kochab/kochab.h>
#include <signal.h>
#include <string.h>

#include "core/child.h"

struct how {
	const char *guard, *name;
	enum kb_tls tls;
	size_t size;
	unsigned vp;
};

__attribute__((noinline)) static int deeper(int n)
{
	volatile char frame[512];

	frame[0] = (char)n;
	return n == 0 ? 0 : deeper(n + 1) + frame[0];
}

static void *overflows(void *arg)
{
	kb_yield();
	deeper(1);
	return arg;
}

static volatile uintptr_t eight = 8;

static void *bad_address(void *arg)
{
	*(volatile int *)eight = 1;
	return arg;
}

static void create(const struct how *h, void *(*fn)(void *))
{
	kb_thread_t t;
	kb_attr_t a;

	CHECK_EQ(setenv("KOCHAB_GUARD", h->guard, 1), 0);
	CHECK_EQ(setenv("KOCHAB_VPS", "2", 1), 0);
	kb_attr_init(&a);
	kb_attr_settls(&a, h->tls);
	kb_attr_setvp(&a, (int)h->vp);
	CHECK_EQ(kb_attr_setstacksize(&a, h->size), 0);
	if (h->name)
		CHECK_EQ(kb_attr_setname(&a, h->name), 0);
	CHECK_EQ(kb_thread_create(&t, &a, fn, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
}

static void overflow(void *arg)
{
	create(arg, overflows);
}

static void fault(void *arg)
{
	create(arg, bad_address);
}

static void *nothing(void *arg)
{
	return arg;
}

static void none(void *arg)
{
	for (int i = 0; i < 100; i++)
		create(arg, nothing);
}

static void handler(int sig)
{
	static const char text[] = "the program's own handler\n";
	ssize_t n = write(2, text, sizeof text - 1);

	(void)n;
	_exit(sig == SIGSEGV ? 33 : 34);
}

static void with_handler(void *arg)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

	CHECK_EQ(sigaction(SIGSEGV, &sa, NULL), 0);
	create(arg, overflows);
}

static void check(struct how h, size_t kib)
{
	static struct child c;
	char text[100];

	child_run(&c, overflow, &h);
	child_killed(&c, SIGSEGV);
	if (h.name)
		snprintf(text, sizeof text, "kochab: thread %s overflowed its %zu KiB stack", h.name, kib);
	else
		snprintf(text, sizeof text, "overflowed its %zu KiB stack", kib);
	child_said(&c, text);
}

int main(void)
{
	static const char *const guards[] = { "auto", "madvise", "mprotect" };
	static struct child c;
	struct how h = { .guard = "auto", .size = 65536 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer reports faults itself");
#endif
	for (unsigned g = 0; g < 3; g++)
		for (unsigned i = 0; i < 4; i++)
			check((struct how){ guards[g], i % 2 ? "deep thought" : NULL, (enum kb_tls)(i / 2),
					    i % 2 ? 65536 : 262144, i % 2 }, i % 2 ? 64 : 256);
	check((struct how){ "auto", "big", KB_TLS_LIGHT, 8 << 20, 1 }, 8192);
	child_run(&c, fault, &h);
	child_killed(&c, SIGSEGV);
	CHECK(!strstr(c.text, "overflowed"));
	child_run(&c, with_handler, &h);
	child_exited(&c, 33);
	child_said(&c, "overflowed its 64 KiB stack\nthe program's own handler");
	h.guard = "none";
	child_run(&c, none, &h);
	child_exited(&c, 0);
	return 0;
}
