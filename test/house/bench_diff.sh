#!/bin/bash
# bench/diff on made-up files: noise is hidden; a real loss is named and sets the exit status; a change
# of the whole machine is no loss of Kochab; files that cannot be compared are refused.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "no python3"
D=$TOP/bench/diff

# row FILE METHOD BY MIN MEDIAN [RUNS [UNIT [BENCH]]]
row() {
	printf '{"bench": "%s", "method": "%s", "threads": 10, "vps": 1, "placement": "free", "by": "%s", "metric": "time", ' \
		"${8:-ring}" "$2" "$3" >>"$T/$1"
	printf '"unit": "%s", "min": %s, "median": %s, "max": 900, "runs": %s}\n' "${7:-ns}" "$4" "$5" "${6:-5}" >>"$T/$1"
}

failed_row() { # FILE METHOD NOTE
	printf '{"bench": "ring", "method": "%s", "threads": 10, "vps": 1, "placement": "free", "by": "kochab", ' "$2" >>"$T/$1"
	printf '"metric": "none", "unit": "", "min": null, "median": null, "max": null, "runs": 0, "note": "%s"}\n' "$3" >>"$T/$1"
}

controls() { # FILE MEDIAN...: three rows of others
	row "$1" nptl kernel 100 "$2"; row "$1" condvar kernel 100 "$3"; row "$1" go peer 100 "$4"
}

# a file compared with itself
row old kochab kochab 100 105; row old kochab-own kochab 200 204
expect 0 "0 worse, 0 better, 2 within the noise" "$D" "$T/old" "$T/old"

# a real loss: named, with both figures; the other row is within the noise
row new kochab kochab 130 135; row new kochab-own kochab 203 208
expect 1 "ring kochab 10 threads 1 VP time  105 (100) -> 135 (130) ns, 1.29 x" "$D" "$T/old" "$T/new"
expect 1 "1 worse, 0 better, 1 within the noise" "$D" "$T/old" "$T/new"
expect 0 "0 worse, 1 better, 1 within the noise" "$D" "$T/new" "$T/old"
expect 0 "0 worse, 0 better, 2 within the noise" "$D" --noise 30 "$T/old" "$T/new"

# only the median, only the minimum: noise of the runs
row median kochab kochab 101 140; row median kochab-own kochab 200 204
expect 0 "0 worse, 0 better, 2 within the noise" "$D" "$T/old" "$T/median"
row wide kochab kochab 100 140; row minimum kochab kochab 130 135
expect 0 "0 worse, 0 better, 1 within the noise" "$D" "$T/wide" "$T/minimum"

# a single run has no spread: only a change by a quarter counts
row one kochab kochab 100 100 1; row little kochab kochab 120 120 1; row much kochab kochab 130 130 1
expect 0 "0 worse" "$D" "$T/one" "$T/little"
expect 1 "1 worse" "$D" "$T/one" "$T/much"

# differences below the clock's resolution: half a nanosecond, a point of a hundred
row tiny1 kochab kochab 1.0 1.0; row tiny2 kochab kochab 1.4 1.4; row idle1 kochab kochab 0.01 0.01 5 %; row idle2 kochab kochab 0.9 0.9 5 %
row idle3 kochab kochab 4 4 5 %
expect 0 "0 worse" "$D" "$T/tiny1" "$T/tiny2"
expect 0 "0 worse" "$D" "$T/idle1" "$T/idle2"
expect 1 "1 worse" "$D" "$T/idle1" "$T/idle3"

# a machine three times as slow: all rows of rival libraries say so, and Kochab's row is a loss only
# if it is slower than that
row calm kochab kochab 100 105; row calm bytes kochab 4000 4010 5 B; controls calm 100 100 100
row slow kochab kochab 300 315; row slow bytes kochab 4000 4010 5 B; controls slow 300 300 300
row lost kochab kochab 400 420; row lost bytes kochab 4600 4610 5 B; controls lost 300 300 300
expect 0 "takes 3.00 times as long by 3 rows of others, give or take 0 %" "$D" "$T/calm" "$T/slow"
expect 1 "1 worse" "$D" --raw "$T/calm" "$T/slow"
expect 1 "2 worse" "$D" "$T/calm" "$T/lost"
expect 0 "0 worse" "$D" "$T/slow" "$T/calm"
# rival libraries that do not agree among themselves say little
row odd kochab kochab 400 420; row odd bytes kochab 4000 4010 5 B; controls odd 150 300 600
expect 0 "0 worse" "$D" "$T/calm" "$T/odd"

# a measurement that fails now is a loss; a measurement that was not made is only counted
failed_row broken kochab "killed by signal 11"; row broken kochab-own kochab 200 204
expect 1 "-> killed by signal 11" "$D" "$T/old" "$T/broken"
row fewer kochab kochab 100 105; failed_row fewer kochab-own "not possible here"; row fewer fresh kochab 1 1
expect 0 "1 within the noise; 1 no longer measured, 1 new" "$D" "$T/old" "$T/fewer"

# files that cannot be compared
expect 2 "two files are needed" "$D" "$T/old"
expect 2 "no such option: --frob" "$D" --frob "$T/old" "$T/new"
expect 2 "--noise needs a number" "$D" "$T/old" "$T/new" --noise
expect 2 "No such file" "$D" "$T/old" "$T/nothing"
: >"$T/empty"
expect 2 "no rows" "$D" "$T/old" "$T/empty"
echo "bench method" >"$T/text"
expect 2 "text:1: no JSON line" "$D" "$T/old" "$T/text"
echo '{"bench": "ring"}' >"$T/half"
expect 2 "half:1: no 'method'" "$D" "$T/old" "$T/half"
row words kochab kochab '"fast"' 1
expect 2 "'min' is no number" "$D" "$T/old" "$T/words"
row other kochab kochab 1 1 5 ns yield
expect 2 "no row of ours in common" "$D" "$T/old" "$T/other"

# and the real output of kochab bench
if "$K" bench yield --threads 2 --vps 1 --methods nptl,kochab --runs 1 --seconds 0.01 --json "$T/real" >"$T/out" 2>&1; then
	expect 0 "0 worse, 0 better, 1 within the noise" "$D" "$T/real" "$T/real"
else
	echo "no real file to compare"
	failures=$((failures + 1))
fi
finish
