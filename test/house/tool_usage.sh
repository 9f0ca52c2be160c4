#!/bin/bash
# The command itself: help, versions, unknown commands, options and values.
. "$(dirname "$0")/lib.sh"

version=$(sed -n 's/^.define KOCHAB_VERSION "\(.*\)"$/\1/p' "$TOP/include/kochab/version.h")
expect 0 "kochab $version" "$K" --version
expect 0 "kochab $version" "$K" -V
expect 0 "kochab $version" "$K" version
expect 0 "usage: kochab COMMAND" "$K" --help
expect 2 "usage: kochab COMMAND" "$K"
expect 2 "frobnicate: no such command" "$K" frobnicate
expect 2 "no such option" "$K" --frobnicate
for c in run compare ps stack top options doctor dump bench; do
	expect 0 "usage: kochab $c" "$K" $c --help
done

# each question of the bench explains itself
questions=$("$K" bench --help | sed -n '/^usage/d; s/^\([a-z-]*\): .*/\1/p')
[ "$(wc -w <<<"$questions")" -gt 10 ] || { echo "bench --help lists hardly a question"; failures=1; }
for q in $questions; do
	expect 0 "$q: " "$K" bench "$q" --help
	expect 0 "usage: kochab bench" "$K" bench "$q" --threads 1 --help
done
expect 0 "usage: kochab bench" "$K" bench limits --help
expect 2 "no such question: 'frobnicate'" "$K" bench frobnicate --help

expect 2 "no such argument" "$K" options --frobnicate
expect 2 "no such argument" "$K" doctor now
expect 2 "which program" "$K" run
expect 2 "which program" "$K" run --vps 2 --
expect 2 "--frobnicate: no such option" "$K" run --frobnicate true
expect 2 "-x: no such option" "$K" run -x true
expect 2 "needs a value: 0 to 1024" "$K" run --vps
expect 2 "--vps many: bad value, allowed: 0 to 1024" "$K" run --vps many true
expect 2 "--vps 1025: bad value" "$K" run --vps=1025 true
expect 2 "rotator|rotator-paper|lb2|steal" "$K" run --sched fair true
expect 2 "--stack-size 1: bad value, allowed: 16384 to" "$K" run --stack-size 1 true
expect 2 "--stats 7: bad value" "$K" run --stats=7 true
expect 2 "--bind 0-8191: processor " "$K" run --bind 0-8191 true
expect 2 "--bind 8191: processor 8191 is none of the " "$K" compare --bind 8191 true
expect 2 "processor 8191 is none of the " env KOCHAB_BIND=8191 "$K" run true
expect 0 "or with a unit: ns, us, ms, s; default 60 s" "$K" run --help
if [ -z "${SAN:-}" ] && [ -e "$BUILD/libkochab-posix.so.0" ]; then
	for cpu in $(sed -n 's/^Cpus_allowed_list:[[:blank:]]*\([0-9]*\).*/\1/p' /proc/self/status); do
		expect 0 "" "$K" run --bind "$cpu" true
		[ ! -s "$T/out" ] || { echo "says something of processor $cpu: $(<"$T/out")"; failures=1; }
	done
	expect 0 "--quantum 10 is so many us; a unit may follow" "$K" run --quantum 10 true
	expect 0 "--quantum 20 is so many us" env KOCHAB_QUANTUM=20 "$K" run true
	for quantum in 10ms 10us 0 200; do
		expect 0 "" "$K" run --quantum $quantum true
		[ ! -s "$T/out" ] || { echo "says something of a quantum of $quantum: $(<"$T/out")"; failures=1; }
	done
fi
# a value of a flag stands behind '=': a word that can be nothing else is told, a program of that name runs
for value in 0 1 no off on; do
	expect 2 "write --own-futex=$value" "$K" run --own-futex $value true
done
expect 2 "write --stats=0" "$K" compare --stats 0 true
if [ -z "${SAN:-}" ] && [ -e "$BUILD/libkochab-posix.so.0" ]; then
	expect 0 "" "$K" run --own-futex true
	expect 0 "" "$K" run --own-futex=0 true
	mkdir "$T/bin" && printf '#!/bin/sh\necho the program 0\n' >"$T/bin/0" && chmod +x "$T/bin/0"
	expect 0 "the program 0" env PATH="$T/bin:$PATH" "$K" run --own-futex 0
fi

expect 2 "KOCHAB_VPS=zwei: bad value, allowed: 0 to 1024" env KOCHAB_VPS=zwei "$K" run true
expect 2 "KOCHAB_VPZ: no such option" env KOCHAB_VPZ=2 "$K" run true
expect 2 "KOCHAB_SCHED=: bad value" env KOCHAB_SCHED= "$K" options
expect 2 "KOCHAB_TICK_MS=5h: bad value" env KOCHAB_TICK_MS=5h "$K" doctor
finish
