/* space/member where virtual processors are processes: all processes of a program are killed, one
 * after another, among them the listener for its sleeping waiters and the watchman. Each has a
 * successor: a sleeping waiter is woken by another program, and is told when that program dies.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <kochab/kochab.h>

#include "core/children.h"
#include "space_test.h"

enum {
	VPS = 2,
	ROUNDS = 3,
	LIMIT = 60000, /* ms */
	NAP = 5000 /* us: mostly a virtual processor sleeps by then */
};

static struct objects {
	kb_space_t *s;
	kb_space_sem_t *question[VPS], *answer;
	kb_space_mutex_t *held;
} o;

static void open_all(void)
{
	for (int i = 0; i < VPS; i++) {
		char name[16];

		snprintf(name, sizeof name, "question %d", i);
		CHECK_EQ(kb_space_sem_open(o.s, name, 0, &o.question[i]), 0);
	}
	CHECK_EQ(kb_space_sem_open(o.s, "answer", 0, &o.answer), 0);
	CHECK_EQ(kb_space_mutex_open(o.s, "held", &o.held), 0);
}

/* One on each virtual processor. */
static void *answers(void *arg)
{
	kb_space_sem_t **question = arg;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(kb_space_sem_wait(*question, KB_FOREVER), 0);
		CHECK_EQ(kb_space_sem_post(o.answer), 0);
	}
	return arg;
}

static void program(const char *name)
{
	kb_thread_t t[VPS];
	kb_attr_t a;

	if (kb_init() != 0)
		_exit(77);
	o.s = space_join(name);
	open_all();
	kb_attr_init(&a);
	for (int i = 0; i < VPS; i++) {
		kb_attr_setvp(&a, i);
		CHECK_EQ(kb_thread_create(&t[i], &a, answers, &o.question[i]), 0);
	}
	for (int i = 0; i < VPS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	CHECK_EQ(kb_space_mutex_lock(o.held, KB_FOREVER), EOWNERDEAD);
	CHECK_EQ(kb_space_mutex_consistent(o.held), 0);
	CHECK_EQ(kb_space_mutex_unlock(o.held), 0);
	CHECK_EQ(kb_space_detach(o.s), 0);
}

static void holder(const char *name)
{
	o.s = space_join(name);
	open_all();
	CHECK_EQ(kb_space_mutex_lock(o.held, 0), 0);
	CHECK_EQ(kb_space_sem_post(o.answer), 0);
	for (;;)
		pause();
}

static void kill_all(pid_t pid)
{
	int list[64];
	unsigned n = children_of(pid, list, 64);

	CHECK(n > 0);
	for (unsigned i = 0; i < n; i++) {
		kill(list[i], SIGKILL);
		usleep(NAP);
	}
}

static pid_t start_program(void)
{
	pid_t pid;

	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "1", 1);
	setenv("KOCHAB_ON_KILL", "spare", 1);
	setenv("KOCHAB_VPS", "2", 1);
	pid = peer("program", NULL);
	setenv("KOCHAB_BODY", "thread", 1);
	return pid;
}

static int has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	return info.si_pid != 0;
}

static void skip_if_refused(pid_t pid, pid_t other)
{
	kb_space_info_t info = { .processes = 0 };
	int status;

	for (; info.processes < 3 && !has_ended(pid); usleep(1000))
		kb_space_info(o.s, &info);
	if (!has_ended(pid))
		return;
	waitpid(pid, &status, 0);
	peer_kill(other);
	space_gone();
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("no process bodies here");
	CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
	pid_t pid, other;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	if (argc > 2) {
		if (!strcmp(argv[1], "program"))
			program(argv[2]);
		else
			holder(argv[2]);
		return 0;
	}
	o.s = space_new(NULL);
	open_all();
	other = peer("holder", NULL);
	CHECK_EQ(kb_space_sem_wait(o.answer, in_ms(LIMIT)), 0);
	pid = start_program();
	skip_if_refused(pid, other);
	for (int i = 0; i < ROUNDS; i++) {
		usleep(NAP);
		kill_all(pid);
		for (int n = 0; n < VPS; n++) {
			CHECK_EQ(kb_space_sem_post(o.question[n]), 0);
			CHECK_EQ(kb_space_sem_wait(o.answer, in_ms(LIMIT)), 0);
		}
	}
	CHECK_EQ(kb_space_detach(o.s), 0); /* no process but the program could notice a death */
	kill_all(pid);
	peer_kill(other);
	for (int i = 0; i < LIMIT && !has_ended(pid); i++)
		usleep(1000);
	CHECK(has_ended(pid));
	peer_ends(pid);
	space_gone();
	return 0;
}
