#!/bin/bash
# A program that is linked with both libraries has a single runtime, the drop-in's, in whichever
# order it names them, and its LD_PRELOAD does not reach programs that it starts. In a program with
# the native library inside there would be two runtimes: a message says so, and nothing hangs.
set -eu
[ -z "${SAN:-}" ] || { echo "the drop-in itself must not be sanitized"; exit 77; }
BUILD=$(realpath "${BUILD:-build}")
SOURCE=$(realpath "$(dirname "$0")/../..")
KOCHAB_BIN=${KOCHAB_BIN:-$BUILD/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
unset LD_PRELOAD

cat >"$T/both.c" <<'END_C'
#include <kochab/kochab.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int light;
static void *own(void *arg)
{
	light += kb_vp_self() >= 0;
	return arg;
}
int main(int argc, char **argv)
{
	const char *list = getenv("LD_PRELOAD");
	kb_thread_t t;
	pthread_t p;
	int e = kb_init();

	if (e == EBUSY && argc == 2 && !strcmp(argv[1], "busy")) {
		puts("all right");
		return 0;
	}
	if (e || kb_thread_create(&t, NULL, own, NULL) || kb_thread_join(t, NULL) ||
	    pthread_create(&p, NULL, own, NULL) || pthread_join(p, NULL))
		return 1;
	/* both are threads of one runtime */
	if (light != 2 || argc != 2)
		return 2;
	if (!strcmp(argv[1], "alone") && list)
		return 3;
	if (!strcmp(argv[1], "other") && (!list || strcmp(list, getenv("OTHER"))))
		return 4;
	puts("all right");
	return system("echo >/dev/null");
}
END_C
link() { # NAME LIBRARIES...
	local name=$1
	shift
	"$CC" -D_GNU_SOURCE -O1 -I"$SOURCE/include" -pthread -o "$T/$name" "$T/both.c" "$@" -L"$BUILD" -Wl,-rpath,"$BUILD"
}
link native_first -Wl,--no-as-needed -lkochab -lkochab-posix
link dropin_first -Wl,--no-as-needed -lkochab-posix -lkochab
link native_alone -lkochab
link inside "$BUILD/libkochab.a" -lm -ldl # -ldl: libc before 2.34
link inside_and "$BUILD/libkochab.a" -Wl,--no-as-needed -lkochab-posix -lm -ldl
echo 'int other;' | "$CC" -shared -fPIC -o "$T/other.so" -x c -

failures=0
expect() { # EXIT LINE COMMAND...: "all right" if it is to succeed, and on standard error a line with that, or nothing
	local code=0 exit=$1 line=$2
	shift 2
	timeout -k 5 -s KILL 100 "$@" >"$T/out" 2>"$T/errors" || code=$?
	[ $code = "$exit" ] && [[ $exit != 0 || $(cat "$T/out") = "all right" ]] &&
		{ [ -z "$line" ] && [ ! -s "$T/errors" ] || { [ -n "$line" ] && grep -q -- "$line" "$T/errors"; }; } && return
	echo "$*: exit $code"
	cat "$T/out" "$T/errors"
	failures=1
}
for body in thread process; do
	export KOCHAB_BODY=$body
	for program in native_first dropin_first; do
		expect 0 "" "$T/$program" alone
		OTHER=$T/other.so LD_PRELOAD=$T/other.so expect 0 "" "$T/$program" other
		expect 0 "" "$KOCHAB_BIN" run --body $body -- "$T/$program" any
	done
	expect 0 "" "$KOCHAB_BIN" run --body $body -- "$T/native_alone" any
	expect 0 "libkochab-posix.so is here with a runtime of its own" "$KOCHAB_BIN" run --body $body -- "$T/inside" busy
	expect 126 "there would be two runtimes: link the program with -lkochab-posix first" "$T/inside_and" any
done
exit $failures
