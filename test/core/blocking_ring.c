/* core/handoff: threads that come back from calls that block take virtual processors that other
 * threads have lent, on their own kernel threads. Rings of threads pass a token on through pipes,
 * which each of them reads with its virtual processor lent; beside them a thread computes and
 * yields. On a virtual processor there is a single thread at a time; each has its own errno and
 * TLS, and a bound thread comes back to its virtual processor.
 * matrix: vps=1,2,4 sched=rotator,lb2,steal */
#include <errno.h>
#include <kochab/kochab.h>
#include <unistd.h>

#include "core/own_tls.h"
#include "test.h"

enum { RINGS = 3, PEERS = 5, THREADS = RINGS * PEERS, ROUNDS = 400, STEPS = 200, VPS = 1024 };

static struct peer {
	int pipe[2]; /* the thread reads from it, its neighbour writes */
	kb_thread_t thread;
	int bound, own;
} peers[THREADS];

static volatile int inside[VPS];
static int over; /* atomic */
static __thread int number;

/* A light thread's errno has another place afterwards, which the compiler must not keep. */
static __attribute__((noinline)) int get_errno(void)
{
	__asm__ volatile("" ::: "memory");
	return errno;
}

static __attribute__((noinline)) int get_number(void)
{
	__asm__ volatile("" ::: "memory");
	return number;
}

/* Adds without a call in between: no other thread is here. */
static void use_vp(void)
{
	int vp = kb_vp_self();

	CHECK(vp >= 0 && vp < VPS);
	CHECK_EQ(inside[vp], 0);
	inside[vp] = 1;
	for (volatile int i = 0; i < STEPS; i++)
		;
	inside[vp] = 0;
}

static char take(struct peer *p, int n)
{
	char c;

	CHECK_EQ(kb_blocking_begin(), 0);
	CHECK_EQ(kb_vp_self(), -1);
	CHECK_EQ(read(p->pipe[0], &c, 1), 1);
	errno = n;
	CHECK_EQ(kb_blocking_end(), 0);
	CHECK_EQ(get_errno(), n);
	return c;
}

/* Now and then also with the virtual processor lent. */
static void pass_on(const struct peer *p, char c, int lends)
{
	const struct peer *next = p + 1;
	long at = p - peers;

	if (at % PEERS == PEERS - 1)
		next = p + 1 - PEERS;
	if (lends)
		CHECK_EQ(kb_blocking_begin(), 0);
	CHECK_EQ(write(next->pipe[1], &c, 1), 1);
	if (lends)
		CHECK_EQ(kb_blocking_end(), 0);
}

static void *peer(void *arg)
{
	struct peer *p = arg;
	int me = (int)(p - peers), vp = kb_vp_self();

	if (p->own)
		number = me;
	for (int i = 0; i < ROUNDS; i++) {
		char c = take(p, 1000 * (me + 1) + i % 1000);

		CHECK_EQ(c, (char)i);
		CHECK(!p->own || get_number() == me);
		CHECK(!p->bound || kb_vp_self() == vp);
		use_vp();
		if (i % 7 == me % 7)
			kb_yield();
		use_vp();
		pass_on(p, me % PEERS == PEERS - 1 ? (char)(i + 1) : c, i % 3 == 0);
	}
	return arg;
}

static void *computes(void *unused)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		use_vp();
		kb_yield();
	}
	return unused;
}

static void start(int k)
{
	struct peer *p = &peers[k];
	kb_attr_t a;

	CHECK_EQ(pipe(p->pipe), 0);
	kb_attr_init(&a);
	p->own = k % 2 && own_tls_is_there();
	CHECK_EQ(kb_attr_settls(&a, p->own ? KB_TLS_OWN : KB_TLS_LIGHT), 0);
	p->bound = k % 7 == 3;
	if (p->bound)
		CHECK_EQ(kb_attr_setvp(&a, k), 0);
	CHECK_EQ(kb_thread_create(&p->thread, &a, peer, p), 0);
}

int main(void)
{
	kb_thread_t other;
	char c = 0;

	CHECK_EQ(kb_init(), 0);
	for (int k = 0; k < THREADS; k++)
		start(k);
	CHECK_EQ(kb_thread_create(&other, NULL, computes, NULL), 0);
	for (int r = 0; r < RINGS; r++)
		CHECK_EQ(write(peers[r * PEERS].pipe[1], &c, 1), 1);
	for (int k = 0; k < THREADS; k++)
		CHECK_EQ(kb_thread_join(peers[k].thread, NULL), 0);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_thread_join(other, NULL), 0);
	return 0;
}
