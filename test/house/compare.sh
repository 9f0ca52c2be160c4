#!/bin/bash
# kochab compare: equal and different output, faster and slower programs, servers, its words for errors;
# nothing is left behind.
# timeout: 200
. "$(dirname "$0")/lib.sh"
[ -z "${SAN:-}" ] || skip "not with sanitizers: it runs programs on the drop-in"
[ -e "$BUILD/libkochab-posix.so.0" ] || skip "no drop-in in this build"
fail() {
	echo "$*"
	failures=$((failures + 1))
}
# words for `sh -c` on Kochab only
on_kochab() { echo "case \$LD_PRELOAD in *libkochab-posix*) $1;; esac"; }

# ---- wrong usage is reported ----
expect 2 "which program" "$K" compare -n 2 --
expect 2 "-n 0: bad value, allowed: 1 to" "$K" compare -n 0 true
expect 2 "-n: no such option, or no value" "$K" compare -n
expect 2 "compare: --frobnicate: no such option" "$K" compare --frobnicate true
expect 2 "--vps many: bad value" "$K" compare --vps many true
expect 2 "go together" "$K" compare --load true true
expect 2 "No such file" "$K" compare --input "$T/none" cat
expect 127 "not found in PATH" "$K" compare no-such-program
expect 126 "not an executable file" "$K" compare "$TOP/README.md"

echo 'int main(void) { return 0; }' >"$T/static.c"
${CC:-gcc} -static -o "$T/static" "$T/static.c" 2>/dev/null &&
	expect 126 "cannot be run with Kochab" "$K" compare -n 1 "$T/static"
command -v musl-gcc >/dev/null && musl-gcc -o "$T/musl" "$T/static.c" &&
	expect 126 "cannot be run with Kochab" "$K" compare -n 1 "$T/musl"

cat >"$T/native.c" <<'END'
#include <kochab/kochab.h>
int main(void) { return kb_init(); }
END
${CC:-gcc} -I"$TOP/include" -o "$T/native" "$T/native.c" -L"$BUILD" -lkochab -Wl,-rpath,"$BUILD" || exit 1
expect 126 "is linked with Kochab" "$K" compare -n 1 "$T/native"
${CC:-gcc} -I"$TOP/include" -o "$T/native" "$T/native.c" "$BUILD/libkochab.a" -pthread -ldl || exit 1
expect 126 "is linked with Kochab" "$K" compare -n 1 "$T/native"

# ---- status and output ----
expect 0 "Exit status 3 and output are the same." "$K" compare -n 1 -- sh -c 'echo a; exit 3'
expect 0 "Exit status 0 and output are the same." "$K" compare --check -n 1 -- sh -c 'echo a'
expect 0 "Too few runs to tell" "$K" compare -n 1 true
[ "$(head -n 1 "$T/out")" = "kochab: compare: -n 1: whether it is faster is not told by fewer than 4 runs of each" ] ||
	fail "few runs are not told first: $(<"$T/out")"
expect 1 "exit status 4, on kernel threads exit status 0" "$K" compare -n 1 -- sh -c "$(on_kochab 'exit 4')"
expect 1 "ended by signal 11 (" "$K" compare -n 1 -- sh -c "echo before >&2; $(on_kochab 'kill -SEGV $$')"
grep -q '^  before$' "$T/out" || fail "what it wrote to standard error is not there"
grep -q "^It does not work the same way on Kochab.$" "$T/out" || fail "no verdict"
expect 1 "on kernel threads it fails" "$K" compare -n 1 -- sh -c 'kill -KILL $$'
differs="echo one; echo two; $(on_kochab 'printf "th\\033[2Jis\\n"; exit'); echo three"
expect 0 "warning, Kochab:" "$K" compare -n 1 -- sh -c "$differs"
grep -q 'differs from byte 11, line 3, on$' "$T/out" || fail "where it differs: $(<"$T/out")"
grep -q 'kernel threads: three$' "$T/out" || fail "the line of kernel threads"
grep -qF 'Kochab:         th\x1b[2Jis' "$T/out" || fail "the line of Kochab"
expect 1 "It does not write the same on Kochab." "$K" compare --check -n 1 -- sh -c "$differs"
expect 0 "is not compared: on kernel threads, too, it differs" "$K" compare -n 2 -- date +%N
expect 1 "is not compared: on kernel threads, too, it differs" "$K" compare -n 2 --check -- date +%N

# ---- the runs on Kochab, and they alone, have its options; each run reads its input ----
tells='echo "$KOCHAB_VPS $LD_PRELOAD" | sed "s/[^ ]*libkochab-posix.so.0$/ours/"; cat'
echo text >"$T/input"
expect 0 "Kochab:         1 ours" env KOCHAB_STATS=0 "$K" compare --vps 1 -n 1 -- sh -c "$tells"
expect 0 "Exit status 0 and output are the same." "$K" compare --check -n 2 --input "$T/input" -- grep -c text
"$K" compare --check -n 2 -- grep -c text <"$T/input" >"$T/out" || fail "a file as standard input: $(<"$T/out")"

# ---- verdicts ----
expect 0 "Kochab takes " "$K" compare -n 4 -- sh -c "$(on_kochab 'sleep 0.2')"
grep -q "^Starting on Kochab costs " "$T/out" || fail "what the start costs is not told"
expect 0 " times as fast" "$K" compare -n 4 -- sh -c "$(on_kochab exit); sleep 0.2"
expect 0 "idle most of its time" "$K" compare -n 4 -- sleep 0.3
expect 0 "Kochab --vps 1 " "$K" compare -n 4 --try --vps 2 -- sh -c "$(on_kochab '[ "$KOCHAB_VPS" = 1 ] || sleep 0.2')"
grep -q "^--vps 1 is .* times as fast as without it" "$T/out" || fail "the hint: $(<"$T/out")"
expect 1 "no end within 0.3 s" "$K" compare -n 1 --timeout 0.3 -- sh -c "$(on_kochab 'exec sleep 100')"

# ---- a server ----
server='[ $# = 0 ] || exit 7; trap "exit 0" TERM; : >'"$T/ready"'; while :; do sleep 0.05; done'
load="rm $T/ready; printf 'half\\r    \\rdone\\r\\n'; sleep 0.1"
expect 0 "time of the load" "$K" compare -n 1 --load "$load" --ready "test -e $T/ready" -- bash -c "$server"
[ "$(grep -c '^  done$' "$T/out")" = 2 ] || fail "what the load wrote: $(<"$T/out")"
expect 1 "the server ended before it was ready: exit status 7" \
	"$K" compare -n 1 --load "$load" --ready "test -e $T/ready" -- bash -c "$server" name word
expect 1 "was not ready within 0.2 s" \
	"$K" compare -n 1 --load true --ready false --ready-seconds 0.2 -- bash -c "$server"
expect 1 "the load: exit status 9" "$K" compare -n 1 --load "exit 9" --ready true -- bash -c "$server"
expect 1 "the server ended during the load: ended by signal 9" \
	"$K" compare -n 1 --load "sleep 50" --ready true -- sh -c 'sleep 0.3; kill -KILL $$'
# each server is ready once its trap is set: the file of the server before it must be gone
expect 0 "the server ended after SIGTERM with exit status 67" \
	"$K" compare -n 1 --load true --ready "rm $T/ready 2>/dev/null" -- bash -c "trap 'exit 67' TERM; : >$T/ready; while :; do sleep 0.05; done"

# ---- a busy machine: small differences are not claimed ----
for ((i = 0; i < 2 * $(nproc); i++)); do
	while :; do :; done &
	spinners="${spinners:-} $!"
done
expect 0 "The machine was busy: others used " "$K" compare -n 5 -- sh -c "$(on_kochab 'sleep 0.02'); sleep 0.1"
grep -qE "^(No difference|Kochab (takes|is) ([2-9]|1\.[5-9]))" "$T/out" || fail "claims too much: $(<"$T/out")"
kill $spinners
wait $spinners 2>/dev/null

# ---- nothing is left behind ----
lives() { # SECONDS: a sleep of so many
	local f
	for f in /proc/[0-9]*/cmdline; do
		[ "$({ tr '\0' ' ' <"$f"; } 2>/dev/null)" = "sleep $1 " ] && return 0
	done
	return 1
}
dead() { # SECONDS: within a moment
	local i
	for ((i = 0; i < 100; i++)); do
		lives "$1" || return 0
		sleep 0.05
	done
	return 1
}
s=$((100000 + $$))
expect 0 "leaves processes behind" "$K" compare -n 1 -- bash -c "sleep ${s}1 & setsid sleep ${s}2 & sleep 0.1; exit 0"
lives ${s}1 || lives ${s}2 && fail "a process of the program's lives"
for how in INT TERM KILL; do
	setsid env --default-signal=INT "$K" compare -- sh -c "exec sleep ${s}3" >"$T/out" 2>&1 &
	pid=$!
	for ((i = 0; i < 100; i++)); do lives ${s}3 && break; sleep 0.05; done
	kill -$how $pid
	wait $pid
	code=$?
	[ $code = $((128 + $(kill -l $how))) ] || fail "SIG$how: exit $code"
	dead ${s}3 || fail "SIG$how: the program lives"
done

if command -v python3 >/dev/null; then
	"$K" compare -n 2 --json -- sh -c "echo '\"'; $(on_kochab 'echo more')" >"$T/json" || fail "--json"
	python3 - "$T/json" <<-'END' || fail "JSON: $(<"$T/json")"
		import json, sys
		rows = [json.loads(line) for line in open(sys.argv[1])]
		assert [r["kind"] for r in rows[:2]] == ["kernel threads", "kochab"], rows
		for r in rows[:2]:
		    for key in "wall_s", "processor_s", "peak_bytes", "voluntary_switches", "involuntary_switches":
		        assert 0 <= r[key]["min"] <= r[key]["median"] <= r[key]["max"], r
		    assert r["runs"] == 2 and r["exit_status"] == 0 and r["wrong"] is None, r
		assert "line 2" in rows[1]["difference"] and rows[2]["output"] == "different", rows
	END
fi
finish
