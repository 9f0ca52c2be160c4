/* core/watch.c - watched words. Contract in watch.h. Each record lies on its waiter's stack, linked
 * into the domain where the waiter sleeps; only the keeper of that domain touches the list. */
#include "core/watch.h"

#include <errno.h>
#include <kochab/kochab.h>

#include "core/timer.h"
#include "core/domain.h"
#include "os/sys.h"

/* Polls in the caller, a foreign kernel thread, with naps that double from 1 us to 1 ms. */
static int foreign_wait(struct kbi_watch *w, uint64_t deadline)
{
	long nap = 1000;

	while (!kbi_domain_watch_changed(w)) {
		struct timespec ts = { 0, nap };

		if (kbi_timer_now() >= deadline)
			return ETIMEDOUT;
		kbi_sys(SYS_nanosleep, &ts, NULL);
		if (nap < 1000000)
			nap *= 2;
	}
	return 0;
}

KBI_NOINLINE int kbi_watch_wait(const volatile void *word, unsigned size, uint64_t old,
	uint64_t deadline)
{
	struct kbi_task *self = kbi_self();
	struct kbi_watch w = { .word = word, .old = old, .size = size, .task = self };
	int e = 0;

	if (!self->vp)
		return foreign_wait(&w, deadline);
	while (!kbi_domain_watch_changed(&w)) {
		if (e == ETIMEDOUT)
			return e;
		kbi_np_enter(self);
		kbi_domain_watch_add(self->vp, &w, NULL);
		e = kbi_timer_sleep(self, deadline);
		if (kbi_task_is(self, KBI_TASK_ARMED)) /* it did not sleep: a permit was pending */
			kbi_domain_disarm(self->vp, kbi_thread_of(self));
		kbi_np_leave(self);
		kbi_wait_handle(self);
	}
	return 0;
}

int kb_watch32(const volatile uint32_t *word, uint32_t old, uint64_t deadline)
{
	return kbi_watch_wait(word, 4, old, deadline);
}

int kb_watch64(const volatile uint64_t *word, uint64_t old, uint64_t deadline)
{
	return kbi_watch_wait(word, 8, old, deadline);
}
