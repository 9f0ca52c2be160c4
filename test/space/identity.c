/* space/life, space/member: a process is identified by its pid and its start time. An entry of the
 * table whose pid belongs to a different process by now is an entry of a dead process. And rights:
 * a process that may not read a space is told so.
 * matrix: none */
#include <sys/stat.h>

#include "space/life.h"
#include "space/note.h"
#include "space_test.h"

static void reused(void)
{
	kb_space_t *s = space_new(NULL);
	struct kbi_space_proc *p = kbi_space_proc(s, 1);
	kb_space_mutex_t *m;
	kb_space_chan_t *ch;
	kb_space_info_t info;
	uint64_t start = kbi_space_life_start((uint32_t)getppid()), v = 0;

	CHECK(start);
	CHECK(!kbi_space_life_is_over((uint32_t)getppid(), start));
	CHECK(kbi_space_life_is_over((uint32_t)getppid(), start - 1));
	CHECK_EQ(kbi_space_life_open((uint32_t)getppid(), start - 1), -ESRCH);
	/* of no process: no process can have written these values */
	CHECK(kbi_space_life_is_over(0, start) && kbi_space_life_is_over(UINT32_MAX, start));
	CHECK(kbi_space_life_is_over(1, 0) && kbi_space_life_is_over((uint32_t)getppid(), 0));
	CHECK_EQ(kb_space_mutex_open(s, "m", &m), 0);
	CHECK_EQ(kb_space_chan_open(s, "ch", 8, 1, KB_SPACE_RECV, &ch), 0);
	/* an entry as left by a process that died, and whose pid our parent has: with the
	 * mutex, a lock and an end */
	a_store_rlx(&p->pid, (uint32_t)getppid());
	a_store_rlx(&p->start, start - 1);
	a_store_rlx(&p->state, KBI_SPACE_ALIVE);
	a_store_rlx(&((struct kbi_space_hold *)m)->t->mutex.owner, 2);
	a_store_rlx(&((struct kbi_space_hold *)ch)->t->lock, 2);
	a_or_rlx(&((struct kbi_space_hold *)ch)->t->ends[1], 2);
	a_or_rlx(&((struct kbi_space_hold *)ch)->t->flags, KBI_SPACE_HAD << 1);
	/* a process rings, as an attaching process does */
	a_store_rlx(&s->head->generation, a_load_rlx(&s->head->generation) + 1);
	kbi_space_note_ring(kbi_space_me(s));
	CHECK_EQ(kb_space_mutex_lock(m, in_ms(10000)), EOWNERDEAD);
	CHECK_EQ(kb_space_chan_recv(ch, &v, in_ms(10000)), EOWNERDEAD);
	for (int i = 0; i < 1000 && a_load_acq(&p->state) != KBI_SPACE_FREE; i++)
		usleep(1000);
	kb_space_info(s, &info);
	CHECK_EQ(info.processes, 1);
	CHECK_EQ(info.crashes, 1);
	CHECK_EQ(kb_space_detach(s), 0);
	space_gone();
}

/* Runs as a different user, without rights. */
static void may_not(void)
{
	kb_space_t *s = space_new(NULL);
	char path[128];
	pid_t pid;

	CHECK_EQ(kb_space_detach(s), 0);
	space_path(path, sizeof path);
	if (geteuid() != 0) { /* ours, but not accessible to us */
		CHECK_EQ(chmod(path, 0), 0);
		CHECK_EQ(kb_space_attach(&s, space_name, 0), EACCES);
	} else if ((pid = fork()) == 0) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		if (kb_space_attach(&s, path, 0) != EACCES)
			_exit(2);
		/* the process does not see the space */
		_exit(kb_space_attach(&s, space_name, 0) != ENOENT);
	} else {
		peer_ends(pid);
	}
	space_gone();
}

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	atexit(space_gone);
	reused();
	may_not();
	return 0;
}
