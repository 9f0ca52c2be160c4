/* core/thread: misuse has the POSIX errors: a join of oneself, a second join, joins of a detached
 * thread and of no thread. */
#include <errno.h>
#include <kochab/kochab.h>

#include "base/atom.h"
#include "core/descriptor.h"
#include "test.h"

static kb_sem_t go, there;

static void *waits(void *arg)
{
	kb_sem_wait(&go);
	return arg;
}

static void *joins(void *arg)
{
	kb_sem_post(&there);
	CHECK_EQ(kb_thread_join(arg, NULL), 0);
	return NULL;
}

static void *joins_itself(void *arg)
{
	void *r = arg;

	CHECK_EQ(kb_thread_join(kb_thread_self(), &r), EDEADLK);
	CHECK(r == arg);
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	kb_thread_t t, j;
	kb_attr_t a;

	CHECK_EQ(kb_thread_join(NULL, NULL), ESRCH);
	CHECK_EQ(kb_thread_detach(NULL), ESRCH);
	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_thread_join(NULL, NULL), ESRCH);
	CHECK_EQ(kb_thread_join((kb_thread_t)(void *)&t, NULL), ESRCH);
	CHECK_EQ(kb_thread_join((kb_thread_t)((char *)kb_thread_self() + 8), NULL), ESRCH);
	CHECK_EQ(kb_thread_join(kb_thread_self(), NULL), EDEADLK);
	CHECK_EQ(kb_thread_create(&t, NULL, NULL, NULL), EINVAL);
	CHECK_EQ(kb_thread_create(NULL, NULL, nothing, NULL), EINVAL);

	CHECK_EQ(kb_thread_create(&t, NULL, joins_itself, &a), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), ESRCH);
	CHECK_EQ(kb_thread_detach(t), ESRCH);

	/* a second joiner, and a detacher, while the first waits */
	CHECK_EQ(kb_thread_create(&t, NULL, waits, NULL), 0);
	CHECK_EQ(kb_thread_create(&j, NULL, joins, t), 0);
	CHECK_EQ(kb_sem_wait(&there), 0);
	while (!a_load_acq(&t->join))
		kb_sleep(1000000);
	CHECK_EQ(kb_thread_join(t, NULL), EINVAL);
	CHECK_EQ(kb_thread_detach(t), EINVAL);
	kb_sem_post(&go);
	CHECK_EQ(kb_thread_join(j, NULL), 0);

	/* detached, by attribute and by call */
	kb_attr_init(&a);
	kb_attr_setdetached(&a, 1);
	CHECK_EQ(kb_thread_create(&t, &a, waits, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), EINVAL);
	CHECK_EQ(kb_thread_detach(t), EINVAL);
	CHECK_EQ(kb_thread_create(&t, NULL, waits, NULL), 0);
	CHECK_EQ(kb_thread_detach(t), 0);
	CHECK_EQ(kb_thread_join(t, NULL), EINVAL);
	kb_sem_post(&go); /* both only now: either may take either */
	kb_sem_post(&go);

	/* detached after its end */
	CHECK_EQ(kb_thread_create(&t, NULL, nothing, NULL), 0);
	kb_sleep(5000000);
	CHECK_EQ(kb_thread_detach(t), 0);
	return 0;
}
