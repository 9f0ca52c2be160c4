#!/bin/bash
# Programs built with sanitizers, and plain programs under valgrind, on the drop-in: a correct program
# stays silent, in an exec chain, too; an error in a thread is found and reported. AddressSanitizer's and
# valgrind's threads are lightweight; ThreadSanitizer's are kernel threads that use Kochab's objects.
set -u
KOCHAB_BIN=${KOCHAB_BIN:-${BUILD:-build}/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
[ -z "${SAN:-}" ] || { echo "the drop-in itself must not be sanitized"; exit 77; }
top=$(cd "$(dirname "$0")/../.." && pwd)
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0 ran=0

cat >"$T/p.c" <<'C'
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, TURNS = 50 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int turn, sum, raced;
static const char *wrong = "";

static void *play(void *arg)
{
	int me = (int)(long)arg;
	char *own = malloc(100);
	volatile char *b = own;

	memset(own, me, 100);
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&m);
		while (turn != me)
			pthread_cond_wait(&c, &m);
		turn = (turn + 1) % THREADS;
		sum += b[3];
		pthread_cond_broadcast(&c);
		pthread_mutex_unlock(&m);
	}
	free(own);
	sched_yield();
	if (strcmp(wrong, "freed") == 0)
		sum += b[3];
	if (strcmp(wrong, "race") == 0)
		for (int i = 0; i < 1000; i++)
			raced++;
	if (strcmp(wrong, "overflow") == 0)
		raced = 0x7fffffff - THREADS / 2 + me + turn * 0 + raced % 2;
	if (strcmp(wrong, "overflow") == 0)
		raced += 0x7fffffff;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	wrong = argc > 1 ? argv[1] : "";
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, play, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("sum %d\n", sum);
	return 0;
}
C

# The tools' complaints; lines "--PID--" are valgrind's own, of system calls that it does not know.
complaints() {
	grep -vE '^--[0-9]+--' "$T/errors" | grep -E 'WARNING|ERROR:|runtime error:|Invalid|client switching'
}

# silent WHAT COMMAND...: the command ends well, prints its sum and complains of nothing
silent() {
	local what=$1 code
	shift
	ran=$((ran + 1))
	timeout -s QUIT -k 5 200 "$KOCHAB_BIN" run --vps "$vps" -- "$@" >"$T/said" 2>"$T/errors" </dev/null
	code=$?
	if [ $code = 0 ] && [ "$(<"$T/said")" = "sum 1400" ] && ! complaints >/dev/null; then return; fi
	echo "FAIL $what on $vps: exit $code, said $(head -n 2 "$T/said")"
	grep . "$T/errors" | head -n 12
	failed=1
}

# found WHAT PATTERN COMMAND...: the error is reported
found() {
	local what=$1 pattern=$2
	shift 2
	ran=$((ran + 1))
	timeout -s QUIT -k 5 200 "$KOCHAB_BIN" run --vps "$vps" -- "$@" >"$T/errors" 2>&1 </dev/null
	local code=$?
	if [ $code != 124 ] && [ $code != 137 ] && grep -q "$pattern" "$T/errors"; then return; fi
	echo "FAIL $what on $vps: it is not found, or the program does not end: exit $code"
	grep . "$T/errors" | head -n 12
	failed=1
}

build() { # COMPILER SANITIZER NAME
	"$1" -g -O1 -fsanitize="$2" "$T/p.c" -o "$T/$3" -pthread 2>/dev/null && "$T/$3" >/dev/null 2>&1
}

vps=2
for cc in gcc clang; do
	command -v "$cc" >/dev/null || continue
	build "$cc" address "$cc-a" || echo "no AddressSanitizer of $cc"
	build "$cc" thread "$cc-t" || echo "no ThreadSanitizer of $cc"
	build "$cc" undefined "$cc-u" || echo "no UndefinedBehaviorSanitizer of $cc"
	if [ -x "$T/$cc-a" ]; then
		silent "$cc address" "$T/$cc-a"
		silent "$cc address in a shell" sh -c "$T/$cc-a"
		for _ in 1 2 3 4 5; do # several find it at once, and spin for who tells
			found "$cc address" heap-use-after-free "$T/$cc-a" freed
		done
	fi
	if [ -x "$T/$cc-t" ]; then
		silent "$cc thread" "$T/$cc-t"
		silent "$cc thread in a shell" sh -c "$T/$cc-t"
		found "$cc thread" 'data race' "$T/$cc-t" race
	fi
	if [ -x "$T/$cc-u" ]; then
		silent "$cc undefined" "$T/$cc-u"
		found "$cc undefined" 'runtime error' "$T/$cc-u" overflow
	fi
done
# A library preloaded for a sanitizer is not inherited.
if [ -x "$T/gcc-t" ]; then
	cat >"$T/shell.c" <<'C'
#include <stdlib.h>
int main(void) { return system("echo $LD_PRELOAD"); }
C
	gcc -fsanitize=thread "$T/shell.c" -o "$T/shell" && "$KOCHAB_BIN" run -- "$T/shell" >"$T/said" 2>&1
	grep -q tsan "$T/said" && { echo "FAIL children inherit the sanitizer: $(<"$T/said")"; failed=1; }
fi

gcc -g -O1 "$T/p.c" -o "$T/p" -pthread
if command -v valgrind >/dev/null; then
	vps=1
	found memcheck 'Invalid read' valgrind -q "$T/p" freed
	vps=2
	silent memcheck valgrind --error-exitcode=9 --leak-check=full --suppressions="$top/pkg/kochab.supp" "$T/p"
fi
[ $ran -gt 0 ] || { echo "neither sanitizers nor valgrind"; exit 77; }
exit $failed
