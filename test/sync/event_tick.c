/* A message, and then the tick, which reads it, come at any instruction of an owner that is about
 * to wait for the message: the owner gets it. The owner is stepped to that instruction.
 * matrix: vps=2
 * body: thread */
#define _GNU_SOURCE
#include <errno.h>
#include <kochab/kochab.h>

#include "test.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) /* ThreadSanitizer keeps signals back */
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { STEPS = 120, TRAP_FLAG = 0x100, NEVER = 1000000 };
/* ns; an owner that waits longer has lost the message */
static const uint64_t A_MESSAGE = 60000000000;

static kb_event_t event;
static kb_sem_t ready, taken;
static int left = NEVER;
static int sends, sent; /* sends to do, and sends done */

/* Called when the owner is at its instruction: the message comes, then the tick. */
static void arrived(void)
{
	int n = __atomic_add_fetch(&sends, 1, __ATOMIC_RELEASE);

	while (__atomic_load_n(&sent, __ATOMIC_ACQUIRE) != n)
		;
	(void)syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGURG);
}

static void stepped(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig;
	(void)info;
	if (left-- > 0)
		return;
	u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	left = NEVER;
	arrived();
}

static void step(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orl $0x100, (%%rsp); popfq; "
			 "lea 128(%%rsp), %%rsp"
			 ::: "cc", "memory");
}

/* Sends the messages, bound to the second virtual processor. */
static void *sender(void *unused)
{
	for (int n = 1; n <= STEPS; n++) {
		while (__atomic_load_n(&sends, __ATOMIC_ACQUIRE) != n)
			;
		kb_event_notify(&event, (uint64_t)n);
		__atomic_store_n(&sent, n, __ATOMIC_RELEASE);
	}
	return unused;
}

static void *owner(void *unused)
{
	CHECK_EQ(kb_event_init(&event, NULL), 0);
	CHECK_EQ(kb_sem_post(&ready), 0);
	for (int n = 1; n <= STEPS; n++) {
		uint64_t v = 0;

		/* a permit of the last round would make the owner look once more */
		CHECK_EQ(kb_event_timedwait(&event, &v, kb_now() + 1000), ETIMEDOUT);
		left = n;
		step();
		CHECK_EQ(kb_event_wait(&event, &v), 0);
		CHECK_EQ(v, n);
		CHECK_EQ(kb_sem_post(&taken), 0);
	}
	return unused;
}

static kb_thread_t starts(void *(*fn)(void *), int vp)
{
	kb_thread_t t;
	kb_attr_t a;

	CHECK_EQ(kb_attr_init(&a), 0);
	CHECK_EQ(kb_attr_setvp(&a, vp), 0);
	CHECK_EQ(kb_thread_create(&t, &a, fn, NULL), 0);
	return t;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = stepped, .sa_flags = SA_SIGINFO };
	kb_thread_t a, b;

	CHECK_EQ(sigaction(SIGTRAP, &sa, NULL), 0);
	CHECK_EQ(kb_sem_init(&ready, 0), 0);
	CHECK_EQ(kb_sem_init(&taken, 0), 0);
	a = starts(owner, 0);
	CHECK_EQ(kb_sem_wait(&ready), 0);
	b = starts(sender, 1);
	for (int n = 1; n <= STEPS; n++)
		if (kb_sem_timedwait(&taken, kb_now() + A_MESSAGE) != 0) {
			fprintf(stderr, "message %d is lost\n", n);
			return 1;
		}
	CHECK_EQ(kb_thread_join(a, NULL), 0);
	CHECK_EQ(kb_thread_join(b, NULL), 0);
	return 0;
}
#else
int main(void)
{
	SKIP("no stepping");
}
#endif
