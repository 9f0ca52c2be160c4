#!/bin/bash
# libkochab-malloc.so preloaded under valgrind's memcheck and with AddressSanitizer: their
# allocators replace it, so they find errors with blocks, also in threads; a correct program is
# silent.
set -u
BUILD=${BUILD:-build}
[[ $BUILD = /* ]] || BUILD=$PWD/$BUILD
LIB=$BUILD/libkochab-malloc.so.0
[ -z "${SAN:-}" ] && [ -e "$LIB" ] || { echo "no $LIB"; exit 77; }
CC=${CC:-gcc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0 ran=0

cat >"$T/p.c" <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *wrong = "";

static void *play(void *arg)
{
	volatile char *b = malloc(100);
	char *moved;
	int x = 0;

	b[0] = 1;
	if (!strcmp(wrong, "behind"))
		b[100] = 1;
	moved = realloc((void *)b, 5000);
	b = moved;
	free(moved);
	if (!strcmp(wrong, "freed"))
		x = b[0];
	if (!strcmp(wrong, "twice"))
		free(moved);
	return (char *)arg + x;
}

int main(int argc, char **argv)
{
	pthread_t t;

	wrong = argc > 1 ? argv[1] : "";
	if (pthread_create(&t, NULL, play, NULL) || pthread_join(t, NULL))
		return 3;
	return 0;
}
C

# finds NAME WORDS COMMAND...: the command fails and prints the words
finds() {
	local name=$1 words=$2
	shift 2
	timeout -k 5 200 "$@" >"$T/out" 2>&1 && { echo "$name: is not found"; failed=1; }
	grep -q -- "$words" "$T/out" || { echo "$name: is not said:"; tail -n 8 "$T/out"; failed=1; }
}

silent() { # NAME COMMAND...
	timeout -k 5 200 "${@:2}" >"$T/out" 2>&1 || { echo "$1: exit $?"; tail -n 8 "$T/out"; failed=1; }
}

if command -v valgrind >/dev/null && "$CC" -g -O0 -fno-builtin -w -o "$T/p" "$T/p.c" -pthread; then
	ran=1
	V="env LD_PRELOAD=$LIB valgrind -q --error-exitcode=9"
	silent "valgrind, nothing wrong" $V "$T/p"
	finds "valgrind, behind a block" "0 bytes after a block of size 100" $V "$T/p" behind
	finds "valgrind, a freed block" "inside a block of size 5,000 free'd" $V "$T/p" freed
	finds "valgrind, freed twice" "Invalid free" $V "$T/p" twice
fi
ASAN=$("$CC" -print-file-name=libasan.so)
if [ -e "$ASAN" ] && "$CC" -g -O0 -fno-builtin -w -fsanitize=address -o "$T/a" "$T/p.c" -pthread 2>/dev/null; then
	ran=1
	A="env LD_PRELOAD=$ASAN:$LIB"
	silent "AddressSanitizer, nothing wrong" $A "$T/a"
	finds "AddressSanitizer, behind a block" heap-buffer-overflow $A "$T/a" behind
	finds "AddressSanitizer, a freed block" heap-use-after-free $A "$T/a" freed
	finds "AddressSanitizer, freed twice" double-free $A "$T/a" twice
fi
[ $ran = 1 ] || { echo "neither valgrind nor AddressSanitizer"; exit 77; }
exit $failed
