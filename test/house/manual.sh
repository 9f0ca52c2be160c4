#!/bin/bash
# The manual pages against what the command says of itself: every command, every option of kochab bench, its report and its
# programs stands in its page. (That every public function is in one, and every knob, is for make check-house.)
. "$(dirname "$0")/lib.sh"

page() { # NAME: its text, as one reads it
	(cd "$TOP" && dev/man-page "doc/man/$1") | sed 's/\\-/-/g; s/\\~/ /g'
}

stands_in() { # PAGE WORD...
	local page=$1 text word
	shift
	text=$(page "$page")
	[ $# -gt 0 ] || { echo "$page: nothing was asked for"; failures=1; }
	for word; do
		grep -qE -e "(^|[^a-z-])$word([^a-z-]|\$)" <<<"$text" || { echo "$page does not tell of $word"; failures=1; }
	done
}
# The options in a help text; not those of another command that the text names in quotes.
words() { sed "s/'kochab [^']*'//g" | grep -oE -e '(^|[^a-z-])--[a-z][a-z-]*' | grep -oE -e '--[a-z-]+' | sort -u; }

mapfile -t commands < <("$K" --help | sed -nE 's/^  ([a-z]+)  .*/\1/p')
stands_in kochab.1 "${commands[@]}"
mapfile -t options < <("$K" bench --help | words)
stands_in kochab-bench.1 "${options[@]}"
if command -v python3 >/dev/null; then
	for what in report programs; do
		mapfile -t options < <("$K" bench $what --help | words)
		stands_in kochab-bench.1 "${options[@]}"
	done
fi
mapfile -t options < <("$K" space --help | words)
stands_in kochab.1 "${options[@]}"
mapfile -t options < <("$K" run --help | words)
stands_in kochab-run.1 "${options[@]}"
mapfile -t options < <("$K" compare --help | words)
stands_in kochab-compare.1 "${options[@]}"
for c in ps stack top; do
	mapfile -t options < <("$K" $c --help | words)
	stands_in kochab-$c.1 "${options[@]}"
done
finish
