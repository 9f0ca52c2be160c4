/* core/process: a program whose virtual processors are processes executes another program at
 * any moment of their making, while more of them are being made, too: the next program has none of
 * them, for it has no children.
 * matrix: none
 * body: thread (it chooses by itself) */
#include <errno.h>
#include <kochab/kochab.h>
#include <stdlib.h>

#include "core/child.h"

enum {
	ROUNDS = 50,
	N = 4,
	NEXT = 6 /* the next program's status */
};

/* Runs for ever: more processes are made, which run the remaining threads meanwhile. */
static void *blocks(void *arg)
{
	char c;

	CHECK_EQ(kb_blocking_begin(), 0);
	CHECK_EQ(read(*(int *)arg, &c, 1), 1);
	return arg;
}

static void becomes(void *yields)
{
	static int ends[2];
	kb_thread_t t;

	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_VPS", "2", 1);
	if (kb_init() != 0)
		_exit(77);
	CHECK_EQ(pipe(ends), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t, NULL, blocks, ends), 0);
	for (int i = 0; i < *(int *)yields; i++)
		kb_yield();
	execl("/proc/self/exe", "next", NULL);
	CHECK(!"executed");
}

/* A process that is left over from the program before is a child of this program. */
static int next(void)
{
	CHECK_EQ(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	CHECK_EQ(errno, ECHILD);
	return NEXT;
}

int main(int argc, char **argv)
{
	static struct child c;

	(void)argc;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	if (strcmp(argv[0], "next") == 0)
		return next();
	for (int i = 0; i < ROUNDS; i++) {
		child_run(&c, becomes, &i);
		if (WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
			SKIP("no process bodies here");
		child_exited(&c, NEXT);
	}
	return 0;
}
