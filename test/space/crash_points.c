/* space/queue, note, recover and all objects: a process dies between any two stores of an operation
 * into the space. All waiters go on, every object can be used, no element is halved.
 *
 * The victim is stepped instruction by instruction; after each step its part of the space is
 * compared with its former contents, and at the k-th change the victim is killed: k = 1, 2, ...
 * until the operation is over before. So every store is a point, and none need be marked in the
 * source. While the victim goes on, two threads of this program, a lightweight thread and a kernel
 * thread, wait for its operation.
 * matrix: none
 * body: thread */
#include <sys/ptrace.h>

#include "space/event.h"
#include "space_test.h"

enum { CAPACITY = 2, MOST_POINTS = 400, STEPS = 3000000 };

struct element {
	uint64_t word[5];
};

static struct objects {
	kb_space_t *s;
	kb_space_chan_t *chan, *other;
	kb_space_event_t *to, *from; /* as seen from the survivor */
	kb_space_sem_t *sem;
	kb_space_mutex_t *mutex;
	kb_space_cond_t *cond;
	kb_space_rwlock_t *lock;
	kb_space_barrier_t *barrier;
} o;

static void open_all(bool survivor)
{
	unsigned both = KB_SPACE_SEND | KB_SPACE_RECV;

	CHECK_EQ(kb_space_chan_open(o.s, "chan", sizeof(struct element), CAPACITY, both, &o.chan), 0);
	CHECK_EQ(kb_space_chan_open(o.s, "other", sizeof(struct element), CAPACITY, both, &o.other), 0);
	CHECK_EQ(kb_space_event_open(o.s, "to", survivor ? both : KB_SPACE_RECV, &o.to), 0);
	CHECK_EQ(kb_space_event_open(o.s, "from", survivor ? both : KB_SPACE_SEND, &o.from), 0);
	CHECK_EQ(kb_space_sem_open(o.s, "sem", 0, &o.sem), 0);
	CHECK_EQ(kb_space_mutex_open(o.s, "mutex", &o.mutex), 0);
	CHECK_EQ(kb_space_cond_open(o.s, "cond", &o.cond), 0);
	CHECK_EQ(kb_space_rwlock_open(o.s, "lock", &o.lock), 0);
	CHECK_EQ(kb_space_barrier_open(o.s, "barrier", 3, &o.barrier), 0);
}

/* ---- small things, for victim and survivor --------------------------------------------------- */

static int put(kb_space_chan_t *ch, uint64_t deadline)
{
	struct element m;

	for (unsigned i = 0; i < 5; i++)
		m.word[i] = deadline;
	return kb_space_chan_send(ch, &m, deadline);
}

static int get(kb_space_chan_t *ch, uint64_t deadline)
{
	struct element m;
	int e = kb_space_chan_recv(ch, &m, deadline);

	for (unsigned i = 1; !e && i < 5; i++)
		CHECK_EQ(m.word[i], m.word[0]);
	return e;
}

static void fill(void)
{
	while (put(o.chan, 0) == 0)
		;
}

static int take_mutex(uint64_t deadline)
{
	int e = kb_space_mutex_lock(o.mutex, deadline);

	if (e != EOWNERDEAD)
		return e;
	return kb_space_mutex_consistent(o.mutex);
}

static int take_lock(bool write, uint64_t deadline)
{
	int e = write ? kb_space_rwlock_wrlock(o.lock, deadline) :
		kb_space_rwlock_rdlock(o.lock, deadline);

	if (e == EOWNERDEAD && write)
		CHECK_EQ(kb_space_rwlock_consistent(o.lock), 0);
	return e == EOWNERDEAD ? 0 : e;
}

static uint64_t soon(void)
{
	return kb_now() + 300000;
}

static void nothing(void)
{
}

/* ---- operations of the victim, the waiters for them, and the help if the victim fails -------- */

static void v_notify(void) { kb_space_event_notify(o.from, 1); }
static int w_event(void) { return kb_space_event_wait(o.from, NULL, in_ms(60000)); }
static void h_notify(void) { kb_space_event_notify(o.from, 2); }

static void v_take(void) { kb_space_event_wait(o.to, NULL, in_ms(20000)); }
static void s_notified(void) { kb_space_event_notify(o.to, 1); }
static void v_wait(void) { kb_space_event_wait(o.to, NULL, soon()); }

static void v_send(void) { put(o.chan, in_ms(20000)); }
static int w_recv(void) { return get(o.chan, in_ms(60000)); }
static void h_send(void) { put(o.chan, 0); }

static void v_recv(void) { get(o.chan, in_ms(20000)); }
static int w_send(void) { return put(o.chan, in_ms(60000)); }
static void h_recv(void) { get(o.chan, 0); }

static void v_recv_none(void) { get(o.chan, soon()); }
static void v_send_full(void) { put(o.chan, soon()); }

static void v_post(void) { kb_space_sem_post(o.sem); }
static int w_sem(void) { return kb_space_sem_wait(o.sem, in_ms(60000)); }
static void v_sem_none(void) { kb_space_sem_wait(o.sem, soon()); }

static void s_mutex(void) { take_mutex(in_ms(20000)); }
static void v_unlock(void) { kb_space_mutex_unlock(o.mutex); }
static void v_mutex(void) { take_mutex(in_ms(20000)); kb_space_mutex_unlock(o.mutex); }
static int w_mutex(void)
{
	int e = take_mutex(in_ms(60000));

	return e ? e : kb_space_mutex_unlock(o.mutex);
}

static void v_signal(void) { kb_space_cond_broadcast(o.cond); }
static int w_cond(void)
{
	int e = take_mutex(in_ms(60000));

	if (!e)
		e = kb_space_cond_wait(o.cond, o.mutex, in_ms(60000));
	return e == EOWNERDEAD ? kb_space_mutex_consistent(o.mutex) + kb_space_mutex_unlock(o.mutex) :
		e ? e : kb_space_mutex_unlock(o.mutex);
}
static void v_cond_none(void)
{
	take_mutex(in_ms(20000));
	kb_space_cond_wait(o.cond, o.mutex, soon());
	kb_space_mutex_unlock(o.mutex);
}

static void s_wrlock(void) { take_lock(true, in_ms(20000)); }
static void s_rdlock(void) { take_lock(false, in_ms(20000)); }
static void v_rwunlock(void) { kb_space_rwlock_unlock(o.lock); }
static void v_write(void) { take_lock(true, in_ms(20000)); kb_space_rwlock_unlock(o.lock); }
static void v_read(void) { take_lock(false, in_ms(20000)); kb_space_rwlock_unlock(o.lock); }
static int w_write(void)
{
	int e = take_lock(true, in_ms(60000));

	return e ? e : kb_space_rwlock_unlock(o.lock);
}

static void v_barrier(void) { kb_space_barrier_wait(o.barrier, soon()); }
static int w_barrier(void)
{
	int e = kb_space_barrier_wait(o.barrier, in_ms(60000));

	return e == EOWNERDEAD || e == KB_BARRIER_SERIAL ? 0 : e;
}
/* the third thread to arrive, unless the barrier is broken: then both waiters are told at once */
static void h_barrier(void) { kb_space_barrier_wait(o.barrier, kb_now() + 1000000); }

static void v_select(void)
{
	struct element m = { { 0 } };
	kb_space_case_t c[3] = {
		{ .op = KB_SELECT_RECV, .chan = o.chan, .element = &m },
		{ .op = KB_SELECT_EVENT, .event = o.to },
		{ .op = KB_SELECT_RECV, .chan = o.other, .element = &m },
	};
	size_t chosen;

	kb_space_select(c, 3, soon(), &chosen);
}

/* The name is that of the process: each process makes a new object. */
static void v_make(void)
{
	kb_space_chan_t *ch;
	char name[64] = ""; /* also the element */

	snprintf(name, sizeof name, "of.%d", getpid());
	kb_space_chan_open(o.s, name, sizeof name, 4, KB_SPACE_SEND, &ch);
	kb_space_chan_send(ch, name, 0);
}
static void v_close(void) { kb_space_chan_close(o.other, KB_SPACE_SEND); }
static void v_leave(void) { kb_space_event_close(o.from, KB_SPACE_SEND); }
static void v_detach(void) { kb_space_detach(o.s); }
static void s_detach(void) { kb_space_detach(o.s); }
static void v_attach(void) { kb_space_attach(&o.s, space_name, 0); }

static const struct act {
	const char *name;
	void (*setup)(void);  /* run by the victim, before the operation */
	void (*victim)(void);
	int (*waiter)(void);  /* 0 is right; NULL: no waiter */
	void (*help)(void);   /* run by the survivor, until the waiters are done */
	void (*before)(void); /* run by the survivor */
	int one;              /* a single waiter only */
} acts[] = {
	{ "notify", nothing, v_notify, w_event, h_notify, nothing, 1 },
	{ "notified", nothing, v_take, NULL, NULL, s_notified, 0 },
	{ "wait", nothing, v_wait, NULL, NULL, nothing, 0 },
	{ "send", nothing, v_send, w_recv, h_send, nothing, 0 },
	{ "recv", nothing, v_recv, w_send, h_recv, fill, 0 },
	{ "recv from none", nothing, v_recv_none, NULL, NULL, nothing, 0 },
	{ "send to full", nothing, v_send_full, NULL, NULL, fill, 0 },
	{ "post", nothing, v_post, w_sem, v_post, nothing, 0 },
	{ "wait for none", nothing, v_sem_none, NULL, NULL, nothing, 0 },
	{ "unlock", s_mutex, v_unlock, w_mutex, nothing, nothing, 0 },
	{ "lock", nothing, v_mutex, NULL, NULL, nothing, 0 },
	{ "broadcast", nothing, v_signal, w_cond, v_signal, nothing, 0 },
	{ "wait for a signal", nothing, v_cond_none, NULL, NULL, nothing, 0 },
	{ "give up writing", s_wrlock, v_rwunlock, w_write, nothing, nothing, 0 },
	{ "give up reading", s_rdlock, v_rwunlock, w_write, nothing, nothing, 0 },
	{ "write", nothing, v_write, NULL, NULL, nothing, 0 },
	{ "read", nothing, v_read, NULL, NULL, nothing, 0 },
	{ "barrier", nothing, v_barrier, w_barrier, h_barrier, nothing, 0 },
	{ "barrier alone", nothing, v_barrier, NULL, NULL, nothing, 0 },
	{ "select", nothing, v_select, NULL, NULL, nothing, 0 },
	{ "select notified", nothing, v_select, NULL, NULL, s_notified, 0 },
	{ "make", nothing, v_make, NULL, NULL, nothing, 0 },
	{ "close", nothing, v_close, NULL, NULL, nothing, 0 },
	{ "leave", nothing, v_leave, NULL, NULL, nothing, 0 },
	{ "detach", nothing, v_detach, NULL, NULL, nothing, 0 },
	{ "attach", s_detach, v_attach, NULL, NULL, nothing, 0 },
};

static int victim(const char *name, const char *act)
{
	const struct act *a = &acts[atoi(act)];

	CHECK_EQ(kb_init(), 0);
	o.s = space_join(name);
	open_all(false);
	a->setup();
	CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
	raise(SIGSTOP);
	a->victim();
	raise(SIGSTOP);
	return 1; /* the victim is killed there */
}

/* ---- the survivor ---------------------------------------------------------------------------- */

static a32 waiting, done;

static void *waits(void *arg)
{
	const struct act *a = arg;

	a_add_acqrel(&waiting, 1);
	CHECK_EQ(a->waiter(), 0);
	a_add_acqrel(&done, 1);
	return NULL;
}

static unsigned start_waiters(const struct act *a, struct runner *r)
{
	unsigned n = !a->waiter ? 0 : a->one ? 1 : 2;

	a_store_rlx(&waiting, 0);
	a_store_rlx(&done, 0);
	for (unsigned i = 0; i < n; i++)
		run(&r[i], i, waits, (void *)(uintptr_t)a);
	while (a_load_acq(&waiting) < n)
		usleep(50);
	if (n)
		usleep(500); /* most likely the waiters stand in the queue */
	return n;
}

/* Joins the waiters, long before they would give up. */
static void join_waiters(const struct act *a, struct runner *r, unsigned n)
{
	uint64_t until = in_ms(20000);

	while (a_load_acq(&done) < n) {
		CHECK(kb_now() < until);
		a->help();
		usleep(100);
	}
	/* only a light thread joins light threads: they have ended */
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(r[i].kernel ? pthread_join(r[i].heavy, NULL) : kb_thread_detach(r[i].light), 0);
}

static void recovered(void)
{
	uint64_t until = in_ms(20000);
	kb_space_info_t info;

	for (kb_space_info(o.s, &info); info.processes != 1; kb_space_info(o.s, &info)) {
		CHECK(kb_now() < until);
		usleep(100);
	}
}

/* Checks that each object works, and restores its first state. */
static void settle(void)
{
	kb_space_chan_t *ch[] = { o.chan, o.other };
	int e;

	for (unsigned i = 0; i < 2; i++) {
		while (get(ch[i], 0) == 0)
			;
		CHECK_EQ(put(ch[i], in_ms(20000)), 0);
		CHECK_EQ(put(ch[i], in_ms(20000)), 0);
		CHECK_EQ(put(ch[i], 0), ETIMEDOUT);
		CHECK_EQ(get(ch[i], in_ms(20000)), 0);
		CHECK_EQ(get(ch[i], in_ms(20000)), 0);
		CHECK_EQ(get(ch[i], 0), ETIMEDOUT);
	}
	kb_space_event_notify(o.to, 1);
	CHECK_EQ(kb_space_event_wait(o.to, NULL, in_ms(20000)), 0);
	kb_space_event_notify(o.from, 1);
	CHECK_EQ(kb_space_event_wait(o.from, NULL, in_ms(20000)), 0);
	while (kb_space_sem_wait(o.sem, 0) == 0)
		;
	CHECK_EQ(take_mutex(in_ms(20000)), 0);
	CHECK_EQ(kb_space_mutex_unlock(o.mutex), 0);
	CHECK_EQ(take_lock(true, in_ms(20000)), 0);
	CHECK_EQ(kb_space_rwlock_unlock(o.lock), 0);
	CHECK_EQ(take_lock(false, in_ms(20000)), 0);
	CHECK_EQ(kb_space_rwlock_unlock(o.lock), 0);
	e = kb_space_barrier_reset(o.barrier, 3);
	CHECK_EQ(e, 0);
}

/* ---- stepping -------------------------------------------------------------------------------- */

/* What the victim may write: the head, its own entry (the second), all allocations. */
struct view {
	char head[sizeof(struct kbi_space_head) + sizeof(struct kbi_space_proc)];
	char rest[1 << 18];
};

static bool differs(char *old, const char *now, size_t n)
{
	if (memcmp(old, now, n) == 0)
		return false;
	memcpy(old, now, n);
	return true;
}

static bool changed(struct view *v)
{
	struct kbi_space_head *h = o.s->head;
	uint64_t used = a_load_rlx(&h->used) - KBI_SPACE_FIRST;
	bool head, proc, rest;

	CHECK(used <= sizeof v->rest);
	head = differs(v->head, (char *)h, sizeof *h);
	proc =
		differs(v->head + sizeof *h, (char *)kbi_space_proc(o.s, 1), sizeof(struct kbi_space_proc));
	rest = differs(v->rest, (char *)h + KBI_SPACE_FIRST, used);
	return head || proc || rest;
}

static bool stopped(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		fprintf(stderr, "the victim ended by itself: %x\n", status);
	CHECK(WIFSTOPPED(status));
	return WSTOPSIG(status) == SIGSTOP;
}

/* Steps the victim. True: it was killed at its k-th change. */
static bool step(pid_t pid, unsigned k)
{
	static struct view v;
	unsigned n = 0;
	bool killed = false;

	CHECK(stopped(pid));
	changed(&v);
	for (unsigned i = 0; !killed; i++) {
		CHECK(i < STEPS);
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL)) {
			printf("no single steps here: %s\n", strerror(errno));
			peer_kill(pid);
			space_gone();
			_exit(77);
		}
		if (stopped(pid))
			break;
		killed = changed(&v) && ++n == k;
	}
	peer_kill(pid);
	return killed;
}

static bool die_at(const struct act *a, unsigned k)
{
	struct runner r[2];
	char number[16];
	unsigned n;
	pid_t pid;
	bool killed;

	snprintf(number, sizeof number, "%u", (unsigned)(a - acts));
	a->before();
	pid = peer("victim", number);
	if (a->waiter) {
		siginfo_t info;

		/* the waiters come when the victim has the objects for which they wait */
		CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
	}
	n = start_waiters(a, r);
	killed = step(pid, k);
	recovered();
	join_waiters(a, r, n);
	settle();
	return killed;
}

static void *survives(void *over)
{
	const char *only = getenv("ACT");

	for (unsigned i = 0; i < sizeof acts / sizeof *acts; i++) {
		unsigned k = 1;

		if (only && strcmp(only, acts[i].name))
			continue;
		while (die_at(&acts[i], k)) {
			k++;
			CHECK(k < MOST_POINTS);
		}
		printf("%s: %u\n", acts[i].name, k - 1);
		fflush(stdout);
		CHECK(k > 1);
	}
	a_store_rel((a32 *)over, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	static a32 over;
	pthread_t t;

	if (argc > 3)
		return victim(argv[2], argv[3]);
#ifdef __SANITIZE_THREAD__
	SKIP("who compares the space with what it was races with all, "
	     "and the victim takes many more steps");
#endif
	setenv("KOCHAB_VPS", "1", 1);
	CHECK_EQ(kb_init(), 0);
	o.s = space_new(NULL);
	atexit(space_gone);
	open_all(true);
	CHECK_EQ(pthread_create(&t, NULL, survives, &over), 0);
	while (!a_load_acq(&over))
		kb_sleep(10 * MS);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(kb_space_detach(o.s), 0);
	return 0;
}
