#!/bin/bash
# kochab options: every row of the table, values from the environment, valid JSON.
. "$(dirname "$0")/lib.sh"

for v in $(sed -n 's/^OPTION([a-z_0-9]*, "\([A-Z_0-9]*\)".*/KOCHAB_\1/p' "$TOP/src/base/option.def"); do
	expect 0 "$v" "$K" options
	any=1
done
[ -n "${any:-}" ] || { echo "no rows in option.def"; failures=1; }
expect 0 'KOCHAB_VPS           3 ' env KOCHAB_VPS=3 "$K" options
expect 0 'KOCHAB_STACK_SIZE    1048576 ' env KOCHAB_STACK_SIZE=1M "$K" options

check_json() { # every line an object with these keys
	python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert rows and all(k in r for r in rows for k in sys.argv[1:]), rows' "$@"
}
if command -v python3 >/dev/null; then
	"$K" options --json | check_json name variable value default allowed help || failures=1
	"$K" doctor --json | check_json name supported value || failures=1
fi
expect 0 "guards, private map" "$K" doctor
tail -n 1 "$T/out" | grep -qE '^[-+] in short +(programs will run|unmodified programs)' || { echo "no conclusion"; failures=1; }
# a library that cannot be loaded: no program would run
if [ -z "${SAN:-}" ] && [ -e "$BUILD/libkochab-posix.so.0" ]; then
	mkdir "$T/broken" && : >"$T/broken/libkochab-posix.so.0"
	expect 0 "- in short                 unmodified programs will not run" env KOCHAB_LIB="$T/broken" "$K" doctor
	expect 0 "+ in short                 programs will run on Kochab here" "$K" doctor
fi
finish
