/* Values, limits and refusals of a semaphore. */
#include <errno.h>

#include "threads.h"

int main(void)
{
	kb_sem_t s = KB_SEM_INIT(2);
	uint64_t deadline;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_sem_value(&s), 2);
	CHECK_EQ(kb_sem_wait(&s), 0);
	CHECK_EQ(kb_sem_trywait(&s), 0);
	CHECK_EQ(kb_sem_trywait(&s), EAGAIN);
	CHECK_EQ(kb_sem_value(&s), 0);
	deadline = kb_now() + 10 * TEST_MS;
	CHECK_EQ(kb_sem_timedwait(&s, deadline), ETIMEDOUT);
	CHECK(kb_now() >= deadline);
	CHECK_EQ(kb_sem_timedwait(&s, 0), ETIMEDOUT);
	CHECK_EQ(kb_sem_post(&s), 0);
	CHECK_EQ(kb_sem_timedwait(&s, 0), 0);
	CHECK_EQ(kb_sem_destroy(&s), 0);
	CHECK_EQ(kb_sem_init(&s, KB_SEM_VALUE_MAX), 0);
	CHECK_EQ(kb_sem_value(&s), KB_SEM_VALUE_MAX);
	CHECK_EQ(kb_sem_post(&s), EOVERFLOW);
	CHECK_EQ(kb_sem_wait(&s), 0);
	CHECK_EQ(kb_sem_post(&s), 0);
	CHECK_EQ(kb_sem_init(&s, (uint32_t)KB_SEM_VALUE_MAX + 1), EINVAL);
	return 0;
}
