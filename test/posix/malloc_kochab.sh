#!/bin/bash
# libkochab-malloc.so under the programs of malloc_*: preloaded on its own, hardened, with little address space, and
# beside the drop-in. Its statistics are JSON; what it finds in hardened mode it says.
set -u
BUILD=${BUILD:-build}
KOCHAB_BIN=${KOCHAB_BIN:-$BUILD/kochab}
LIB=$BUILD/libkochab-malloc.so.0
[ -e "$LIB" ] && [ -x "$KOCHAB_BIN" ] || { echo "no $LIB"; exit 77; }
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0

try() { # WHAT COMMAND...
	local what=$1
	shift
	timeout -s QUIT -k 5 200 "$@" >"$T/out" 2>&1 && return
	echo "$what: exit $?: $*"
	tail -n 8 "$T/out"
	failed=1
}

for name in malloc_family malloc_threads malloc_fork malloc_ends; do
	program=$BUILD/test/posix/$name
	[ -x "$program" ] || { echo "no $program"; exit 77; }
	try "alone" env LD_PRELOAD="$LIB" "$program"
	try "hardened" env LD_PRELOAD="$LIB" KOCHAB_HEAP=hardened "$program"
	try "1 VP" "$KOCHAB_BIN" run --malloc kochab --vps 1 -- "$program"
	try "3 VPs" "$KOCHAB_BIN" run --malloc kochab --vps 3 -- "$program"
	try "2 VPs, hardened" "$KOCHAB_BIN" run --malloc kochab --heap hardened --vps 2 -- "$program"
	try "preloaded behind" env LD_PRELOAD="$LIB" "$KOCHAB_BIN" run --vps 2 -- "$program"
done
try "little address space" bash -c "ulimit -v 1000000; LD_PRELOAD=$LIB $BUILD/test/posix/malloc_threads"

LD_PRELOAD=$LIB KOCHAB_HEAP_STATS=1 "$BUILD/test/posix/malloc_threads" >/dev/null 2>"$T/json"
if command -v python3 >/dev/null; then
	python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); assert s["owners"] > 0 and s["classes"]' "$T/json" ||
		failed=1
fi
exit $failed
