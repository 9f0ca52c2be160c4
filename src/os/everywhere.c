/* os/everywhere.c - one system call in every process. Contract in everywhere.h.
 * One at a time, under a lock that is held with all signals blocked; who waits for the lock makes the call that is under
 * way, so that two callers do not wait for each other.
 * The signal ends some system calls that are not restarted. Who sends it looks before which call the other is in, and the
 * handler has that made again, for the rest of its time. Where the other went into it just between, EINTR is seen. */
#include "os/everywhere.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/atom.h"
#include "os/context.h"
#include "os/real.h"
#include "os/sys.h"

enum {
	MASK_BYTES = 8,
	ACTION_MASK = 3,  /* a word of the kernel's struct, x86-64 */
	AGAIN = 20000000, /* ns */
	STAND = -1,       /* instead of a call's number: do nothing for a while */
};

struct process {
	a32 pid;     /* 0: none */
	a64 begun;   /* number of the last call it has made, or makes */
	a64 done;
	struct kbi_context_call call; /* that it was found in; constant while it is waited for */
	struct kbi_context_rest rest; /* its own */
};

uint64_t kbi_everywhere_kept = (uint64_t)1 << (KBI_EVERYWHERE_SIGNAL - 1);

static struct {
	a32 lock;    /* pid of the holder */
	/* under the lock */
	struct process *process;
	unsigned n, most;
	struct kbi_everywhere_call call;
	a64 number;  /* of the call; 0: there was none */
	a32 answers; /* the caller sleeps on it */
	a32 standing; /* the last half of the number of a stop; 0: none is on */
	/* constant after setup: what signals do as the kernel has it; libc's, ours */
	uint64_t before[4], ours[4];
} all;

static struct process *find(int pid)
{
	for (unsigned i = 0; i < all.most && i < all.n; i++)
		if (a_load_rlx(&all.process[i].pid) == (uint32_t)pid)
			return &all.process[i];
	return NULL;
}

bool kbi_everywhere_has_me(void)
{
	return find((int)kbi_sys(SYS_getpid));
}

static long make(const struct kbi_everywhere_call *c)
{
	long a[6], r;
	int sig = 0;

	memcpy(a, c->arg, sizeof a);
	if (c->pointer >= 0)
		a[c->pointer] = (long)(uintptr_t)c->data;
	if (c->rights)
		kbi_sys(SYS_prctl, PR_GET_PDEATHSIG, &sig);
	r = kbi_sys(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	for (unsigned i = 0; i < c->more; i++)
		kbi_sys(c->nr, a[0] += c->step, a[1], a[2], a[3], a[4], a[5]);
	if (c->rights)
		kbi_sys(SYS_prctl, PR_SET_PDEATHSIG, sig);
	return r;
}

/* Only its parent, the supervisor, can tell, which has not reaped it yet; to others every process lives. */
static bool is_dead(uint32_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return !kbi_sys(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL) && info.si_pid;
}

/* Who holds the lock waits for one that has ended, perhaps: to it that one lives for ever. */
static void forget_the_dead(void)
{
	siginfo_t info;

	if (kbi_sys(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL, NULL))
		return; /* it is nobody's parent */
	for (unsigned i = 0; i < all.n; i++) {
		uint32_t pid = a_load_rlx(&all.process[i].pid);

		/* release: partner is the acquire in is_waited_for */
		if (pid && is_dead(pid) && a_cas_acqrel(&all.process[i].pid, &pid, 0)) {
			a_add_acqrel(&all.answers, 1);
			kbi_sys_futex_wake(&all.answers, 1);
		}
	}
}

/* Another stop may follow this one at once: that is not this one. Who stops us waits for all, and cannot know that one of
 * them is at its end: their parent looks. */
static void stand(uint32_t number)
{
	const struct timespec patience = { 0, AGAIN };

	/* acquire: partner is the release in kbi_everywhere_release */
	while (a_load_acq(&all.standing) == number)
		if (kbi_sys_futex_wait(&all.standing, number, &patience) == -ETIMEDOUT)
			forget_the_dead();
}

void kbi_everywhere_answer(void)
{
	struct process *me = find((int)kbi_sys(SYS_getpid));
	/* acquire: partner is the release in tell; the call */
	uint64_t number = a_load_acq(&all.number), before;
	bool stop;

	if (!me || (before = a_load_rlx(&me->begun)) == number || !a_cas_acqrel(&me->begun, &before, number))
		return;
	stop = all.call.nr == STAND;
	if (!stop)
		make(&all.call);
	/* release: partner is the acquire in is_waited_for */
	a_store_rel(&me->done, number);
	a_add_acqrel(&all.answers, 1);
	kbi_sys_futex_wake(&all.answers, 1);
	if (!stop)
		return;
	stand((uint32_t)number);
	kbi_everywhere_answer(); /* what was made while it stood */
}

/* ---- the signal ------------------------------------------------------------------------------------------------- */

static void handler(int sig, siginfo_t *info, void *context)
{
	struct process *me = find((int)kbi_sys(SYS_getpid));
	int saved = errno;

	(void)sig, (void)info;
	if (me && kbi_context_is_in_call(context, &me->call))
		kbi_context_go_on(context, &me->call, &me->rest);
	kbi_everywhere_answer();
	errno = saved;
}

static void set_action(int sig, const uint64_t *new, uint64_t *old)
{
	kbi_sys(SYS_rt_sigaction, sig, new, old, MASK_BYTES);
}

/* libc does not let anybody have this signal; how a handler returns it says of another one. */
int kbi_everywhere_setup(unsigned processes)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART }, other;

	all.process = kbi_sys_map(processes * sizeof *all.process);
	if (!all.process)
		return ENOMEM;
	all.most = processes;
	sigfillset(&sa.sa_mask);
	kbi_real.sigaction(SIGPWR, &sa, &other);
	set_action(SIGPWR, NULL, all.ours);
	kbi_real.sigaction(SIGPWR, &other, NULL);
	all.ours[ACTION_MASK] = ~(uint64_t)0; /* libc's cancellation, too */
	set_action(KBI_EVERYWHERE_SIGNAL, all.ours, all.before);
	return 0;
}

/* ---- one after the other ------------------------------------------------------------------------------------------ */

void kbi_everywhere_hold(uint64_t *mask)
{
	const uint64_t every = ~(uint64_t)0;
	uint32_t me = (uint32_t)kbi_sys(SYS_getpid), holder = 0;

	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &every, mask, MASK_BYTES);
	/* acquire: partner is the release below */
	while (!a_cas_acq(&all.lock, &holder, me)) {
		/* it ended, by exit in another of its kernel threads perhaps: the program ends, or so it will be told */
		if (is_dead(holder) && a_cas_acq(&all.lock, &holder, me))
			return;
		holder = 0;
		forget_the_dead();
		kbi_everywhere_answer();
		kbi_sys_yield();
	}
}

static void go(void)
{
	if (!a_load_rlx(&all.standing))
		return;
	a_store_rel(&all.standing, 0); /* partner: stand */
	kbi_sys_futex_wake(&all.standing, 1 << 30);
}

void kbi_everywhere_release(uint64_t mask)
{
	go();
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
	a_store_rel(&p->pid, (uint32_t)pid); /* partner: is_waited_for */
}

void kbi_everywhere_remove(int pid)
{
	struct process *p = find(pid);

	if (p)
		a_store_rel(&p->pid, 0); /* partner: is_waited_for */
	kbi_sys_futex_wake(&all.answers, 1);
}

/* acquire: partner is the release in answer */
static bool is_waited_for(struct process *p, int me, uint64_t number)
{
	uint32_t pid = a_load_acq(&p->pid);

	return pid && pid != (uint32_t)me && a_load_acq(&p->done) != number;
}

static bool any_waited_for(int me, uint64_t number, bool tell)
{
	bool any = false;

	for (unsigned i = 0; i < all.n; i++)
		if (is_waited_for(&all.process[i], me, number)) {
			any = true;
			if (tell && kbi_sys(SYS_kill, a_load_rlx(&all.process[i].pid), KBI_EVERYWHERE_SIGNAL) == -ESRCH)
				a_store_rlx(&all.process[i].pid, 0);
		}
	return any;
}

/* What the others do, before they are interrupted. */
static void look(int me)
{
	for (unsigned i = 0; i < all.n; i++) {
		int pid = (int)a_load_rlx(&all.process[i].pid);

		if (pid && pid != me)
			kbi_context_find_call(pid, &all.process[i].call);
	}
}

static void begin(const struct kbi_everywhere_call *c, uint64_t number)
{
	struct process *mine = find((int)kbi_sys(SYS_getpid));

	all.call = *c;
	if (mine) {
		a_store_rlx(&mine->begun, number);
		a_store_rlx(&mine->done, number);
	}
	/* release: partner is the acquire in answer */
	a_store_rel(&all.number, number);
}

/* Told again now and then: it may have been on its way out of a mask, or to its end. */
static void tell(const struct kbi_everywhere_call *c)
{
	int me = (int)kbi_sys(SYS_getpid);
	struct timespec patience = { 0, AGAIN };
	uint64_t number = a_load_rlx(&all.number) + 1;
	bool again = true;

	look(me);
	begin(c, number);
	for (;;) {
		uint32_t answers = a_load_acq(&all.answers);

		if (!any_waited_for(me, number, again))
			return;
		again = kbi_sys_futex_wait(&all.answers, answers, &patience) == -ETIMEDOUT;
		if (again)
			forget_the_dead();
	}
}

long kbi_everywhere(const struct kbi_everywhere_call *c)
{
	uint64_t mask;
	long r;

	kbi_everywhere_hold(&mask);
	r = make(c);
	if ((unsigned long)r <= -4096ul)
		tell(c);
	kbi_everywhere_release(mask);
	return r;
}

void kbi_everywhere_stop(uint64_t *mask)
{
	struct kbi_everywhere_call c = { .nr = STAND, .pointer = -1 };

	kbi_everywhere_hold(mask);
	/* before the number is known */
	a_store_rlx(&all.standing, (uint32_t)(a_load_rlx(&all.number) + 1));
	tell(&c);
}

long kbi_everywhere_stopped(const struct kbi_everywhere_call *c)
{
	long r = make(c);
	int me = (int)kbi_sys(SYS_getpid);
	uint64_t number = a_load_rlx(&all.number) + 1;
	uint32_t answers;

	if ((unsigned long)r > -4096ul)
		return r;
	begin(c, number);
	go();
	while (answers = a_load_acq(&all.answers), any_waited_for(me, number, false)) /* partner: kbi_everywhere_answer */
		kbi_sys_futex_wait(&all.answers, answers, &(struct timespec){ 0, AGAIN });
	return r;
}

void kbi_everywhere_forget(void)
{
	all.n = 0;
	set_action(KBI_EVERYWHERE_SIGNAL, all.before, NULL);
	a_store_rlx(&all.standing, 0);
	a_store_rlx(&all.lock, 0);
}
