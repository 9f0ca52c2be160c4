#!/bin/bash
# kochab options: each row of the table in exactly one tier, under the heading of its tier; without --all no option of the
# laboratory; values from the environment, valid JSON.
. "$(dirname "$0")/lib.sh"

fail() {
	echo "$*"
	failures=$((failures + 1))
}

# rows TIER: the variables of the tier's rows in option.def
rows() { sed -n "s/^OPTION([a-z_0-9]*, $1, \"\([A-Z_0-9]*\)\",.*/KOCHAB_\1/p" "$TOP/src/base/option.def" | sort; }
# shown HEADING: the variables that the last output lists under the heading
shown() { awk -v h="$1" '/^For /{ on = index($0, h) == 1 } on && /^KOCHAB_/ { print $1 }' "$T/out" | sort; }
same() { # WHAT LIST LIST
	[ "$2" = "$3" ] || fail "$1: $(diff <(echo "$2") <(echo "$3"))"
}

user=$(rows USER) operator=$(rows OPERATOR) laboratory=$(rows LABORATORY)
all=$(printf '%s\n%s\n%s\n' "$user" "$operator" "$laboratory" | sort)
for tier in "$user" "$operator" "$laboratory"; do
	[ "$(wc -w <<<"$tier")" -ge 8 ] || fail "a tier of option.def has hardly a row: $tier"
done
[ "$(wc -w <<<"$user")" -le 12 ] || fail "more than a dozen options for users: $user"
same "each row has one tier, and a variable of its own" "$(grep -c '^OPTION(' "$TOP/src/base/option.def")" \
	"$(sort -u <<<"$all" | wc -l)"

expect 0 "'kochab options --all' shows them" "$K" options
same "options: user" "$user" "$(shown 'For the user')"
same "options: operator" "$operator" "$(shown 'For the operator')"
same "options: number of headings" 2 "$(grep -c '^For ' "$T/out")"
for v in $laboratory; do
	! grep -qw "$v" "$T/out" || fail "options names $v without --all"
done
expect 0 "'kochab options' leaves out" "$K" options --all
same "options --all: user" "$user" "$(shown 'For the user')"
same "options --all: operator" "$operator" "$(shown 'For the operator')"
same "options --all: laboratory" "$laboratory" "$(shown 'For the laboratory')"
same "options --all: the last heading" "For the laboratory" "$(grep -o '^For the [a-z]*' "$T/out" | tail -n 1)"

# the help of kochab run has the first two tiers and says where the rest is; kochab run takes all
expect 0 "'kochab options --all' shows them" "$K" run --help
same "run --help" "$(printf '%s\n%s\n' "$user" "$operator" | sort)" \
	"$(sed -n 's/^  --\([a-z0-9-]*\).*/KOCHAB_\1/p' "$T/out" | tr a-z- A-Z_ | sort)"
if [ -z "${SAN:-}" ] && [ -e "$BUILD/libkochab-posix.so.0" ]; then
	expect 0 "" "$K" run --sched steal --tick-ms 5 true
fi
expect 2 "--alll: no such argument; usage: kochab options [--all] [--json]" "$K" options --alll
expect 2 "all: no such argument" "$K" options --json all

expect 0 'KOCHAB_VPS           3 ' env KOCHAB_VPS=3 "$K" options
expect 0 'KOCHAB_STACK_SIZE    1048576 ' env KOCHAB_STACK_SIZE=1M "$K" options
expect 0 'KOCHAB_SCHED         steal ' env KOCHAB_SCHED=steal "$K" options --all

check_json() { # every line an object with these keys
	python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert rows and all(k in r for r in rows for k in sys.argv[1:]), rows' "$@"
}
if command -v python3 >/dev/null; then
	"$K" options --json | check_json name tier variable value default allowed help || failures=1
	same "options --json: options" "$(wc -l <<<"$all")" "$("$K" options --json | wc -l)"
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
