/* posix/libc_mutex.c - mutexes that stay libc's (robust, PI, PP, process-shared), locked without
 * blocking a virtual processor. libc's own lock would wait in the kernel, and every thread of that
 * virtual processor with it, perhaps the owner. So a waiter calls libc's trylock, and yields while
 * a thread of this process holds the mutex; then it waits in the kernel, on its kernel thread and
 * without its virtual processor (posix/aside). If there are too few kernel threads, a kernel thread
 * waits for all of them or in place of one: posix/standin_futex at the words of mutexes,
 * posix/standin_libc at semaphores and readers-writer locks. A waiter without such a thread pauses
 * between attempts, for 50 us, doubling up to 2 ms; an unlock in this process ends the pause of the
 * first waiter. libc's unlock and owner marks are used unchanged: the owner is the tid in the
 * thread's control block, a number of its own which no kernel thread has.
 * Consequences of that number: between threads of this process all kinds work; a robust mutex whose
 * owner ends is marked here (the kernel walks the lists of kernel threads only). Between processes
 * normal, recursive, error-checking and robust kinds work, the last by a stand-in
 * (posix/standin_robust); threads of another process cannot lend priority to our owner of a
 * process-shared PI mutex.
 * Callers: posix/mutex, cond, sem, rwlock, standin_libc, stdio, identity, thread. Runs on the
 * caller. Waiting may switch. */
#include "posix/posix.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "core/handoff.h"
#include "core/vp.h"
#include "libc/asked.h"
#include "os/sys.h"
#include "posix/aside.h"
#include "posix/bind.h"
#include "sync/park.h"

enum { SOON = 1, YIELDS = 16, LONG = YIELDS + 2 /* numbers of attempts */, PAUSE_MIN_NS = 50000,
	PAUSE_MAX_NS = 2000000 };
enum { CROWD = 8 /* threads that may each look every PAUSE_MAX_NS */ };

static a32 pausing; /* about how many threads sleep for a word */
static a32 looking; /* about how many threads look again by themselves */

/* Sleeps until the word is not `seen`, a thread here changes it, or the time `at`. If another
 * process, or a thread inside libc, unlocks, only `at` ends the pause, so correctness does not
 * depend on kbi_libc_mutex_tell. */
static void pause_at_word(const uint32_t *word, uint32_t seen, uint64_t at)
{
	a_add_rlx(&pausing, 1);
	if (kbi_park_wait_until(word, seen, KBI_PARKED_FOR_A_WHILE, kbi_posix_until(at)) == EAGAIN)
		sched_yield();
	a_sub_rlx(&pausing, 1);
}

/* Without this, waiters whose pauses have grown equally long would all come at once and get the
 * mutex one by one, 2 ms each. Threads with a futex stand-in are woken first: such a thread, if it
 * fails, tells the futex stand-in the value to wait for, while a thread without a futex stand-in
 * only sleeps again. */
void kbi_libc_mutex_tell(const void *word, unsigned n)
{
	unsigned woken;

	if (kbi_likely(!a_load_rlx(&pausing)))
		return;
	woken = kbi_park_wake(word, n, KBI_PARKED_WITH_STANDIN);
	if (woken < n)
		kbi_park_wake(word, n - woken, KBI_PARKED_FOR_A_WHILE);
}

bool kbi_libc_mutex_has_sleepers(void)
{
	return a_load_rlx(&pausing);
}

/* Returns the n-th pause, ns. Pauses double up to the longest; that grows with the number of
 * threads, so that the rate of looks of all threads together is bounded. */
static uint64_t length_of_pause(unsigned n)
{
	uint64_t longest = (uint64_t)PAUSE_MAX_NS * (1 + a_load_rlx(&looking) / CROWD);
	uint64_t pause = n - YIELDS < 32 ? (uint64_t)PAUSE_MIN_NS << (n - YIELDS) : longest;

	return pause < longest ? pause : longest;
}

static void pause_between(unsigned n, uint64_t until, const uint32_t *word, uint32_t seen)
{
	uint64_t at;

	if (n < YIELDS) {
		sched_yield();
		return;
	}
	at = kbi_timer_now() + length_of_pause(n);
	at = at < until ? at : until;
	a_add_rlx(&looking, 1);
	if (word)
		pause_at_word(word, seen, at);
	else
		kbi_timer_sleep(kbi_self(), at);
	a_sub_rlx(&looking, 1);
	kbi_signal_resumed();
}

/* True if a handler has run since that ends the wait: with a time limit the kernel does not restart
 * libc's wait, either. */
static bool ended_by_handler(uint32_t handled, uint32_t ending, bool timed)
{
	return kbi_posix_me.ending != ending || (timed && kbi_posix_me.handled != handled);
}

struct kind {
	int (*attempt)(void *);
	/* for a long wait: NULL, or as kbi_libc_mutex_wait_ending describes, or returns EBUSY: try
	 * again */
	int (*stand_in)(void *, clockid_t, const struct timespec *);
	/* NULL: the holder is unknown */
	bool (*is_here)(void *);
	/* number of attempts before stand_in is asked if a thread of this process holds it, or threads
	 * are ready */
	unsigned patience;
	bool ends; /* a cancellation and handlers end the wait, too */
	clockid_t clock;
	const struct timespec *abstime;
};

/* True if a thread of this process may be about to give the object back. */
static bool is_worth_yields(const struct kind *k, void *object)
{
	const struct kbi_vp *vp = kbi_self()->vp;

	return k->is_here ? k->is_here(object) : vp && kbi_vp_backlog(vp);
}

/* Waits before the next attempt. EBUSY: try again; else the result of the wait. */
static int let_time_pass(const struct kind *k, unsigned n, void *object, uint64_t until,
	const uint32_t *word, uint32_t seen)
{
	bool stands_in = k->stand_in && (n >= k->patience ||
		(n >= SOON && !is_worth_yields(k, object)));
	int e = stands_in ? k->stand_in(object, k->clock, k->abstime) : -1;

	if (e < 0) {
		pause_between(n, until, word, seen);
		return EBUSY;
	}
	if (e == EINTR)
		/* a post may have woken this thread before it could take the semaphore */
		e = k->attempt(object);
	kbi_signal_resumed();
	return e;
}

static int wait_for_object(const struct kind *k, void *object, const void *at)
{
	uint32_t handled = kbi_posix_me.handled, ending = kbi_posix_me.ending;
	const struct timespec *abstime = k->abstime;
	uint64_t until = KBI_FOREVER;
	const a32 *word = at;

	for (unsigned n = 0;; n += n < UINT32_MAX) {
		/* read before the attempt: a later unlock changes the word, or finds this thread asleep at
		 * it */
		uint32_t seen = word ? a_load_rlx(word) : 0;
		int e = k->attempt(object);

		if (e != EBUSY)
			return e;
		if (k->ends && ended_by_handler(handled, ending, abstime))
			return EINTR;
		if (abstime && n == 0 && (!kbi_posix_clock_ok(k->clock) || !kbi_posix_time_ok(abstime)))
			return EINVAL;
		if (abstime) {
			if (kbi_timer_passed(k->clock, abstime->tv_sec, abstime->tv_nsec))
				return ETIMEDOUT;
			until = kbi_timer_deadline(k->clock, abstime->tv_sec, abstime->tv_nsec);
		}
		e = let_time_pass(k, n, object, until, at, seen);
		if (e != EBUSY)
			return e;
		if (k->ends)
			kbi_cancel_test();
	}
}

int kbi_libc_mutex_wait(int (*attempt)(void *), void *object, const void *word, clockid_t clock,
			const struct timespec *abstime)
{
	return wait_for_object(&(struct kind){ attempt, .clock = clock, .abstime = abstime },
		object, word);
}

int kbi_libc_mutex_wait_long(int (*attempt)(void *),
	int (*stand_in)(void *, clockid_t, const struct timespec *),
	void *object, const void *word, clockid_t clock, const struct timespec *abstime)
{
	return wait_for_object(&(struct kind){ attempt, stand_in, NULL, YIELDS, false, clock,
		abstime }, object, word);
}

int kbi_libc_mutex_wait_ending(int (*attempt)(void *),
	int (*stand_in)(void *, clockid_t, const struct timespec *),
	void *object, const void *word, clockid_t clock, const struct timespec *abstime)
{
	return wait_for_object(&(struct kind){ attempt, stand_in, NULL, YIELDS, true, clock,
		abstime }, object, word);
}

/* Offset of the list of robust mutexes in a control block, from pthread_self(); 0: unknown.
 * Constant after start. */
static ptrdiff_t head_at;

/* The structures of the kernel's <linux/futex.h>. */
struct robust_node {
	struct robust_node *next; /* bit 0: a PI mutex */
};

struct robust_head {
	struct robust_node list;
	long futex_at;
	struct robust_node *pending;
};

static struct robust_head *libcs_head(void)
{
	return head_at ? (struct robust_head *)((char *)kbi_posix_self() + head_at) : NULL;
}

/* ---- mutexes ------------------------------------------------------------------------------ */

enum { KIND_TYPE = 3, KIND_ROBUST = 16, KIND_PI = 32, KIND_PP = 64, KIND_SHARED = 128 };
/* libc's lock word: free 0, held 1, held with a sleeper 2; in a robust mutex the owner and two
 * marks. */
enum { SLEEPERS = 2, WAITERS = (int)0x80000000, OWNER_DIED = 0x40000000, TID_MASK = 0x3fffffff };

/* Corrects the owner where libc asks the kernel, which stores the kernel thread's number. A robust
 * PI mutex taken from a dead owner must have our number; an unrecoverable mutex must not keep it.
 * No thread waits in the kernel for a mutex of a lightweight thread. */
static void correct_owner(pthread_mutex_t *m, int e)
{
	a32 *word = (a32 *)(void *)&m->__data.__lock;
	uint32_t own = (uint32_t)kbi_posix_owner_tid(), old = own;

	if (e == EOWNERDEAD)
		a_store_rlx(word, (a_load_rlx(word) & (uint32_t)WAITERS) | own);
	else
		/* release: pairs with the acquire of libc's next lock of the mutex */
		(void)a_cas_rel(word, &old, 0);
}

static bool has_own_number(void)
{
	return kbi_posix_owner_tid() != kbi_sys_gettid();
}

static int try_mutex(void *object)
{
	pthread_mutex_t *m = object;
	int e = kbi_libc()->pthread_mutex_trylock(m);

	if (kbi_unlikely(e == EOWNERDEAD || e == ENOTRECOVERABLE) && (m->__data.__kind & KIND_PI) &&
		has_own_number())
		correct_owner(m, e);
	if (e == 0 || e == EOWNERDEAD)
		kbi_posix_me.libcs_held++;
	/* a priority ceiling: libc asks the kernel about our number; without a real-time policy the
	 * answer is EINVAL */
	return e == ESRCH && has_own_number() ? EINVAL : e;
}

/* True for a mutex that the kernel has to mark if this process is killed; for a kernel thread,
 * main's among them, the kernel does so already. A kind below 0: a destroyed mutex. */
static inline bool needs_standin(const pthread_mutex_t *m)
{
	struct kbi_task *self = kbi_posix_light();

	return (m->__data.__kind & (KIND_ROBUST | KIND_SHARED)) == (KIND_ROBUST | KIND_SHARED) &&
		m->__data.__kind >= 0 &&
	       head_at && self && !kbi_thread_of(self)->is_main && !kbi_posix_me.standin_robust &&
	       !kbi_posix_me.libcs_held;
}

int kbi_libc_mutex_trylock(pthread_mutex_t *m)
{
	if (kbi_unlikely(needs_standin(m)))
		kbi_standin_robust_begin(libcs_head());
	return try_mutex(m);
}

int kbi_libc_mutex_unlock(pthread_mutex_t *m)
{
	int e = kbi_libc()->pthread_mutex_unlock(m);

	if (e)
		return e;
	kbi_posix_me.libcs_held--;
	kbi_libc_mutex_tell(&m->__data.__lock, 1);
	return 0;
}

/* True for the caller's own error-checking mutex: libc's trylock returns EBUSY where its lock
 * returns EDEADLK. */
static bool is_own_mutex(pthread_mutex_t *m)
{
	return (m->__data.__kind & KIND_TYPE) == PTHREAD_MUTEX_ERRORCHECK && m->__data.__owner != 0 &&
	       m->__data.__owner == kbi_posix_owner_tid();
}

/* ---- waiting long for a mutex that other processes may hold ------------------------------- */

struct lock {
	pthread_mutex_t *m;
	struct kbi_standin_futex *standin_futex; /* NULL: it has not waited there */
	bool slept;                /* it has waited in the kernel itself */
};

static a32 *word_of_mutex(pthread_mutex_t *m)
{
	return (a32 *)(void *)&m->__data.__lock;
}

static uint32_t marked_word(const pthread_mutex_t *m, uint32_t word)
{
	return m->__data.__kind & KIND_ROBUST ? word | (uint32_t)WAITERS : SLEEPERS;
}

static bool is_free_word(const pthread_mutex_t *m, uint32_t word)
{
	return m->__data.__kind & KIND_ROBUST ? !(word & TID_MASK) || (word & OWNER_DIED) : word == 0;
}

/* Marks the word as libc does before it sleeps, so that the holder's unlock wakes a waiter in the
 * kernel. False: the mutex is not held. */
static bool mark_word(pthread_mutex_t *m, uint32_t *seen)
{
	uint32_t old = a_load_rlx(word_of_mutex(m));

	do
		if (is_free_word(m, old))
			return false;
	/* relaxed: no data is read or written because of it */
	while (old != marked_word(m, old) &&
		!a_cas_rlx(word_of_mutex(m), &old, marked_word(m, old)));
	*seen = marked_word(m, old);
	return true;
}

static int try_shared_mutex(void *lock)
{
	return try_mutex(((struct lock *)lock)->m);
}

/* True if the holder's unlock will tell us: the holder is a thread of this process, and does not
 * wait inside libc, perhaps for a condition variable, where libc unlocks the mutex. */
static bool is_holder_here(void *lock)
{
	pthread_mutex_t *m = ((struct lock *)lock)->m;
	const struct kb_thread *t =
		kbi_bind_find(m->__data.__kind & KIND_ROBUST
			? (long)(a_load_rlx(word_of_mutex(m)) & TID_MASK) : m->__data.__owner);

	return t && !kbi_handoff_is_away(t);
}

static int await_unlock(void *lock, clockid_t clock, const struct timespec *abstime)
{
	struct lock *l = lock;
	const uint32_t *word = (const uint32_t *)&l->m->__data.__lock;
	uint64_t until = abstime ? kbi_timer_deadline(clock, abstime->tv_sec, abstime->tv_nsec)
		: KBI_FOREVER;
	uint32_t seen;

	if (!mark_word(l->m, &seen)) {
		sched_yield();
		return EBUSY;
	}
	if (!l->standin_futex && !is_holder_here(l) && kbi_aside_word(word, seen, until) >= 0) {
		l->slept = true;
		return EBUSY;
	}
	if (!l->standin_futex)
		l->standin_futex = kbi_standin_futex_begin(word);
	if (!l->standin_futex)
		return -1;
	a_add_rlx(&pausing, 1);
	kbi_standin_futex_sleep(l->standin_futex, seen, until);
	a_sub_rlx(&pausing, 1);
	return EBUSY;
}

/* Locks a process-shared mutex. A thread that has slept in the kernel takes the mutex with the
 * mark, as in libc, since it may have consumed the wake-up of another waiter. */
static int lock_shared(pthread_mutex_t *m, clockid_t clock, const struct timespec *abstime)
{
	struct lock l = { .m = m };
	int e = wait_for_object(&(struct kind){ try_shared_mutex, await_unlock, is_holder_here,
		LONG, false, clock, abstime }, &l, &m->__data.__lock);
	bool got = e == 0 || e == EOWNERDEAD;
	uint32_t seen;

	if (got && (l.standin_futex || l.slept))
		mark_word(m, &seen);
	if (l.standin_futex)
		kbi_standin_futex_end(l.standin_futex, got);
	else if (l.slept && !got)
		kbi_sys_futex_wake_shared(&m->__data.__lock, 1);
	return e;
}

/* Locks in libc, for a kernel thread with its own number. */
static int lock_in_libc(pthread_mutex_t *m, clockid_t clock, const struct timespec *abstime)
{
	int e;

	if (!abstime)
		e = kbi_libc()->pthread_mutex_lock(m);
	else if (clock == CLOCK_REALTIME)
		e = kbi_libc()->pthread_mutex_timedlock(m, abstime);
	else
		e = kbi_libc()->pthread_mutex_clocklock(m, clock, abstime);
	if (e == 0 || e == EOWNERDEAD)
		kbi_posix_me.libcs_held++;
	return e;
}

int kbi_libc_mutex_lock(pthread_mutex_t *m, clockid_t clock, const struct timespec *abstime)
{
	int kind = m->__data.__kind;
	int e = kbi_libc_mutex_trylock(m);

	if (e != EBUSY)
		return e;
	if (is_own_mutex(m))
		return EDEADLK;
	if ((kind & KIND_SHARED) && !(kind & (KIND_PI | KIND_PP)))
		return kbi_posix_light() || has_own_number() ? lock_shared(m, clock, abstime)
			: lock_in_libc(m, clock, abstime);
	return kbi_libc_mutex_wait(try_mutex, m, &m->__data.__lock, clock, abstime);
}

/* ---- robust mutexes of a thread that ends ------------------------------------------------- */

/* Finds the list in the control block of libc's kernel thread. A list elsewhere was made by the
 * program: then libc's is unknown. */
void kbi_libc_mutex_find(void)
{
	enum { CONTROL_BLOCK = 4096 }; /* its size at most */
	const char *what = "robust mutexes' list";
	struct robust_head *head = NULL;
	size_t size = 0;
	uintptr_t at;

	if (kbi_sys(SYS_get_robust_list, 0, &head, &size) || !head || size != sizeof(*head)) {
		kbi_asked_lacks(what,
			"the kernel does not say: those that an ending thread holds stay locked");
		return;
	}
	at = (uintptr_t)head - (uintptr_t)pthread_self();
	if (at < CONTROL_BLOCK) {
		head_at = (ptrdiff_t)at;
		kbi_asked_found(what, "at byte %td", head_at);
	} else {
		kbi_asked_missed(what,
			"not in the control block: those that an ending thread holds stay locked");
	}
}

/* Reads the program's memory, in which the list lies: a mutex that was freed or reused while it was
 * held must not cause a fault, as it causes none in the kernel. */
static bool read_program_memory(const void *at, void *value, size_t n)
{
	const uintptr_t low = (uintptr_t)at & ~(uintptr_t)7,
		high = ((uintptr_t)at + n + 7) & ~(uintptr_t)7;
	struct iovec to = { value, n }, from = { (void *)(uintptr_t)at, n };
	long r = kbi_sys(SYS_process_vm_readv, kbi_sys(SYS_getpid), &to, 1, &from, 1, 0);

	if (r != -ENOSYS && r != -EPERM)
		return r == (long)n;
	/* a filter of system calls forbids it: another thread may unmap the memory in between */
	if (!kbi_sys_can_read((const void *)low, high - low))
		return false;
	memcpy(value, at, n);
	return true;
}

/* Entries of the list as stored: the node, and bit 0 of the pointer to it. */
static struct robust_node *plain_node(const struct robust_node *n)
{
	return (struct robust_node *)((uintptr_t)n & ~(uintptr_t)1);
}

static bool is_pi_node(const struct robust_node *n)
{
	return (uintptr_t)n & 1;
}

/* Reads a node and the word of its mutex by a single call of the kernel. Returns how much could be
 * read. */
enum { NOTHING, NODE, NODE_AND_WORD };

static int read_node_and_word(const struct robust_node *n, struct robust_node *next,
	const a32 *word, uint32_t *value)
{
	struct iovec to[] = { { next, sizeof(*next) }, { value, sizeof(*value) } };
	struct iovec from[] = { { (void *)(uintptr_t)n, sizeof(*next) },
		{ (void *)(uintptr_t)word, sizeof(*value) } };
	long r = kbi_sys(SYS_process_vm_readv, kbi_sys(SYS_getpid), to, 2, from, 2, 0);

	if (r == (long)(sizeof(*next) + sizeof(*value)))
		return NODE_AND_WORD;
	if (r == -ENOSYS || r == -EPERM)
		return !read_program_memory(n, next, sizeof(*next)) ? NOTHING
			: read_program_memory(word, value, sizeof(*value)) ? NODE_AND_WORD : NODE;
	return r == (long)sizeof(*next) ? NODE : NOTHING;
}

/* Marks a mutex as the kernel does for a kernel thread that dies; old: the value of its word. */
static void mark_owner_dead(a32 *word, uint32_t old, uint32_t owner)
{
	do
		if ((old & TID_MASK) != owner)
			return;
	/* release: pairs with the acquire of libc's next lock of the mutex */
	while (!a_cas_rel(word, &old, (old & (uint32_t)WAITERS) | OWNER_DIED));
	/* a program with locks of its own may have its waiters sleep here: posix/futex */
	if (old & (uint32_t)WAITERS && !kbi_park_wake((const uint32_t *)(void *)word, 1, KBI_PARK_ANY))
		kbi_sys(SYS_futex, word, 1 /* FUTEX_WAKE */, 1);
	kbi_libc_mutex_tell(word, 1);
}

static a32 *word_of_node(const struct robust_node *n, const struct robust_head *head)
{
	return (a32 *)((uintptr_t)n + (uintptr_t)head->futex_at);
}

static bool is_aligned(const a32 *word)
{
	return !((uintptr_t)word & (sizeof(*word) - 1));
}

/* Marks the mutex that its thread was about to lock or had just unlocked. If the mutex is free, an
 * earlier unlock may have promised a wake-up that has not come: wakes a waiter. */
static void mark_pending_mutex(const struct robust_head *head, uint32_t owner)
{
	const struct robust_node *n = plain_node(head->pending);
	a32 *word = word_of_node(n, head);
	uint32_t value;

	if (!n || !is_aligned(word) || !read_program_memory(word, &value, sizeof(value)))
		return;
	if (!(value & TID_MASK) && !is_pi_node(head->pending)) {
		if (!kbi_park_wake((const uint32_t *)(void *)word, 1, KBI_PARK_ANY))
			kbi_sys(SYS_futex, word, 1 /* FUTEX_WAKE */, 1);
		kbi_libc_mutex_tell(word, 1);
	} else {
		mark_owner_dead(word, value, owner);
	}
}

/* Marks the mutexes of an ending thread as the kernel does (exit_robust_list): in order, up to
 * 2,048 entries, the pending entry last and only once; stops at an entry that cannot be read. A
 * list that returns to a node other than its head, like that of a copied head, would be walked
 * again in vain: the walk ends at a node that was kept, which is the last whose index is a power of
 * two. */
static void mark_held_mutexes(const struct robust_head *at)
{
	enum { MANY = 2048 };
	const uint32_t owner = (uint32_t)kbi_posix_owner_tid();
	const struct robust_node *n, *kept = NULL;
	struct robust_head head;
	struct robust_node next;

	if (!read_program_memory(at, &head, sizeof(head)))
		return;
	n = plain_node(head.list.next);
	for (unsigned i = 1; n != &at->list && n != kept && i <= MANY; i++) {
		a32 *word = word_of_node(n, &head);
		uint32_t value;
		int seen = n ? read_node_and_word(n, &next, word, &value) : NOTHING;

		if (n != plain_node(head.pending)) {
			if (seen != NODE_AND_WORD || !is_aligned(word))
				return;
			mark_owner_dead(word, value, owner);
		}
		if (seen == NOTHING)
			return;
		if (!(i & (i - 1)))
			kept = n;
		n = plain_node(next.next);
	}
	mark_pending_mutex(&head, owner);
}

void *kbi_libc_mutex_robust_list(void)
{
	return kbi_posix_me.robust ? kbi_posix_me.robust : libcs_head();
}

/* t may end meanwhile, and its memory may go. */
void *kbi_libc_mutex_robust_list_of(const struct kb_thread *t)
{
	const struct kbi_posix_thread *r = t->posix;
	pthread_t id = 0;
	void *own = NULL;

	if (!r || !read_program_memory(&r->robust, &own, sizeof(own)) ||
		!read_program_memory(&r->self, &id, sizeof(id)))
		return NULL;
	return own || !head_at ? own : (char *)id + head_at;
}

int kbi_libc_mutex_set_robust_list(void *head, size_t size)
{
	if (size != sizeof(struct robust_head))
		return EINVAL;
	kbi_posix_me.robust = head;
	return 0;
}

void kbi_libc_mutex_thread_ends(void)
{
	struct robust_head *head = libcs_head();
	bool holds = head && head->list.next && head->list.next != &head->list;

	if (kbi_unlikely(kbi_posix_me.robust != NULL))
		mark_held_mutexes(kbi_posix_me.robust);
	else if (kbi_unlikely(holds))
		mark_held_mutexes(head);
	if (kbi_unlikely(holds))
		head->list.next = &head->list; /* the block will serve another thread */
	kbi_posix_me.libcs_held = 0;
	if (kbi_posix_me.standin_robust)
		kbi_standin_robust_end();
}
