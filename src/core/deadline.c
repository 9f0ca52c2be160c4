/* core/deadline.c - the heap of deadlines. Contract in deadline.h. Inside np brackets; no locks;
 * never switches.
 *
 * The owner of a node. While `lies` is 0, a descriptor's node belongs to its thread. Otherwise
 * the node belongs to the keeper of the VP that `lies` names: only this keeper links, moves and
 * removes it, wherever the thread is, even if the descriptor is a different thread's by now
 * (descriptors stay descriptors). The thread gives the node away when it arms here; the keeper
 * gives it back by a 0. A thread that has moved on and waits on a second VP meanwhile has a
 * guest node there, which is removed when the wait ends. */
#include "core/deadline.h"

/* The lowest bit of a key tells a thread's own node (0) from a guest (1); own_key is a
 * nanosecond later at most. */
static uint64_t own_key(uint64_t until)
{
	return (until + 1) & ~UINT64_C(1);
}

static uint64_t guest_key(uint64_t until)
{
	return until | 1;
}

/* The most nodes moved at one look because they are not due after all: a million nodes of ended
 * waits must not delay the waiting threads. */
enum { MOVED_MOST = 64 };

void kbi_deadline_arm(struct kbi_vp *dom, struct kb_thread *t, struct kbi_rest *rest,
	uint64_t until)
{
	/* acquire: pairs with the release in kbi_deadline_due */
	unsigned lies = a_load_acq(&t->lies);

	rest->until = until;
	rest->thread = t;
	rest->guest.prev = NULL;
	t->rest = rest;
	if (lies == dom->id + 1) {
		if (until < t->deadline.key) {
			kbi_heap_remove(&dom->deadlines, &t->deadline);
			kbi_heap_insert(&dom->deadlines, &t->deadline, own_key(until));
		}
	} else if (!lies) {
		kbi_heap_insert(&dom->deadlines, &t->deadline, own_key(until));
		a_store_rlx(&t->lies, (uint16_t)(dom->id + 1));
	} else {
		kbi_heap_insert(&dom->deadlines, &rest->guest, guest_key(until));
	}
	dom->n_timed++;
	kbi_task_set(&t->task, KBI_TASK_TIMED);
	if (dom->deadlines.root->key < a_load_rlx(&dom->next_deadline))
		a_store_rlx(&dom->next_deadline, dom->deadlines.root->key);
}

void kbi_deadline_disarm(struct kbi_vp *dom, struct kb_thread *t)
{
	if (kbi_unlikely(kbi_heap_holds(&t->rest->guest)))
		kbi_heap_remove(&dom->deadlines, &t->rest->guest);
	dom->n_timed--;
	kbi_task_clear(&t->task, KBI_TASK_TIMED);
}

/* Returns true if t, whose node lies here, is at a wait with a deadline here. */
static bool is_armed(const struct kbi_vp *dom, const struct kb_thread *t)
{
	/* acquire: pairs with the release store of WAITING. The rest is ours to read only if the
	 * state names this VP */
	uint64_t st = a_load_acq(&t->task.state);

	return (st == dom->waiting_here || st == dom->running_here) &&
		kbi_task_is(&t->task, KBI_TASK_TIMED);
}

struct kb_thread *kbi_deadline_due(struct kbi_vp *dom, uint64_t now)
{
	struct kbi_heap_node *n;

	for (unsigned moved = 0; (n = dom->deadlines.root) && n->key <= now &&
		moved < MOVED_MOST; moved++) {
		struct kb_thread *t = kbi_container(n, struct kb_thread, deadline);
		bool armed;

		kbi_heap_remove(&dom->deadlines, n);
		if (n->key & 1)
			return kbi_container(n, struct kbi_rest, guest)->thread;
		armed = is_armed(dom, t);
		if (armed && t->rest->until > now) {
			kbi_heap_insert(&dom->deadlines, n, own_key(t->rest->until));
			continue;
		}
		/* release: pairs with the acquire in kbi_deadline_arm; the thread may be on any VP */
		a_store_rel(&t->lies, 0);
		if (armed)
			return t;
	}
	a_store_rlx(&dom->next_deadline, kbi_vp_first_deadline(dom));
	return NULL;
}
