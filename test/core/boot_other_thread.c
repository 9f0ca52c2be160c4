/* core/boot: started by a kernel thread that is not the process's first, or by several at once.
 * body: thread */
#include <kochab/kochab.h>
#include <pthread.h>

#include "core/child.h"

static void *adds_one(void *arg)
{
	kb_yield();
	return (char *)arg + 1;
}

static void *starts(void *arg)
{
	kb_thread_t t;
	void *r;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_thread_create(&t, NULL, adds_one, arg), 0);
	CHECK_EQ(kb_thread_join(t, &r), 0);
	CHECK(r == (char *)arg + 1);
	return NULL;
}

static void one(void *arg)
{
	pthread_t p;

	CHECK_EQ(pthread_create(&p, NULL, starts, arg), 0);
	CHECK_EQ(pthread_join(p, NULL), 0);
	CHECK_EQ(kb_vp_self(), -1);
	CHECK(kb_thread_self() == NULL);
	starts(arg);
}

static void several(void *arg)
{
	pthread_t p[6];

	for (int i = 0; i < 6; i++)
		CHECK_EQ(pthread_create(&p[i], NULL, starts, arg), 0);
	starts(arg);
	for (int i = 0; i < 6; i++)
		while (pthread_tryjoin_np(p[i], NULL))
			kb_sleep(100000);
}

int main(void)
{
	static struct child c;

	child_run(&c, one, &c);
	child_exited(&c, 0);
	for (int i = 0; i < 5; i++) {
		child_run(&c, several, &c);
		child_exited(&c, 0);
	}
	return 0;
}
