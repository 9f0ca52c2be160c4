/* posix/kernel.c - threads of the program that are kernel threads: libc makes them, and all of our objects serve
 * them as foreign ones. Callers: posix/thread, which decides. Join may switch. */
#include "posix/bind.h"

#include <stdlib.h>

#include "sync/sem.h"

struct kernel_start {
	void *(*fn)(void *);
	void *arg;
	uint32_t bound; /* enum kbi_bind_why */
	bool c11;
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
	kbi_bind_inherit(s.bound);
	pthread_cleanup_push(kernel_ended, NULL);
	result = s.c11 ? (void *)(intptr_t)((int (*)(void *))(uintptr_t)s.fn)(s.arg) : s.fn(s.arg);
	pthread_cleanup_pop(1);
	return result;
}

int kbi_kernel_create(pthread_t *id, const pthread_attr_t *attr, void *(*fn)(void *), void *arg, bool c11,
		      uint32_t bound)
{
	struct kernel_start *s = malloc(sizeof(*s));
	int e, state = PTHREAD_CREATE_JOINABLE, policy = SCHED_OTHER;

	if (!s)
		return EAGAIN;
	if (attr) {
		pthread_attr_getdetachstate(attr, &state);
		pthread_attr_getschedpolicy(attr, &policy);
		kbi_about_expect(policy); /* its creator's was expected when that got it */
	}
	*s = (struct kernel_start){ fn, arg, bound, c11 };
	kbi_posix_made_kernel = true;
	e = kbi_libc()->pthread_create(id, attr, kernel_body, s);
	if (e)
		free(s);
	else if (state == PTHREAD_CREATE_JOINABLE)
		a_store_rlx(&kbi_posix_record(*id)->kernel, 1);
	return e;
}

/* A lightweight thread first waits here for its end, so that libc's join is short. */
int kbi_kernel_join(pthread_t id, uint64_t deadline)
{
	struct kbi_posix_thread *r = kbi_posix_record(id);
	int e;

	if (!kbi_posix_light() || !a_load_rlx(&r->kernel))
		return 0;
	do {
		e = kbi_sem_wait(&r->ended, kbi_posix_until_cancelled(deadline));
		kbi_signal_resumed();
		if (e == ECANCELED)
			kbi_cancel_test();
	} while (e == EINTR || e == ECANCELED);
	return e;
}
