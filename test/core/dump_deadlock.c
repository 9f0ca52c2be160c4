/* core/agent, core/dump: all threads wait and nothing can wake a thread: that is reported, with all
 * threads, after about a second; and it is not reported when a deadline, a watched word, a kernel
 * thread or a signal handler may still wake a thread.
 * sleeps: yes */
#include <kochab/kochab.h>
#include <pthread.h>
#include <string.h>

#include "core/child.h"

static kb_mutex_t a, b;
static kb_sem_t never;
static uint32_t word;
static int eating;

static void *locks(void *arg)
{
	kb_mutex_lock(arg ? &a : &b);
	__atomic_add_fetch(&eating, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&eating, __ATOMIC_RELAXED) < 2)
		kb_sleep(1000000);
	kb_mutex_lock(arg ? &b : &a);
	return NULL;
}

static void create(kb_thread_t *t, const char *name, void *(*fn)(void *), void *arg)
{
	kb_attr_t at;

	kb_attr_init(&at);
	kb_attr_setname(&at, name);
	CHECK_EQ(kb_thread_create(t, &at, fn, arg), 0);
}

static void philosophers(void *arg)
{
	kb_thread_t t[2];

	(void)arg;
	create(&t[0], "plato", locks, &a);
	create(&t[1], "socrates", locks, NULL);
	kb_thread_join(t[0], NULL);
}

static void alone(void *arg)
{
	(void)arg;
	kb_init();
	kb_sem_wait(&never);
}

/* main deadlocks after its end, so to speak: it has left waiting threads */
static void *waits(void *arg)
{
	kb_sem_wait(&never);
	return arg;
}

static void orphans(void *arg)
{
	kb_thread_t t;

	(void)arg;
	create(&t, "orphan", waits, NULL);
	kb_thread_exit(NULL);
}

static void *posts(void *arg)
{
	kb_sleep(1000000);
	kb_sem_post(&never);
	return arg;
}

/* a deadline that no thread waits for any more */
static void had_deadline(void *arg)
{
	kb_thread_t t;

	(void)arg;
	create(&t, "poster", posts, NULL);
	CHECK_EQ(kb_sem_timedwait(&never, kb_now() + 3600000000000u), 0);
	kb_sem_wait(&never);
}

static void with_deadline(void *arg)
{
	(void)arg;
	kb_init();
	kb_sem_timedwait(&never, kb_now() + 2500000000u);
}

static void *sleeps(void *arg)
{
	kb_sleep(2500000000u);
	kb_sem_post(&never);
	return arg;
}

static void with_sleeper(void *arg)
{
	kb_thread_t t;

	(void)arg;
	create(&t, "sleeper", sleeps, NULL);
	kb_sem_wait(&never);
}

static void *kernel_thread(void *arg)
{
	usleep(2500000);
	kb_sem_post(&never);
	return arg;
}

static void with_kernel_thread(void *arg)
{
	pthread_t p;

	(void)arg;
	kb_init();
	CHECK_EQ(pthread_create(&p, NULL, kernel_thread, NULL), 0);
	kb_sem_wait(&never);
}

static void with_watch(void *arg)
{
	(void)arg;
	kb_init();
	kb_watch32(&word, 0, kb_now() + 2500000000u);
}

static void on_alarm(int sig)
{
	(void)sig;
	kb_sem_post(&never);
}

static void with_handler(void *arg)
{
	(void)arg;
	kb_init();
	signal(SIGALRM, on_alarm);
	alarm(3);
	kb_sem_wait(&never);
}

static struct part {
	void (*fn)(void *);
	const char *name; /* of a thread in the report; NULL: none is made */
	uint64_t start;
	struct child c;
} parts[] = {
	{ .fn = philosophers, .name = "socrates" },
	{ .fn = alone, .name = "main" },
	{ .fn = orphans, .name = "orphan" },
	{ .fn = had_deadline, .name = "main" },
	{ .fn = with_deadline },
	{ .fn = with_sleeper },
	{ .fn = with_kernel_thread },
	{ .fn = with_watch },
	{ .fn = with_handler },
};
enum { PARTS = sizeof parts / sizeof parts[0] };

static void said(struct part *p)
{
	CHECK(child_read(&p->c, "deadlock:", 60000));
	CHECK(test_now_ns() - p->start > 500000000u);
	CHECK(child_read(&p->c, p->name, 30000));
	kill(p->c.pid, SIGKILL);
	child_end(&p->c, 5000);
}

static void not_said(struct part *p)
{
	child_end(&p->c, 90000);
	child_exited(&p->c, 0);
	if (p->c.n > 0)
		fprintf(stderr, "%s", p->c.text);
	CHECK_EQ(p->c.n, 0);
}

/* All at the same time: each of them mostly sleeps. */
int main(void)
{
#ifdef __SANITIZE_ADDRESS__
	SKIP("LeakSanitizer writes of its own at the end of the child");
#endif
#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer has a kernel thread of its own, which might wake one");
#endif
	for (int i = 0; i < PARTS; i++) {
		parts[i].start = test_now_ns();
		child_start(&parts[i].c, parts[i].fn, NULL);
	}
	for (int i = 0; i < PARTS; i++)
		(parts[i].name ? said : not_said)(&parts[i]);
	return 0;
}
