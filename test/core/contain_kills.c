/* core/contain, core/revive: processes of a program are killed at random while 1000 threads ring, allocate, lock and
 * print. Nobody hangs, nothing that survives is damaged, a kill loses one thread at most.
 * KILLS (40): how many. KB_TEST_SEED. Last line: kills K lost L corrupt C hang H.
 * matrix: none
 * body: thread (it chooses by itself)
 * timeout: 200 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <kochab/kochab.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/child.h"

enum { THREADS = 1000, RING = 50, RINGS = 6, ALLOCATORS = 300, LOCKERS = 300, LOCKS = 16, BLOCKS = 8 };
enum { FIRST_ALLOCATOR = RING * RINGS, FIRST_LOCKER = FIRST_ALLOCATOR + ALLOCATORS, FIRST_PRINTER = FIRST_LOCKER + LOCKERS };
enum { PATIENCE = 60 /* seconds without progress: it hangs */ };

/* Of the killer and the program. */
static struct shared {
	int ready, stop;
	unsigned left, corrupt, lost, wrong_joins;
	unsigned long progress[THREADS];
} *shared;

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

/* So that kills find threads in code of their own. */
static void compute(unsigned n)
{
	volatile unsigned x = 0;

	for (unsigned i = 0; i < n; i++)
		x += i;
}

/* ---- ring: one token of each epoch; who has it counts ---- */

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

/* Somebody is new here: whoever had the token may be gone. */
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

/* ---- the others ---- */

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

static void printer(unsigned slot)
{
	unsigned n = 0;

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

	(slot < FIRST_ALLOCATOR ? ring : slot < FIRST_LOCKER ? allocator : slot < FIRST_PRINTER ? locker : printer)(slot);
	if (ADD(shared->left, -1) == 0)
		kb_sem_post(&all_done);
	return NULL;
}

static void begin(unsigned slot, void *(*fn)(void *));

/* In the place of one that was lost. */
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
	setenv("KOCHAB_VPS", "2", 1);
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

static unsigned children_of(pid_t pid, int *list, unsigned most)
{
	char path[64], text[8192];
	unsigned n = 0;
	ssize_t size;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	size = read(fd, text, sizeof text - 1);
	close(fd);
	text[size > 0 ? size : 0] = 0;
	for (char *p = text, *end; n < most; p = end) {
		long v = strtol(p, &end, 10);

		if (end == p)
			break;
		list[n++] = (int)v;
	}
	return n;
}

static int is_known(const int *list, unsigned n, int pid)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == pid)
			return 1;
	return 0;
}

#define SKIPPED (UINT64_MAX - 1)

/* Until there is one that was not there before: its successor. */
static uint64_t kill_one(pid_t program, uint64_t *rand)
{
	int before[64], now[64];
	unsigned n = children_of(program, before, 64), m;
	uint64_t start = test_now_ns();

	if (!n)
		return UINT64_MAX;
	static int killed[256]; /* once each: a second kill takes the registers of one that has not been looked at */
	static unsigned n_killed;
	int victim = before[test_rand(rand) % n];

	if (is_known(killed, 256, victim))
		return SKIPPED;
	if (kill(victim, SIGKILL))
		return 0;
	killed[n_killed++ % 256] = victim;
	do {
		m = children_of(program, now, 64);
		for (unsigned i = 0; i < m; i++)
			if (!is_known(before, n, now[i]))
				return test_now_ns() - start;
	} while (m && test_now_ns() - start < 1000000000u);
	return 0;
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

/* Every line that the printers wrote is whole. */
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

int main(void)
{
	static struct child c;
	const char *v = getenv("KILLS");
	unsigned kills = v ? (unsigned)atoi(v) : 40, done = 0, timed = 0, hang = 0, bad = 0;
	uint64_t rand = test_seed(), *took = calloc(kills + 1, sizeof *took);
	char *counts;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared->left = THREADS;
	child_start(&c, program, NULL);
	while (!GET(shared->ready) && waitpid(c.pid, &c.status, WNOHANG) == 0)
		usleep(1000);
	if (!GET(shared->ready) && WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
		SKIP("no process bodies here");
	CHECK(GET(shared->ready));
	while (done < kills && !hang) {
		uint64_t ns = kill_one(c.pid, &rand);

		if (ns == UINT64_MAX)
			break;
		if (ns == SKIPPED)
			continue;
		if (ns)
			took[timed++] = ns;
		done++;
		hang = hanging();
		if (c.n > sizeof c.text / 2) {
			char *end = memrchr(c.text, '\n', c.n);
			size_t rest = c.n - (size_t)(end + 1 - c.text);

			*end = 0;
			bad += bad_lines(c.text);
			memmove(c.text, end + 1, rest);
			c.n = rest;
		}
		child_read(&c, "\1", (int)(test_rand(&rand) % 8));
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	child_end(&c, PATIENCE * 1000);
	counts = strstr(c.text, "\ncounts ");
	if (c.late || !WIFEXITED(c.status) || WEXITSTATUS(c.status) || !counts)
		fprintf(stderr, "the program: late %d, status 0x%x; it said:\n%.3000s\n", c.late, (unsigned)c.status,
			c.n > 3000 ? c.text + c.n - 3000 : c.text);
	else
		fputs(counts + 1, stdout);
	hang += c.late ? GET(shared->left) + !GET(shared->left) : 0;
	bad += bad_lines(c.text);
	qsort(took, timed, sizeof *took, by_size);
	printf("a successor after %llu us (median of %u), %llu us at most; %u wrong joins, %u lines damaged, seed %llu\n",
	       (unsigned long long)took[timed / 2] / 1000, timed, (unsigned long long)(timed ? took[timed - 1] : 0) / 1000,
	       GET(shared->wrong_joins), bad, (unsigned long long)test_seed());
	printf("kills %u lost %u corrupt %u hang %u\n", done, GET(shared->lost), GET(shared->corrupt) + bad, hang);
	CHECK_EQ(GET(shared->corrupt) + bad + hang + GET(shared->wrong_joins), 0u);
	CHECK(GET(shared->lost) <= done);
	CHECK_EQ(done, kills);
	child_exited(&c, 0);
	return 0;
}
