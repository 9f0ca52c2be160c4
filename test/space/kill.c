/* space/recover: a process is killed at a random moment, while it sends, receives, locks, waits,
 * reads, writes, signals; the remaining processes are never stuck, no element is halved, the data
 * under a lock are repaired, and soon. Then a new process takes its place. KILLS=n in the
 * environment: number of kills.
 * matrix: sched=rotator vps=1,2 */
#include "space_test.h"

enum { WORKERS = 2, LIGHT = 12, KILLS_DEFAULT = 25, CAPACITY = 8, WORDS = 6 };

struct message {
	uint64_t word[WORDS];
};

static struct objects {
	kb_space_t *s;
	kb_space_chan_t *there, *back;
	kb_space_mutex_t *m;
	kb_space_cond_t *c;
	kb_space_rwlock_t *l;
	kb_space_sem_t *sem;
	kb_space_event_t *bell;
	uint64_t *sum;  /* two words under m that are equal */
	uint64_t *copy; /* two under l */
	uint64_t *work; /* work done by all processes */
} o;

static void open_all(unsigned bell_end)
{
	unsigned both = KB_SPACE_SEND | KB_SPACE_RECV;

	CHECK_EQ(kb_space_chan_open(o.s, "there", sizeof(struct message), CAPACITY, both, &o.there), 0);
	CHECK_EQ(kb_space_chan_open(o.s, "back", sizeof(struct message), CAPACITY, both, &o.back), 0);
	CHECK_EQ(kb_space_mutex_open(o.s, "m", &o.m), 0);
	CHECK_EQ(kb_space_cond_open(o.s, "c", &o.c), 0);
	CHECK_EQ(kb_space_rwlock_open(o.s, "l", &o.l), 0);
	CHECK_EQ(kb_space_sem_open(o.s, "sem", 3, &o.sem), 0);
	CHECK_EQ(kb_space_event_open(o.s, "bell", bell_end, &o.bell), 0);
	CHECK_EQ(kb_space_memory_open(o.s, "sum", 64, (void **)&o.sum), 0);
	CHECK_EQ(kb_space_memory_open(o.s, "copy", 64, (void **)&o.copy), 0);
	CHECK_EQ(kb_space_memory_open(o.s, "work", 64, (void **)&o.work), 0);
}

static void pass(kb_space_chan_t *from, kb_space_chan_t *to, uint64_t *seed)
{
	struct message m;
	uint64_t v = test_rand(seed);
	int e;

	for (int i = 0; i < WORDS; i++)
		m.word[i] = v;
	e = kb_space_chan_send(to, &m, kb_now() + 2 * MS);
	CHECK(e == 0 || e == ETIMEDOUT);
	e = kb_space_chan_recv(from, &m, kb_now() + 2 * MS);
	CHECK(e == 0 || e == ETIMEDOUT);
	for (int i = 1; !e && i < WORDS; i++)
		CHECK_EQ(m.word[i], m.word[0]);
}

static void add(void)
{
	int e = kb_space_mutex_lock(o.m, in_ms(10000));

	if (e == EOWNERDEAD) {
		o.sum[1] = o.sum[0];
		CHECK_EQ(kb_space_mutex_consistent(o.m), 0);
		e = 0;
	}
	CHECK_EQ(e, 0);
	CHECK_EQ(o.sum[0], o.sum[1]);
	o.sum[0]++;
	o.sum[1]++;
	kb_space_cond_signal(o.c);
	CHECK_EQ(kb_space_mutex_unlock(o.m), 0);
}

static void wait_for_sum(void)
{
	int e = kb_space_mutex_lock(o.m, in_ms(10000));

	if (e == 0) {
		e = kb_space_cond_wait(o.c, o.m, kb_now() + MS);
		CHECK(e == 0 || e == ETIMEDOUT || e == EOWNERDEAD);
	}
	if (e == EOWNERDEAD) {
		o.sum[1] = o.sum[0];
		CHECK_EQ(kb_space_mutex_consistent(o.m), 0);
	}
	CHECK_EQ(kb_space_mutex_unlock(o.m), 0);
}

static void write_copy(void)
{
	int e = kb_space_rwlock_wrlock(o.l, in_ms(10000));

	if (e == EOWNERDEAD) {
		o.copy[1] = o.copy[0];
		CHECK_EQ(kb_space_rwlock_consistent(o.l), 0);
		e = 0;
	}
	CHECK_EQ(e, 0);
	CHECK_EQ(o.copy[0], o.copy[1]);
	o.copy[0]++;
	o.copy[1]++;
	CHECK_EQ(kb_space_rwlock_unlock(o.l), 0);
}

static void read_copy(void)
{
	int e = kb_space_rwlock_rdlock(o.l, in_ms(10000));

	CHECK(e == 0 || e == EOWNERDEAD);
	if (e == 0)
		CHECK_EQ(o.copy[0], o.copy[1]);
	CHECK_EQ(kb_space_rwlock_unlock(o.l), 0);
}

static void *work(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg * 77777 + kb_now();

	for (unsigned i = 0;; i++) {
		switch (test_rand(&seed) % 6) {
		case 0: pass(o.there, o.back, &seed); break;
		case 1: pass(o.back, o.there, &seed); break;
		case 2: add(); break;
		case 3: wait_for_sum(); break;
		case 4: write_copy(); break;
		default: read_copy();
		}
		__atomic_add_fetch(o.work, 1, __ATOMIC_RELAXED);
		if (i % 16 == 0)
			kb_space_event_notify(o.bell, i);
	}
	return NULL;
}

static int worker(const char *name)
{
	struct runner r[LIGHT];

	CHECK_EQ(kb_init(), 0);
	o.s = space_join(name);
	open_all(KB_SPACE_SEND);
	for (unsigned i = 0; i < LIGHT; i++)
		run(&r[i], i == 1, work, (void *)(uintptr_t)(i + 1));
	for (unsigned i = 0; i < LIGHT; i++)
		run_join(&r[i]);
	return 0;
}

static void wait_for_processes(unsigned n)
{
	uint64_t until = in_ms(20000);
	kb_space_info_t info;

	for (kb_space_info(o.s, &info); info.processes != n; kb_space_info(o.s, &info)) {
		CHECK(kb_now() < until);
		kb_sleep(200000);
	}
}

/* Checks that the living processes make progress. */
static void goes_on(void)
{
	uint64_t before = __atomic_load_n(o.work, __ATOMIC_RELAXED), until = in_ms(20000);

	while (__atomic_load_n(o.work, __ATOMIC_RELAXED) < before + 50) {
		CHECK(kb_now() < until);
		kb_sleep(200000);
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(), value;
	unsigned kills = getenv("KILLS") ? (unsigned)atoi(getenv("KILLS")) : KILLS_DEFAULT;
	pid_t pid[WORKERS];
	kb_space_info_t info;

	if (argc > 2)
		return worker(argv[2]);
	CHECK_EQ(kb_init(), 0);
	o.s = space_new(NULL);
	atexit(space_gone);
	open_all(KB_SPACE_RECV);
	for (unsigned i = 0; i < WORKERS; i++)
		pid[i] = peer("worker", NULL);
	for (unsigned i = 0; i < kills; i++) {
		unsigned w = test_rand(&seed) % WORKERS;

		wait_for_processes(WORKERS + 1);
		goes_on();
		kb_sleep(test_rand(&seed) % (3 * MS));
		peer_kill(pid[w]);
		goes_on();
		wait_for_processes(WORKERS);
		add();
		write_copy();
		CHECK_EQ(kb_space_event_wait(o.bell, &value, in_ms(10000)), 0);
		pid[w] = peer("worker", NULL);
	}
	wait_for_processes(WORKERS + 1);
	for (unsigned i = 0; i < WORKERS; i++)
		peer_kill(pid[i]);
	wait_for_processes(1);
	/* no process is left to ring; a last notification may be there */
	while (kb_space_event_wait(o.bell, &value, in_ms(10000)) == 0)
		;
	CHECK_EQ(kb_space_event_wait(o.bell, &value, in_ms(10000)), EOWNERDEAD);
	add();
	write_copy();
	kb_space_info(o.s, &info);
	CHECK_EQ(info.crashes, kills + WORKERS);
	CHECK_EQ(kb_space_detach(o.s), 0);
	return 0;
}
