# test/house/gdb_lib.sh - a test by gdb; sourced, not run, after lib.sh, by who has set `limit`, the seconds that gdb may take.
# shellcheck shell=bash
command -v gdb >/dev/null || skip "no gdb"
[ -z "${SAN:-}" ] || skip "not with sanitizers"

ask() { # NAME ARGS...: what gdb says is in the file $T/NAME
	timeout "${limit:?}" gdb -nx -batch -ex 'set debuginfod enabled off' "${@:2}" >"$T/$1" 2>&1 </dev/null
	grep -q 'Operation not permitted' "$T/$1" && skip "this machine does not let gdb trace"
}

show() { # NAME
	sed 's/^/  > /' "$T/$1"
}

# has NAME PATTERN: a line that matches
has() {
	grep -qE "$2" "$T/$1" && return
	echo "$1: no line matches: $2"
	failures=$((failures + 1))
	return 1
}

# builds the program of $T/hamlet.c
build_hamlet() {
	${CC:-cc} -g -O1 -I"$TOP/include" -o "$T/hamlet" "$T/hamlet.c" "$BUILD/libkochab.a" -pthread -ldl || exit 1
}
