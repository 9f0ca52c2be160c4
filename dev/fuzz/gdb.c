/* The program whose core file dev/fuzz/gdb.py changes: a thread in each state that the commands show. */
#include <kochab/kochab.h>
#include <stdio.h>
#include <sys/resource.h>

enum { SPACE = 160 << 20 };

static kb_sem_t never;

__attribute__((noinline)) static void waits(int depth)
{
	if (depth)
		waits(depth - 1);
	else
		kb_sem_wait(&never);
	__asm__ volatile("" : : "r"(depth));
}

static void *parks(void *arg)
{
	waits(5);
	return arg;
}

static void *sleeps(void *arg)
{
	kb_sleep(3600000000000ull);
	return arg;
}

static void *computes(void *arg)
{
	for (volatile unsigned long i = 0;; i++)
		;
	return arg;
}

static void *ends(void *arg)
{
	return arg;
}

static void create(const char *name, void *(*fn)(void *), int vp)
{
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	kb_attr_setname(&a, name);
	kb_attr_setvp(&a, vp);
	if (kb_thread_create(&t, &a, fn, NULL))
		printf("not created\n");
}

__attribute__((noinline)) void stop_here(void)
{
	__asm__ volatile("");
}

int main(void)
{
	/* smaller tables, and so a smaller file */
	setrlimit(RLIMIT_AS, &(struct rlimit){ SPACE, SPACE });
	for (int i = 0; i < 4; i++)
		create("parked", parks, -1);
	create("asleep", sleeps, 0);
	create("computes", computes, 1);
	create("ended", ends, 0);
	kb_sleep(200000000);
	create("begins", ends, 0);
	stop_here();
	return 0;
}
