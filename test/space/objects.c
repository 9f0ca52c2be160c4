/* space/chan, mutex, cond, rwlock, barrier, select between two programs: the result of each call
 * when the other side acts, closes, leaves, or dies while it holds an object.
 * matrix: sched=rotator vps=1,2 */
#include "space_test.h"

enum { SEND = KB_SPACE_SEND, RECV = KB_SPACE_RECV, BOTH = SEND | RECV };

static kb_space_t *s;
static const char *role;

static kb_space_chan_t *chan(const char *name, unsigned ends)
{
	kb_space_chan_t *ch;

	CHECK_EQ(kb_space_chan_open(s, name, 8, 4, ends, &ch), 0);
	return ch;
}

static kb_space_sem_t *sem(const char *name)
{
	kb_space_sem_t *x;

	CHECK_EQ(kb_space_sem_open(s, name, 0, &x), 0);
	return x;
}

static void pass_sem(const char *name)
{
	CHECK_EQ(kb_space_sem_wait(sem(name), in_ms(20000)), 0);
}

/* ---- the other program, by role -------------------------------------------------------------- */

static void fills_and(bool dies)
{
	kb_space_chan_t *ch = chan(dies ? "d" : "c", SEND);
	uint64_t i;

	for (i = 0; i < 10; i++)
		CHECK_EQ(kb_space_chan_send(ch, &i, in_ms(20000)), 0);
	if (dies)
		kill(getpid(), SIGKILL);
	CHECK_EQ(kb_space_chan_close(ch, SEND), 0);
	CHECK_EQ(kb_space_chan_send(ch, &i, in_ms(20000)), EPIPE);
}

static void holds_and_dies(void)
{
	kb_space_mutex_t *m;
	kb_space_rwlock_t *l, *r;
	kb_space_barrier_t *b;

	CHECK_EQ(kb_space_mutex_open(s, "m", &m), 0);
	CHECK_EQ(kb_space_rwlock_open(s, "l", &l), 0);
	CHECK_EQ(kb_space_rwlock_open(s, "r", &r), 0);
	CHECK_EQ(kb_space_barrier_open(s, "b", 3, &b), 0);
	CHECK_EQ(kb_space_mutex_lock(m, in_ms(20000)), 0);
	CHECK_EQ(kb_space_rwlock_wrlock(l, in_ms(20000)), 0);
	CHECK_EQ(kb_space_rwlock_rdlock(r, in_ms(20000)), 0);
	CHECK_EQ(kb_space_barrier_wait(b, kb_now() + MS), ETIMEDOUT);
	CHECK_EQ(kb_space_sem_post(sem("held")), 0);
	pass_sem("seen");
	kb_sleep(5 * MS);
	kill(getpid(), SIGKILL);
}

static void signals(void)
{
	kb_space_mutex_t *m;
	kb_space_cond_t *c;
	uint64_t *turn;

	CHECK_EQ(kb_space_mutex_open(s, "m2", &m), 0);
	CHECK_EQ(kb_space_cond_open(s, "c2", &c), 0);
	CHECK_EQ(kb_space_memory_open(s, "turn", 8, (void **)&turn), 0);
	for (uint64_t i = 0; i < 200; i++) {
		CHECK_EQ(kb_space_mutex_lock(m, in_ms(20000)), 0);
		while (*turn % 2 != (role[0] == 's'))
			CHECK_EQ(kb_space_cond_wait(c, m, in_ms(20000)), 0);
		++*turn;
		CHECK_EQ(kb_space_cond_broadcast(c), 0);
		CHECK_EQ(kb_space_mutex_unlock(m), 0);
	}
}

static void chooses(void)
{
	kb_space_chan_t *a = chan("a", RECV), *b = chan("b2", RECV);
	kb_space_event_t *e;
	uint64_t v, seen[3] = { 0, 0, 0 };
	kb_space_case_t c[3] = {
		{ .op = KB_SELECT_RECV, .chan = a, .element = &v },
		{ .op = KB_SELECT_RECV, .chan = b, .element = &v },
		{ .op = KB_SELECT_EVENT, .element = &v },
	};
	size_t i;

	CHECK_EQ(kb_space_event_open(s, "e", RECV, &e), 0);
	c[2].event = e;
	CHECK_EQ(kb_space_select(c, 3, kb_now() + MS, &i), ETIMEDOUT);
	CHECK_EQ(kb_space_select(c, 0, 0, &i), EINVAL);
	CHECK_EQ(kb_space_sem_post(sem("choose")), 0);
	while (seen[0] + seen[1] < 100) {
		CHECK_EQ(kb_space_select(c, 3, in_ms(20000), &i), 0);
		if (i < 2 && seen[i] == 50 && c[i].error == EPIPE)
			continue; /* closed, and the other channel not yet empty */
		CHECK_EQ(c[i].error, 0);
		seen[i]++;
		CHECK(i == 2 || v == seen[i]);
	}
	CHECK_EQ(seen[0], 50);
	CHECK_EQ(seen[1], 50);
	CHECK(seen[2] > 0);
	CHECK_EQ(kb_space_select(c, 2, in_ms(20000), &i), 0);
	CHECK_EQ(c[i].error, EPIPE);
}

/* ---- this program ---------------------------------------------------------------------------- */

static void drains(int at_the_end)
{
	kb_space_chan_t *ch = chan(at_the_end == EPIPE ? "c" : "d", RECV);
	uint64_t v;
	int e;

	for (uint64_t i = 0; i < 10; i++) {
		CHECK_EQ(kb_space_chan_recv(ch, &v, in_ms(20000)), 0);
		CHECK_EQ(v, i);
	}
	e = kb_space_chan_recv(ch, &v, in_ms(20000));
	CHECK_EQ(e, at_the_end);
}

static void inherits(void)
{
	kb_space_mutex_t *m;
	kb_space_rwlock_t *l, *r;
	kb_space_barrier_t *b;

	CHECK_EQ(kb_space_mutex_open(s, "m", &m), 0);
	CHECK_EQ(kb_space_rwlock_open(s, "l", &l), 0);
	CHECK_EQ(kb_space_rwlock_open(s, "r", &r), 0);
	CHECK_EQ(kb_space_barrier_open(s, "b", 3, &b), 0);
	pass_sem("held");
	CHECK_EQ(kb_space_mutex_unlock(m), EPERM);
	CHECK_EQ(kb_space_mutex_lock(m, 0), ETIMEDOUT);
	CHECK_EQ(kb_space_rwlock_rdlock(r, 0), 0);
	CHECK_EQ(kb_space_rwlock_unlock(r), 0);
	CHECK_EQ(kb_space_rwlock_unlock(r), EPERM);
	CHECK_EQ(kb_space_sem_post(sem("seen")), 0);
	CHECK_EQ(kb_space_barrier_wait(b, in_ms(20000)), EOWNERDEAD);
	CHECK_EQ(kb_space_mutex_lock(m, in_ms(20000)), EOWNERDEAD);
	CHECK_EQ(kb_space_rwlock_wrlock(l, in_ms(20000)), EOWNERDEAD);
	CHECK_EQ(kb_space_rwlock_consistent(l), 0);
	CHECK_EQ(kb_space_rwlock_unlock(l), 0);
	CHECK_EQ(kb_space_rwlock_rdlock(l, in_ms(20000)), 0);
	CHECK_EQ(kb_space_rwlock_wrlock(r, in_ms(20000)), 0);
	CHECK_EQ(kb_space_barrier_wait(b, in_ms(20000)), EOWNERDEAD);
	CHECK_EQ(kb_space_barrier_reset(b, 1), 0);
	CHECK_EQ(kb_space_barrier_wait(b, in_ms(20000)), KB_BARRIER_SERIAL);
	CHECK_EQ(kb_space_mutex_unlock(m), 0);
	CHECK_EQ(kb_space_mutex_lock(m, in_ms(20000)), ENOTRECOVERABLE);
}

static void feeds(void)
{
	kb_space_chan_t *a = chan("a", SEND), *b = chan("b2", SEND);
	kb_space_event_t *e;

	pass_sem("choose");
	CHECK_EQ(kb_space_event_open(s, "e", SEND, &e), 0);
	for (uint64_t i = 1; i <= 100; i++) {
		CHECK_EQ(kb_space_chan_send(i % 2 ? a : b, &(uint64_t){ i / 2 + i % 2 }, in_ms(20000)), 0);
		CHECK_EQ(kb_space_event_notify(e, i), 0);
		if (i % 10 == 0)
			kb_sleep(200000);
	}
	CHECK_EQ(kb_space_chan_close(a, SEND), 0);
	CHECK_EQ(kb_space_chan_close(b, SEND), 0);
}

static void *waits_in_vain(void *e)
{
	CHECK_EQ(kb_space_event_wait(e, NULL, in_ms(10000)), EPIPE);
	return NULL;
}

/* The last notifier of an event closes it, and a process opens it again. */
static void closes(void)
{
	kb_space_event_t *e;
	struct runner r[2];
	uint64_t v;

	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(kb_space_event_open(s, "closed", RECV | SEND, &e), 0);
		CHECK_EQ(kb_space_event_wait(e, NULL, 0), ETIMEDOUT);
		run(&r[i], i, waits_in_vain, e);
		kb_sleep(i * MS);
		CHECK_EQ(kb_space_event_close(e, SEND), 0);
		run_join(&r[i]);
	}
	CHECK_EQ(kb_space_event_notify(e, 5), 0);
	CHECK_EQ(kb_space_event_close(e, RECV), 0);
	CHECK_EQ(kb_space_event_notify(e, 6), EPIPE);
	CHECK_EQ(kb_space_event_open(s, "closed", RECV, &e), 0);
	CHECK_EQ(kb_space_event_wait(e, &v, 0), 0);
	CHECK_EQ(v, 6);
	CHECK_EQ(kb_space_event_wait(e, &v, 0), EPIPE);
	CHECK_EQ(kb_space_event_close(e, 0), EINVAL);
	CHECK_EQ(kb_space_event_close(e, 4), EINVAL);
}

int main(int argc, char **argv)
{
	pid_t pid;

	role = argc > 1 ? argv[1] : "main";
	CHECK_EQ(kb_init(), 0);
	if (argc > 2) {
		s = space_join(argv[2]);
		if (strcmp(role, "fills") == 0 || strcmp(role, "fills-dies") == 0)
			fills_and(role[5]);
		else if (strcmp(role, "holds") == 0)
			holds_and_dies();
		else if (strcmp(role, "signals") == 0)
			signals();
		else
			chooses();
		return 0;
	}
	s = space_new(NULL);
	atexit(space_gone);
	pid = peer("fills", NULL);
	drains(EPIPE);
	peer_ends(pid);
	pid = peer("fills-dies", NULL);
	drains(EOWNERDEAD);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	pid = peer("holds", NULL);
	inherits();
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	pid = peer("signals", NULL);
	signals();
	peer_ends(pid);
	pid = peer("chooses", NULL);
	feeds();
	peer_ends(pid);
	closes();
	return 0;
}
