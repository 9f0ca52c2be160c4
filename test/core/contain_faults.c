/* core/contain: a thread that crashes is lost and all else goes on: the joiner is told, with the
 * details; streams are free; the hook. A crash that cannot be contained ends the program as ever,
 * and a line tells the reason. */
#include <errno.h>
#include <kochab/kochab.h>

#include "core/child.h"
#include "core/own_tls.h"
#include "core/crashers.h"

static void start(void)
{
	setenv("KOCHAB_CONTAIN", "1", 1);
	if (kb_init() != 0)
		_exit(77);
}

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
	if (f->fn == writes)
		CHECK(info.address == bad_address && (char *)info.frame[0] - (char *)(void *)writes < 200);
	CHECK_EQ(strcmp(info.name, "crasher"), 0);
	CHECK_EQ(kb_thread_join(t, &result), ESRCH);
	CHECK_EQ(kb_thread_join(other, &result), 0);
	CHECK(result == &a);
	CHECK_EQ(kb_thread_crash_info(other, &info), ESRCH);
}

static void each(void *arg)
{
	unsigned n = 0;

	(void)arg;
	start();
	for (int round = 0; round < 3; round++)
		for (unsigned i = 0; i < FAULTS; i++) {
			if (!faults[i].signal)
				continue;
			one(&faults[i], KB_TLS_LIGHT);
			one(&faults[i], own_tls_or_light(KB_TLS_OWN));
			n += 2;
		}
	CHECK_EQ(kb_crash_count(), n);
	kb_dump(1);
	printf("streams work\n");
}

/* ---- many at once, beside working threads ---- */

enum { MANY = 200, WORKERS = 20 };
static int crashed_so_far, over;

static void *crashes_later(void *arg)
{
	const struct fault *f = arg;

	for (int i = 0; i < 20; i++)
		kb_yield();
	__atomic_add_fetch(&crashed_so_far, 1, __ATOMIC_RELAXED);
	return f->fn(NULL);
}

static void *works(void *arg)
{
	kb_mutex_t *m = arg;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		void *p = malloc(100);

		kb_mutex_lock(m);
		here++;
		kb_mutex_unlock(m);
		free(p);
		kb_yield();
	}
	return m;
}

static void many(void *arg)
{
	kb_mutex_t m = KB_MUTEX_INIT;
	kb_thread_t t[MANY], w[WORKERS];
	void *result;

	(void)arg;
	start();
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(kb_thread_create(&w[i], NULL, works, &m), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, crashes_later,
			(void *)&faults[i % 2 ? 0 : i % (FAULTS - 1)]), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), EOWNERDEAD);
	CHECK_EQ(crashed_so_far, MANY);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < WORKERS; i++) {
		CHECK_EQ(kb_thread_join(w[i], &result), 0);
		CHECK(result == &m);
	}
	CHECK_EQ(kb_crash_count(), MANY);
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

static void *in_a_call(void *arg)
{
	(void)arg;
	kb_blocking_begin();
	return writes(NULL);
}

static void hooked(void *arg)
{
	static void *(*const fn[])(void *) = { writes, overflows, in_a_call };

	(void)arg;
	start();
	kb_on_crash(hook);
	for (int i = 0; i < 30; i++) {
		kb_thread_t t;

		CHECK_EQ(kb_thread_create(&t, NULL, fn[i % 3], NULL), 0);
		if (i % 4 < 2)
			CHECK_EQ(kb_thread_join(t, NULL), EOWNERDEAD);
		else
			CHECK_EQ(kb_thread_detach(t), 0);
		kb_sem_wait(&done);
	}
	CHECK_EQ(told, 30);
	CHECK_EQ(kb_crash_count(), 30);
}

/* ---- ends of the program ---- */

static void crash_in_thread(void *(*fn)(void *))
{
	kb_thread_t t;

	start();
	CHECK_EQ(kb_thread_create(&t, NULL, fn, NULL), 0);
	kb_thread_join(t, NULL);
}

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
	(void)arg;
	crash_in_thread(frees);
}

static void *locks(void *arg)
{
	(void)arg;
	kb_mutex_lock(bad_address);
	return NULL;
}

static void library_faults(void *arg)
{
	(void)arg;
	crash_in_thread(locks);
}

static void crashes_once(void)
{
	writes(NULL);
}

static void *calls_once(void *arg)
{
	static kb_once_t once = KB_ONCE_INIT;

	(void)arg;
	kb_once(&once, crashes_once);
	return NULL;
}

static void callback_faults(void *arg)
{
	(void)arg;
	crash_in_thread(calls_once);
}

static void crashing_hook(kb_thread_t thread, const struct kb_crash_info *info)
{
	(void)thread;
	(void)info;
	writes(NULL);
}

static void hook_faults(void *arg)
{
	(void)arg;
	start();
	kb_on_crash(crashing_hook);
	crash_in_thread(writes);
}

static void own_handler(int sig)
{
	_exit(sig + 100);
}

static void program_handles(void *arg)
{
	(void)arg;
	start();
	signal(SIGSEGV, own_handler);
	crash_in_thread(writes);
}

static void off(void *arg)
{
	kb_thread_t t;

	(void)arg;
	unsetenv("KOCHAB_CONTAIN");
	CHECK_EQ(kb_thread_create(&t, NULL, aborts, NULL), 0);
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

static void ends_by(void (*fn)(void *), int sig, const char *why)
{
	child_run(&c, fn, NULL);
	child_killed(&c, sig);
	child_said(&c, why);
}

int main(void)
{
	skip_unless_contained();
	run(each, 0);
	child_said(&c, "streams work");
	child_said(&c, "thread crasher overflowed its 64 KiB stack");
	child_said(&c, "threads were lost by crashes");
	run(many, 0);
	run(hooked, 0);
	run(program_handles, SIGSEGV + 100);
	ends_by(main_faults, SIGSEGV, "it came in main");
	ends_by(heap_faults, SIGABRT, "it came in libc");
	ends_by(library_faults, SIGSEGV, "it came in the library");
	ends_by(callback_faults, SIGSEGV, "what the library");
	ends_by(hook_faults, SIGSEGV, "lost already");
	ends_by(off, SIGABRT, "");
	return 0;
}
