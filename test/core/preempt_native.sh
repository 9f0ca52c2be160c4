#!/bin/bash
# core/quantum in the native interface, where it is off unless asked for: light threads and threads
# with a TLS of their own that compute without a call take turns, also on a single virtual
# processor; each comes back to its registers. A sleeping thread beside them wakes up. Linked with
# the shared library: the library cannot tell a program's code from its own where the two are linked
# statically.
set -eu
BUILD=${BUILD:-build}
INCLUDE=$(cd "$(dirname "$0")/../.." && pwd)/include
case ${SAN:-} in ?*) echo "no quantum with sanitizers"; exit 77 ;; esac
[ -z "${RUNNER:-}" ] || { echo "the emulator takes the ticks"; exit 77; }
[ -e "$BUILD/libkochab.so.0" ] || { echo "no $BUILD/libkochab.so.0"; exit 77; }
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT

cat >"$T/turns.c" <<'END_C'
#include <kochab/kochab.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOGS = 6, LONG = 40 };
#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%d: %s\n", __LINE__, #x), abort()))

static volatile int over, naps;
static volatile unsigned long count[HOGS];

static void *hog(void *arg)
{
	volatile unsigned long *mine = arg;
	unsigned long start = (unsigned long)(mine - count) + 1, a = start, b = ~a, turns = 0;
	double x = (double)a;

	while (!over) {
		for (int i = 0; i < 1000; i++, turns++) {
			a += 3;
			b -= 3;
			x += 1;
			__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(turns));
		}
		CHECK(a == ~b && a == start + 3 * turns);
		CHECK(x == (double)start + (double)turns);
		*mine = turns;
	}
	return NULL;
}

static void *sleeps(void *unused)
{
	for (; !over; naps++)
		kb_sleep(1000000);
	return unused;
}

static int all_have_run(void)
{
	for (int i = 0; i < HOGS; i++)
		if (!count[i])
			return 0;
	return naps >= 3;
}

static void take_turns(enum kb_tls tls)
{
	kb_attr_t attr;
	kb_thread_t t[HOGS], s;
	unsigned long end = kb_now() + LONG * 1000000000ul;

	over = naps = 0;
	CHECK(kb_attr_init(&attr) == 0 && kb_attr_settls(&attr, tls) == 0);
	CHECK(kb_thread_create(&s, NULL, sleeps, NULL) == 0);
	for (int i = 0; i < HOGS; i++) {
		count[i] = 0;
		CHECK(kb_thread_create(&t[i], &attr, hog, (void *)&count[i]) == 0);
	}
	while (!all_have_run()) /* a hog, too */
		CHECK(kb_now() < end);
	over = 1;
	for (int i = 0; i < HOGS; i++)
		CHECK(kb_thread_join(t[i], NULL) == 0);
	CHECK(kb_thread_join(s, NULL) == 0);
}

int main(void)
{
	take_turns(KB_TLS_LIGHT);
	take_turns(KB_TLS_OWN);
	return 0;
}
END_C
${CC:-cc} -O1 -I"$INCLUDE" -o "$T/turns" "$T/turns.c" "$BUILD/libkochab.so.0" -Wl,-rpath,"$BUILD"
for s in rotator/1 rotator/2 lb2/2 steal/2; do
	KOCHAB_QUANTUM=2ms KOCHAB_SCHED=${s%/*} KOCHAB_VPS=${s#*/} timeout 60 "$T/turns" ||
		{ echo "$s: $?"; exit 1; }
done
