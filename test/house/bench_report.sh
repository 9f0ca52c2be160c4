#!/bin/bash
# kochab bench report with a made-up command: the page and its JSON, rounds, a run that goes on where it was interrupted,
# folders that cannot be written, no plotting library.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "no python3"
export PYTHONDONTWRITEBYTECODE=1
R=$TOP/bench/report

# The made-up command counts its calls, gives a figure that grows, and fails after $T/most calls if there is such a file.
cat >"$T/kochab" <<END
#!/bin/bash
n=\$((\$(cat "$T/calls" 2>/dev/null || echo 0) + 1))
echo \$n >"$T/calls"
[ ! -e "$T/most" ] || [ \$n -le "\$(cat "$T/most")" ] || kill -INT \$PPID
for m in kochab:kochab nptl:kernel; do
	printf '{"bench": "%s", "method": "%s", "threads": 1000, "vps": 1, "placement": "free", "by": "%s", ' "\$2" "\${m%:*}" "\${m#*:}"
	printf '"metric": "yield", "unit": "ns", "min": %d, "median": %d, "max": %d, "runs": 1}\n' \$((n * 10)) \$((n * 10)) \$((n * 10))
done
echo "kochab bench: pth skipped: not built (bench/shim/build says why)" >&2
if [ "\$2" = rendezvous ]; then
	for m in kochab:kochab:30 go:peer:20; do
		IFS=: read -r name by v <<<"\$m"
		printf '{"bench": "rendezvous", "method": "%s", "threads": 10, "vps": 1, "placement": "free", "by": "%s", ' "\$name" "\$by"
		printf '"metric": "one-way", "unit": "ns", "min": %d, "median": %d, "max": %d, "runs": 1}\n' \$v \$v \$v
	done
fi
[ "\$2" = radix ] || exit 0
for m in rotator:kochab:300 lb2-semop:kochab:330 nptl:kernel:600 spin:kernel:290; do
	for size in 1 8; do
		IFS=: read -r name by v <<<"\$m"
		printf '{"bench": "radix", "method": "%s", "threads": 64, "vps": 2, "placement": "free", "by": "%s", "size": %d, ' "\$name" "\$by" \$size
		printf '"metric": "turnaround", "unit": "ms", "min": %d, "median": %d, "max": %d, "runs": 1}\n' \$v \$v \$v
		[ "\$by" = kochab ] || continue
		printf '{"bench": "radix", "method": "%s", "threads": 64, "vps": 2, "placement": "free", "by": "%s", "size": %d, ' "\$name" "\$by" \$size
		printf '"metric": "idle-VP0", "unit": "ms", "min": 7, "median": 7, "max": 7, "runs": 1}\n'
	done
done
END
chmod +x "$T/kochab"
export KOCHAB_BIN=$T/kochab

# No plotting library, but where charts are wanted: it takes seconds to load.
mkdir "$T/none"
echo 'raise ImportError("not here")' >"$T/none/matplotlib.py"
export PYTHONPATH=$T/none

O=$T/page
expect 0 "report.html and report.jsonl written" python3 "$R" --quick --only yield,mutex --rounds 3 --out "$O"
[ "$(cat "$T/calls")" = 6 ] || { echo "$(cat "$T/calls") calls instead of 6"; failures=$((failures + 1)); }
grep -q '"values": \[10, 30, 50\].*"min": 10, "median": 30, "max": 50' "$O/report.jsonl" ||
	{ echo "rounds are not in turns"; cat "$O/report.jsonl"; failures=$((failures + 1)); }
for word in 'name=viewport' 'prefers-color-scheme:dark' '@media print' 'yield, kochab, 1000 threads, 1 VP: yield' 'class=ours'; do
	grep -qF -e "$word" "$O/report.html" || { echo "the page has no $word"; failures=$((failures + 1)); }
done
if grep -oE '(src|href)="?(https?:)?//[^ >]*|@import|<script' "$O/report.html" | grep .; then
	echo "the page asks for something from elsewhere"
	failures=$((failures + 1))
fi
expect 0 "0 worse, 0 better, 2 within the noise" "$TOP/bench/diff" "$O/report.jsonl" "$O/report.jsonl"

# all is there: nothing is measured again, unless it is wanted
expect 0 "6 of 6 measurements were there" python3 "$R" --quick --only yield,mutex --rounds 3 --out "$O"
[ "$(cat "$T/calls")" = 6 ] || { echo "measured again"; failures=$((failures + 1)); }
expect 0 "written" python3 "$R" --quick --only yield --rounds 1 --out "$O" --fresh
[ "$(cat "$T/calls")" = 7 ] || { echo "not measured afresh"; failures=$((failures + 1)); }

# interrupted in the fourth of six, then on
rm -f "$T/calls"
echo 3 >"$T/most"
python3 "$R" --quick --only yield,mutex --rounds 3 --out "$T/again" >"$T/said" 2>&1
code=$?
{ [ $code = 130 ] && grep -q "the same command goes on from here" "$T/said"; } ||
	{ echo "interrupted: exit $code"; cat "$T/said"; failures=$((failures + 1)); }
rm "$T/most"
expect 0 "3 of 6 measurements were there" python3 "$R" --quick --only yield,mutex --rounds 3 --out "$T/again"

# a question with sizes: limits, the papers' ratios, idle times; who is absent; a goal that is missed is said in words
expect 0 "report.html" python3 "$R" --quick --only radix --rounds 2 --out "$T/radix"
for word in 'class=soft>Not here, so not compared with: pth' '>1.16 ×</td><td class=>1.10 ×' \
	'radix, rotator, 64 threads, 2 VP, size 1: turnaround is 2.00 × as fast as nptl; promised is at least 3.5 ×.' \
	'radix, rotator, 64 threads, 2 VP, size 8: turnaround' 'Table 3: idle time' 'No charts: this python3 has no matplotlib'; do
	grep -qF -e "$word" "$T/radix/report.html" || { echo "the page of radix has no $word"; failures=$((failures + 1)); }
done
expect 2 "--svg: charts need matplotlib" python3 "$R" --quick --only radix --rounds 2 --out "$T/radix" --svg "$T/svg"

# peers have a limit, too; a question that is asked twice has rows of two names
expect 0 "report.html" python3 "$R" --quick --only rendezvous,radix-file --rounds 1 --out "$T/peers"
grep -qF 'rendezvous, kochab, 10 threads, 1 VP: one-way is 0.67 × as fast as go; promised is at least 1 ×.' "$T/peers/report.html" ||
	{ echo "no limit of a peer"; failures=$((failures + 1)); }
grep -q '"bench": "radix-file", "method": "rotator"' "$T/peers/report.jsonl" || { echo "no radix-file"; failures=$((failures + 1)); }

# charts or none
expect 0 "report.html" env -u PYTHONPATH python3 "$R" --quick --only yield,radix --rounds 1 --out "$T/charts"
if grep -q '<svg' "$T/charts/report.html"; then
	grep -q 'class=charts' "$T/charts/report.html" || { echo "no charts of yield"; failures=$((failures + 1)); }
	expect 0 "radix.svg written" env -u PYTHONPATH python3 "$R" --quick --only radix --rounds 1 --out "$T/charts" --page-only --svg "$T/svg"
	expect 2 "cannot write to /dev/null/svg" env -u PYTHONPATH python3 "$R" --quick --only radix --rounds 1 --out "$T/charts" --page-only --svg /dev/null/svg
fi
expect 0 "no matplotlib" python3 "$R" --quick --only yield --rounds 1 --out "$T/tables"
grep -q '<details open' "$T/tables/report.html" || { echo "no tables without charts"; failures=$((failures + 1)); }

expect 2 "cannot write to /dev/null/out" python3 "$R" --out /dev/null/out
expect 2 "no experiment 'speed'" python3 "$R" --only speed --out "$O"
expect 2 "no such option" python3 "$R" --frobnicate
expect 2 "a number from 1 to 100" python3 "$R" --rounds many
expect 2 "nothing has been measured yet" python3 "$R" --page-only --out "$T/nothing"
expect 0 "usage: kochab bench report" "$BUILD/kochab" bench report --help
finish
