/* core/dump: SIGQUIT prints every thread with its state and the backtrace of parked threads; the
 * program goes on. A program's own handler, and dump_on_quit=0, are left alone. */
#include <kochab/kochab.h>
#include <string.h>

#include "core/child.h"
#include "core/own_tls.h"

static kb_sem_t never, over;
static uint32_t seen; /* 1: the parent has seen the dump; set by a handler, on any kernel thread */

__attribute__((noinline)) void waits_for_godot(void);
void waits_for_godot(void)
{
	kb_sem_wait(&never);
	__asm__ volatile(""); /* else it is no call but a jump, and this function has no frame */
}

static void *parked(void *arg)
{
	waits_for_godot();
	return arg;
}

static void *sleeps(void *arg)
{
	kb_sleep(3600000000000ull);
	return arg;
}

static void *yields(void *arg)
{
	for (;;)
		kb_yield();
	return arg;
}

static void note(int sig)
{
	(void)sig;
	__atomic_store_n(&seen, 1, __ATOMIC_RELAXED);
}

/* Ends main's sleep some time after the parent has seen the dump begin. */
static void *ends(void *arg)
{
	while (!__atomic_load_n(&seen, __ATOMIC_RELAXED))
		kb_sleep(1000000);
	kb_sleep(300000000);
	kb_sem_post(&over);
	return arg;
}

static void create(const char *name, void *(*fn)(void *), int vp, enum kb_tls tls)
{
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	kb_attr_setname(&a, name);
	kb_attr_setvp(&a, vp);
	kb_attr_settls(&a, own_tls_or_light(tls));
	CHECK_EQ(kb_thread_create(&t, &a, fn, NULL), 0);
}

static void lives(void *arg)
{
	kb_init();
	create("vladimir", parked, -1, KB_TLS_LIGHT);
	create("estragon", parked, 0, KB_TLS_OWN);
	create("lucky", sleeps, -1, KB_TLS_LIGHT);
	if (arg)
		create("pozzo", yields, -1, KB_TLS_LIGHT);
	signal(SIGUSR1, note);
	create("curtain", ends, -1, KB_TLS_LIGHT);
	kb_sleep(20000000);
	fprintf(stderr, "here\n");
	CHECK_EQ(kb_sem_timedwait(&over, kb_now() + 60000000000ull), 0);
	fprintf(stderr, "and on\n");
}

static void own_handler(int sig)
{
	(void)sig;
	_exit(9);
}

static void handles(void *arg)
{
	signal(SIGQUIT, own_handler);
	lives(arg);
}

static void ask(struct child *c, void (*fn)(void *), void *arg, const char *last)
{
	child_start(c, fn, arg);
	CHECK(child_read(c, "here\n", 60000));
	usleep(20000);
	kill(c->pid, SIGQUIT);
	if (last) {
		CHECK(child_read(c, last, 60000));
		kill(c->pid, SIGUSR1);
	}
	child_end(c, 90000);
}

/* Returns the line that has both. */
static int has_line(const struct child *c, const char *a, const char *b)
{
	for (const char *l = c->text; l; l = strchr(l, '\n')) {
		const char *end;
		char line[1000];
		size_t n;

		l += *l == '\n';
		end = strchr(l, '\n');
		n = end ? (size_t)(end - l) : strlen(l);
		n = n < sizeof line ? n : sizeof line - 1;
		memcpy(line, l, n);
		line[n] = 0;
		if (strstr(line, a) && strstr(line, b))
			return 1;
		if (!end)
			break;
	}
	fprintf(stderr, "no line with '%s' and '%s' in:\n%s\n", a, b, c->text);
	return 0;
}

static void check(const struct child *c)
{
	const char *godot;

	child_exited(c, 0);
	child_said(c, "virtual processors, scheduler");
	CHECK(has_line(c, "VP 0 (kernel thread", "switches"));
	CHECK(has_line(c, "\"vladimir\"", "waiting on VP"));
	CHECK(has_line(c, "\"estragon\"", "bound"));
	CHECK(has_line(c, "\"lucky\"", "with a deadline"));
	CHECK(has_line(c, "\"main\"", "with a deadline"));
	child_said(c, "    #2 ");
	child_said(c, "and on");
	/* the tests export nothing, so frames are addresses */
	godot = strstr(c->text, "vladimir");
	CHECK(godot && strstr(godot, "    #3 "));
}

int main(void)
{
	static struct child c;

	ask(&c, lives, NULL, "\"vladimir\"");
	check(&c);
	ask(&c, lives, &c, "\"vladimir\"");
	check(&c);
	CHECK(has_line(&c, "\"pozzo\"", "on VP"));
	ask(&c, handles, NULL, NULL);
	child_exited(&c, 9);
	setenv("KOCHAB_DUMP_ON_QUIT", "0", 1);
	ask(&c, lives, NULL, NULL);
	child_killed(&c, SIGQUIT);
	return 0;
}
