#!/bin/bash
# The lecture's programs: each shows its defect and is right where it says so, on 1, 2 and 4 virtual processors and with
# every scheduler; each is in the README.
set -u
cd "$(dirname "$0")/../.." || exit 2
BUILD=${BUILD:-build}
[ -z "${SAN:-}" ] || { echo "races on purpose: not with a sanitizer"; exit 77; }
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0 n=0

run() { # PROGRAM SCHEDULER VPS
	if ! KOCHAB_SCHED=$2 KOCHAB_VPS=$3 timeout -s QUIT -k 5 200 "$1" >"$T/out" 2>&1; then
		echo "$1 with $2 on $3: failed"
		tail -n 10 "$T/out"
		failed=1
	fi
	grep -q '^wrong: ' "$T/out" && grep -q '^right: ' "$T/out" || { echo "$1: does not say both"; failed=1; }
}

for source in example/lecture/*.c; do
	name=$(basename "$source" .c)
	program=$BUILD/example/lecture/$name
	[ -x "$program" ] || { echo "$program is not built (make examples)"; exit 77; }
	grep -q "\`$name.c\`" example/lecture/README.md || { echo "$name.c is not in README.md"; failed=1; }
	for vps in 1 2 4; do
		run "$program" rotator $vps
	done
	run "$program" lb2 2
	run "$program" steal 2
	n=$((n + 1))
done
[ $n -ge 7 ] || { echo "only $n programs"; failed=1; }
exit $failed
