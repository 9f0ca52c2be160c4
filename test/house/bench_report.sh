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

# charts or none
expect 0 "report.html" env -u PYTHONPATH python3 "$R" --quick --only yield --rounds 1 --out "$T/charts"
expect 0 "no matplotlib" python3 "$R" --quick --only yield --rounds 1 --out "$T/tables"
grep -q '<details open' "$T/tables/report.html" || { echo "no tables without charts"; failures=$((failures + 1)); }

expect 2 "cannot write to /dev/null/out" python3 "$R" --out /dev/null/out
expect 2 "no experiment 'speed'" python3 "$R" --only speed --out "$O"
expect 2 "no such option" python3 "$R" --frobnicate
expect 2 "a number from 1 to 100" python3 "$R" --rounds many
expect 2 "nothing has been measured yet" python3 "$R" --page-only --out "$T/nothing"
expect 0 "usage: kochab bench report" "$BUILD/kochab" bench report --help
finish
