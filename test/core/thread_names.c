/* core/api: names of threads: of an attribute, set later, too long, of threads that have gone. */
#include <errno.h>
#include <kochab/kochab.h>
#include <string.h>

#include "test.h"

static kb_sem_t go, looked;

static void is(kb_thread_t t, const char *name)
{
	char buf[KB_NAME_MAX];

	CHECK_EQ(kb_thread_getname(t, buf, sizeof buf), 0);
	CHECK_EQ(strcmp(buf, name), 0);
}

static void *waits(void *arg)
{
	is(kb_thread_self(), arg);
	kb_sem_post(&looked);
	kb_sem_wait(&go);
	return NULL;
}

int main(void)
{
	kb_thread_t t, u;
	char buf[KB_NAME_MAX];
	kb_attr_t a;

	kb_attr_init(&a);
	CHECK_EQ(kb_attr_setname(&a, "first"), 0);
	CHECK_EQ(kb_thread_create(&t, &a, waits, "first"), 0);
	CHECK_EQ(kb_thread_create(&u, NULL, waits, ""), 0);
	is(t, "first");
	is(u, "");
	is(kb_thread_self(), "main");
	kb_sem_wait(&looked);
	kb_sem_wait(&looked);
	CHECK_EQ(kb_thread_setname(t, "fifteen letters"), 0);
	is(t, "fifteen letters");
	CHECK_EQ(kb_thread_setname(t, "sixteen letters!"), ERANGE);
	is(t, "fifteen letters");
	CHECK_EQ(kb_thread_getname(t, buf, 15), ERANGE);
	CHECK_EQ(kb_thread_getname(t, buf, 16), 0);
	CHECK_EQ(kb_thread_setname(kb_thread_self(), ""), 0);
	is(kb_thread_self(), "");
	kb_sem_post(&go);
	kb_sem_post(&go);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(kb_thread_join(u, NULL), 0);
	CHECK_EQ(kb_thread_getname(t, buf, sizeof buf), ESRCH);
	CHECK_EQ(kb_thread_setname(t, "x"), ESRCH);
	CHECK_EQ(kb_thread_setname(NULL, "x"), ESRCH);
	/* the descriptor's next user has no name */
	for (int i = 0; i < 200; i++) {
		CHECK_EQ(kb_thread_create(&u, NULL, waits, ""), 0);
		kb_sem_post(&go);
		CHECK_EQ(kb_thread_join(u, NULL), 0);
	}
	return 0;
}
