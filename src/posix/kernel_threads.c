/* posix/kernel_threads.c - threads of the program that are kernel threads: libc makes them, and all
 * of our objects serve them as foreign threads. Callers: posix/thread, which decides. Join may
 * switch. */
#include "posix/bind.h"

#include <stdlib.h>

#include "core/place.h"
#include "posix/affinity.h"
#include "sync/sem.h"

struct kernel_start {
	void *(*fn)(void *);
	void *arg;
	uint32_t bound; /* enum kbi_bind_why */
	bool c11;
	/* it leaves the virtual processor's place, if the virtual processor is bound to one */
	bool leaves;
};

static void kernel_ended(void *unused)
{
	(void)unused;
	kb_sem_post(&kbi_posix_me.ended);
}

static void *kernel_body(void *arg)
{
	struct kernel_start s = *(struct kernel_start *)arg;
	void *result;

	free(arg);
	a_store_rlx(&kbi_posix_me.kernel, 1);
	if (s.leaves)
		kbi_place_leave();
	kbi_bind_inherit(s.bound);
	pthread_cleanup_push(kernel_ended, NULL);
	result = s.c11 ? (void *)(intptr_t)((int (*)(void *))(uintptr_t)s.fn)(s.arg) : s.fn(s.arg);
	pthread_cleanup_pop(1);
	return result;
}

int kbi_kernel_thread_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *),
	void *arg, bool c11, uint32_t bound)
{
	struct kernel_start *s = malloc(sizeof(*s));
	int e, policy = SCHED_OTHER;
	bool given = false, other;

	if (!s)
		return EAGAIN;
	if (attr) {
		pthread_attr_getschedpolicy(attr, &policy);
		/* the creator's policy was expected when the creator got it */
		kbi_thread_attrs_expect(policy);
	}
	if (attr)
		kbi_affinity_of(attr, &given, &other);
	*s = (struct kernel_start){ fn, arg, bound, c11, !bound && !given };
	kbi_posix_made_kernel = true;
	/* from here on the new thread may have detached itself and ended: only the thread itself writes
	 * its record */
	e = kbi_libc()->pthread_create(id, attr, kernel_body, s);
	if (e)
		free(s);
	return e;
}

/* ---- joining ------------------------------------------------------------------------------ */

/* Waits for the end of the thread. 0, or ETIMEDOUT. */
static int await_end(struct kbi_posix_thread *r, uint64_t deadline)
{
	int e;

	do {
		e = kbi_sem_wait(&r->ended, kbi_posix_until_cancelled(deadline));
		kbi_signal_resumed();
		if (e == ECANCELED)
			kbi_cancel_test();
	} while (e == EINTR || e == ECANCELED);
	return e;
}

static void nap_until(uint64_t deadline)
{
	if (kbi_waitq_sleep(kbi_self_raw(), kbi_posix_until_cancelled(deadline)) == ECANCELED)
		kbi_cancel_test();
	kbi_signal_resumed();
}

/* Waits until the thread has started: a thread that we made says so as soon as it runs; a thread of
 * libc's own never does, and libc waits for it. EBUSY: it has started, or had the time to start;
 * else the result of libc's join, or ETIMEDOUT. */
static int await_start(pthread_t id, void **result, uint64_t deadline)
{
	enum { FIRST = 50000, LAST = 25000000 /* ns */ };
	const struct kbi_posix_thread *r = kbi_posix_record(id);
	int e = EBUSY;

	for (uint64_t nap = FIRST; nap < LAST && !a_load_rlx(&r->kernel); nap *= 2) {
		uint64_t now = kbi_timer_now();

		e = kbi_libc()->pthread_tryjoin_np(id, result);
		if (e != EBUSY)
			break;
		if (now >= deadline)
			return ETIMEDOUT;
		nap_until(now + nap < deadline ? now + nap : deadline);
	}
	return e;
}

int kbi_kernel_thread_join(pthread_t id, void **result, uint64_t deadline, bool *joined)
{
	struct kbi_posix_thread *r = kbi_posix_record(id);
	int e;

	*joined = false;
	if (!kbi_posix_light())
		return 0;
	e = a_load_rlx(&r->kernel) ? EBUSY : await_start(id, result, deadline);
	*joined = e == 0;
	if (e == EBUSY)
		e = a_load_rlx(&r->kernel) ? await_end(r, deadline) : 0;
	return e;
}
