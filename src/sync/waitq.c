/* sync/waitq.c - waiting for a verdict. Contract and laws in waitq.h.
 * Runs on the waiter's stack; may switch in sleep and await only. */
#include "sync/waitq.h"

#include <errno.h>
#include <time.h>

#include "os/sys.h"

/* Tries before the kernel thread lets others run: the holder of the bit may have been preempted. */
enum { TRIES_PER_YIELD = 128 };

void kbi_waitq_pause(unsigned n)
{
	if (n % TRIES_PER_YIELD == TRIES_PER_YIELD - 1)
		kbi_sys_yield();
	else
		kbi_cpu_relax();
}

void kbi_waitq_grant_all(struct kbi_wnode *chain, uint32_t verdict)
{
	while (chain) {
		struct kbi_wnode *next = chain->next;

		kbi_waitq_grant(chain, verdict);
		chain = next;
	}
}

/* Ends after a second, too; then whoever waits looks again. */
static int sleep_real(struct kbi_task *self, uint64_t ns)
{
	enum { SECOND = 1000000000 };
	int64_t sec = (int64_t)(ns / SECOND);
	long nsec = (long)(ns % SECOND);
	int rc = kbi_timer_sleep(self, kbi_timer_deadline(CLOCK_REALTIME, sec, nsec));

	return rc == ETIMEDOUT && !kbi_timer_passed(CLOCK_REALTIME, sec, nsec) ? 0 : rc;
}

int kbi_waitq_sleep(struct kbi_task *self, struct kbi_until until)
{
	int rc = until.stop ? until.stop(self) : 0;

	if (rc)
		return rc;
	if (until.deadline == KBI_FOREVER) {
		kbi_wait_sleep(self);
		return 0;
	}
	if (until.deadline & KBI_WAITQ_REAL)
		return sleep_real(self, until.deadline & ~KBI_WAITQ_REAL);
	return kbi_timer_sleep(self, until.deadline);
}

/* A wait whose thread is unwound by a handler that stop has run: cancelled there, or pthread_exit. */
struct await {
	struct kbi_wnode *n;
	bool (*leave)(void *object, struct kbi_wnode *n);
	void *object;
	bool over;
};

static void unwound(struct await *a)
{
	if (!a->over && !a->leave(a->object, a->n))
		(void)kbi_waitq_await(a->n, kbi_waitq_until(KBI_FOREVER), a->leave, a->object);
}

int kbi_waitq_await(struct kbi_wnode *n, struct kbi_until until,
		    bool (*leave)(void *object, struct kbi_wnode *n), void *object)
{
	struct await a __attribute__((cleanup(unwound))) = { n, leave, object, false };

	/* acquire: partner is the release in kbi_waitq_grant */
	while (a_load_acq(&n->state) < KBI_WNODE_GRANTED) {
		int rc = kbi_waitq_sleep(n->task, until);

		if (kbi_likely(rc == 0) || rc == EAGAIN)
			continue;
		if (leave(object, n)) {
			a.over = true;
			return rc;
		}
		until = kbi_waitq_until(KBI_FOREVER);
	}
	a.over = true;
	return 0;
}

bool kbi_waitq_leave(a32 *word, struct kbi_waitq *q, struct kbi_wnode *n)
{
	struct kbi_task *self = n->task;
	uint32_t value;
	bool queued;

	kbi_np_enter(self);
	value = kbi_waitq_lock(word) & ~(uint32_t)KBI_WAITQ_SOME;
	queued = a_load_rlx(&n->state) == KBI_WNODE_QUEUED;
	if (queued)
		kbi_waitq_remove(q, n);
	kbi_waitq_unlock(word, value | kbi_waitq_some(q));
	kbi_np_leave(self);
	return queued;
}
