/* core/thread: ends of the program: exit from any thread runs atexit handlers and gives its code;
 * kb_thread_exit in main lets the process live until its last thread has ended; a return from main
 * does not wait. */
#include <kochab/kochab.h>
#include <pthread.h>
#include <string.h>

#include "core/child.h"
#include "core/own_tls.h"

static void at_exit(void)
{
	printf("atexit ran\n");
}

static void *exits(void *arg)
{
	kb_sleep(2000000);
	exit((int)(intptr_t)arg);
}

static void *works(void *arg)
{
	for (int i = 0; i < 20; i++)
		kb_sleep(1000000);
	printf("work done\n");
	return arg;
}

static void *forever(void *arg)
{
	for (;;)
		kb_yield();
	return arg;
}

static void start(enum kb_tls tls, void *(*fn)(void *), void *arg)
{
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	kb_attr_settls(&a, own_tls_or_light(tls));
	kb_attr_setdetached(&a, 1);
	CHECK_EQ(kb_thread_create(&t, &a, fn, arg), 0);
}

static void exit_in_thread(void *arg)
{
	kb_thread_t t;

	atexit(at_exit);
	start(*(enum kb_tls *)arg, exits, (void *)7);
	start(KB_TLS_LIGHT, forever, NULL);
	CHECK_EQ(kb_thread_create(&t, NULL, forever, NULL), 0);
	kb_thread_join(t, NULL);
}

static void main_exits(void *arg)
{
	atexit(at_exit);
	for (int i = 0; i < 5; i++)
		start(*(enum kb_tls *)arg, works, NULL);
	kb_thread_exit((void *)3);
}

static void main_exits_alone(void *arg)
{
	(void)arg;
	atexit(at_exit);
	CHECK_EQ(kb_init(), 0);
	kb_thread_exit((void *)3);
}

static void main_returns(void *arg)
{
	(void)arg;
	atexit(at_exit);
	for (int i = 0; i < 10; i++)
		start((enum kb_tls)(i % 2), i < 5 ? forever : works, NULL);
	kb_sleep(1000000);
}

static void *joins_main(void *arg)
{
	void *r;

	CHECK_EQ(kb_thread_join(arg, &r), 0);
	printf("main exited with %d\n", (int)(intptr_t)r);
	return NULL;
}

static void main_is_joined(void *arg)
{
	(void)arg;
	CHECK_EQ(kb_init(), 0);
	start(KB_TLS_OWN, joins_main, kb_thread_self());
	kb_yield();
	kb_thread_exit((void *)42);
}

int main(void)
{
	static struct child c;

	for (enum kb_tls tls = KB_TLS_LIGHT; tls <= KB_TLS_OWN; tls++) {
		child_run(&c, exit_in_thread, &tls);
		child_exited(&c, 7);
		child_said(&c, "atexit ran");
		child_run(&c, main_exits, &tls);
		child_exited(&c, 0);
		child_said(&c, "work done\nwork done\nwork done\nwork done\nwork done\natexit ran");
	}
	child_run(&c, main_exits_alone, NULL);
	child_exited(&c, 0);
	child_said(&c, "atexit ran");
	child_run(&c, main_returns, NULL);
	child_exited(&c, 0);
	child_said(&c, "atexit ran");
	child_run(&c, main_is_joined, NULL);
	child_exited(&c, 0);
	child_said(&c, "main exited with 42");
	return 0;
}
