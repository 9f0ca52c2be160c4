/* core/thread_count - how many threads there are, whether there has ever been a second thread, and
 * the value of a knob. */
#include <errno.h>
#include <kochab/kochab.h>
#include <stdlib.h>

#include "test.h"

enum { THREADS = 50 };

static kb_sem_t go, there;

static void *stand(void *arg)
{
	(void)arg;
	kb_sem_post(&there);
	kb_sem_wait(&go);
	return NULL;
}

int main(void)
{
	kb_thread_t thread[THREADS];
	uint64_t value = 0;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(*kb_thread_ever(), 0);
	CHECK_EQ(kb_thread_count(), 1);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&thread[i], NULL, stand, NULL), 0);
	CHECK_EQ(*kb_thread_ever(), 1);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_sem_wait(&there), 0);
	CHECK_EQ(kb_thread_count(), THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_sem_post(&go), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(thread[i], NULL), 0);
	CHECK_EQ(kb_thread_count(), 1);
	CHECK_EQ(*kb_thread_ever(), 1);
	kb_thread_ever_reset();
	CHECK_EQ(*kb_thread_ever(), 0);
	CHECK_EQ(kb_thread_create(&thread[0], NULL, stand, NULL), 0);
	CHECK_EQ(*kb_thread_ever(), 1);
	CHECK_EQ(kb_sem_post(&go), 0);
	CHECK_EQ(kb_thread_join(thread[0], NULL), 0);
	CHECK_EQ(kb_option("stack_size", &value), 0);
	CHECK_EQ(value, 65536);
	CHECK_EQ(kb_option("stack-size", &value), 0);
	CHECK_EQ(kb_option("no_such", &value), EINVAL);
	CHECK_EQ(kb_option(NULL, &value), EINVAL);
	CHECK_EQ(kb_option("vps", NULL), EINVAL);
	return 0;
}
