#!/bin/bash
# mpi/faults - a receive that never matches, with all threads waiting: each rank names the waiting calls, and naps; a rank that is
# killed ends the program with MPI's own error; each level of threads; a program without MPI gets no layer, --mpi no neither.
# Skipped: no MPI is here.
# sleeps: yes
. "$(dirname "$0")/lib.sh"
make_work
cat >"$work/stuck.c" <<'C'
#include "never.h"
int main(int argc, char **argv)
{
	pthread_t t[NEVER];
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	wait_for_ever(t);
	if (rank == 1 && !strcmp(argv[1], "kill")) {
		sleep(1);
		raise(SIGKILL);
	}
	pthread_join(t[0], NULL);
	return 0;
}
C
tried=0
for mpi in openmpi mpich; do
	has $mpi || continue
	tried=$((tried + 1))
	"mpicc.$mpi" -O -I"$here" -pthread -o "$work/stuck.$mpi" "$work/stuck.c" || fail "mpicc.$mpi"
	said=$(MPI_SECONDS=20 "$here/launch" "$mpi" 2 "$KOCHAB_BIN" run --mpi-tell 1 "$work/stuck.$mpi" wait 2>&1)
	for rank in 0 1; do
		grep -q "rank $rank: no thread has run for .* wait in MPI" <<<"$said" || fail "$mpi: rank $rank does not tell: $said"
		for tag in 77 78 79; do
			[ "$(grep -c "MPI_Recv(peer $((1 - rank)), tag $tag)" <<<"$said")" -ge 1 ] || fail "$mpi: tag $tag: $said"
		done
	done
	before=$SECONDS
	said=$(MPI_SECONDS=60 "$here/launch" "$mpi" 2 "$KOCHAB_BIN" run "$work/stuck.$mpi" kill 2>&1) && fail "$mpi: a killed rank is no error"
	[ $((SECONDS - before)) -lt 50 ] || fail "$mpi: a killed rank makes the others hang: $said"
	program=$BUILD/test/mpi/levels.$mpi
	for level in 0 1 2 3; do
		TEST_LEVEL=$level "$here/launch" "$mpi" 2 "$KOCHAB_BIN" run --vps 2 "$program" >"$work/log" 2>&1 ||
			fail "$mpi, level $level: $(cat "$work/log")"
	done
	"$KOCHAB_BIN" run --mpi no env >/dev/null || fail "env"
	LD_DEBUG=files LD_DEBUG_OUTPUT=$work/loaded "$here/launch" "$mpi" 2 "$KOCHAB_BIN" run --mpi no "$program" >/dev/null 2>&1
	cat "$work"/loaded.* | grep -q libkochab-mpi && fail "$mpi: --mpi no, and the layer is loaded"
done
"$KOCHAB_BIN" run env | grep -q libkochab-mpi && fail "env is not linked with MPI, and has the layer"
[ $tried -gt 0 ] || skip "no MPI is here"
echo "$tried MPIs"
