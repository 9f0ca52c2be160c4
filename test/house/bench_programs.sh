#!/bin/bash
# kochab bench programs: an installed program on kernel threads and on Kochab, its JSON and histogram; a
# program that answers wrong or ends early; wrong usage.
. "$(dirname "$0")/lib.sh"
[ -z "${SAN:-}" ] || skip "not with sanitizers: it runs programs on the drop-in, or many threads"
command -v python3 >/dev/null || skip "no python3"
export PYTHONDONTWRITEBYTECODE=1
P=$TOP/bench/programs/run

expect 2 "no program 'nothing'" "$K" bench programs nothing
expect 2 "--vps 0: numbers from 1" "$K" bench programs pigz --vps 0
expect 2 "--vps 99999: there are" "$K" bench programs pigz --vps 99999
expect 2 "--seconds x: a number above 0" "$K" bench programs --seconds x
expect 2 "--methods green: nptl, kochab" "$K" bench programs --methods green
expect 2 "--json: its value is missing" "$K" bench programs --json
expect 2 "--wrong: no such option" "$K" bench programs --wrong
expect 2 "cannot write $T/none/x" "$K" bench programs openmp --json "$T/none/x"
expect 0 "oltp_read_only" "$K" bench programs --help
expect 2 "nothing can be measured here: memcached skipped: no memcached" env PATH=/nonexistent "$(python3 -c 'import sys; print(sys.executable)')" "$P" memcached

# a made-up sysbench, and a second that counts no events
mkdir "$T/bin"
cat >"$T/bin/sysbench" <<'END'
#!/bin/bash
printf '       0.500 |**** 30\n       8.000 |* 10\n    total time:                          2.0000s\n    total number of events:              %s\n' "${EVENTS-40}"
END
chmod +x "$T/bin/sysbench"
export PATH=$T/bin:$PATH
expect 0 "" "$K" bench programs sysbench-cpu --vps 1 --runs 2 --seconds 1 --methods nptl --format json --histograms "$T/all"
for part in '"bench": "sysbench-cpu", "method": "nptl", "threads": 16, "vps": 1, "placement": "free", "by": "kernel"' \
	'"metric": "piece", "unit": "us", "min": 50000.0, "median": 50000.0, "max": 50000.0, "runs": 2' \
	'"metric": "p50", "unit": "us", "min": 500.0' '"metric": "p99", "unit": "us", "min": 8000.0'; do
	grep -qF -e "$part" "$T/out" || { echo "no $part"; cat "$T/out"; failures=$((failures + 1)); }
done
grep -qE '^ +500\.000 0\.750000000000 +30 +4\.00$' "$T/all/sysbench-cpu.16.1vp.nptl.2.hgrm" ||
	{ cat "$T/all/"*; failures=$((failures + 1)); }
expect 1 "failed: sysbench counts no events" env EVENTS=0 "$K" bench programs sysbench-cpu --vps 1 --runs 2 --methods nptl

# a real program
if command -v "${CC:-gcc}" >/dev/null; then
	expect 0 "" "$K" bench programs openmp --threads 3 --vps 1 --runs 1 --seconds 0.05 --format json --json "$T/json"
	grep -q '"method": "kochab".*"metric": "piece"' "$T/json" || grep -q skipped "$T/out" || { cat "$T/out"; failures=$((failures + 1)); }
fi
finish
