#!/bin/bash
# mpi/hybrid - OpenMP regions whose threads call MPI, of libgomp and of LLVM's libomp: by all threads at MPI_THREAD_MULTIPLE, by
# the master (FUNNELED), by a thread at a time (SERIALIZED); with more threads than processors, and more ranks. On
# kernel threads, which tests the test, and on lightweight threads. Then the virtual processors of ranks: as many as mpirun
# binds a rank to processors, a share where it does not bind, and what --vps says for each rank.
# Skipped: no MPI is here.
# timeout: 600
. "$(dirname "$0")/lib.sh"
make_work
has openmpi || has mpich || skip "no MPI is here"

cat >"$work/hybrid.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { ROUNDS = 20, MOST = 64 };
#define CHECK(what) do if (!(what)) { fprintf(stderr, "%d: rank %d: %s\n", __LINE__, rank, #what); _Exit(1); } while (0)
static int rank, ranks, peer;
static MPI_Comm own[MOST];
static void exchange(int tag, int value)
{
	int out = value + rank, in = -1;

	CHECK(!MPI_Sendrecv(&out, 1, MPI_INT, peer, tag, &in, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	CHECK(in == value + peer);
}
static void add(MPI_Comm comm, int value)
{
	int sum = -1;

	CHECK(!MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm));
	CHECK(sum == ranks * value);
}
/* All threads call: in step, as loops hand out iterations, as tasks, and one by one. */
static void multiple(int n)
{
	int inside = 0, turn = 0;
	long sum = 0;

	for (int i = 0; i < n; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
#pragma omp parallel num_threads(n)
	{
		int id = omp_get_thread_num();

		CHECK(omp_get_num_threads() == n);
		for (int i = 0; i < ROUNDS; i++) {
			exchange(id, 1000 * id + i);
			add(own[id], id + i);
#pragma omp barrier
		}
#pragma omp for schedule(dynamic) reduction(+ : sum)
		for (int i = 0; i < 10 * n; i++) {
			exchange(100 + i, i);
			sum += i;
		}
#pragma omp single
		for (int i = 0; i < n; i++)
#pragma omp task firstprivate(i)
			exchange(5000 + i, i);
#pragma omp barrier
#pragma omp critical
		{
			CHECK(inside++ == 0);
			exchange(9000, turn++);
			inside--;
		}
	}
	CHECK(sum == 10L * n * (10L * n - 1) / 2);
	CHECK(turn == n);
	for (int i = 0; i < n; i++)
		MPI_Comm_free(&own[i]);
}
/* All threads compute, the master calls. */
static void funneled(int n)
{
	double part[MOST] = { 0 }, all = 0;

#pragma omp parallel num_threads(n)
	for (int i = 0; i < ROUNDS; i++) {
		int id = omp_get_thread_num(), is_main = 0;

		for (int k = 0; k < 10000; k++)
			part[id] += 1;
#pragma omp barrier
#pragma omp master
		{
			MPI_Is_thread_main(&is_main);
			CHECK(is_main);
			exchange(i, i);
			add(MPI_COMM_WORLD, i);
		}
#pragma omp barrier
	}
	for (int i = 0; i < n; i++)
		all += part[i];
	CHECK(all == 10000. * ROUNDS * n);
}
/* Any thread calls, the rest computes or waits for it. */
static void serialized(int n)
{
	int turn = 0;

#pragma omp parallel num_threads(n)
	for (int i = 0; i < ROUNDS; i++) {
#pragma omp single
		exchange(i, i);
#pragma omp critical
		exchange(500, turn++);
#pragma omp barrier
#pragma omp single nowait
		add(MPI_COMM_WORLD, i);
#pragma omp barrier
	}
	CHECK(turn == ROUNDS * n);
}
/* Under `kochab run` the threads of a region are lightweight, and the layer is there. */
static void check_place(int n, int expected)
{
	int (*self)(void), light = 0;

	*(void **)&self = dlsym(RTLD_DEFAULT, "kb_vp_self");
	CHECK((self && dlsym(RTLD_DEFAULT, "kb_mpi_wait")) == expected);
#pragma omp parallel num_threads(n) reduction(+ : light)
	light += self && self() >= 0;
	CHECK(light == (expected ? n : 0));
}
int main(int argc, char **argv)
{
	int n = atoi(argv[2]), level = -1, wanted;
	char kind = *argv[1];

	wanted = kind == 'm' ? MPI_THREAD_MULTIPLE : kind == 'f' ? MPI_THREAD_FUNNELED : MPI_THREAD_SERIALIZED;
	MPI_Init_thread(&argc, &argv, wanted, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	peer = rank ^ 1;
	CHECK(level >= wanted && n <= MOST);
	check_place(n, !strcmp(argv[3], "light"));
	(kind == 'm' ? multiple : kind == 'f' ? funneled : serialized)(n);
	MPI_Finalize();
	return 0;
}
C

cat >"$work/place.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	unsigned (*count)(void);
	cpu_set_t may;

	MPI_Init(&argc, &argv);
	*(void **)&count = dlsym(RTLD_DEFAULT, "kb_vp_count");
	sched_getaffinity(0, sizeof(may), &may);
	printf("%u %d\n", count ? count() : 0, CPU_COUNT(&may));
	MPI_Finalize();
	return 0;
}
C

# ---- regions ----
processors=$(getconf _NPROCESSORS_ONLN)
regions() { # MPI COMPILER
	local mpi=$1 kind program=$work/hybrid.$1.$2
	OMPI_CC=$2 MPICH_CC=$2 "mpicc.$mpi" -O -fopenmp -Wno-unknown-warning-option -o "$program" "$work/hybrid.c" -ldl 2>"$work/log" || {
		[ "$2" = gcc ] && fail "$mpi: $(cat "$work/log")"
		echo "not tried: $mpi with libomp ($(head -n 1 "$work/log"))"
		return
	}
	for kind in multiple funneled serialized; do
		OMP_WAIT_POLICY=passive "$here/launch" "$mpi" 2 "$program" $kind 4 heavy >"$work/log" 2>&1 ||
			fail "$mpi, $2, $kind on kernel threads: $(cat "$work/log")"
		for vps in 1 2; do
			"$here/launch" "$mpi" 2 "$KOCHAB_BIN" run --vps $vps "$program" $kind $((8 * processors)) light >"$work/log" 2>&1 ||
				fail "$mpi, $2, $kind, $vps virtual processors: $(cat "$work/log")"
		done
	done
	"$here/launch" "$mpi" $((4 * processors)) "$KOCHAB_BIN" run "$program" multiple 6 light >"$work/log" 2>&1 ||
		fail "$mpi, $2, more ranks than processors: $(cat "$work/log")"
}

# ---- virtual processors ----
# places MPI RANKS EXPECTED WORDS...: each rank has so many virtual processors; EXPECTED "bound": as its affinity says
places() {
	local mpi=$1 ranks=$2 expected=$3 vps may want lines=0
	shift 3
	"$here/launch" "$mpi" "$ranks" "$@" >"$work/log" 2>"$work/err" || { echo "not tried: $mpi $* ($(tail -n 1 "$work/err"))"; return; }
	while read -r vps may; do
		want=$expected
		[ "$want" != bound ] || want=$may
		[ "$expected" != bound ] || [ "$want" -lt "$processors" ] || { echo "not tried: $mpi $*: not bound"; return; }
		[ "$vps" = "$want" ] || fail "$mpi $*: $vps virtual processors, $want are right: $(cat "$work/log")"
		lines=$((lines + 1))
	done <"$work/log"
	[ $lines = "$ranks" ] || fail "$mpi $*: $(cat "$work/log")"
}
shared() { [ "$processors" -ge "$1" ] && echo $((processors / $1)) || echo 1; }

for mpi in openmpi mpich; do
	has $mpi || continue
	regions $mpi gcc
	command -v clang >/dev/null && regions $mpi clang || echo "not tried: $mpi with libomp (no clang)"
	"mpicc.$mpi" -O -o "$work/place.$mpi" "$work/place.c" -ldl || fail "mpicc.$mpi"
	[ "$(OMP_NUM_THREADS='' nproc)" = "$processors" ] || { echo "not tried: ranks' processors (this shell is bound)"; continue; }
	run=("$KOCHAB_BIN" run)
	if [ "$processors" -gt 1 ]; then
		places $mpi 2 bound --bind-to core "${run[@]}" "$work/place.$mpi"
	fi
	for ranks in 2 4; do places $mpi $ranks "$(shared $ranks)" --bind-to none "${run[@]}" "$work/place.$mpi"; done
	places $mpi 2 3 --bind-to none "${run[@]}" --vps 3 "$work/place.$mpi"
	places $mpi 2 3 --bind-to core "${run[@]}" --vps 3 "$work/place.$mpi"
	"$here/launch" $mpi 1 "${run[@]}" --vps 1 "$work/place.$mpi" : -n 1 "${run[@]}" --vps 3 "$work/place.$mpi" >"$work/log" 2>&1
	[ "$(cut -d ' ' -f 1 "$work/log" | sort | tr '\n' ' ')" = "1 3 " ] || fail "$mpi, --vps for each rank: $(cat "$work/log")"
done
exit 0
