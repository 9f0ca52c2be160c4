/* hostile.h - a space with an object of each kind, and a use of all of them with deadlines, which
 * may fail but ends. The memory beside a received element stays as it was. */
#ifndef KB_SPACE_HOSTILE_H
#define KB_SPACE_HOSTILE_H

#include "space_test.h"

enum { WAIT_MS = 30, ELEMENT = 16, CAPACITY = 4 };

static struct all {
	kb_space_t *s;
	kb_space_chan_t *chan;
	kb_space_event_t *event;
	kb_space_sem_t *sem;
	kb_space_mutex_t *mutex;
	kb_space_cond_t *cond;
	kb_space_rwlock_t *lock;
	kb_space_barrier_t *barrier;
	char *memory;
} a;

static int open_all(void)
{
	unsigned both = KB_SPACE_RECV | KB_SPACE_SEND;
	int e = 0;

	e |= kb_space_chan_open(a.s, "chan", ELEMENT, CAPACITY, both, &a.chan);
	e |= kb_space_event_open(a.s, "event", both, &a.event);
	e |= kb_space_sem_open(a.s, "sem", 1, &a.sem);
	e |= kb_space_mutex_open(a.s, "mutex", &a.mutex);
	e |= kb_space_cond_open(a.s, "cond", &a.cond);
	e |= kb_space_rwlock_open(a.s, "lock", &a.lock);
	e |= kb_space_barrier_open(a.s, "barrier", 2, &a.barrier);
	e |= kb_space_memory_open(a.s, "memory", 1000, (void **)&a.memory);
	return e;
}

static void use_all(void)
{
	struct { uint64_t word[2], guard[4]; } e = { { 1, 2 }, { 7, 7, 7, 7 } };
	kb_space_case_t c[2] = {
		{ .op = KB_SELECT_RECV, .chan = a.chan, .element = e.word },
		{ .op = KB_SELECT_EVENT, .event = a.event },
	};
	size_t chosen;

	if (a.chan) {
		kb_space_chan_recv(a.chan, e.word, in_ms(WAIT_MS));
		for (int i = 0; i < 4; i++)
			CHECK_EQ(e.guard[i], 7);
		for (int i = 0; i < CAPACITY + 1; i++)
			if (kb_space_chan_send(a.chan, e.word, in_ms(WAIT_MS)))
				break;
		kb_space_chan_length(a.chan);
	}
	if (a.chan && a.event)
		kb_space_select(c, 2, in_ms(WAIT_MS), &chosen);
	if (a.event) {
		kb_space_event_notify(a.event, 1);
		kb_space_event_wait(a.event, e.word, in_ms(WAIT_MS));
		kb_space_event_wait(a.event, e.word, in_ms(WAIT_MS));
	}
	if (a.sem) {
		kb_space_sem_wait(a.sem, in_ms(WAIT_MS));
		kb_space_sem_wait(a.sem, in_ms(WAIT_MS));
		kb_space_sem_post(a.sem);
	}
	if (a.mutex && kb_space_mutex_lock(a.mutex, in_ms(WAIT_MS)) == 0)
		kb_space_mutex_unlock(a.mutex);
	if (a.cond) {
		kb_space_cond_signal(a.cond);
		kb_space_cond_broadcast(a.cond);
	}
	if (a.lock && kb_space_rwlock_rdlock(a.lock, in_ms(WAIT_MS)) == 0)
		kb_space_rwlock_unlock(a.lock);
	if (a.lock && kb_space_rwlock_wrlock(a.lock, in_ms(WAIT_MS)) == 0)
		kb_space_rwlock_unlock(a.lock);
	if (a.barrier)
		kb_space_barrier_wait(a.barrier, in_ms(WAIT_MS));
	if (a.memory)
		memset(a.memory, 1, 1000);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(e.guard[i], 7);
}

static void *use_light(void *unused)
{
	use_all();
	return unused;
}

#endif
