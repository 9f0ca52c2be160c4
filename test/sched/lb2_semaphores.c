/* matrix: none
 * lb2's System V semaphores: gone after fini and after exit, not removed by a forked child that
 * ends; sets that a killed program leaves behind are removed by the next program that needs a
 * set. */
#include <signal.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "harness.h"

enum { KEY = 0x4b620000, SETS = 64, SEMOP = 1 };

static struct vps v;

/* Counts sets under our keys whose last user is process `pid`. */
static unsigned sets_of(int pid)
{
	unsigned n = 0;

	for (int i = 0; i < SETS; i++) {
		int id = semget(KEY + i, 0, 0);

		n += id >= 0 && semctl(id, 0, GETPID) == pid;
	}
	return n;
}

static void use(struct job *j)
{
	for (unsigned i = 0; i < 40; i++)
		push_only(&v, &v.s[0], &j[i].task, false);
	CHECK(exchange(&v, &v.s[1], KBI_POLL_IDLE) > 0);
	CHECK_EQ(sets_of(getpid()), 1);
}

/* Starts a process that uses a set and ends by exit or by SIGKILL. Returns its number. */
static int ends(bool killed)
{
	int pid = fork(), status;

	CHECK(pid >= 0);
	if (pid == 0) {
		vps_init(&v, &kbi_sched_lb2, 2, 4, SEMOP);
		use(jobs_new(40));
		if (killed)
			raise(SIGKILL);
		exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return pid;
}

int main(void)
{
	struct job *j = jobs_new(40);
	int probe = semget(IPC_PRIVATE, 1, 0600), pid;

	if (probe < 0)
		SKIP("no System V semaphores here");
	semctl(probe, 0, IPC_RMID);
	CHECK_EQ(sets_of(ends(false)), 0);
	pid = ends(true);
	CHECK_EQ(sets_of(pid), 1);
	vps_init(&v, &kbi_sched_lb2, 2, 4, SEMOP);
	CHECK_EQ(sets_of(pid), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		exit(0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	use(j);
	vps_fini(&v);
	CHECK_EQ(sets_of(getpid()), 0);
	free(j);
	return 0;
}
