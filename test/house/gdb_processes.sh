#!/bin/bash
# gdb and programs whose virtual processors are processes: it stops one at a breakpoint, attaches to each of its processes,
# and finds the thread that has failed in its core file.
. "$(dirname "$0")/lib.sh"
limit=100
. "$(dirname "$0")/gdb_lib.sh"
"$K" doctor | grep -q '^+ process bodies' || skip "no process bodies here"

cat >"$T/hamlet.c" <<'END'
#include <kochab/kochab.h>
#include <stdio.h>

__attribute__((noinline)) static void dies(volatile int *where) { *where = 1; }
static void *hamlet(void *arg) { dies(NULL); return arg; }
static void *computes(void *arg) { for (volatile unsigned long i = 0;; i++) ; return arg; }
__attribute__((noinline)) void stop_here(void) { __asm__ volatile(""); }

int main(int argc, char **argv)
{
	kb_thread_t t;

	(void)argv;
	if (kb_init() || kb_thread_create(&t, NULL, argc > 1 ? hamlet : computes, NULL))
		return 1;
	kb_sleep(50000000);
	stop_here();
	printf("up\n");
	fflush(stdout);
	for (;;)
		kb_sleep(3600000000000ull);
}
END
build_hamlet
export KOCHAB_BODY=process KOCHAB_VPS=2

# shows NAME PATTERN: as has, or the whole of it
shows() {
	has "$@" || show "$1"
}

# An older gdb (10) stops at the signal by which processes are interrupted.
ask stops -ex 'handle SIG33 nostop noprint pass' -ex 'set detach-on-fork off' -ex 'set schedule-multiple on' -ex 'break stop_here' -ex run -ex bt -ex 'kill inferiors 1' \
	"$T/hamlet"
shows stops '^#0 +(0x[0-9a-f]+ in )?stop_here \(\)'
shows stops '^#1 +.* in main \(argc=1'

"$T/hamlet" >"$T/said" &
pid=$!
for _ in $(seq 600); do
	[ -s "$T/said" ] && break
	sleep 0.1
done
for p in $pid $(pgrep -P $pid); do ask "$p" -ex bt -p "$p" "$T/hamlet"; cat "$T/$p" >>"$T/attached"; done
kill $pid
wait $pid 2>/dev/null
shows attached '^#[0-9]+ .*computes \(arg=0x0\)'
[ "$(grep -c '^#0 ' "$T/attached")" = 3 ] || {
	echo "not three processes with a stack"
	show attached
	failures=$((failures + 1))
}

if [ "$(cat /proc/sys/kernel/core_pattern)" = core ]; then
	(cd "$T" && ulimit -c unlimited && exec ./hamlet dies) >/dev/null 2>&1 &
	wait $! 2>/dev/null
	core=$(find "$T" -name 'core*' | head -n 1)
	if [ -n "$core" ]; then
		ask failed -ex bt "$T/hamlet" "$core"
		shows failed '^#0 +(0x[0-9a-f]+ in )?dies \('
		shows failed '^#1 +.* in hamlet \(arg=0x0\)'
	fi
fi
finish
