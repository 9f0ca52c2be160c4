/* sched/lb2.c - the scheduler of Lesser Bear 2, for comparison. Each VP has a Waiver Queue
 * besides its Protect Queue. The owner puts threads that overflow the capacity into it without a
 * lock. Any VP takes threads out under that queue's lock, as many as a Protect Queue holds.
 *
 * The paper lets a VP dequeue when it has nothing. Then threads that yield for ever would starve
 * the waived threads: a VP that once got three such threads never asks again. So at each
 * POLL_SWITCH a VP whose Protect Queue has room fills it, and a VP whose queue is full takes a
 * few threads from its own Waiver Queue, beyond the capacity; then as many of the yielding
 * threads overflow in turn.
 *
 * Automatic capacity: the fair share, sum of the loads / VPs: uniform, as the paper wants it,
 * and all threads are spread evenly when every Protect Queue is full. It is reckoned between two
 * threads, and by an idle VP if many threads are waived, so that the VP takes its whole share
 * when it has the lock. Of few threads it takes as many as at the last capacity, because more
 * may be coming.
 *
 * Kinds of lock (option lb2_lock): futex; semop, as in the paper; spin. A lock is held inside np
 * brackets, never across a switch, but the kernel may preempt the holder: the paper's point
 * against locks.
 *
 * Callers: core/vp through struct kbi_sched. May block in the lock for as long as a holder is
 * preempted. */
#include <errno.h>
#include <signal.h>
#include <sys/sem.h>
#include <unistd.h>

#include "os/sys.h"
#include "sched/waiver.h"

enum {
	/* the least automatic capacity: small enough that other VPs get work early, big enough to
	 * save locks */
	CAPACITY = 8,
	MANY = 256,          /* threads waived by one VP */
	SWAP = 4,            /* threads taken from the VP's own Waiver Queue at POLL_SWITCH */
	SPINS = 100, /* looks at a spin lock before the kernel is asked to run a different thread */
	SETS = 64,           /* semaphore sets of programs that run at once */
	KEY = 0x4b620000,    /* of the first set */
};

enum lock_kind { LOCK_FUTEX, LOCK_SEMOP, LOCK_SPIN };

struct lb2 {
	struct kbi_waiver waiver;
	/* any VP: futex: 0 free, 1 held, 2 held and waited for; spin and, behind the semaphore,
	 * semop: 0, 1 */
	a32 lock KBI_ALIGNED(KBI_CACHE_LINE);
	/* owner only */
	uint32_t load KBI_ALIGNED(KBI_CACHE_LINE); /* as published */
	const struct kbi_task *first;              /* head of the Protect Queue after the last tick */
	unsigned capacity;
	/* constant */
	bool automatic;
	enum lock_kind kind;
};

/* ---- System V semaphores --------------------------------------------------------------------- */

/* A semaphore set outlives a killed program. So sets have known keys, and a program that needs a
 * set removes those whose last user is dead. */
#define NO_SET UINT32_MAX
static a32 set_id = { NO_SET };
static int set_owner; /* the process that made it */

/* Forgets the set first, so that a thread that then finds it gone knows why. */
static void remove_set(void)
{
	uint32_t id = a_load_rlx(&set_id);

	a_store_rlx(&set_id, NO_SET);
	a_fence_sc(); /* pairs with the system call in semaphore_add, which finds the set removed */
	if (id != NO_SET && set_owner == getpid())
		semctl((int)id, 0, IPC_RMID);
}

__attribute__((destructor)) static void remove_set_at_exit(void)
{
	remove_set();
}

static void remove_if_stale(key_t key)
{
	int id = semget(key, 0, 0), pid = id < 0 ? -1 : semctl(id, 0, GETPID);

	if (pid > 0 && kbi_sys(SYS_kill, pid, 0) == -ESRCH)
		semctl(id, 0, IPC_RMID);
}

union semun { /* to be defined by us, says semctl(2), in full size */
	int val;
	struct semid_ds *buf;
	unsigned short *array;
};

/* Makes a set of n semaphores, all free. Returns 0 or ENOMEM. */
static int make_set(unsigned n)
{
	int id = -1;

	for (unsigned i = 0; i < SETS && id < 0; i++) {
		remove_if_stale((key_t)(KEY + i));
		id = semget((key_t)(KEY + i), (int)n, IPC_CREAT | IPC_EXCL | 0600);
	}
	if (id < 0)
		id = semget(IPC_PRIVATE, (int)n, 0600);
	set_owner = getpid();
	for (unsigned i = 0; i < n && id >= 0; i++)
		semctl(id, (int)i, SETVAL, (union semun){ .val = 1 });
	a_store_rlx(&set_id, (uint32_t)id);
	return id < 0 ? ENOMEM : 0;
}

/* Adds n to a semaphore. At the end of the program the set is removed while threads run on;
 * q->lock excludes them all the same. */
static void semaphore_add(unsigned which, int n)
{
	struct sembuf op = { .sem_num = (unsigned short)which, .sem_op = (short)n,
			     .sem_flg = SEM_UNDO };
	uint32_t id = a_load_rlx(&set_id);
	long r;

	do
		r = id == NO_SET ? 0 : kbi_sys(SYS_semtimedop, (int)id, &op, 1, NULL);
	while (r == -EINTR);
	if (r < 0 && a_load_rlx(&set_id) == id)
		kbi_sys_fatal("lb2: the semaphores of the Waiver Queues are gone (error %ld)", -r);
}

/* ---- the lock of a Waiver Queue -------------------------------------------------------------- */

static void futex_lock(a32 *word)
{
	uint32_t old = 0;

	/* acquire, here and below: pairs with the release in unlock_waiver_queue */
	if (a_cas_acq(word, &old, 1))
		return;
	while (a_xchg_acq(word, 2))
		kbi_sys_futex_wait(word, 2, NULL);
}

static void spin_lock(a32 *word)
{
	/* acquire: pairs with the release in unlock_waiver_queue */
	for (unsigned i = 1; a_load_rlx(word) || a_xchg_acq(word, 1); i++) {
		if (i % SPINS)
			kbi_cpu_relax();
		else
			kbi_sys_yield_to_holder(i / SPINS);
	}
}

static void lock_waiver_queue(const struct kbi_sched_vp *v)
{
	struct lb2 *q = v->priv;

	if (q->kind == LOCK_FUTEX) {
		futex_lock(&q->lock);
		return;
	}
	if (q->kind == LOCK_SEMOP)
		semaphore_add(v->id, -1);
	spin_lock(&q->lock);
}

static void unlock_waiver_queue(const struct kbi_sched_vp *v)
{
	struct lb2 *q = v->priv;

	/* release: pairs with the acquire in lock_waiver_queue */
	if (q->kind == LOCK_FUTEX) {
		if (a_xchg_rel(&q->lock, 0) == 2)
			kbi_sys_futex_wake(&q->lock, 1);
		return;
	}
	a_store_rel(&q->lock, 0);
	if (q->kind == LOCK_SEMOP)
		semaphore_add(v->id, 1);
}

/* ---- the scheduler --------------------------------------------------------------------------- */

static uint32_t count_waived_tasks(const struct kbi_sched_vp *v)
{
	const struct lb2 *q = v->priv;

	return kbi_waiver_count(&q->waiver);
}

/* Any VP: moves up to `most` tasks out of v's Waiver Queue into s's Protect Queue; returns how
 * many. May run in parallel with v's enqueueing. */
static unsigned take_waived_tasks(struct kbi_sched_vp *s, struct kbi_sched_vp *v, unsigned most)
{
	struct lb2 *q = v->priv;
	struct kbi_task *t;
	unsigned n = 0;

	if (!count_waived_tasks(v))
		return 0;
	lock_waiver_queue(v);
	for (; n < most && (t = kbi_waiver_take(&q->waiver)); n++)
		kbi_sched_accept(s, t);
	unlock_waiver_queue(v);
	if (n)
		a_fence_sc(); /* law 3; pairs with the slow path of kbi_wait_wake */
	s->taken += n;
	return n;
}

static void lb2_push(struct kbi_sched_vp *s, struct kbi_task *t, bool front)
{
	struct lb2 *q = s->priv;

	if (front)
		kbi_pq_prepend(&s->pq, t);
	else if (kbi_task_is(t, KBI_TASK_BOUND) || s->pq.n - s->pq.bound < q->capacity ||
		!kbi_waiver_put(&q->waiver, t, s->id))
		kbi_pq_append(&s->pq, t);
	else
		s->given++;
}

static struct kbi_task *lb2_pop(struct kbi_sched_vp *s)
{
	if (kbi_unlikely(!s->pq.n))
		take_waived_tasks(s, s, ((struct lb2 *)s->priv)->capacity);
	return kbi_pq_pop(&s->pq);
}

/* Takes up to `most` tasks from the first queue that has any: the own queue first, then round
 * the ring. */
static unsigned search_waiver_queues(struct kbi_sched_vp *s, unsigned most)
{
	for (unsigned d = 0; d < s->nvps; d++) {
		unsigned n = take_waived_tasks(s, &s->all[(s->id + d) % s->nvps], most);

		if (n)
			return n;
	}
	return 0;
}

/* Between two threads: fills the Protect Queue, or lets some waived threads have turns with the
 * threads in it. */
static unsigned refill_protect_queue(struct kbi_sched_vp *s)
{
	const struct lb2 *q = s->priv;
	unsigned n = s->pq.n - s->pq.bound;

	if (n < q->capacity)
		return search_waiver_queues(s, q->capacity - n);
	return n > q->capacity ? 0 : take_waived_tasks(s, s, SWAP);
}

/* Returns v's published load, or the number of its waived tasks if that is greater: v may not
 * have looked around since. */
static unsigned load_of_lb2_vp(const struct kbi_sched_vp *v)
{
	unsigned load = a_load_rlx(&v->load), n = count_waived_tasks(v);

	return load > n ? load : n;
}

static void update_lb2_capacity(const struct kbi_sched_vp *s, struct lb2 *q)
{
	unsigned sum = 0;

	if (!q->automatic)
		return;
	for (unsigned i = 0; i < s->nvps; i++)
		sum += load_of_lb2_vp(&s->all[i]);
	sum = (sum + s->nvps - 1) / s->nvps;
	q->capacity = sum > CAPACITY ? sum : CAPACITY;
}

/* Wakes as many sleepers as there are loads waived. A push wakes a VP even if no task is waived:
 * that VP then watches over the tasks that wait here (the tick makes us waive them). */
static void wake_for_waived_loads(struct kbi_sched_vp *s, enum kbi_sched_why why,
	struct kbi_sched_wake *wake)
{
	const struct lb2 *q = s->priv;
	unsigned loads = (count_waived_tasks(s) + q->capacity - 1) / q->capacity;

	if (why == KBI_POLL_PUSH && !loads)
		loads = s->pq.n > s->pq.bound;
	if (!loads || !kbi_sched_idle_others(s))
		return;
	/* fence: the published tail before `idle` is read (kbi_sched_wake_add); pairs with the
	 * sleeper's */
	a_fence_sc();
	kbi_sched_wake_any(wake, s, loads);
}

/* Returns the greatest number of tasks that one VP has waived. */
static unsigned most_waived(const struct kbi_sched_vp *s)
{
	unsigned most = 0;

	for (unsigned i = 0; i < s->nvps; i++) {
		unsigned n = count_waived_tasks(&s->all[i]);

		most = n > most ? n : most;
	}
	return most;
}

static unsigned lb2_poll(struct kbi_sched_vp *s, enum kbi_sched_why why,
	struct kbi_sched_wake *wake)
{
	struct lb2 *q = s->priv;
	unsigned in = 0;

	wake->n = 0;
	if (why == KBI_POLL_TICK && (kbi_sched_hogged(s, q->first) || kbi_sched_idle_others(s))) {
		kbi_waiver_spill(&q->waiver, s, 0, s->id);
	} else if (why == KBI_POLL_SWITCH) {
		update_lb2_capacity(s, q);
		kbi_waiver_spill(&q->waiver, s, q->capacity + SWAP, s->id);
		in = refill_protect_queue(s);
	} else if (why == KBI_POLL_IDLE) {
		if (most_waived(s) > MANY)
			update_lb2_capacity(s, q);
		in = search_waiver_queues(s, q->capacity);
	}
	if (why == KBI_POLL_TICK)
		q->first = s->pq.head;
	kbi_sched_publish_load(s, &q->load,
		s->pq.n + count_waived_tasks(s) + (why != KBI_POLL_IDLE));
	wake_for_waived_loads(s, why, wake);
	return in;
}

static void lb2_gather(struct kbi_sched_vp *s, unsigned most)
{
	take_waived_tasks(s, s, most);
}

static unsigned lb2_outside(const struct kbi_sched_vp *s)
{
	return count_waived_tasks(s);
}

static void lb2_fini(struct kbi_sched_vp *s, unsigned n)
{
	remove_set();
	kbi_sched_free(s[0].priv);
	for (unsigned i = 0; i < n; i++)
		s[i].priv = NULL;
}

static int lb2_init(struct kbi_sched_vp *s, unsigned n, unsigned capacity, unsigned lock)
{
	struct lb2 *q = kbi_sched_alloc(n * sizeof(*q));

	if (!q)
		return ENOMEM;
	if (lock == LOCK_SEMOP && make_set(n) != 0) {
		kbi_sched_free(q);
		return ENOMEM;
	}
	for (unsigned i = 0; i < n; i++) {
		q[i].automatic = capacity == 0;
		q[i].capacity = capacity ? capacity : CAPACITY;
		q[i].kind = (enum lock_kind)lock;
		s[i].priv = &q[i];
	}
	return 0;
}

const struct kbi_sched kbi_sched_lb2 = {
	.name = "lb2",
	.poll_every = 64,
	.private_ready = false,
	.init = lb2_init,
	.fini = lb2_fini,
	.push = lb2_push,
	.pop = lb2_pop,
	.take = kbi_waiver_not_waived,
	.poll = lb2_poll,
	.gather = lb2_gather,
	.outside = lb2_outside,
};
