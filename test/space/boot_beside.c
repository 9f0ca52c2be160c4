/* space/member, space/note: an attached program starts its virtual processors while its listener is
 * rung again and again, by a program that attaches and detaches repeatedly.
 * matrix: none
 * body: thread: there processes are begun before a space is attached */
#include <kochab/kochab.h>

#include "space_test.h"

enum { TIMES = 6, LIMIT = 60000 /* ms */ };

/* Attaches and detaches until its parent kills it. */
static void comes_and_goes(const char *name)
{
	kb_space_t *s;

	for (;;)
		if (!kb_space_attach(&s, name, 0))
			kb_space_detach(s);
}

static void starts(const char *name)
{
	kb_space_t *s = space_join(name);
	kb_space_sem_t *sem;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_space_sem_open(s, "done", 0, &sem), 0);
	CHECK_EQ(kb_space_sem_post(sem), 0);
	CHECK_EQ(kb_space_detach(s), 0);
}

int main(int argc, char **argv)
{
	kb_space_sem_t *sem;
	kb_space_t *s;
	pid_t other;

	if (argc > 2) {
		if (!strcmp(argv[1], "other"))
			comes_and_goes(argv[2]);
		starts(argv[2]);
		return 0;
	}
	setenv("KOCHAB_VPS", "256", 1); /* many, so that their making takes long */
	s = space_new(NULL);
	CHECK_EQ(kb_space_sem_open(s, "done", 0, &sem), 0);
	other = peer("other", NULL);
	for (int i = 0; i < TIMES; i++) {
		pid_t pid = peer("starts", NULL);

		peer_ends(pid);
		CHECK_EQ(kb_space_sem_wait(sem, in_ms(LIMIT)), 0);
	}
	peer_kill(other);
	CHECK_EQ(kb_space_detach(s), 0);
	space_gone();
	return 0;
}
