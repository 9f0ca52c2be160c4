/* core/process_stack.c - stacks of processes. Contract in process_stack.h. Some stacks are kept in
 * reserve. While a thread forks none can be made, and that thread may wait for a stack for a
 * process that has to run. And the supervisor's memory must not come from libc, which makes TLS
 * blocks: no other process would see that memory. */
#include "core/process_stack.h"

#include "core/supervisor.h"
#include "libc/tcb.h"
#include "mem/stack.h"
#include "os/lock.h"
#include "os/sys.h"

enum { STACK = 65536, KEPT = 8 };

static struct {
	aptr returned;            /* stacks of processes that have ended; any process, atomic */
	a32 lock;
	/* under the lock */
	struct kbi_stack *first;  /* for processes to come */
	a32 n;
	a32 adding;               /* lock: a thread at a time makes a stack */
} stacks;

static struct kbi_stack *new_stack(void)
{
	int class = kbi_stack_class(STACK, true);

	return class < 0 ? NULL : kbi_stack_get_or_make(class);
}

static void keep_stack(struct kbi_stack *s)
{
	s->next = stacks.first;
	stacks.first = s;
	a_add_rlx(&stacks.n, 1);
}

static void fill_stack_reserve(unsigned n)
{
	struct kbi_stack *s;

	if (kbi_sys(SYS_getpid) == kbi_supervisor.pid)
		return;
	kbi_tcb_hurry(true);
	while (a_load_rlx(&stacks.n) < n && (s = new_stack()))
		keep_stack(s);
	kbi_tcb_hurry(false);
}

unsigned kbi_process_stack_kept(void)
{
	return a_load_rlx(&stacks.n);
}

bool kbi_process_stack_add(void)
{
	struct kbi_stack *s;

	if (kbi_sys(SYS_getpid) == kbi_supervisor.pid || !kbi_lock_try(&stacks.adding))
		return false;
	s = new_stack();
	kbi_lock_leave(&stacks.adding);
	if (!s)
		return false;
	kbi_lock_take(&stacks.lock);
	keep_stack(s);
	kbi_lock_leave(&stacks.lock);
	return true;
}

struct kbi_stack *kbi_process_stack_take(unsigned more)
{
	struct kbi_stack *s, *next;

	kbi_lock_take(&stacks.lock);
	/* partner: the release in kbi_process_stack_put */
	for (s = a_xchg_acq(&stacks.returned, NULL); s; s = next) {
		next = s->next;
		keep_stack(s);
	}
	if (more || !stacks.first)
		fill_stack_reserve(more + KEPT);
	s = stacks.first;
	if (s) {
		stacks.first = s->next;
		a_sub_rlx(&stacks.n, 1);
	}
	kbi_lock_leave(&stacks.lock);
	return s;
}

void kbi_process_stack_put(struct kbi_stack *s)
{
	void *old = a_load_rlx(&stacks.returned);

	do
		s->next = old;
	while (!a_cas_rel(&stacks.returned, &old, s)); /* release: partner is the acquire in
	                                                * kbi_process_stack_take */
}
