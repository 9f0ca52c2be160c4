#!/bin/bash
# kochab space: lists what is there, says what is wrong with a file, removes.
set -u
K=${KOCHAB_BIN:?}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failures=0
fail() { echo "$1"; failures=1; }

"$K" space list >/dev/null || fail "list fails"
"$K" space list --json >/dev/null || fail "list --json fails"
"$K" space inspect no.such.space 2>"$T/err" && fail "inspects what is not there"
grep -q 'No such file' "$T/err" || fail "does not say why: $(cat "$T/err")"
echo nonsense >"$T/odd"
"$K" space inspect "$T/odd" 2>"$T/err" && fail "inspects nonsense"
grep -q 'no space' "$T/err" || fail "does not say what is wrong: $(cat "$T/err")"
"$K" space remove "$T/odd" 2>/dev/null && fail "removes what is no space"
[ -e "$T/odd" ] || fail "it is gone"
"$K" space remove --force "$T/odd" || fail "does not remove it with --force"
[ -e "$T/odd" ] && fail "it is still there"
"$K" space 2>/dev/null; [ $? = 2 ] || fail "no usage"
"$K" space frobnicate 2>/dev/null; [ $? = 2 ] || fail "no usage for an unknown word"
exit $failures
