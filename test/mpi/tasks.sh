#!/bin/bash
# mpi/tasks - tasks of a native program that exchange words with the other rank: a task that waits in MPI lets others run, also
# where the program has made no thread. Skipped: no MPI is here.
. "$(dirname "$0")/lib.sh"
make_work
cat >"$work/tasks.c" <<'C'
#include <kochab/task.h>
#include <mpi.h>
#include <stdint.h>
enum { TASKS = 200, TURNS = 20 };
static int rank;
static int exchange(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < TURNS; i++) {
		int out = id * TURNS + i, in = -1;

		MPI_Sendrecv(&out, 1, MPI_INT, !rank, id, &in, 1, MPI_INT, !rank, id, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (in != out)
			return 1;
	}
	return 0;
}
int main(int argc, char **argv)
{
	kb_group_t g;
	int level, rc;

	if (kb_init_with("vps=2"))
		return 2;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	kb_group_init(&g);
	for (intptr_t i = 0; i < TASKS; i++)
		kb_group_run(&g, exchange, (void *)i);
	rc = kb_group_wait(&g);
	MPI_Finalize();
	return rc || kb_thread_count() < 2;
}
C
tried=0
for mpi in openmpi mpich; do
	has $mpi || continue
	tried=$((tried + 1))
	"mpicc.$mpi" -O -I"$here/../../include" -o "$work/tasks.$mpi" "$work/tasks.c" -Wl,--no-as-needed -L"$BUILD" \
		-Wl,-rpath,"$BUILD" "-lkochab-mpi-$mpi" -lkochab || fail "mpicc.$mpi"
	for turn in 1 2 3; do
		said=$("$here/launch" "$mpi" 2 "$work/tasks.$mpi" 2>&1) || fail "$mpi, turn $turn: $said"
	done
done
[ $tried -gt 0 ] || skip "no MPI here"
