# Benchmarks and stressors that check themselves. Sourced by dev/test-programs.
# shellcheck shell=bash disable=SC2154

events() { grep -E 'total number of events'; }
sysbench_cpu() { run sysbench cpu --threads=16 --time=0 --cpu-max-prime=2000 --events=2000 run | events; }
sysbench_mutex() {
	run sysbench mutex --threads=16 --time=0 --mutex-num=16 --mutex-locks=2000 --mutex-loops=100 run | events
}
sysbench_threads() {
	run sysbench threads --threads=16 --time=0 --thread-yields=50 --thread-locks=4 --events=500 run | events
}
sysbench_memory() { run sysbench memory --threads=8 --time=0 --memory-block-size=4K --memory-total-size=256M run | grep -oE 'Total operations: [0-9]+'; }
sysbench_fileio() {
	run sysbench fileio --file-num=4 --file-total-size=4M prepare >/dev/null &&
		run sysbench fileio --file-num=4 --file-total-size=4M --file-test-mode=rndrw --threads=8 --time=0 --events=2000 run | events
}

# Its threads stop after a time. Its pthread stressor is not among them: when it stops while it starts threads, it does not
# join the last (0.15 to 0.21), which then reads and writes through pointers on the stack that main has left.
stress() {
	run stress-ng --verify --metrics-brief "--$1" 2 -t "${2:-1}" "${@:3}" >"$T/stress" 2>&1
	grep -oE '(un)?successful run completed' "$T/stress"
	dearness "$(awk -v name="$1" '$4 == name && NF == 10 { printf "%d", ($7 + $8) * 1e9 / ($5 + 1); exit }' "$T/stress")"
}
# dearness NS: a turn's time on a processor, against the run on kernel threads before. Its time by the clock depends on the
# machine's load.
dearness() {
	local turn=${1:-0}
	[ -n "$CONF" ] || { echo "$turn" >"$T/turn"; echo "no dearer than"; return; }
	[ "$turn" -le $(($(cat "$T/turn") * STRESS_DEARER + STRESS_MORE)) ] && echo "no dearer than" && return
	echo "$turn ns of a processor each time, on kernel threads $(cat "$T/turn")"
}
STRESS_DEARER=10 STRESS_MORE=200000 # times; ns: what is dear on kernel threads may be cheap here, and the other way about
thread_turns() { run "$T/thread-turns" 2>"$T/stress" && dearness "$(tail -n 1 "$T/stress")"; }
build thread-turns "${CC:-gcc}" -O1 "$OWN/turns.c" -pthread
stress_mutex() { stress mutex; }
stress_sem() { stress sem; }
stress_futex() { stress futex; }

compare sysbench-cpu 60 "sysbench" "rotator/2" "$EVERY"
compare sysbench-mutex 60 "sysbench" "rotator/1 steal/2" "$EVERY"
compare sysbench-threads 60 "sysbench" "rotator/2" "$EVERY"
compare sysbench-memory 60 "sysbench" - "$EVERY"
compare sysbench-fileio 60 "sysbench" - "$EVERY"
compare thread-turns 30 "$T/thread-turns" "rotator/2 steal/4 process:rotator/2" "$EVERY"
compare stress-mutex 30 "stress-ng" "steal/2" "$EVERY"
compare stress-sem 30 "stress-ng" "rotator/1" "$EVERY"
compare stress-futex 30 "stress-ng" "rotator/2" "$EVERY"
