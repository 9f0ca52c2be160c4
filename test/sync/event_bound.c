/* Events whose owners are bound to virtual processors are notified from their own VP, from
 * different VPs, and by kernel threads: each message comes once, in order, and its owner stays
 * where it is bound. */
#include "core/own_tls.h"
#include "threads.h"

enum { OWNERS = 24, LAPS = 200 };

static kb_event_t event[OWNERS];
static kb_sem_t lap_over;
static int ready;

/* Two neighbours on one virtual processor, then two on the next. */
static int home_of(int i)
{
	return i / 2 % (int)kb_vp_count();
}

static void *own(void *arg)
{
	int me = (int)(intptr_t)arg;
	uint64_t v;

	CHECK_EQ(kb_event_init(&event[me], NULL), 0);
	test_add(&ready, 1);
	for (int lap = 0; lap < LAPS; lap++) {
		CHECK_EQ(kb_event_wait(&event[me], &v), 0);
		CHECK_EQ(v, (uint64_t)lap * OWNERS + (uint64_t)me);
		CHECK_EQ(kb_vp_self(), home_of(me));
		if (me + 1 < OWNERS)
			kb_event_notify(&event[me + 1], v + 1);
		else
			CHECK_EQ(kb_sem_post(&lap_over), 0);
	}
	return NULL;
}

/* Notifies from a thread that is bound to no VP, or from a kernel thread. */
static void *begin_laps(void *unused)
{
	for (int lap = 0; lap < LAPS; lap++) {
		kb_event_notify(&event[0], (uint64_t)lap * OWNERS);
		CHECK_EQ(kb_sem_wait(&lap_over), 0);
	}
	return unused;
}

static void body(void)
{
	kb_thread_t t[OWNERS];
	kb_attr_t a;

	ready = 0;
	CHECK_EQ(kb_sem_init(&lap_over, 0), 0);
	for (int i = 0; i < OWNERS; i++) {
		CHECK_EQ(kb_attr_init(&a), 0);
		CHECK_EQ(kb_attr_setvp(&a, home_of(i)), 0);
		CHECK_EQ(kb_attr_settls(&a, own_tls_or_light(i % 3 ? KB_TLS_LIGHT : KB_TLS_OWN)), 0);
		CHECK_EQ(kb_thread_create(&t[i], &a, own, (void *)(intptr_t)i), 0);
	}
	test_reach(&ready, OWNERS);
	workers_run(1, begin_laps, NULL);
	for (int i = 0; i < OWNERS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

int main(void)
{
	test_both(body);
	return 0;
}
