#!/bin/bash
# The simulator of schedulers (bench/sim): the same seed gives the same line, each thread ends just once under every
# scheduler and in every program, and the rotator distributes 4.3 times as fast as lb2 with semop (8, 16 VPs).
. "$(dirname "$0")/lib.sh"
S=$BUILD/sim/sim C=$TOP/bench/sim/costs/published.tsv
[ -x "$S" ] || skip "the simulator is not built"

# figure NAME: of the last line
figure() { sed -n 's/.*"'"$1"'": \([0-9.e+-]*\).*/\1/p' "$T/line"; }
simulate() { timeout 60 "$S" "$@" --costs "$C" >"$T/line" 2>"$T/out" || { echo "failed: $*"; cat "$T/out"; failures=$((failures + 1)); }; }

for sched in rotator rotator-paper lb2 steal; do
	for work in "ring --threads 30 --rounds 20" "ring --spread --threads 30 --rounds 20" "distribute --threads 2000" \
		"skew --threads 300" "phases --threads 20 --rounds 3" "spawn --threads 200 --rounds 3" "yield --threads 50 --rounds 20" "channels --threads 40 --rounds 20"; do
		for vps in 1 2 7; do
			# shellcheck disable=SC2086
			simulate $work --sched $sched --vps $vps --seed 3
		done
	done
	simulate skew --threads 300 --sched $sched --vps 7 --seed 5
	cp "$T/line" "$T/first"
	simulate skew --threads 300 --sched $sched --vps 7 --seed 5
	cmp -s "$T/line" "$T/first" || { echo "$sched: the same seed gave another line"; failures=$((failures + 1)); }
	simulate skew --threads 300 --sched $sched --vps 7 --seed 6
	! cmp -s "$T/line" "$T/first" || { echo "$sched: another seed gave the same line"; failures=$((failures + 1)); }
done
simulate skew --threads 300 --sched lb2 --lock semop --vps 7
simulate skew --threads 300 --sched lb2 --lock spin --vps 7
simulate spawn --threads 300 --rounds 2 --vps 1024

for case in "8 4.3" "16 4.3" "32 2"; do
	vps=${case% *} times=${case#* }
	simulate distribute --vps $vps --sched rotator
	r=$(figure most)
	simulate distribute --vps $vps --sched lb2 --lock semop
	l=$(figure most)
	awk -v r="$r" -v l="${l:-4000}" -v t="$times" 'BEGIN { exit !(r > 0 && l > t * r) }' ||
		{ echo "$vps VPs: rotator $r us, lb2 $l us"; failures=$((failures + 1)); }
done

expect 2 "usage: sim" "$S" spawn
expect 2 "usage: sim" "$S" nothing --costs "$C"
expect 2 "no such scheduler" "$S" spawn --costs "$C" --sched fair
expect 2 "--vps: bad value 0, allowed: 1 to 1024" "$S" spawn --costs "$C" --vps 0
expect 2 "No such file" "$S" spawn --costs "$T/nothing"
grep -v '^hop' "$C" >"$T/less"
expect 2 "says nothing about 'hop'" "$S" spawn --costs "$T/less"
expect 2 "there is no cost 'hope'" "$S" spawn --costs "$C" --cost hope=1
expect 2 "is no number" "$S" spawn --costs "$C" --cost hop=x
finish
