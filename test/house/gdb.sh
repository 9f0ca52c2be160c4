#!/bin/bash
# The debugger helper: lists threads and unwinds parked ones, of a live process and of a core file.
. "$(dirname "$0")/lib.sh"
limit=60
. "$(dirname "$0")/gdb_lib.sh"
[ "$(gdb -batch -ex 'python print("yes")' 2>/dev/null)" = yes ] || skip "gdb has no Python"
[ "$(uname -m)" = x86_64 ] || skip "the helper is tested on x86-64 only"

cat >"$T/hamlet.c" <<'END'
#include <kochab/kochab.h>
#include <stdio.h>
#include <stdlib.h>

static kb_sem_t never;

__attribute__((noinline)) static void to_be(int question) { kb_sem_wait(&never); __asm__ volatile("" : : "r"(question)); }
static void *hamlet(void *arg) { to_be(42); return arg; }
static void *ghost(void *arg) { kb_sleep(3600000000000ull); return arg; }
static void *computes(void *arg) { for (volatile unsigned long i = 0;; i++) ; return arg; }
static void *later(void *arg) { return arg; }
__attribute__((noinline)) void stop_here(void) { if (getenv("ABORT")) abort(); }

static void create(const char *name, void *(*fn)(void *), int vp, enum kb_tls tls)
{
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	kb_attr_setname(&a, name);
	kb_attr_setvp(&a, vp);
	kb_attr_settls(&a, tls);
	if (kb_thread_create(&t, &a, fn, NULL))
		printf("not created\n");
}

int main(void)
{
	create("hamlet", hamlet, -1, KB_TLS_LIGHT);
	create("ghost", ghost, 0, KB_TLS_OWN);
	create("horatio", computes, 1, KB_TLS_LIGHT);
	kb_sleep(200000000);
	create("yorick", later, 0, KB_TLS_LIGHT);
	stop_here();
	return 0;
}
END
build_hamlet
export KOCHAB_VPS=2

questions=(-ex "source $TOP/dev/kochab-gdb.py" -ex "kochab vps" -ex "kochab threads" -ex "kochab apply all bt"
	-ex "kochab bt 99999" -ex "kochab bt" -ex "echo plain\n" -ex "bt")
check() {
	has "$1" '^VP 0  LWP [0-9]+  '
	has "$1" '^ +[0-9]+  running on VP 0 \(LWP [0-9]+\) +main +main'
	has "$1" '^ +[0-9]+  waiting on VP [01] +hamlet +hamlet'
	has "$1" '^ +[0-9]+  waiting on VP 0 +ghost +ghost +deadline, bound, own TLS'
	has "$1" '^ +[0-9]+  running on VP 1 \(LWP [0-9]+\) +horatio +computes'
	has "$1" '^[0-9]+ threads'
	has "$1" '^Thread #[0-9]+ "hamlet", waiting on VP'
	has "$1" '^#[0-9]+ +.*to_be \(question=(question@entry=)?42\)'
	has "$1" '^#[0-9]+ +.*hamlet \(arg=0x0\)'
	has "$1" '^#[0-9]+ +.*ghost \(arg=0x0\)'
	has "$1" '^#0 +(0x[0-9a-f]+ in )?computes \(arg=0x0\)'
	has "$1" '^\(has not run yet; it will begin in later\)'
	has "$1" '^No thread #99999'
	has "$1" '^kochab bt INDEX'
	# and nothing has changed: the plain backtrace is still main's
	sed -n '/^plain$/,$p' "$T/$1" | grep -q '^#[0-9] .*stop_here' || {
		echo "$1: the plain backtrace is another one"
		failures=$((failures + 1))
	}
	[ "$failures" = 0 ] || show "$1"
}

ask live -ex 'break stop_here' -ex run "${questions[@]}" "$T/hamlet"
check live

# gdb's own core files lack a mapping of which it cannot read a page, as those with light guards
export KOCHAB_GUARD=mprotect
ask gcore -ex 'break stop_here' -ex run -ex "gcore $T/gcore.core" "$T/hamlet"
if [ -e "$T/gcore.core" ]; then
	ask dead "${questions[@]}" "$T/hamlet" "$T/gcore.core"
	check dead
fi
unset KOCHAB_GUARD
if [[ $(cat /proc/sys/kernel/core_pattern) != [\|/]* ]]; then
	(cd "$T" && ulimit -c unlimited && ABORT=1 ./hamlet) >/dev/null 2>&1
	core=$(find "$T" -name '*core*' -not -name 'gcore*' | head -n 1)
	if [ -n "$core" ]; then
		ask kernel "${questions[@]}" "$T/hamlet" "$core"
		check kernel
	fi
fi
finish
