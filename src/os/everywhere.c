/* os/everywhere.c - one system call in every process. Contract in everywhere.h.
 * One at a time, under a lock that is held with all signals blocked; who waits for the lock makes the call that is under
 * way, so that two callers do not wait for each other. */
#include "os/everywhere.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/atom.h"
#include "os/real.h"
#include "os/sys.h"

enum { MASK_BYTES = 8, AGAIN = 20000000 /* ns */ };

struct process {
	a32 pid;     /* 0: none */
	a64 begun;   /* number of the last call it has made, or makes */
	a64 done;
	a32 excused; /* it stands at its end: nobody waits for it */
};

static struct {
	a32 lock;    /* the holder: its place in process, from 1, which it keeps when it is killed and has a successor */
	/* under the lock */
	struct process *process;
	unsigned n, most;
	struct kbi_everywhere_call call;
	bool making; /* the holder makes it */
	a64 number;  /* of the call; 0: there was none */
	a32 answers; /* the caller sleeps on it */
} all;

void (*kbi_everywhere_meanwhile)(void);
void (*kbi_everywhere_more)(void *context);
int kbi_everywhere_watcher;

static void handler(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)sig;
	(void)info;
	kbi_everywhere_answer();
	if (kbi_everywhere_more)
		kbi_everywhere_more(context);
	errno = saved;
}

int kbi_everywhere_setup(unsigned processes)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };

	all.process = kbi_sys_map(processes * sizeof *all.process);
	if (!all.process)
		return ENOMEM;
	all.most = processes;
	sigfillset(&sa.sa_mask);
	kbi_real.sigaction(KBI_EVERYWHERE_SIGNAL, &sa, NULL);
	return 0;
}

static struct process *find(int pid)
{
	for (unsigned i = 0; i < all.most && i < all.n; i++)
		if (a_load_rlx(&all.process[i].pid) == (uint32_t)pid)
			return &all.process[i];
	return NULL;
}

/* The caller's, which it keeps when it is killed and has a successor: between the two lines, perhaps. */
static struct process *mine(void)
{
	struct process *p;
	long pid;

	do {
		pid = kbi_sys(SYS_getpid);
		p = find((int)pid);
	} while (!p && pid != kbi_sys(SYS_getpid));
	return p;
}

bool kbi_everywhere_has_me(void)
{
	return mine();
}

static long make(const struct kbi_everywhere_call *c)
{
	long a[6], r;

	memcpy(a, c->arg, sizeof a);
	if (c->pointer >= 0)
		a[c->pointer] = (long)(uintptr_t)c->data;
	r = kbi_sys(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	for (unsigned i = 0; i < c->more; i++)
		kbi_sys(c->nr, a[0] += c->step, a[1], a[2], a[3], a[4], a[5]);
	return r;
}

void kbi_everywhere_answer(void)
{
	struct process *me = mine();
	/* acquire: partner is the release in tell; the call */
	uint64_t number = a_load_acq(&all.number), before;

	if (!me || (before = a_load_rlx(&me->begun)) == number || !a_cas_acqrel(&me->begun, &before, number))
		return;
	make(&all.call);
	/* release: partner is the acquire in is_waited_for */
	a_store_rel(&me->done, number);
	a_add_acqrel(&all.answers, 1);
	kbi_sys_futex_wake(&all.answers, 1);
}

/* Only its parent, the supervisor, can tell, which has not reaped it yet; to others every process lives. */
static bool is_dead_pid(uint32_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return !kbi_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL) && info.si_pid;
}

/* A holder. One that is not in the table is on its way there. */
static bool is_dead(uint32_t holder)
{
	uint32_t pid = holder && holder <= all.most ? a_load_rlx(&all.process[holder - 1].pid) : 0;

	return pid && is_dead_pid(pid);
}

static uint32_t my_place(void)
{
	const struct process *p = mine();

	return p ? (uint32_t)(p - all.process) + 1 : UINT32_MAX;
}

/* Who holds the lock waits for one that has ended, perhaps: to it that one lives for ever. */
static void forget_the_dead(void)
{
	siginfo_t info;

	if (kbi_sys(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL))
		return; /* it is nobody's parent */
	for (unsigned i = 0; i < all.n; i++) {
		uint32_t pid = a_load_rlx(&all.process[i].pid);

		if (pid && is_dead_pid(pid))
			kbi_everywhere_excuse((int)pid);
	}
}

/* It holds the lock, and stands at its end until it has a successor: nobody else can begin anything. */
static bool is_frozen(uint32_t holder)
{
	return holder && holder <= all.most && a_load_rlx(&all.process[holder - 1].excused);
}

/* True: it is held by one that is frozen. Only if the caller can act for it. */
static bool hold(uint64_t *mask, bool acts)
{
	const uint64_t every = ~(uint64_t)0;
	uint32_t holder = 0;

	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, mask, MASK_BYTES);
	/* acquire: partner is the release below */
	while (!a_cas_acq(&all.lock, &holder, my_place())) {
		if (acts && is_frozen(holder))
			return true;
		/* it ended, by exit in another of its kernel threads perhaps: the program ends, or so it will be told */
		if (is_dead(holder)) {
			if (acts)
				return true;
			if (a_cas_acq(&all.lock, &holder, my_place()))
				return false;
		}
		holder = 0;
		forget_the_dead();
		kbi_everywhere_answer();
		if (kbi_everywhere_meanwhile && kbi_sys(SYS_getpid) == kbi_everywhere_watcher)
			kbi_everywhere_meanwhile();
		kbi_sys_yield();
	}
	return false;
}

void kbi_everywhere_hold(uint64_t *mask)
{
	hold(mask, false);
}

void kbi_everywhere_release(uint64_t mask)
{
	all.making = false;
	/* release: partner is the acquire above */
	a_store_rel(&all.lock, 0);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_BYTES);
}

void kbi_everywhere_add(int pid)
{
	struct process *p = find(0);

	if (!p && all.n < all.most)
		p = &all.process[all.n++];
	if (!p)
		return;
	a_store_rlx(&p->begun, a_load_rlx(&all.number));
	a_store_rlx(&p->done, a_load_rlx(&all.number));
	a_store_rlx(&p->excused, 0);
	a_store_rel(&p->pid, (uint32_t)pid); /* partner: is_waited_for */
}

void kbi_everywhere_remove(int pid)
{
	struct process *p = find(pid);
	uint32_t holder = p ? (uint32_t)(p - all.process) + 1 : 0;

	if (p)
		a_store_rel(&p->pid, 0); /* partner: is_waited_for */
	if (holder)
		a_cas_acqrel(&all.lock, &holder, 0);
	kbi_sys_futex_wake(&all.answers, 1);
}

/* acquire: partner is the release in answer */
static bool is_waited_for(struct process *p, uint64_t number)
{
	return a_load_acq(&p->pid) && a_load_acq(&p->done) != number && !a_load_rlx(&p->excused);
}

static bool any_waited_for(uint64_t number, bool tell)
{
	bool any = false;

	for (unsigned i = 0; i < all.n; i++) {
		struct process *p = &all.process[i];
		uint32_t pid = a_load_rlx(&p->pid);

		if (!is_waited_for(p, number))
			continue;
		any = true;
		if (tell && pid && kbi_sys(SYS_kill, pid, KBI_EVERYWHERE_SIGNAL) == -ESRCH)
			a_cas_rlx(&p->pid, &pid, 0); /* if it has no successor */
	}
	return any;
}

/* Told again now and then: it may have been on its way out of a mask, or to its end. */
static void tell(void)
{
	struct process *me = mine();
	struct timespec patience = { 0, AGAIN };
	uint64_t number = a_load_rlx(&all.number) + 1;
	bool again = true;

	if (me) {
		a_store_rlx(&me->begun, number);
		a_store_rlx(&me->done, number);
	}
	/* release: partner is the acquire in answer */
	a_store_rel(&all.number, number);
	for (;;) {
		uint32_t answers = a_load_acq(&all.answers);

		if (!any_waited_for(number, again))
			return;
		again = kbi_sys_futex_wait(&all.answers, answers, &patience) == -ETIMEDOUT;
		if (again)
			forget_the_dead();
	}
}

/* ---- one that was killed ----------------------------------------------------------------------------------------- */

void kbi_everywhere_excuse(int pid)
{
	struct process *p = find(pid);

	if (!p || a_load_rlx(&p->excused))
		return;
	a_store_rel(&p->excused, 1); /* partner: is_waited_for; the futex's own */
	a_add_acqrel(&all.answers, 1);
	kbi_sys_futex_wake(&all.answers, 1);
}

bool kbi_everywhere_act_for(int old, uint64_t *mask)
{
	bool its;

	kbi_everywhere_excuse(old);
	its = hold(mask, true);
	if (its && all.making)
		make(&all.call);
	kbi_everywhere_answer();
	return its;
}

void kbi_everywhere_succeed(int old, int now)
{
	struct process *p = find(old);

	if (p) {
		/* a copy of the caller, which has made all; if old is about to announce one it has made that, too */
		if (a_load_rlx(&p->done) < a_load_rlx(&all.number)) {
			a_store_rlx(&p->begun, a_load_rlx(&all.number));
			a_store_rlx(&p->done, a_load_rlx(&all.number));
		}
		a_store_rlx(&p->excused, 0);
		a_store_rel(&p->pid, (uint32_t)now); /* partner: is_waited_for */
	}
}

long kbi_everywhere(const struct kbi_everywhere_call *c)
{
	uint64_t mask;
	long r;

	kbi_everywhere_hold(&mask);
	/* said before it is made: who acts for a holder that was killed makes it again */
	all.call = *c;
	kbi_compiler_barrier();
	all.making = true;
	r = make(c);
	if ((unsigned long)r <= -4096ul)
		tell();
	kbi_everywhere_release(mask);
	return r;
}
