#!/bin/bash
# kochab space: lists spaces, names the error of a file, removes files.
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
ln -s "$T/not.there" "$T/link"
"$K" space remove "$T/link" 2>/dev/null && fail "removes a link"
echo "stays" >"$T/target" && ln -s "$T/target" "$T/link.2"
mkfifo "$T/fifo"
"$K" space remove --force "$T/link" "$T/link.2" "$T/fifo" ||
	fail "does not remove links and a pipe with --force"
{ [ -L "$T/link" ] || [ -L "$T/link.2" ] || [ -e "$T/fifo" ]; } &&
	fail "a planted name is still there"
[ -s "$T/target" ] || fail "follows a link"
"$K" space remove --force "$T/link" 2>/dev/null && fail "removes what is not there"

# a pipe or a device is not opened: opening has effects of its own
mkfifo "$T/pipe"
(: >"$T/pipe"; : >"$T/opened") 2>/dev/null &
writer=$!
sleep 0.2
"$K" space inspect "$T/pipe" 2>/dev/null && fail "inspects a pipe"
sleep 0.2
[ -e "$T/opened" ] && fail "opens a pipe"
kill $writer 2>/dev/null

# a folder of the user's own, and the shared folder: list shows what inspect and remove take
export XDG_RUNTIME_DIR=
own=
while read -r kind folder; do
	[ "$kind" = tmpfs ] && own=$(mktemp -d "$folder/test.tool.XXXXXX" 2>/dev/null) && break
done < <(for f in /dev/shm /run /tmp; do echo "$(stat -f -c %T $f) $f"; done)
if [ -n "$own" ]; then
	trap 'rm -rf "$T" "$own"; rm -f "/dev/shm/kochab.$n"' EXIT
	n=tool.$$ XDG_RUNTIME_DIR=$own
	mkdir -m 700 "$own/kochab" && echo nonsense >"$own/kochab/$n"
	"$K" space list | grep -q "^$n  *it is no space" ||
		fail "list does not show the user's own: $("$K" space list)"
	echo nonsense >"/dev/shm/kochab.$n"
	[ "$("$K" space list | grep -c "^$n ")" = 1 ] ||
		fail "list shows two of a name: $("$K" space list)"
	"$K" space list | grep -q "^/dev/shm/kochab.$n  *it is no space" ||
		fail "list hides the shared one: $("$K" space list)"
	"$K" space list --json | grep -q "\"name\": \"$n\", \"path\": \"$own/kochab/$n\", \"error\"" ||
		fail "no path: $("$K" space list --json)"
	"$K" space remove --force $n || fail "does not remove the user's own"
	{ [ ! -e "$own/kochab/$n" ] && [ -e "/dev/shm/kochab.$n" ]; } || fail "removes another"
	"$K" space list | grep -q "^$n  *it is no space" ||
		fail "the shared one has the name then: $("$K" space list)"
	"$K" space remove --force $n || fail "does not remove the shared one"
	[ -e "/dev/shm/kochab.$n" ] && fail "the shared one is still there"
	echo nonsense >"$own/kochab/$n" && chmod 750 "$own/kochab"
	"$K" space list | grep -q "$n " && fail "list looks into a folder that others may enter"
	"$K" space inspect $n 2>"$T/err" && fail "inspect too"
	grep -q 'No such file' "$T/err" || fail "and says $(cat "$T/err")"
else
	echo "no file system in memory"
fi

"$K" space 2>/dev/null; [ $? = 2 ] || fail "no usage"
"$K" space inspect 2>/dev/null; [ $? = 2 ] || fail "inspects nothing"

# requested output is on standard output, and errors are on standard error
for word in "" list inspect remove; do
	# shellcheck disable=SC2086 # no word is none
	"$K" space $word --help >"$T/out" 2>"$T/err" || fail "'space $word --help' fails"
	{ grep -q '^usage: kochab space list' "$T/out" && [ ! -s "$T/err" ]; } ||
		fail "'space $word --help' does not help"
done
refuses() { # TEXT ARGUMENT...
	local text=$1
	shift
	"$K" space "$@" >"$T/out" 2>"$T/err"
	[ $? = 2 ] && grep -qF -e "$text" "$T/err" && [ ! -s "$T/out" ] ||
		fail "'space $*' says: $(cat "$T/out" "$T/err")"
}
refuses "space: frobnicate: no such command" frobnicate
refuses "space: --frobnicate: no such option" --frobnicate
refuses "space list: --frobnicate: no such option" list --frobnicate
refuses "space inspect: --json: no such option" inspect --json
refuses "space remove: --json: no such option" remove --json name
exit $failures
