#!/bin/bash
# kochab bench turns: every figure of both servers, as JSON; a server that is killed, or that may not have so many
# descriptors, ends it with a line that says so.
. "$(dirname "$0")/lib.sh"
[ -z "${SAN:-}" ] || skip "not with sanitizers: it runs a server on the drop-in"
command -v python3 >/dev/null || skip "no python3"
turns=("$K" bench turns --threads 5 --sizes 20 --vps 1 --runs 1)

"${turns[@]}" --seconds 0.1 --format json >"$T/json" || { echo "exit $?"; failures=$((failures + 1)); }
python3 - "$T/json" <<'END' || failures=$((failures + 1))
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    rows = [json.loads(line) for line in f]
found = {(r["method"], r["metric"]): r["median"] for r in rows}
for method in "nptl", "kochab-posix":
    v = {m: found[method, m] for m in ("p50", "p99", "p99.9", "longest", "request", "behind", "ahead")}
    assert 0 < v["p50"] <= v["p99"] <= v["p99.9"] <= v["longest"], v
    assert v["request"] > 0 and 0 <= v["behind"] <= 100 and v["ahead"] >= 0, v
assert len(rows) == 14, rows
END

# The measuring process is a child of the command, the server a child of that.
server_of() { # COMMAND'S PROCESS
	local measuring
	measuring=$(pgrep -P "$1") && pgrep -P "$measuring"
}
for method in nptl kochab-posix; do
	"${turns[@]}" --seconds 20 --methods $method >"$T/out" 2>&1 &
	bench=$!
	server=
	until server=$(server_of $bench) && grep -qsa BENCH_TURNS_SERVE= "/proc/$server/environ"; do
		kill -0 $bench 2>/dev/null || break
		sleep 0.05
	done
	kill -9 "${server:-none}"
	wait $bench && { echo "$method: exit 0 without a server"; failures=$((failures + 1)); }
	grep -q 'the server was killed by signal 9' "$T/out" || { echo "$method:"; cat "$T/out"; failures=$((failures + 1)); }
done

(ulimit -n 60 && expect 0 "69 descriptors are not allowed" "${turns[@]}" --methods nptl; exit $failures) || failures=$((failures + 1))
finish
