#!/bin/bash
# libkochab-malloc.so under the programs of malloc_*: preloaded on its own, hardened, with little
# address space, and beside the drop-in, with kernel threads and with processes as virtual
# processors; some of these are killed. Its statistics are JSON; it reports the errors that it finds
# in hardened mode.
# timeout: 900
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

# The same where processes are killed: before Linux 6.0 that may end the program, and it says so
# (doc/containment.md).
try_killed() { # WHAT COMMAND...
	local before=$failed
	failed=0
	try "$@" >"$T/why"
	[ "$(uname -r | cut -d. -f1)" -lt 6 ] && grep -q 'exit \(137\|77\):' "$T/why" &&
		grep -q 'was killed: the program ends\|^before Linux 6.0' "$T/out" && failed=0
	cat "$T/why"
	[ $failed = 1 ] || failed=$before
}

processes=
"$KOCHAB_BIN" doctor | grep -q '^+ process bodies' && processes=yes

# A message of ours would mean that virtual processors were no processes.
says_nothing() {
	grep '^kochab:' "$T/out" && failed=1
}

for name in malloc_family malloc_threads malloc_fork malloc_ends malloc_process; do
	program=$BUILD/test/posix/$name
	[ -x "$program" ] || { echo "no $program"; exit 77; }
	try "alone" env LD_PRELOAD="$LIB" "$program"
	try "hardened" env LD_PRELOAD="$LIB" KOCHAB_HEAP=hardened "$program"
	try "1 VP" "$KOCHAB_BIN" run --malloc kochab --vps 1 -- "$program"
	try "3 VPs" "$KOCHAB_BIN" run --malloc kochab --vps 3 -- "$program"
	try "guarded" env LD_PRELOAD="$LIB" KOCHAB_HEAP_GUARD=5 "$program"
	try "2 VPs, guarded" "$KOCHAB_BIN" run --malloc kochab --heap-guard 5 --vps 2 -- "$program"
	try "2 VPs, hardened" "$KOCHAB_BIN" run --malloc kochab --heap hardened --vps 2 -- "$program"
	try "preloaded behind" env LD_PRELOAD="$LIB" "$KOCHAB_BIN" run --vps 2 -- "$program"
	[ -n "$processes" ] || continue
	try "1 process" "$KOCHAB_BIN" run --malloc kochab --body process --vps 1 -- "$program"
	says_nothing
	try "3 processes" "$KOCHAB_BIN" run --malloc kochab --body process --vps 3 -- "$program"
	try "2 processes, guarded" "$KOCHAB_BIN" run --malloc kochab --heap-guard 5 --body process --vps 2 -- "$program"
	try "2 processes, hardened" "$KOCHAB_BIN" run --malloc kochab --heap hardened --body process --vps 2 -- "$program"
	for way in patch dispatch seccomp; do
		"$KOCHAB_BIN" doctor | grep -q "^+ *libcalls=$way" || continue
		try "2 processes, $way" "$KOCHAB_BIN" run --malloc kochab --body process --libcalls $way --vps 2 -- "$program"
	done
done

if [ -n "$processes" ]; then
	contained=(env KOCHAB_CONTAIN=1 KOCHAB_ON_KILL=spare KOCHAB_SCOPE=asked KOCHAB_SPARE_MS=600000 KOCHAB_BODY=process)
	for heap in plain hardened; do
		try_killed "processes that are killed, $heap" "${contained[@]}" "$KOCHAB_BIN" run --malloc kochab --heap $heap --vps 2 -- \
			"$BUILD/test/posix/malloc_killed"
	done
	try_killed "a native program that is killed" env LD_PRELOAD="$LIB" KILLS=60 KOCHAB_VPS=2 "$BUILD/test/core/contain_kills"
	try "a native program that forks" env LD_PRELOAD="$LIB" KOCHAB_BODY=process KOCHAB_VPS=2 "$BUILD/test/core/process_fork"
	# there is no room for the processes: processes that have begun end, and the program goes on
	try "no processes left" "$KOCHAB_BIN" run --malloc kochab --body process --vps 2 -- "$BUILD/test/posix/create_refused"
	# more than a file may have: kernel threads, and a message
	try "short files" bash -c "ulimit -f 8000000; $KOCHAB_BIN run --malloc kochab --body process -- $BUILD/test/posix/malloc_threads"
	grep -q 'limit of file size' "$T/out" || { echo "no line about the limit"; failed=1; }
	try "20 GB of addresses" bash -c \
		"ulimit -v 20000000; $KOCHAB_BIN run --malloc kochab --body process --vps 2 -- $BUILD/test/posix/malloc_process"
	says_nothing
fi
try "little address space" bash -c "ulimit -v 1000000; LD_PRELOAD=$LIB $BUILD/test/posix/malloc_threads"

# A fault in a guarded block is reported without the drop-in, beside the drop-in, and where crashes
# are contained.
cat >"$T/p.c" <<'C'
#include <pthread.h>
#include <stdlib.h>

static void *use(void *arg)
{
	char *volatile p = malloc(100), *volatile q = malloc(100);

	(void)arg;
	free(p);
	free(q);
	return (void *)(long)(p[5] + q[5]);
}

int main(void)
{
	pthread_t t;

	return pthread_create(&t, NULL, use, NULL) || pthread_join(t, NULL);
}
C
tells() { # WHAT STATUS COMMAND...
	local what=$1 status=$2
	shift 2
	KOCHAB_HEAP_GUARD=1 timeout -k 5 100 "$@" >"$T/out" 2>&1
	[ $? = "$status" ] && grep -q 'heap: use of a freed block: address .* at offset 5 ' "$T/out" && return
	echo "$what: a use of a freed block is not told"
	tail -n 8 "$T/out"
	failed=1
}
if ${CC:-gcc} -O0 -fno-builtin -w -o "$T/p" "$T/p.c" -pthread; then
	tells "alone" 139 env LD_PRELOAD="$LIB" "$T/p"
	tells "beside the drop-in" 139 "$KOCHAB_BIN" run --malloc kochab --vps 2 -- "$T/p"
	tells "contained" 1 "$KOCHAB_BIN" run --malloc kochab --contain --vps 2 -- "$T/p"
fi

LD_PRELOAD=$LIB KOCHAB_HEAP_STATS=1 "$BUILD/test/posix/malloc_threads" >/dev/null 2>"$T/json"
if command -v python3 >/dev/null; then
	python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); assert s["owners"] > 0 and s["classes"]' "$T/json" ||
		failed=1
fi
exit $failed
