#!/bin/bash
# kochab bench mpi: with each MPI that is here every figure, as JSON; wrong arguments; without mpirun a line that says so and
# no rows; a load that says nothing, too little, a figure of nought or of another metric, that fails or that waits for ever
# gives an error or a note, never a row of figures that is silently short.
. "$(dirname "$0")/lib.sh"
[ -z "${SAN:-}" ] || skip "not with sanitizers: there is no layer over MPI"
bench=("$K" bench mpi --runs 1 --seconds 0.03)

expect 2 "cannot read the numbers of threads" "${bench[@]}" --threads 0
expect 2 "cannot read the numbers of threads" "${bench[@]}" --threads 2,x
expect 2 "no such method" "${bench[@]}" --methods openmpi
expect 2 "--sizes is not for" "${bench[@]}" --sizes 4
expect 2 "cannot use this length" "${bench[@]}" --seconds -1
expect 0 "mpi: two ranks" "$K" bench --help

loads=()
for m in openmpi mpich; do
	if [ ! -x "$BUILD/bench/mpi/load.$m" ]; then
		expect 0 "$m skipped: its load is not built" "${bench[@]}" --methods $m-kochab
		[ "$(grep -c . "$T/out")" = 1 ] || { echo "more than a line of $m"; failures=$((failures + 1)); }
		continue
	fi
	expect 0 "$m skipped: no mpirun.$m" env PATH="$T" "$K" bench mpi --runs 1 --methods $m-kochab,$m-nptl
	[ "$(grep -c . "$T/out")" = 1 ] || { echo "more than a line of $m"; failures=$((failures + 1)); }
	loads+=("$m")
	! command -v "mpirun.$m" >/dev/null || found+=("$m-kochab")
done
[ ${#loads[@]} != 0 ] || finish

# a load in the place of mpirun: it prints its words, and ends as it is told
m=${loads[0]}
mkdir "$T/bin"
pretend() { # WORDS COMMAND
	printf '#!/bin/bash\nprintf "%%b" "%s"\n%s\n' "$1" "$2" >"$T/bin/mpirun.$m"
	chmod +x "$T/bin/mpirun.$m"
}
short() { # EXIT TEXT
	PATH=$T/bin:$PATH expect "$1" "$2" "${bench[@]}" --threads 2 --methods $m-nptl
}
pretend "figure round-trip us 1.5\nfigure hop us 2.5\n" "exit 0"
short 0 "2.50"
pretend "" "exit 0"
short 1 "round-trip: $m ended with 0: no message"
pretend "figure round-trip us 1.5\n" "exit 0"
short 1 "hop: $m ended with 0: no message"
pretend "figure round-trip us 0\n" "exit 0"
short 1 "round-trip: $m ended with 0: figure round-trip us 0"
pretend "figure hop us 1\n" "exit 0"
short 1 "round-trip: $m ended with 0: figure hop us 1"
pretend "figure round-trip us 1.5\nfigure hop us 2.5\nall is lost\n" "exit 3"
short 1 "at its end: $m ended with 3: all is lost"
pretend "figure round-trip us 1.5\n" "kill -9 \$\$"
short 1 "hop: $m ended with -9"
pretend "figure round-trip us 1.5\nnone hop no hops here\n" "exit 0"
short 0 "hop: no hops here"
pretend "figure round-trip us 1.5\n" "exec sleep 100"
short 0 "hop: no end in"

[ -n "${found:-}" ] || finish
for threads in 1 4; do
	methods=$(IFS=,; echo "${found[*]}")
	"${bench[@]}" --threads $threads --methods "$methods" --format json >"$T/json" || { echo "exit $?"; cat "$T/json"; failures=$((failures + 1)); }
	python3 - "$T/json" $threads "$methods" <<'END' || failures=$((failures + 1))
import json
import sys

metrics = {"1": {"round-trip": "us", "message": "ns", "round-trip-mt": "us", "message-mt": "ns"},
           "4": {"round-trip": "us", "hop": "us", "compute-200": "x", "compute-20": "x", "compute-2": "x", "collective": "us", "halo": "us",
                 "halo-omp": "us"}}[sys.argv[2]]
with open(sys.argv[1], encoding="utf-8") as f:
    rows = [json.loads(line) for line in f]
for method in sys.argv[3].split(","):
    of = {r["metric"]: r for r in rows if r["method"] == method}
    if of.pop("none", {}).get("note") == "halo-omp: no libgomp.so.1":
        del metrics["halo-omp"]
    assert {m: r["unit"] for m, r in of.items()} == metrics, of
    assert all(r["median"] > 0 and r["by"] == "kochab" for r in of.values()), of
END
done
finish
