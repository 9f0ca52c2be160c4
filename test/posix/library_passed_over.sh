#!/bin/bash
# Only a library of the program is linked with the drop-in, or the program opens the drop-in: the
# linker finds libc first. A message says so, and the program goes on with libc's threads. Under
# `kochab run` it has lightweight threads.
set -eu
[ -z "${SAN:-}" ] || { echo "the drop-in itself must not be sanitized"; exit 77; }
BUILD=$(realpath "${BUILD:-build}")
KOCHAB_BIN=${KOCHAB_BIN:-$BUILD/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT

cat >"$T/library.c" <<'END'
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *count(void *arg) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); return arg; }
int threads(void)
{
	pthread_t t[10];
	for (int i = 0; i < 10; i++)
		if (pthread_create(&t[i], NULL, count, NULL)) return -1;
	for (int i = 0; i < 10; i++)
		if (pthread_join(t[i], NULL)) return -1;
	return n;
}
END
cat >"$T/main.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int threads(void) __attribute__((weak));
static void *own(void *arg) { *(int *)arg = gettid() != getpid(); return NULL; }
int main(int argc, char **argv)
{
	void *h = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*f)(void) = h ? (int (*)(void))dlsym(h, "threads") : threads, ok = 0;
	pthread_t t;

	if (!f || f() != 10 || pthread_create(&t, NULL, own, &ok) || pthread_join(t, NULL) || !ok)
		return 1;
	puts("all right");
	return 0;
}
END
"$CC" -O1 -shared -fPIC -pthread -o "$T/libother.so" "$T/library.c" -L"$BUILD" -Wl,--no-as-needed -lkochab-posix -Wl,-rpath,"$BUILD"
"$CC" -D_GNU_SOURCE -O1 -pthread -o "$T/needs" "$T/main.c" -L"$T" -Wl,--no-as-needed -lother -ldl -Wl,-rpath,"$T"
"$CC" -D_GNU_SOURCE -O1 -pthread -o "$T/opens" "$T/main.c" -ldl

failures=0
expect() { # LINES COMMAND...: so many lines of ours, and "all right"
	local lines=$1 code=0
	shift
	timeout -k 5 200 "$@" >"$T/out" 2>"$T/errors" || code=$?
	[ $code = 0 ] && [ "$(cat "$T/out")" = "all right" ] && [ "$(wc -l <"$T/errors")" = "$lines" ] &&
		[ "$(grep -c 'libkochab-posix.so comes behind libc' "$T/errors")" = "$lines" ] && return
	echo "$*: exit $code"
	cat "$T/out" "$T/errors"
	failures=1
}
expect 1 "$T/needs"
expect 1 "$T/opens" "$T/libother.so"
expect 0 "$KOCHAB_BIN" run --vps 2 -- "$T/needs"
expect 0 "$KOCHAB_BIN" run --vps 2 -- "$T/opens" "$T/libother.so"
exit $failures
