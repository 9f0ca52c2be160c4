/* core/contain, core/respawn: processes of a program are killed at random while 1000 threads ring,
 * allocate, lock and print; also twice, at once, and their successors. No thread hangs, nothing
 * that survives is damaged, a kill loses at most a single thread. The time from a kill until its
 * successor goes on is measured.
 * KILLS: how many, of a single program as the options say (make soak-kill); else a short run with
 * each scheduler.
 * KB_TEST_SEED. Last line: kills K lost L corrupt C hang H.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <kochab/kochab.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/child.h"
#include "core/children.h"

enum { THREADS = 1000, RING = 50, RINGS = 6, ALLOCATORS = 300, LOCKERS = 300, LOCKS = 16,
	BLOCKS = 8 };
enum {
	FIRST_ALLOCATOR = RING * RINGS,
	FIRST_LOCKER = FIRST_ALLOCATOR + ALLOCATORS,
	FIRST_PRINTER = FIRST_LOCKER + LOCKERS,
};
enum {
	PATIENCE = 60, /* seconds without progress: perhaps it hangs; as many without a kill: it does */
	WAIT = 3,        /* seconds at most for a successor */
	SOON = 20000000, /* ns: until then all events have been counted */
	END = 30,        /* seconds */
};

/* Shared by the killer and the program. */
static struct shared {
	int ready, stop;
	unsigned left, corrupt, lost, wrong_joins;
	unsigned long progress[THREADS];
	/* as in kb_crash_counts, soon after */
	unsigned kills;
	uint64_t went_on;
} *shared;

static const char *sched, *vps;

static struct ring {
	kb_mutex_t m;
	kb_event_t event[RING];
	int has_event[RING];
	uint64_t epoch, count;
} rings[RINGS];

static struct lock {
	kb_mutex_t m;
	volatile unsigned long a, b;
} locks[LOCKS];

static kb_thread_t slots[THREADS];
static kb_sem_t all_done;

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define ADD(x, n) __atomic_add_fetch(&(x), n, __ATOMIC_ACQ_REL)

static void corrupt(const char *what)
{
	fprintf(stderr, "corrupt: %s\n", what);
	ADD(shared->corrupt, 1);
}

static void lock(kb_mutex_t *m)
{
	int e = kb_mutex_lock(m);

	if (e == EOWNERDEAD)
		kb_mutex_consistent(m);
	else if (e)
		corrupt("lock");
}

/* Computes, so that kills find threads in code of their own. */
static void compute(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++)
		;
}

/* ---- ring: a token of each epoch; its holder counts ---- */

static void pass(struct ring *r, unsigned to, uint64_t token)
{
	if (GET(r->has_event[to]))
		kb_event_notify(&r->event[to], token);
}

static uint64_t next_token(struct ring *r, uint64_t token)
{
	uint64_t epoch = token >> 40, count = token & ((1ull << 40) - 1), next = 0;

	lock(&r->m);
	if (epoch == r->epoch) {
		if (count != r->count)
			corrupt("a token came twice, or another one");
		r->count++;
		next = r->epoch << 40 | r->count;
	}
	kb_mutex_unlock(&r->m);
	return next;
}

/* A new thread is here: the token's holder may be gone. */
static void new_token(struct ring *r, unsigned from)
{
	uint64_t token;

	lock(&r->m);
	r->epoch++;
	token = r->epoch << 40 | r->count;
	kb_mutex_unlock(&r->m);
	pass(r, from, token);
}

static void ring(unsigned slot)
{
	struct ring *r = &rings[slot / RING];
	unsigned me = slot % RING;
	uint64_t token;

	kb_event_init(&r->event[me], NULL);
	__atomic_store_n(&r->has_event[me], 1, __ATOMIC_RELEASE);
	new_token(r, me);
	while (!GET(shared->stop)) {
		int e = kb_event_timedwait(&r->event[me], &token, kb_now() + 100000000);

		ADD(shared->progress[slot], 1);
		if (e == ETIMEDOUT && me == 0)
			new_token(r, me);
		compute(300);
		if (e || !(token = next_token(r, token)))
			continue;
		pass(r, (me + 1) % RING, token);
	}
}

/* ---- the other threads ---- */

static void allocator(unsigned slot)
{
	struct block {
		unsigned char *p;
		size_t n;
	} block[BLOCKS] = { { NULL, 0 } };
	uint64_t rand = slot + 1;

	while (!GET(shared->stop)) {
		struct block *b;

		rand = rand * 6364136223846793005u + 1442695040888963407u;
		b = &block[rand >> 60 & (BLOCKS - 1)];
		for (size_t i = 0; i < b->n; i++)
			if (b->p[i] != (unsigned char)(slot + i))
				corrupt("a block");
		free(b->p);
		b->n = (rand >> 33) % 2000 + 1;
		b->p = malloc(b->n);
		for (size_t i = 0; i < b->n; i++)
			b->p[i] = (unsigned char)(slot + i);
		ADD(shared->progress[slot], 1);
		if (rand >> 63)
			kb_yield();
		else
			kb_sleep(rand >> 42);
	}
}

static void locker(unsigned slot)
{
	unsigned n = 0;

	while (!GET(shared->stop)) {
		struct lock *l = &locks[(slot + n++) % LOCKS];
		int e = kb_mutex_lock(&l->m);

		if (e == EOWNERDEAD) {
			l->b = l->a;
			if (kb_mutex_consistent(&l->m))
				corrupt("consistent");
		} else if (e) {
			corrupt("lock");
		}
		if (l->a != l->b)
			corrupt("what a lock protects");
		l->a++;
		compute(3000);
		if (n % 4 == 0)
			kb_yield();
		l->b++;
		if (kb_mutex_unlock(&l->m))
			corrupt("unlock");
		ADD(shared->progress[slot], 1);
		kb_sleep(200000 + n % 8 * 100000);
	}
}

/* Tells the killer the program's counts. */
static void reporter(unsigned slot)
{
	struct kb_crash_counts c;

	while (!GET(shared->stop)) {
		kb_crash_counts(&c);
		if (c.kills != shared->kills) {
			__atomic_store_n(&shared->went_on, c.last_at, __ATOMIC_RELEASE);
			__atomic_store_n(&shared->kills, c.kills, __ATOMIC_RELEASE);
		}
		ADD(shared->progress[slot], 1);
		kb_sleep(200000);
	}
}

static void printer(unsigned slot)
{
	unsigned n = 0;

	if (slot == FIRST_PRINTER)
		reporter(slot);
	while (!GET(shared->stop)) {
		printf("<%u %u %u>\n", slot, n, slot + n);
		n++;
		ADD(shared->progress[slot], 1);
		kb_sleep(20000000);
	}
}

static void *thread(void *arg)
{
	unsigned slot = (unsigned)(uintptr_t)arg;

	(slot < FIRST_ALLOCATOR ? ring : slot < FIRST_LOCKER ? allocator :
	 slot < FIRST_PRINTER ? locker : printer)(slot);
	if (ADD(shared->left, -1) == 0)
		kb_sem_post(&all_done);
	return NULL;
}

static void begin(unsigned slot, void *(*fn)(void *));

/* Begins a thread in the place of a lost thread. */
static void *successor(void *arg)
{
	unsigned slot = (unsigned)(uintptr_t)arg & 0xffff;
	kb_thread_t before = slots[slot];
	struct kb_crash_info info;

	if (kb_thread_crash_info(before, &info) || info.signal != SIGKILL || info.frames == 0)
		ADD(shared->wrong_joins, 1);
	if (kb_thread_join(before, NULL) != EOWNERDEAD)
		ADD(shared->wrong_joins, 1);
	slots[slot] = kb_thread_self();
	return thread((void *)(uintptr_t)slot);
}

static void begin(unsigned slot, void *(*fn)(void *))
{
	kb_thread_t t;
	kb_attr_t a;
	char name[16];

	snprintf(name, sizeof name, "%u", slot);
	kb_attr_init(&a);
	kb_attr_setname(&a, name);
	if (slot % 10 == 9)
		kb_attr_settls(&a, KB_TLS_OWN);
	CHECK_EQ(kb_thread_create(&t, &a, fn, (void *)(uintptr_t)slot), 0);
	if (fn == thread)
		slots[slot] = t;
}

static void lost(kb_thread_t t, const struct kb_crash_info *info)
{
	(void)t;
	ADD(shared->lost, 1);
	begin((unsigned)atoi(info->name), successor);
}

static void program(void *arg)
{
	struct kb_crash_counts c;

	(void)arg;
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "1", 1);
	if (sched)
		setenv("KOCHAB_SCHED", sched, 1);
	if (vps)
		setenv("KOCHAB_VPS", vps, 1);
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* the library's lines come between lines, then */
	if (kb_init() != 0)
		_exit(77);
	kb_on_crash(lost);
	for (unsigned i = 0; i < RINGS; i++)
		kb_mutex_init(&rings[i].m, KB_MUTEX_ROBUST);
	for (unsigned i = 0; i < LOCKS; i++)
		kb_mutex_init(&locks[i].m, KB_MUTEX_ROBUST);
	for (unsigned i = 0; i < THREADS; i++)
		begin(i, thread);
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	kb_sem_wait(&all_done);
	kb_crash_counts(&c);
	printf("\ncounts %u %u %llu\n", c.kills, c.lost, (unsigned long long)c.longest_ns);
	exit(0);
}

/* ---- the killer ---- */

/* Waits for a child that is not in the list; 0: there was none for long, or the test is over. */
static int new_child(pid_t program, const int *before, unsigned n)
{
	uint64_t start = test_now_ns();
	int now[64];
	unsigned m;

	do {
		m = children_of(program, now, 64);
		for (unsigned i = 0; i < m; i++)
			if (!is_known(before, n, now[i]))
				return now[i];
	} while (m && test_now_ns() - start < 20000000u);
	return 0;
}

static struct killer {
	uint64_t rand;
	unsigned done;         /* kills that there was a process for */
	uint64_t *took;        /* ns, of `timed` of them */
	unsigned timed;
} killer;

static int kill_it(int pid)
{
	int ok = kill(pid, SIGKILL) == 0;

	killer.done += ok;
	return ok;
}

/* Waits until the victim's successor goes on and the program has counted the kill. A victim that
 * had done nothing yet, or whose work was done, has no successor: then it is nobody's child any
 * more, and soon after that nothing has been counted. */
static void wait_for_successor(pid_t program, int victim, unsigned before)
{
	uint64_t start = test_now_ns(), limit = WAIT * 1000000000ull;
	int list[64];
	unsigned n;

	while (GET(shared->kills) == before && test_now_ns() - start < limit &&
	    (n = children_of(program, list, 64))) {
		if (limit != SOON && !is_known(list, n, victim)) {
			start = test_now_ns();
			limit = SOON;
		}
		usleep(100);
	}
}

/* Waits until nothing has changed for a while. */
static void settle(void)
{
	unsigned kills;

	do {
		kills = GET(shared->kills);
		usleep(5000);
	} while (kills != GET(shared->kills));
}

/* Kills in the ways that a program may meet: a single kill; two of the same process, the second
 * while it is not yet ended; two processes at the same time; the successor as soon as it is there.
 * Returns false if the program has ended. */
static int kill_some(pid_t program)
{
	unsigned n, before = GET(shared->kills), kind = test_rand(&killer.rand) % 8;
	int list[64], victim;
	uint64_t start;

	n = children_of(program, list, 64);
	if (!n)
		return 0;
	victim = list[test_rand(&killer.rand) % n];
	if (is_dead(victim))
		return 1;
	start = test_now_ns();
	if (!kill_it(victim))
		return 1;
	if (kind == 0) {
		for (unsigned i = test_rand(&killer.rand) % 3000; i; i--)
			compute(1);
		kill_it(victim);
	} else if (kind == 1) {
		kill_it(list[test_rand(&killer.rand) % n]);
	} else if (kind == 2) {
		if ((victim = new_child(program, list, n)))
			kill_it(victim);
	} else {
		wait_for_successor(program, victim, before);
		if (GET(shared->kills) == before + 1 && GET(shared->went_on) > start)
			killer.took[killer.timed++] = GET(shared->went_on) - start;
	}
	if (kind < 3)
		settle();
	return 1;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static unsigned hanging(void)
{
	static unsigned long seen[THREADS];
	static uint64_t since[THREADS];
	uint64_t now = test_now_ns();
	unsigned n = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		unsigned long p = GET(shared->progress[i]);

		if (p != seen[i] || !since[i]) {
			seen[i] = p;
			since[i] = now;
		}
		n += now - since[i] > PATIENCE * 1000000000ull;
	}
	return n;
}

/* Checks that every line of the printers is whole. */
static unsigned bad_lines(char *text)
{
	unsigned a, b, c, bad = 0;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (line[0] == '<' && (sscanf(line, "<%u %u %u>", &a, &b, &c) != 3 || a + b != c)) {
			fprintf(stderr, "damaged: %s\n", line);
			bad++;
		}
	return bad;
}

static void check_lines(struct child *c, unsigned *bad)
{
	char *end = memrchr(c->text, '\n', c->n);
	size_t rest;

	if (c->n < sizeof c->text / 2 || !end)
		return;
	rest = c->n - (size_t)(end + 1 - c->text);
	*end = 0;
	*bad += bad_lines(c->text);
	memmove(c->text, end + 1, rest);
	c->n = rest;
}

/* Returns true if all threads make progress: else nothing is killed; on a busy machine a thread may
 * be the last of a long queue. A thread that hangs hangs for ever; then the program prints its
 * threads. */
static unsigned still_hanging(struct child *c, unsigned *bad)
{
	uint64_t end = test_now_ns() + PATIENCE * 1000000000ull;
	unsigned n;
	char *dump;

	while ((n = hanging()) && test_now_ns() < end) {
		child_read(c, "\1", 100);
		check_lines(c, bad);
	}
	if (!n)
		return 0;
	kill(c->pid, SIGQUIT);
	child_read(c, "\1", 20000);
	dump = strstr(c->text, "virtual processors, sched");
	fprintf(stderr, "seed %llu\n%s\n", (unsigned long long)test_seed(), dump ? dump : "");
	return n;
}

static void start(struct child *c)
{
	memset(shared, 0, sizeof *shared);
	shared->left = THREADS;
	child_start(c, program, NULL);
	while (!GET(shared->ready) && waitpid(c->pid, &c->status, WNOHANG) == 0)
		usleep(1000);
	if (!GET(shared->ready) && WIFEXITED(c->status) && WEXITSTATUS(c->status) == 77)
		SKIP("no process bodies here");
	CHECK(GET(shared->ready));
	killer = (struct killer){ .rand = killer.rand, .took = killer.took };
}

static void say(unsigned bad, unsigned hang)
{
	uint64_t *took = killer.took;
	unsigned n = killer.timed;

	qsort(took, n, sizeof *took, by_size);
	if (n)
		printf("%s, %s virtual processors: a successor goes on %llu us after a kill "
		       "(median of %u; 99 %%: %llu us, at most %llu us)\n",
		       sched ? sched : "scheduler as set", vps ? vps : "as many as set",
		       (unsigned long long)took[n / 2] / 1000, n,
		       (unsigned long long)took[n * 99 / 100] / 1000,
		       (unsigned long long)took[n - 1] / 1000);
	if (GET(shared->wrong_joins) || bad)
		printf("%u wrong joins, %u lines damaged\n", GET(shared->wrong_joins), bad);
	printf("kills %u lost %u corrupt %u hang %u\n", killer.done, GET(shared->lost),
		GET(shared->corrupt) + bad, hang);
	fflush(stdout);
}

static void soak(unsigned kills)
{
	static struct child c;
	unsigned hang = 0, bad = 0;
	char *counts;
	int unseen;

	start(&c);
	while (killer.done < kills && !hang && kill_some(c.pid)) {
		hang = hanging() ? still_hanging(&c, &bad) : 0;
		check_lines(&c, &bad);
		child_read(&c, "\1", (int)(test_rand(&killer.rand) % 4));
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	child_end(&c, END * 1000);
	counts = strstr(c.text, "\ncounts ");
	if (c.late || !WIFEXITED(c.status) || WEXITSTATUS(c.status) || !counts)
		fprintf(stderr, "seed %llu; the program: late %d, status 0x%x; it said:\n%.3000s\n",
			(unsigned long long)test_seed(), c.late, (unsigned)c.status,
				c.n > 3000 ? c.text + c.n - 3000 : c.text);
	if (c.late && strstr(c.text, "virtual processors, sched"))
		fprintf(stderr, "%.6000s\n", strstr(c.text, "virtual processors, sched"));
	unseen = ended_unseen(&c);
	hang += c.late ? GET(shared->left) + !GET(shared->left) : 0;
	bad += bad_lines(c.text);
	say(bad, hang);
	CHECK_EQ(GET(shared->corrupt) + bad + hang + GET(shared->wrong_joins), 0u);
	if (unseen)
		SKIP(UNSEEN);
	CHECK(GET(shared->lost) <= killer.done);
	CHECK(killer.done >= kills);
	child_exited(&c, 0);
}

/* Where the kernel refuses to trace: the first kill ends the program, with a message. */
static void check_untraced(void)
{
	static struct child c;

	start(&c);
	while (kill_some(c.pid) && !killer.done)
		;
	child_end(&c, END * 1000);
	CHECK(!c.late && WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGKILL);
	child_said(&c, "have no successors: the kernel refuses to trace them");
	child_said(&c, "was killed: the program ends");
}

int main(void)
{
	static const char *const scheds[] = { "rotator", "steal", "lb2", "rotator" },
		*const counts[] = { "2", "4", "1", "1" };
	const char *v = getenv("KILLS");
	unsigned kills = v ? (unsigned)atoi(v) : 15;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	killer.rand = test_seed();
	killer.took = calloc(kills + 2, sizeof *killer.took);
	if (!may_trace()) {
		check_untraced();
		SKIP("the kernel refuses to trace: a kill ends the program, and it says so");
	}
	for (unsigned i = 0; i < 4 && !v; i++) {
		sched = scheds[i];
		vps = counts[i];
		soak(kills);
	}
	if (v)
		soak(kills);
	return 0;
}
