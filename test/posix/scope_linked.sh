#!/bin/bash
# Option scope, default: a program linked with Kochab that asks for PTHREAD_SCOPE_SYSTEM gets kernel threads, under `kochab
# run`, too, and there also if only a library of its is linked so; one that is not linked gets lightweight ones.
set -eu
[ -z "${SAN:-}" ] || { echo "the drop-in itself must not be sanitized"; exit 77; }
BUILD=$(realpath "${BUILD:-build}")
KOCHAB_BIN=${KOCHAB_BIN:-$BUILD/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT

# Says what its threads are, by their number of kernel threads.
cat >"$T/main.c" <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { THREADS = 30 };
static pthread_barrier_t all;
static void *body(void *arg) { pthread_barrier_wait(&all); pthread_barrier_wait(&all); return arg; }
int main(void)
{
	pthread_attr_t a;
	pthread_t t[THREADS];
	FILE *f;
	char line[256];
	int n = -2;

	pthread_barrier_init(&all, NULL, THREADS + 1);
	pthread_attr_init(&a);
	if (pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM))
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], &a, body, NULL))
			return 1;
	pthread_barrier_wait(&all);
	f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, f))
		sscanf(line, "Threads: %d", &n);
	fclose(f);
	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	puts(n > THREADS ? "kernel" : "light");
	return 0;
}
END
echo 'int nothing(void) { return 0; }' >"$T/library.c"
L="-L$BUILD -Wl,--no-as-needed -lkochab-posix -Wl,-rpath,$BUILD"
compile() { "$CC" -O1 -pthread "$@"; }
compile -o "$T/plain" "$T/main.c"
# shellcheck disable=SC2086
compile -o "$T/linked" "$T/main.c" $L
# shellcheck disable=SC2086
compile -shared -fPIC -o "$T/libother.so" "$T/library.c" $L
compile -o "$T/by-library" "$T/main.c" -L"$T" -Wl,--no-as-needed -lother -Wl,-rpath,"$T"

failures=0
expect() { # WHAT COMMAND...
	local what=$1 got
	shift
	got=$(timeout -k 5 200 "$@")
	[ "$got" = "$what" ] && return
	echo "$*: $got, not $what"
	failures=1
}
expect kernel "$T/plain"
expect light "$KOCHAB_BIN" run --vps 2 -- "$T/plain"
expect kernel "$KOCHAB_BIN" run --vps 2 --scope asked -- "$T/plain"
expect kernel "$T/linked"
expect kernel "$KOCHAB_BIN" run --vps 2 -- "$T/linked"
expect light env KOCHAB_SCOPE=process "$T/linked"
expect kernel "$KOCHAB_BIN" run --vps 2 -- "$T/by-library"
exit $failures
