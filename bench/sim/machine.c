/* bench/sim/machine.c - simulated processors, time, cache lines and system calls. Contract in
 * machine.h. Each processor is a context on a stack of its own. A heap orders by their clocks
 * the processors that run or have a time limit. */
#include "machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>

#include "lines.h"
#include "os/sys.h"

/* ps: so far a processor may run ahead before they take turns */
enum { STACK = 256 * 1024, SKEW = 20000 };

#define LONG_SLEEP 1000000000 /* ps */

struct sim_costs sim_costs;

struct cpu {
	struct kbi_ctx ctx;
	uint64_t now, stored_at;
	uint64_t slept, sleeps_since;
	const void *word;  /* it sleeps in a futex on this word, or on a semaphore; NULL: it runs */
	void *stack;
	unsigned place;    /* place in the heap + 1; 0: not there */
	const struct sim_line *line; /* the line that it used last */
	uint64_t lines;    /* number of lines that it has used, one after another */
	uint64_t chilled;  /* lines, when it last fell asleep for long */
	bool missed;       /* its last accesses were reads that missed */
	bool timed_out, computes, signalled;
};

static struct {
	struct cpu *cpu;
	unsigned n;
	struct cpu **heap;
	unsigned in_heap;
	struct cpu *cur; /* NULL: nothing is simulated */
	struct kbi_ctx outside;
	void (*body)(unsigned);
	int result;
	uint64_t moves, accesses, wakes;
	short sem[KBI_MAX_VPS];
} m;

/* ---- the heap of clocks ---------------------------------------------------------------------- */

static bool before(const struct cpu *a, const struct cpu *b)
{
	return a->now < b->now || (a->now == b->now && a < b);
}

static void set(unsigned at, struct cpu *c)
{
	m.heap[at] = c;
	c->place = at + 1;
}

static void rise(unsigned at, struct cpu *c)
{
	for (; at && before(c, m.heap[(at - 1) / 2]); at = (at - 1) / 2)
		set(at, m.heap[(at - 1) / 2]);
	set(at, c);
}

static void sink(unsigned at, struct cpu *c)
{
	unsigned child;

	while ((child = 2 * at + 1) < m.in_heap) {
		child += child + 1 < m.in_heap && before(m.heap[child + 1], m.heap[child]);
		if (!before(m.heap[child], c))
			break;
		set(at, m.heap[child]);
		at = child;
	}
	set(at, c);
}

static void enter(struct cpu *c)
{
	rise(m.in_heap++, c);
}

static void leave(struct cpu *c)
{
	unsigned at = c->place - 1;
	struct cpu *last = m.heap[--m.in_heap];

	c->place = 0;
	if (last == c)
		return;
	if (at && before(last, m.heap[(at - 1) / 2]))
		rise(at, last);
	else
		sink(at, last);
}

/* ---- taking turns ---------------------------------------------------------------------------- */

static KBI_SWITCHER void go_to(struct cpu *from, struct cpu *to)
{
	m.cur = to;
	kbi_ctx_switch_bare(&from->ctx, &to->ctx, NULL, NULL);
}

static KBI_SWITCHER void go_outside(struct cpu *from, int result)
{
	m.result = result;
	m.cur = NULL;
	kbi_ctx_switch_bare(&from->ctx, &m.outside, NULL, NULL);
}

/* Lets the processor give way to the processor that is furthest behind. The caller is in the
 * heap, or sleeps for good. */
static void turn(struct cpu *c)
{
	struct cpu *next;

	if (!m.in_heap) {
		go_outside(c, -1);
		return;
	}
	next = m.heap[0];
	leave(next);
	if (next->word) {
		next->word = NULL;
		next->timed_out = true;
	}
	if (next != c)
		go_to(c, next);
	else
		m.cur = c;
}

static void pass(struct cpu *c, uint64_t ps)
{
	c->now += ps;
	if (m.in_heap && m.heap[0]->now + SKEW < c->now) {
		enter(c);
		turn(c);
	}
}

void sim_spend(uint64_t ps)
{
	m.cur->missed = false;
	pass(m.cur, ps);
}

uint64_t sim_compute(uint64_t ps)
{
	struct cpu *c = m.cur;
	uint64_t end = c->now + ps;

	c->missed = false;
	if (c->signalled)
		return ps;
	c->computes = true;
	c->now = end;
	enter(c);
	turn(c);
	c->computes = false;
	return end - c->now;
}

void sim_signal(unsigned i)
{
	struct cpu *c = &m.cpu[i];
	uint64_t then = m.cur->now + sim_costs.tick;

	sim_spend(sim_costs.syscall);
	c->signalled = true;
	if (!c->computes || then >= c->now)
		return;
	leave(c);
	c->now = then;
	enter(c);
}

bool sim_signalled(void)
{
	bool yes = m.cur->signalled;

	m.cur->signalled = false;
	return yes;
}

unsigned sim_self(void)
{
	return (unsigned)(m.cur - m.cpu);
}

uint64_t sim_clock(void)
{
	return m.cur->now;
}

/* ---- cache lines ----------------------------------------------------------------------------- */

static uint64_t latency(unsigned a, unsigned b)
{
	unsigned smt = (unsigned)(sim_costs.smt_size / 1000),
		cluster = (unsigned)(sim_costs.cluster_size / 1000),
		 socket = (unsigned)(sim_costs.socket_size / 1000);

	if (a == b)
		return sim_costs.hit;
	return a / smt == b / smt	  ? sim_costs.smt
	       : a / cluster == b / cluster ? sim_costs.cluster
	       : a / socket == b / socket   ? sim_costs.socket
					    : sim_costs.across;
}

/* Returns the latency to the farthest processor that has the line and must lose it. */
static uint64_t farthest(const struct sim_line *l, unsigned who)
{
	uint64_t most = 0;

	for (unsigned w = 0; w < (m.n + 63) / 64; w++)
		for (uint64_t bits = l->have[w]; bits; bits &= bits - 1) {
			uint64_t d = latency(who, w * 64 + (unsigned)__builtin_ctzll(bits));

			most = d > most ? d : most;
		}
	return most;
}

/* Returns the time until which the line is on its way to c, if it starts now. */
static uint64_t fetch(const struct cpu *c, struct sim_line *l, uint64_t takes)
{
	uint64_t begin = c->now > l->free_at ? c->now : l->free_at;

	m.moves++;
	l->free_at = begin + takes * sim_costs.occupied / 100000;
	return begin + takes;
}

/* Returns the cost of an access by c that need not move the line. */
static uint64_t at_hand(const struct cpu *c, const struct sim_line *l)
{
	uint64_t ago;

	if (l->last != (int32_t)sim_self())
		return sim_costs.hit;
	if (l->used <= c->chilled)
		return sim_costs.chilled;
	ago = (c->lines - l->used) * 1000;
	return ago > sim_costs.near ? sim_costs.far : ago > sim_costs.close
		? sim_costs.second : sim_costs.hit;
}

static void note_use(struct cpu *c, struct sim_line *l)
{
	if (c->line != l)
		c->lines++;
	c->line = l;
	l->last = (int32_t)sim_self();
	l->used = c->lines;
}

static uint64_t read_line(struct cpu *c, struct sim_line *l)
{
	unsigned who = sim_self();
	uint64_t takes, end;

	if (sim_line_has(l, who))
		return at_hand(c, l);
	takes = l->owner < 0 ? sim_costs.cold : latency(who, (unsigned)l->owner);
	end = fetch(c, l,
		    c->missed && sim_costs.overlap > 1000 ? takes * 1000 / sim_costs.overlap : takes);
	c->missed = true;
	sim_line_share(l, who);
	return end - c->now;
}

static uint64_t write_line(struct cpu *c, struct sim_line *l, bool wait)
{
	unsigned who = sim_self();
	uint64_t end = c->now, here = at_hand(c, l), takes;

	if (l->owner != (int32_t)who || l->sharers > 1 || !sim_line_has(l, who)) {
		takes = l->owner < 0 && !l->sharers ? sim_costs.cold : farthest(l, who);
		end = fetch(c, l, takes);
		here += takes * 1000 / sim_costs.drain;
		sim_line_take(l, who);
	}
	if (!wait) {
		c->stored_at = end > c->stored_at ? end : c->stored_at;
		return here;
	}
	end = end > c->stored_at ? end : c->stored_at;
	c->missed = false;
	return end - c->now + sim_costs.rmw;
}

void sim_touch(const void *word, enum sim_access how)
{
	struct cpu *c = m.cur;
	struct sim_line *l;
	uint64_t takes;

	if (!c)
		return;
	m.accesses++;
	l = sim_line_of(word);
	takes = how == SIM_READ ? read_line(c, l) : write_line(c, l, how == SIM_RMW);
	note_use(c, l);
	pass(c, takes);
}

void sim_fence(void)
{
	struct cpu *c = m.cur;

	if (!c)
		return;
	c->missed = false;
	pass(c, (c->stored_at > c->now ? c->stored_at - c->now : 0) + sim_costs.fence);
}

void sim_relax(void)
{
	if (m.cur)
		sim_spend(sim_costs.relax);
}

void sim_move(unsigned from, uint64_t n)
{
	sim_spend(latency(sim_self(), from) * n / 1000);
	m.moves += n / 1000;
}

/* ---- system calls ---------------------------------------------------------------------------- */

/* Sleeps on word; limit: ps from now, UINT64_MAX: none. Returns true if it was not woken. */
static bool sleep_on(const void *word, uint64_t limit)
{
	struct cpu *c = m.cur;

	c->word = word;
	c->timed_out = false;
	c->sleeps_since = c->now;
	if (limit != UINT64_MAX) {
		c->now += limit;
		enter(c);
	}
	turn(c);
	c->slept += c->now - c->sleeps_since;
	if (c->now > c->sleeps_since + LONG_SLEEP)
		c->chilled = c->lines;
	return c->timed_out;
}

static void wake_cpu(struct cpu *c)
{
	bool is_long = m.cur->now > c->sleeps_since + LONG_SLEEP;
	uint64_t then = m.cur->now + (is_long ? sim_costs.wake_long : sim_costs.wake);

	if (c->place)
		leave(c);
	c->word = NULL;
	c->now = then > c->sleeps_since ? then : c->sleeps_since;
	enter(c);
	m.wakes++;
}

/* Wakes up to n sleepers, in the order of their numbers. Returns how many. */
static long wake_on(const void *word, int n)
{
	long woken = 0;

	for (unsigned i = 0; i < m.n && woken < n; i++)
		if (m.cpu[i].word == word) {
			wake_cpu(&m.cpu[i]);
			woken++;
		}
	return woken;
}

long kbi_sys_futex_wait(const void *word, uint32_t expected, const struct timespec *timeout)
{
	uint64_t limit = UINT64_MAX;

	sim_spend(sim_costs.syscall);
	if (__atomic_load_n((const uint32_t *)word, __ATOMIC_RELAXED) != expected)
		return -EAGAIN;
	if (timeout)
		limit = ((uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec) * 1000;
	return sleep_on(word, limit) ? -ETIMEDOUT : 0;
}

long kbi_sys_futex_wake(const void *word, int n)
{
	long woken = wake_on(word, n);

	sim_spend(woken ? sim_costs.wake_call : sim_costs.syscall);
	return woken;
}

int sim_semget(void)
{
	return 1;
}

int sim_semctl(int command)
{
	if (command == SETVAL || command == IPC_RMID)
		for (unsigned i = 0; i < KBI_MAX_VPS; i++)
			m.sem[i] = 1;
	return 0;
}

long sim_sys(long n, long a, long b, long c, long d)
{
	const struct sembuf *op = (const struct sembuf *)b;
	short *sem;

	(void)a;
	(void)c;
	(void)d;
	if (n != SYS_semtimedop)
		return -ENOSYS;
	sem = &m.sem[op->sem_num];
	sim_spend(sim_costs.semop);
	if (op->sem_op > 0) {
		*sem = (short)(*sem + op->sem_op);
		if (wake_on(sem, 1))
			sim_spend(sim_costs.wake_call);
		return 0;
	}
	while (*sem < 1)
		sleep_on(sem, UINT64_MAX);
	(*sem)--;
	return 0;
}

uint64_t kbi_sys_now(void)
{
	sim_spend(sim_costs.clock);
	return m.cur->now / 1000;
}

void kbi_sys_yield(void)
{
	sim_spend(sim_costs.syscall);
}

void kbi_sys_yield_to_holder(unsigned n)
{
	(void)n; /* no thread is preempted here */
	kbi_sys_yield();
}

void *kbi_sys_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void *kbi_sys_map_table(size_t bytes)
{
	return kbi_sys_map(bytes);
}

void kbi_sys_unmap(void *p, size_t bytes)
{
	munmap(p, bytes);
}

void kbi_sys_message(const char *format, ...)
{
	(void)format;
}

void kbi_sys_fatal(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

/* ---- running --------------------------------------------------------------------------------- */

static void start(void *arg)
{
	m.body((unsigned)((struct cpu *)arg - m.cpu));
	sim_stop();
}

KBI_SWITCHER int sim_run(unsigned n, void (*body)(unsigned))
{
	m.n = n;
	m.body = body;
	m.cpu = calloc(n, sizeof *m.cpu);
	m.heap = calloc(n, sizeof(struct cpu *));
	m.moves = m.accesses = m.wakes = 0;
	if (!m.cpu || !m.heap)
		abort();
	sim_lines_begin(n);
	for (unsigned i = 0; i < n; i++) {
		m.cpu[i].stack = kbi_sys_map(STACK);
		if (!m.cpu[i].stack)
			abort();
		kbi_ctx_make(&m.cpu[i].ctx, m.cpu[i].stack, STACK, start, &m.cpu[i]);
		enter(&m.cpu[i]);
	}
	struct cpu *first = m.heap[0];
	leave(first);
	m.cur = first;
	kbi_ctx_switch_bare(&m.outside, &first->ctx, NULL, NULL);
	for (unsigned i = 0; i < n; i++)
		kbi_sys_unmap(m.cpu[i].stack, STACK);
	sim_lines_end();
	m.in_heap = 0;
	return m.result;
}

void sim_stop(void)
{
	go_outside(m.cur, 0);
}

uint64_t sim_slept(unsigned i)
{
	return m.cpu[i].slept;
}

uint64_t sim_moves(void)
{
	return m.moves;
}

uint64_t sim_accesses(void)
{
	return m.accesses;
}

uint64_t sim_wakes(void)
{
	return m.wakes;
}
