#!/bin/bash
# mpi/fortran - waiting calls of Fortran's, by `use mpi` and `use mpi_f08`: plain and under `kochab run`, where the loader
# tells that MPI's Fortran library is bound to the layer. Skipped: no gfortran or no MPI for it.
. "$(dirname "$0")/lib.sh"
make_work
cd "$work" || exit 1
tried=0
for mpi in openmpi mpich; do
	command -v "mpif90.$mpi" >/dev/null && command -v "mpirun.$mpi" >/dev/null || continue
	gcc -x c -include "$here/fortran_threads.h" -c -o threads.o /dev/null || exit 1
	for way in mpi mpi_f08; do
		flag=; [ $way = mpi_f08 ] && flag=-DUSE_F08
		"mpif90.$mpi" -cpp $flag -pthread -o "prog.$mpi" "$here/fortran.f90" threads.o >"$work/log" 2>&1 || {
			cat "$work/log"; exit 1; }
		for run in "" "$KOCHAB_BIN run --vps 1" "$KOCHAB_BIN run --vps 2"; do
			# shellcheck disable=SC2086
			said=$("$here/launch" "$mpi" 2 $run "$work/prog.$mpi" 2>&1) || { echo "$mpi $way $run: $said"; exit 1; }
			[ "$(grep -c right <<<"$said")" = 2 ] || { echo "$mpi $way $run: $said"; exit 1; }
			tried=$((tried + 1))
		done
		rm -f "$work"/bound.*
		LD_DEBUG=bindings LD_DEBUG_OUTPUT=$work/bound "$here/launch" "$mpi" 2 "$KOCHAB_BIN" run "$work/prog.$mpi" >"$work/log" 2>&1
		cat "$work"/bound.* | grep -qE "binding file [^ ]*libmpi[^ ]* .*to [^ ]*libkochab-mpi-${mpi}[^ ]* .*symbol .P?MPI_Recv'" || {
			echo "$mpi $way: MPI_Recv of Fortran is not bound to the layer"; exit 1; }
	done
done
[ $tried -gt 0 ] || skip "no MPI for Fortran (mpif90.openmpi, mpif90.mpich)"
echo "$tried runs"
