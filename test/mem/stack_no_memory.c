/* mem/stack: address space runs out while threads are created: EAGAIN, nothing is leaked, existing threads
 * are unharmed, and when they have ended as many can be created as before. Who lets a new thread run, for which memory
 * must be made and is refused, does not see that in errno. */
#include <errno.h>
#include <kochab/kochab.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string.h>
#include <sys/resource.h>

#include "core/child.h"

enum { MOST = 200000, ROUNDS = 4 };

struct how {
	size_t stack;
	enum kb_tls tls;
	const char *tcb, *vps;
};

static kb_sem_t gate;
static uint32_t running;
static kb_thread_t all[MOST];

static void *waits(void *arg)
{
	volatile char frame[8000];

	memset((char *)frame, (int)(uintptr_t)arg, sizeof frame);
	__atomic_add_fetch(&running, 1, __ATOMIC_RELAXED);
	CHECK_EQ(kb_sem_wait(&gate), 0);
	for (unsigned i = 0; i < sizeof frame; i++)
		CHECK(frame[i] == (char)(uintptr_t)arg);
	return arg;
}

/* As many as there is room for. What is missing to `least` may be with a VP that has no processor now: once more,
 * for a while. */
static unsigned fill(const struct how *h, unsigned least)
{
	uint64_t until = test_now_ns() + 20000000000u;
	unsigned n = 0;
	kb_attr_t a;
	int e;

	kb_attr_init(&a);
	CHECK_EQ(kb_attr_setstacksize(&a, h->stack), 0);
	CHECK_EQ(kb_attr_settls(&a, h->tls), 0);
	do {
		e = kb_thread_create(&all[n], &a, waits, (void *)(uintptr_t)n);
		n += e == 0;
		if (e == EAGAIN && n < least)
			kb_sleep(1000000);
	} while (n < MOST && (e == 0 || (e == EAGAIN && n < least && test_now_ns() < until)));
	CHECK_EQ(e, EAGAIN);
	return n;
}

/* The runtime has reserved its tables; this much more for all else. */
static void leave_addresses(unsigned mib)
{
	struct rlimit l = { .rlim_cur = 0 };
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	l.rlim_cur = l.rlim_max = pages * 4096 + ((rlim_t)mib << 20);
	CHECK_EQ(setrlimit(RLIMIT_AS, &l), 0);
}

static void *keeps(void *arg)
{
	for (int i = 0; i < 50; i++) {
		errno = (int)(uintptr_t)arg;
		kb_yield();
		CHECK_EQ(errno, (uintptr_t)arg);
	}
	return arg;
}

/* Each kernel thread asks for an arena of 64 MiB or more when it first allocates. */
static void keep_errno(void *unused)
{
	kb_attr_t a;

	(void)unused;
	CHECK_EQ(setenv("KOCHAB_VPS", "2", 1), 0);
	CHECK_EQ(kb_init(), 0);
	kb_attr_init(&a);
	CHECK_EQ(kb_attr_settls(&a, KB_TLS_OWN), 0);
	leave_addresses(60);
	for (uintptr_t i = 0; i < 200; i++)
		CHECK_EQ(kb_thread_create(&all[i], &a, keeps, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < 200; i++)
		CHECK_EQ(kb_thread_join(all[i], NULL), 0);
}

static void exhaust(void *arg)
{
	const struct how *h = arg;
	unsigned first = 0;

#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1); /* or each kernel thread takes 64 MiB of it for malloc, whenever it first allocates */
#endif
	CHECK_EQ(setenv("KOCHAB_TLS", h->tcb, 1), 0);
	CHECK_EQ(setenv("KOCHAB_VPS", h->vps, 1), 0);
	CHECK_EQ(kb_init(), 0);
	kb_sleep(10000000);
	leave_addresses(200);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned least = round ? first - first / 10 : 20, n = fill(h, least);

		first = round ? first : n;
		if (n < least)
			fprintf(stderr, "round %d: %u threads, not %u\n", round, n, least);
		CHECK(n >= least);
		for (int i = 0; i < 10000 && __atomic_load_n(&running, __ATOMIC_RELAXED) < n; i++)
			kb_sleep(1000000);
		CHECK_EQ(__atomic_load_n(&running, __ATOMIC_RELAXED), n);
		__atomic_store_n(&running, 0, __ATOMIC_RELAXED);
		for (unsigned i = 0; i < n; i++)
			CHECK_EQ(kb_sem_post(&gate), 0);
		for (uintptr_t i = 0; i < n; i++) {
			void *r;

			CHECK_EQ(kb_thread_join(all[i], &r), 0);
			CHECK_EQ((uintptr_t)r, i);
		}
	}
}

int main(void)
{
	static const struct how hows[] = {
		{ 65536, KB_TLS_LIGHT, "auto", "1" }, { 65536, KB_TLS_LIGHT, "auto", "2" },
		{ 65536, KB_TLS_LIGHT, "auto", "4" }, { 65536, KB_TLS_OWN, "auto", "2" },
		{ 65536, KB_TLS_OWN, "donor", "2" },  { 8 << 20, KB_TLS_LIGHT, "auto", "2" },
		{ 8 << 20, KB_TLS_OWN, "auto", "2" },
	};
	static struct child c;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer itself needs address space, and ends the process without");
#endif
	for (unsigned i = 0; i < sizeof hows / sizeof *hows; i++) {
		child_run(&c, exhaust, (void *)&hows[i]);
		if (c.status || c.late)
			fprintf(stderr, "stack %zu, tls %d, %s, %s VPs\n", hows[i].stack, hows[i].tls, hows[i].tcb, hows[i].vps);
		child_exited(&c, 0);
	}
	child_run(&c, keep_errno, NULL);
	child_exited(&c, 0);
	return 0;
}
