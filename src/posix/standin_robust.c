/* posix/standin_robust.c - robust stand-ins: kernel threads that stand in for lightweight threads
 * when the process is killed. The kernel then marks the robust mutexes of its kernel threads. A
 * lightweight thread that takes a robust mutex which other processes share gets a kernel thread
 * that lends its number as the owner, registers the thread's list of robust mutexes as its own, and
 * does nothing else.
 * Callers: posix/libc_mutex; start, block_signals and may_be_lost also posix/standin_futex,
 * standin_libc and aside. kbi_standin_robust_begin may switch. */
#include "posix/posix.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "base/option.h"
#include "libc/tcb.h"
#include "os/sys.h"
#include "sync/sem.h"

enum { STACK = 128 << 10 };

int kbi_standin_start(pthread_t *id, void *(*body)(void *), void *arg)
{
	pthread_attr_t attr;
	int e;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	e = kbi_libc()->pthread_create(id, &attr, body, arg);
	pthread_attr_destroy(&attr);
	return e;
}

void kbi_standin_block_signals(void)
{
	sigset_t all;

	sigfillset(&all); /* except libc's own */
	kbi_libc()->pthread_sigmask(SIG_SETMASK, &all, NULL);
}

bool kbi_standin_may_be_lost(void)
{
	return kbi_sys_from.processes && kbi_options.contain;
}

struct kbi_standin_robust {
	void *head; /* the lightweight thread's list of robust mutexes */
	uint32_t tid;
	kb_sem_t ready, over;
};

static void *run_standin_robust(void *arg)
{
	struct kbi_standin_robust *g = arg;
	void *own = NULL;
	size_t size = 0;

	kbi_standin_block_signals();
	kbi_sys(SYS_get_robust_list, 0, &own, &size);
	kbi_sys(SYS_set_robust_list, g->head, size);
	g->tid = (uint32_t)kbi_sys_gettid();
	kb_sem_post(&g->ready);
	kbi_sem_wait_asked(&g->over, kbi_waitq_until(KBI_FOREVER));
	kbi_sys(SYS_set_robust_list, own, size);
	free(g);
	return NULL;
}

void kbi_standin_robust_begin(void *robust_head)
{
	struct kb_thread *t = kbi_thread_of(kbi_self());
	struct kbi_standin_robust *g = calloc(1, sizeof(*g));
	pthread_t id;

	if (!g)
		return;
	g->head = robust_head;
	if (kbi_standin_start(&id, run_standin_robust, g)) {
		free(g);
		return;
	}
	kbi_sem_wait_asked(&g->ready, kbi_waitq_until(KBI_FOREVER));
	kbi_tcb_settid(&t->stack->tcb, g->tid);
	kbi_posix_me.standin_robust = g;
}

void kbi_standin_robust_end(void)
{
	struct kb_thread *t = kbi_thread_of(kbi_self());

	kbi_tcb_settid(&t->stack->tcb, kbi_tcb_own_tid(&t->stack->tcb));
	kb_sem_post(&kbi_posix_me.standin_robust->over);
	kbi_posix_me.standin_robust = NULL;
}
