/* An event has a single pending notification, a later notification replaces an earlier; only the
 * owner waits; deadlines. */
#include <errno.h>

#include "threads.h"

static kb_event_t event;

static void *not_the_owner(void *arg)
{
	uint64_t v;

	(void)arg;
	CHECK_EQ(kb_event_wait(&event, &v), EPERM);
	CHECK_EQ(kb_event_timedwait(&event, &v, 0), EPERM);
	CHECK_EQ(kb_event_try(&event, &v), EPERM);
	kb_event_notify(&event, 77);
	return NULL;
}

static void body(void)
{
	uint64_t v = 0, deadline;

	CHECK_EQ(kb_event_init(&event, NULL), 0);
	CHECK_EQ(kb_event_try(&event, &v), EAGAIN);
	kb_event_notify(&event, 1);
	kb_event_notify(&event, 2);
	kb_event_notify(&event, 3);
	CHECK_EQ(kb_event_try(&event, &v), 0);
	CHECK_EQ(v, 3);
	CHECK_EQ(kb_event_try(&event, &v), EAGAIN);
	deadline = kb_now() + 5 * TEST_MS;
	CHECK_EQ(kb_event_timedwait(&event, &v, deadline), ETIMEDOUT);
	CHECK(kb_now() >= deadline);
	kb_event_notify(&event, 4);
	CHECK_EQ(kb_event_timedwait(&event, NULL, 0), 0);
	workers_run(1, not_the_owner, NULL);
	CHECK_EQ(kb_event_wait(&event, &v), 0);
	CHECK_EQ(v, 77);
	CHECK_EQ(kb_event_try(&event, &v), EAGAIN);
}

int main(void)
{
	test_both(body);
	return 0;
}
