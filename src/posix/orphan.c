/* posix/orphan.c - objects of the parent in the child of fork. Threads that waited for an object,
 * or worked on its queue at the fork, do not exist in the child; a wake-up of such a thread, or a
 * hand-over to it, would be lost. So an object forgets its waiters when the child first waits for
 * it or wakes somebody, and its address is noted: any later waiter is real. Callers: posix/mutex,
 * cond, sem, rwlock, barrier, once, fork; in the child only (kbi_posix_forked). A kernel-thread
 * lock is held for the table only. Never switches. */
#include "posix/posix.h"

#include <string.h>

#include "os/lock.h"
#include "os/sys.h"
#include "sync/barrier.h"
#include "sync/cond.h"
#include "sync/mutex.h"
#include "sync/once.h"
#include "sync/park.h"
#include "sync/rwlock.h"
#include "sync/sem.h"

enum { LISTS = 1024 };

struct known {
	const void *object;
	struct known *next;
};

static struct known *lists[LISTS]; /* under lock */
static struct known *room;
static size_t room_left;
static a32 lock;

static void lock_orphan_table(void)
{
	kbi_lock_take(&lock);
}

static void unlock_orphan_table(void)
{
	kbi_lock_leave(&lock);
}

/* Returns an entry of the table, not from malloc, which may use mutexes itself. Call under lock. */
static struct known *new_orphan_entry(void)
{
	enum { CHUNK = 65536 };

	if (room_left == 0) {
		room = kbi_sys_map(CHUNK);
		if (!room)
			kbi_sys_fatal("no memory in a forked process");
		room_left = CHUNK / sizeof(*room);
	}
	room_left--;
	return room++;
}

/* Returns whether the object is seen for the first time. Call under lock. */
static bool add_unseen_object(const void *object)
{
	struct known **list = &lists[((uintptr_t)object >> 3) % LISTS], *k;

	for (k = *list; k; k = k->next)
		if (k->object == object)
			return false;
	k = new_orphan_entry();
	*k = (struct known){ object, *list };
	*list = k;
	return true;
}

/* Makes every object new again, in a child. */
void kbi_orphan_all(void)
{
	memset(lists, 0, sizeof(lists));
	a_store_rlx(&lock, 0);
	kbi_park_orphan();
}

void kbi_orphan_mutex(kb_mutex_t *m)
{
	lock_orphan_table();
	if (add_unseen_object(m))
		kbi_mutex_orphan(m);
	unlock_orphan_table();
}

void kbi_orphan_cond(kb_cond_t *c)
{
	lock_orphan_table();
	if (add_unseen_object(c))
		kbi_cond_orphan(c);
	unlock_orphan_table();
}

void kbi_orphan_sem(kb_sem_t *s)
{
	lock_orphan_table();
	if (add_unseen_object(s))
		kbi_sem_orphan(s);
	unlock_orphan_table();
}

void kbi_orphan_rwlock(kb_rwlock_t *l)
{
	lock_orphan_table();
	if (add_unseen_object(l))
		kbi_rwlock_orphan(l);
	unlock_orphan_table();
}

void kbi_orphan_once(kb_once_t *o)
{
	lock_orphan_table();
	if (add_unseen_object(o))
		kbi_once_orphan(o);
	unlock_orphan_table();
}

void kbi_orphan_barrier(kb_barrier_t *b)
{
	lock_orphan_table();
	if (add_unseen_object(b))
		kbi_barrier_orphan(b);
	unlock_orphan_table();
}
