#!/bin/bash
# mpi/badly - programs that are linked badly, or call badly: with both MPIs, with MPI as a static library,
# with the second MPI's layer; calls before MPI_Init and after MPI_Finalize; a request that is waited for,
# or freed, by an old copy of its handle. They end as on kernel threads, with MPI's own words, and the
# layer's message names the reason.
# Skipped: no MPI is here.
# sleeps: yes
. "$(dirname "$0")/lib.sh"
make_work
both_are_right() { [ "$(grep -o RIGHT <<<"$1" | wc -l)" = 2 ]; } # mpirun may put two lines into one
export MPI_SECONDS=60

cat >"$work/right.c" <<'C'
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
static void *wait(void *arg)
{
	int in = -1, rank = *(int *)arg;

	MPI_Recv(&in, 1, MPI_INT, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return in == !rank ? arg : NULL;
}
int main(int argc, char **argv)
{
	int level, rank;
	pthread_t t;
	void *result;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	pthread_create(&t, NULL, wait, &rank);
	MPI_Send(&rank, 1, MPI_INT, !rank, 1, MPI_COMM_WORLD);
	pthread_join(t, &result);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	if (result)
		puts("RIGHT");
	return 0;
}
C
cat >"$work/call.c" <<'C'
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
static int word;
static MPI_Request none = MPI_REQUEST_NULL;
static MPI_Status s;
static void *nothing(void *arg) { return arg; }
static void *wait(void *arg)
{
	int in;

	MPI_Recv(&in, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return arg;
}
static void call(int which)
{
	MPI_Comm made;
	int flag;

	switch (which) {
	case 0: MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &s); break;
	case 1: MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
	case 2: MPI_Waitall(1, &none, &s); break;
	case 3: MPI_Comm_dup(MPI_COMM_WORLD, &made); break;
	case 4: MPI_Test(&none, &flag, &s); break;
	case 5: MPI_Mprobe(0, 0, MPI_COMM_WORLD, (MPI_Message *)&word, &s); break;
	default: MPI_Init(NULL, NULL); break;
	}
}
static void use_old_copy(int which)
{
	MPI_Request r, copy;
	pthread_t t;

	pthread_create(&t, NULL, wait, NULL);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	MPI_Irecv(&word, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &r);
	copy = r;
	MPI_Send(&which, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
	MPI_Wait(&r, &s);
	if (which == 0)
		MPI_Wait(&copy, &s);
	else
		MPI_Request_free(&copy);
	MPI_Send(&which, 1, MPI_INT, 0, 99, MPI_COMM_WORLD);
	pthread_join(t, NULL);
}
int main(int argc, char **argv)
{
	int level, which = atoi(argv[2]);
	pthread_t t;

	pthread_create(&t, NULL, nothing, NULL);
	pthread_join(t, NULL);
	if (*argv[1] == 'b')
		call(which);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	if (*argv[1] == 'o')
		use_old_copy(which);
	if (*argv[1] == 't')
		call(6);
	MPI_Finalize();
	if (*argv[1] == 'a')
		call(which);
	return 0;
}
C

# The output of the rank's MPI, without numbers and addresses; then the exit. mpirun's own words for it are
# lost at times.
say() { # COMMAND...
	"$@" >"$work/said" 2>&1
	echo "exit $?" >>"$work/said"
	grep -E '^(\*\*\*|Attempting|Abort|Fatal|internal_|exit)' "$work/said" | sed -E 's/0x[0-9a-f]+/A/g; s/[0-9]+/N/g'
}
same() { # MPI WHEN WHICH
	local plain ours program=$work/call.$1
	plain=$(say "$here/launch" "$1" 1 "$program" "$2" "$3")
	ours=$(say "$here/launch" "$1" 1 "$KOCHAB_BIN" run "$program" "$2" "$3")
	[[ $plain = *MPI*exit* ]] || fail "$1, $2 $3: no words of MPI's: $plain"
	grep -q '^exit 0$' "$work/said" && fail "$1, $2 $3: no error"
	[ "$plain" = "$ours" ] || fail "$1, $2 $3: on kernel threads: $plain; here: $ours"
}

tried=0
for mpi in openmpi mpich; do
	has $mpi || continue
	tried=$((tried + 1))
	for program in right call; do
		"mpicc.$mpi" -O -pthread -o "$work/$program.$mpi" "$work/$program.c" || fail "mpicc.$mpi"
	done
	for which in 0 1 3 4 5; do same $mpi before $which; done
	for which in 0 1 2; do same $mpi after $which; done
	# Open MPI's words for it are lost at times, also on kernel threads
	[ $mpi = openmpi ] || same $mpi twice 6
	"$here/launch" $mpi 1 "$KOCHAB_BIN" run "$work/call.$mpi" twice 6 >"$work/said" 2>&1
	case $? in 0 | 124 | 137) fail "$mpi, MPI_Init twice: $(cat "$work/said")" ;; esac
	# the effect of an old handle is MPI's own affair; the program must come to an end
	for which in 0 1; do
		"$here/launch" $mpi 1 "$work/call.$mpi" old $which >/dev/null 2>&1 && continue
		"$here/launch" $mpi 1 "$KOCHAB_BIN" run "$work/call.$mpi" old $which >"$work/said" 2>&1
		case $? in 0 | 124 | 137) fail "$mpi, old handle $which: $(cat "$work/said")" ;; esac
	done
done
[ $tried -gt 0 ] || skip "no MPI is here"

# A library for MPI without a layer: a copy under a different name.
if has mpich; then
	library=$(ldd "$work/right.mpich" | sed -n 's/.*libmpich[^ ]* => \([^ ]*\) .*/\1/p')
	mkdir "$work/other" && sed 's/libmpich\.so\.12/libmpiXX.so.12/g' "$library" >"$work/other/libmpiXX.so.12"
	sed 's/libmpich\.so\.12/libmpiXX.so.12/g' "$work/right.mpich" >"$work/right.other" && chmod +x "$work/right.other"
	said=$(LD_LIBRARY_PATH=$work/other "$here/launch" mpich 2 "$KOCHAB_BIN" run "$work/right.other" 2>&1) || fail "another MPI: $said"
	both_are_right "$said" || fail "another MPI: $said"
	[ "$(grep -c 'no layer is here for its MPI, libmpiXX.so.12' <<<"$said")" = 1 ] || fail "another MPI is not told once: $said"
	if mpicc.mpich -O -pthread -o "$work/static" "$work/right.c" -Wl,-Bstatic -lmpich -Wl,-Bdynamic -lucp -lucs -luct \
		-l:libfabric.so.1 -lhwloc -lm 2>"$work/said"; then
		said=$("$here/launch" mpich 2 "$KOCHAB_BIN" run "$work/static" 2>&1) || fail "static: $said"
		both_are_right "$said" || fail "static: $said"
		[ "$(grep -c 'statically linked with MPI' <<<"$said")" = 1 ] || fail "static MPI is not told once: $said"
	else
		echo "not tried: a static MPICH ($(tail -n 1 "$work/said"))"
	fi
fi
if has mpich && has openmpi; then
	# the other MPI comes along by a library
	for mpi in openmpi mpich; do
		other=mpich
		lib=-lmpi
		[ $mpi = openmpi ] || { other=openmpi; lib=-lmpich; }
		echo 'int MPI_Get_version(int *, int *); int other(void) { int a, b; return MPI_Get_version(&a, &b); }' >"$work/other.c"
		"mpicc.$other" -shared -fPIC -o "$work/libother.so" "$work/other.c" || fail "mpicc.$other -shared"
		"mpicc.$mpi" -O -pthread -Wl,--no-as-needed -o "$work/both" "$work/right.c" "$lib" -L"$work" \
			-Wl,-rpath,"$work" -lother || fail "mpicc.$mpi"
		said=$("$here/launch" $mpi 2 "$KOCHAB_BIN" run "$work/both" 2>&1) || fail "both: $said"
		both_are_right "$said" || fail "both: $said"
		# the layer of the other MPI, by hand
		said=$(LD_PRELOAD=$BUILD/libkochab-mpi-$other.so.0 "$work/right.$mpi" 2>&1)
		[ $? = 126 ] || fail "$other's layer with $mpi: $said"
		grep -q "^kochab: this layer is for libmpi.*, but the program is linked with .*libmpi" <<<"$said" ||
			fail "$other's layer with $mpi is not told: $said"
	done
	mpicc.openmpi -O -pthread -Wl,--no-as-needed -o "$work/both" "$work/right.c" -lmpi -lmpich || fail "mpicc.openmpi -lmpich"
	said=$("$here/launch" openmpi 2 "$work/both" 2>&1)
	if both_are_right "$said"; then
		said=$("$here/launch" openmpi 2 "$KOCHAB_BIN" run "$work/both" 2>&1) || fail "two MPIs: $said"
		both_are_right "$said" || fail "two MPIs: $said"
		grep -q "linked with more than one MPI" <<<"$said" || fail "two MPIs are not told: $said"
	else
		echo "not tried: a program with two MPIs, which fails on kernel threads"
	fi
fi
echo "$tried MPIs"
