/* posix/signal_pool.c - signals that wait for a thread that does not run, in the order of sending.
 * A signal below SIGRTMIN waits at most once for a thread, and so does a timer's signal, which
 * counts its overruns. The remaining real-time signals queue up, to a limit. An ending thread's
 * list is closed: signals put there would go to the descriptor's next thread.
 * Callers: this family, sigwait, also in handlers. One lock, held with all signals blocked on the
 * kernel thread, because a handler may send a signal. Never switches. */
#include "posix/signal_priv.h"

#include <string.h>
#include <sys/syscall.h>

#include "os/sys.h"

enum { ENTRIES = 4096, REAL_TIME = 34 };

struct entry {
	struct entry *next;
	struct kb_thread *t;
	bool shared;
	siginfo_t info;
};

/* A bit in a thread's pending signals, of a signal that is libc's own: the list is closed. */
#define OVER kbi_signal_bit(KBI_LIBC_FIRST)

/* under the lock */
static struct entry *space, *unused, *first, **end = &first;
static uint32_t fresh; /* entries of `space` that were ever used */
static a32 waiting;    /* entries in use */
static a32 lock;

static struct entry *alloc_pool_entry(void)
{
	struct entry *e = unused;

	if (e) {
		unused = e->next;
		return e;
	}
	if (!space)
		space = kbi_sys_map(ENTRIES * sizeof(*space));
	return space && fresh < ENTRIES ? &space[fresh++] : NULL;
}

static bool has_pool_entry(const struct kb_thread *t, int sig)
{
	for (const struct entry *e = first; e; e = e->next)
		if (e->t == t && e->info.si_signo == sig)
			return true;
	return false;
}

/* A thread's own signal and the process's signal of a number are two, as in the kernel: the first
 * ends with the thread, and the second goes on to another thread. */
static bool merges_with_entry(const struct kb_thread *t, int sig, bool shared)
{
	for (const struct entry *e = first; e; e = e->next)
		if (e->t == t && e->info.si_signo == sig && e->shared == shared)
			return true;
	return false;
}

static void drop_pool_entry(struct entry **at)
{
	struct entry *e = *at;

	*at = e->next;
	if (!e->next)
		end = at;
	e->next = unused;
	unused = e;
	a_sub_rlx(&waiting, 1);
	/* release: partner is the acquire in kbi_signal_lets_in */
	if (!has_pool_entry(e->t, e->info.si_signo))
		a_and_acqrel(&e->t->signals.pending, ~kbi_signal_bit(e->info.si_signo));
}

/* Returns the oldest waiting entry of that timer in t's list. */
static struct entry *find_timer_entry(const struct kb_thread *t, const siginfo_t *info)
{
	for (struct entry *e = first; e; e = e->next)
		if (e->t == t && e->info.si_signo == info->si_signo && e->info.si_code == SI_TIMER &&
		    e->info.si_timerid == info->si_timerid)
			return e;
	return NULL;
}

static int put_pool_entry(struct kbi_signal_to to, const siginfo_t *info, bool shared)
{
	struct entry **at = end, *e;
	struct kb_thread *t = to.t;

	if (info->si_code == SI_TIMER && (e = find_timer_entry(t, info))) {
		kbi_signal_add_overruns(&e->info,
			1 + (uint64_t)(info->si_overrun > 0 ? info->si_overrun : 0));
		return 0;
	}
	if (info->si_signo < REAL_TIME && merges_with_entry(t, info->si_signo, shared))
		return 0;
	e = alloc_pool_entry();
	if (!e)
		return EAGAIN;
	*e = (struct entry){ .t = t, .shared = shared, .info = *info };
	*end = e;
	end = &e->next;
	a_add_rlx(&waiting, 1);
	/* acquire and release: partner is the acquire in kbi_signal_resumed_slow (kbi_signal_lets_in),
	 * and the change in kbi_signal_over: either this finds the list closed, or kbi_signal_over
	 * finds the bit */
	if (!(a_or_acqrel(&t->signals.pending, kbi_signal_bit(info->si_signo)) & OVER) &&
		a_load_rlx(&t->number) == to.number)
		return 0;
	drop_pool_entry(at);
	return ESRCH;
}

/* Empties the pool. No handler of the program's runs in this child: the thread that held the lock
 * is not here, and its unfinished change does not count. */
void kbi_signal_pool_after_fork(void)
{
	first = unused = NULL;
	end = &first;
	fresh = 0;
	a_store_rlx(&waiting, 0);
	kbi_lock_leave(&lock);
	kbi_signal_overruns_after_fork();
}

bool kbi_signal_over(struct kb_thread *t)
{
	/* partner: the change in put_pool_entry */
	return a_or_acqrel(&t->signals.pending, OVER) != 0;
}

/* Tests the user's limit as the kernel does: a signal that queues needs room under the limit;
 * kill's signal would come without its information. */
static bool is_too_much(const siginfo_t *info)
{
	uint64_t limit[2] = { 0 }; /* soft and hard limit */

	if (info->si_signo < REAL_TIME || info->si_code == SI_USER)
		return false;
	return kbi_sys(SYS_prlimit64, 0, RLIMIT_SIGPENDING, NULL, limit) == 0 &&
		a_load_rlx(&waiting) >= limit[0];
}

int kbi_signal_put(struct kbi_signal_to to, const siginfo_t *info, bool shared)
{
	uint64_t old;
	int e;

	if (!shared && is_too_much(info))
		return EAGAIN;
	old = kbi_signal_enter(&lock);
	e = put_pool_entry(to, info, shared);
	kbi_signal_leave(&lock, old);
	return e;
}

/* Returns t's entry with the lowest signal number, as the kernel does, and of that number the
 * oldest. */
static struct entry **find_pool_entry(const struct kb_thread *t, uint64_t set, bool shared)
{
	struct entry **best = NULL;

	for (struct entry **at = &first; *at; at = &(*at)->next)
		if ((*at)->t == t && (set & kbi_signal_bit((*at)->info.si_signo)) &&
		    (!shared || (*at)->shared) && (!best || (*at)->info.si_signo < (*best)->info.si_signo))
			best = at;
	return best;
}

/* Takes the entry that find_pool_entry has returned. Returns its signal number; 0: no entry. */
static int take_pool_entry(struct entry **at, siginfo_t *info)
{
	if (!at)
		return 0;
	*info = (*at)->info;
	drop_pool_entry(at);
	return info->si_signo;
}

int kbi_signal_get(struct kb_thread *t, uint64_t set, siginfo_t *info)
{
	uint64_t old = kbi_signal_enter(&lock);
	int sig = take_pool_entry(find_pool_entry(t, set, false), info);

	kbi_signal_leave(&lock, old);
	return sig;
}

/* Returns a signal to the program in the list of a thread that does not take it now. */
static struct entry **find_left(uint64_t set)
{
	for (struct entry **at = &first; *at; at = &(*at)->next)
		if ((*at)->shared &&
			(set & ~kbi_signal_accepts((*at)->t) & kbi_signal_bit((*at)->info.si_signo)))
			return at;
	return NULL;
}

int kbi_signal_get_left(uint64_t set, siginfo_t *info)
{
	uint64_t old = kbi_signal_enter(&lock);
	int sig = take_pool_entry(find_left(set), info);

	kbi_signal_leave(&lock, old);
	return sig;
}

int kbi_signal_get_back(struct kb_thread *t, uint64_t set, bool all, siginfo_t *info)
{
	uint64_t old = kbi_signal_enter(&lock);
	int sig = take_pool_entry(find_pool_entry(t, set, true), info);
	struct entry **at;

	while (!sig && all && (at = find_pool_entry(t, set, false)))
		drop_pool_entry(at);
	kbi_signal_leave(&lock, old);
	return sig;
}
