#!/bin/bash
# The examples that need another compiler or library than the rest (example/openmp, example/mpi, example/ucx) are built and
# run by the commands at their tops, and give the right results.
. "$(dirname "$0")/lib.sh"
[ -e "$BUILD/libkochab-posix.so.0" ] || skip "no drop-in in this build"
[ -z "${SAN:-}" ] || skip "a sanitizer's library must come first"

line() { sed -n "s|^ \* $2: \([^*]*[^* ]\).*|\1|p" "$1"; } # SOURCE KEY

# try SOURCE COMPILER TEXT: in the folder above a copy of example/
try() {
	local build run
	build=$(line "$TOP/$1" build) run=$(line "$TOP/$1" run)
	build=${build//'$(pkg-config --cflags --libs kochab)'/-I$TOP/include -L$BUILD -lkochab -Wl,-rpath,$BUILD}
	command -v "$2" >/dev/null || { echo "$1: no $2"; return; }
	(cd "$T" && sh -c "$build") || { echo "$1: $build"; failures=$((failures + 1)); return; }
	run=${run//kochab run/$K run}
	expect 0 "$3" sh -c "cd $T && ${run/#mpirun/mpirun $MPI_OPTIONS}"
}
ln -s "$TOP/example" "$T/example"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpicc --showme:version 2>/dev/null | grep -q "Open MPI" && MPI_OPTIONS=--oversubscribe || MPI_OPTIONS=
try example/openmp/nested.c cc "the sum is 536739840"
try example/mpi/exchange.c mpicc "; 0 wrong"
if [ -e /usr/include/ucp/api/ucp.h ]; then
	try example/ucx/exchange.c cc "128 threads, 200 messages each; 0 wrong"
else
	echo "example/ucx/exchange.c: no UCX (libucx-dev)"
fi
finish
