/* core/contain: a thread that crashes is lost and all else goes on, with both kinds of bodies: the joiner is told, and what
 * happened; mutexes, streams, the hook. What cannot be contained ends the program as ever.
 * matrix: none
 * body: thread (it chooses by itself) */
#include <assert.h>
#include <errno.h>
#include <kochab/kochab.h>
#include <stdlib.h>
#include <string.h>

#include "core/child.h"

static const char *body;
static volatile int zero;
static volatile long here;
static void *volatile bad_address = (void *)24;

static void start(void)
{
	setenv("KOCHAB_BODY", body, 1);
	setenv("KOCHAB_CONTAIN", "yes", 1);
	setenv("KOCHAB_VPS", "2", 1);
	if (kb_init() != 0)
		_exit(77);
}

static void *writes(void *arg)
{
	(void)arg;
	*(volatile int *)bad_address = 1;
	return NULL;
}

static void *jumps(void *arg)
{
	(void)arg;
	((void (*)(void))bad_address)();
	return NULL;
}

static void *divides(void *arg)
{
	(void)arg;
	here = 100 / zero;
	return NULL;
}

static void *illegal(void *arg)
{
	(void)arg;
	__builtin_trap();
}

static void *raises(void *arg)
{
	(void)arg;
	raise(SIGBUS);
	return NULL;
}

static void *aborts(void *arg)
{
	(void)arg;
	abort();
}

static void *asserts(void *arg)
{
	(void)arg;
	assert(zero && "as it should");
	return NULL;
}

static __attribute__((noinline)) int deep(int n)
{
	volatile char room[512];

	room[0] = (char)n;
	return n ? deep(n + 1) + room[0] : 0;
}

static void *overflows(void *arg)
{
	(void)arg;
	here = deep(1);
	return NULL;
}

static void *measures(void *arg)
{
	(void)arg;
	here = (long)strlen(bad_address);
	return NULL;
}

static void *prints(void *arg)
{
	(void)arg;
	printf("%s\n", (char *)bad_address);
	return NULL;
}

static void *locks(void *arg)
{
	(void)arg;
	kb_mutex_lock(bad_address);
	return NULL;
}

static const struct fault {
	void *(*fn)(void *);
	int signal;
} faults[] = {
	{ writes, SIGSEGV }, { jumps, SIGSEGV }, { illegal, SIGILL }, { raises, SIGBUS }, { aborts, SIGABRT },
	{ asserts, SIGABRT }, { overflows, SIGSEGV }, { measures, SIGSEGV }, { prints, SIGSEGV }, { locks, SIGSEGV },
#if defined(__x86_64__)
	{ divides, SIGFPE },
#endif
};

static void *fine(void *arg)
{
	for (int i = 0; i < 100; i++)
		kb_yield();
	return arg;
}

static void one(const struct fault *f, enum kb_tls tls)
{
	struct kb_crash_info info;
	kb_thread_t t, other;
	kb_attr_t a;
	void *result;

	kb_attr_init(&a);
	kb_attr_settls(&a, tls);
	kb_attr_setname(&a, "crasher");
	CHECK_EQ(kb_thread_create(&other, NULL, fine, &a), 0);
	CHECK_EQ(kb_thread_create(&t, &a, f->fn, NULL), 0);
	CHECK_EQ(kb_thread_join(t, &result), EOWNERDEAD);
	CHECK_EQ(kb_thread_crash_info(t, &info), 0);
	CHECK_EQ(info.signal, f->signal);
	CHECK(info.frames >= 1 && info.frames <= KB_CRASH_FRAMES && info.frame[0]);
	CHECK_EQ(strcmp(info.name, "crasher"), 0);
	CHECK_EQ(kb_thread_join(other, &result), 0);
	CHECK(result == &a);
	CHECK_EQ(kb_thread_crash_info(other, &info), ESRCH);
}

static void each(void *arg)
{
	struct kb_crash_counts c;
	unsigned n = 0;

	(void)arg;
	start();
	for (int round = 0; round < 3; round++)
		for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++, n += 2) {
			one(&faults[i], KB_TLS_LIGHT);
			one(&faults[i], KB_TLS_OWN);
		}
	kb_crash_counts(&c);
	CHECK_EQ(c.lost, n);
	CHECK_EQ(c.kills, 0);
	printf("streams work\n");
}

/* ---- mutexes ---- */

static kb_mutex_t mutex;
static volatile int crash_now;

static void *crashes_holding(void *arg)
{
	CHECK_EQ(kb_mutex_lock(arg), 0);
	while (!crash_now)
		kb_yield();
	return writes(NULL);
}

static void *wants(void *arg)
{
	return (void *)(uintptr_t)kb_mutex_lock(arg);
}

/* A waiter that sleeps already, and one that comes later. */
static void left(kb_mutex_t *m, int first)
{
	kb_thread_t t, w;
	void *result;

	crash_now = 0;
	CHECK_EQ(kb_thread_create(&t, NULL, crashes_holding, m), 0);
	kb_sleep(20000000);
	CHECK_EQ(kb_mutex_trylock(m), EBUSY);
	CHECK_EQ(kb_thread_create(&w, NULL, wants, m), 0);
	kb_sleep(20000000);
	crash_now = 1;
	CHECK_EQ(kb_thread_join(t, NULL), EOWNERDEAD);
	CHECK_EQ(kb_thread_join(w, &result), 0);
	CHECK_EQ((uintptr_t)result, first);
}

static void robust(void *arg)
{
	kb_cond_t cond = KB_COND_INIT;

	(void)arg;
	start();
	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_ROBUST), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), EDEADLK);
	CHECK_EQ(kb_mutex_consistent(&mutex), EINVAL);
	CHECK_EQ(kb_cond_timedwait(&cond, &mutex, kb_now() + 1000000), ETIMEDOUT);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	/* the waiter holds it after EOWNERDEAD, and ends: this is no robustness */
	left(&mutex, EOWNERDEAD);
	CHECK_EQ(kb_mutex_trylock(&mutex), EBUSY);

	CHECK_EQ(kb_mutex_init(&mutex, KB_MUTEX_ROBUST), 0);
	crash_now = 1;
	kb_thread_t t;
	CHECK_EQ(kb_thread_create(&t, NULL, crashes_holding, &mutex), 0);
	CHECK_EQ(kb_thread_join(t, NULL), EOWNERDEAD);
	CHECK_EQ(kb_mutex_lock(&mutex), EOWNERDEAD);
	CHECK_EQ(kb_mutex_consistent(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), 0);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);

	CHECK_EQ(kb_thread_create(&t, NULL, crashes_holding, &mutex), 0);
	CHECK_EQ(kb_thread_join(t, NULL), EOWNERDEAD);
	CHECK_EQ(kb_mutex_trylock(&mutex), EOWNERDEAD);
	CHECK_EQ(kb_mutex_unlock(&mutex), 0);
	CHECK_EQ(kb_mutex_lock(&mutex), ENOTRECOVERABLE);
	CHECK_EQ(kb_mutex_trylock(&mutex), ENOTRECOVERABLE);
}

static void released(void *arg)
{
	(void)arg;
	setenv("KOCHAB_ON_CRASH", "release", 1);
	start();
	left(&mutex, 0);
}

static void not_released(void *arg)
{
	(void)arg;
	setenv("KOCHAB_ON_CRASH", "abort", 1);
	start();
	left(&mutex, 0);
}

/* ---- the hook ---- */

static volatile unsigned told;
static kb_sem_t done;

static void *respawned(void *arg)
{
	(void)arg;
	kb_sem_post(&done);
	return NULL;
}

static void hook(kb_thread_t thread, const struct kb_crash_info *info)
{
	kb_thread_t t;

	CHECK(thread == kb_thread_self());
	CHECK_EQ(info->signal, SIGSEGV);
	told++;
	kb_yield();
	CHECK_EQ(kb_thread_create(&t, NULL, respawned, NULL), 0);
	CHECK_EQ(kb_thread_detach(t), 0);
}

static void hooked(void *arg)
{
	(void)arg;
	start();
	kb_on_crash(hook);
	for (int i = 0; i < 50; i++) {
		kb_thread_t t;

		CHECK_EQ(kb_thread_create(&t, NULL, i % 2 ? writes : overflows, NULL), 0);
		if (i % 4 < 2)
			CHECK_EQ(kb_thread_join(t, NULL), EOWNERDEAD);
		else
			CHECK_EQ(kb_thread_detach(t), 0);
		kb_sem_wait(&done);
	}
	CHECK_EQ(told, 50);
}

/* ---- what ends the program ---- */

static void main_faults(void *arg)
{
	(void)arg;
	start();
	writes(NULL);
}

static void *frees(void *arg)
{
	char *volatile p = malloc(100);
	volatile char *before = p - 16;

	(void)arg;
	for (int i = 0; i < 16; i++)
		before[i] = 0x5a;
	free(p);
	return NULL;
}

static void heap_faults(void *arg)
{
	kb_thread_t t;

	(void)arg;
	start();
	CHECK_EQ(kb_thread_create(&t, NULL, frees, NULL), 0);
	kb_thread_join(t, NULL);
}

static void own_handler(int sig)
{
	_exit(sig + 100);
}

static void program_handles(void *arg)
{
	kb_thread_t t;

	(void)arg;
	start();
	signal(SIGSEGV, own_handler);
	CHECK_EQ(kb_thread_create(&t, NULL, writes, NULL), 0);
	kb_thread_join(t, NULL);
}

static struct child c;

static void run(void (*fn)(void *), int status)
{
	child_run(&c, fn, NULL);
	if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77 && status != 77)
		SKIP("no process bodies here");
	child_exited(&c, status);
}

static void ends_by(void (*fn)(void *), int sig)
{
	child_run(&c, fn, NULL);
	child_killed(&c, sig);
}

static void all(const char *kind)
{
	body = kind;
	run(each, 0);
	child_said(&c, "streams work");
	child_said(&c, "overflowed its");
	run(robust, 0);
	run(released, 0);
	run(hooked, 0);
	run(program_handles, SIGSEGV + 100);
	ends_by(not_released, SIGABRT);
	child_said(&c, "which was lost");
	ends_by(main_faults, SIGSEGV);
	ends_by(heap_faults, SIGABRT);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#elif !defined(__x86_64__) && !defined(__aarch64__)
	SKIP("not on this machine");
#endif
	all("thread");
	all("process");
	return 0;
}
