#!/bin/bash
# Foreign names and files that the command prints do nothing to a terminal, a page or a reader of JSON;
# figures that are none are no figures.
. "$(dirname "$0")/lib.sh"
cd "$T" || exit 1
esc=$'\033'
fail() {
	echo "$*"
	failures=$((failures + 1))
}

name=x$$$(printf '\033]0;title\a\033[31m"\\\302\233\377\342\200\256')
planted="/dev/shm/kochab.$name"
if : >"$planted" 2>/dev/null; then
	trap 'rm -rf "${planted:?}" "$T"' EXIT
	"$K" space list >list 2>&1 || fail "space list: $?"
	"$K" space list --json >json 2>&1 || fail "space list --json: $?"
	"$K" space inspect "$name" >inspect 2>&1 && fail "inspect of an empty file"
	for f in list json inspect; do
		grep -q "x$$" "$f" || fail "$f: the file is not in it: $(cat -v "$f")"
		LC_ALL=C grep -q "[$esc"$'\a\177\233]' "$f" && fail "$f has control characters: $(cat -v "$f")"
		LC_ALL=C grep -q $'\342\200\256' "$f" && fail "$f turns the direction of writing"
	done
	grep -q 'x'$$'\\x1b\]0;title\\x07\\x1b\[31m"\\\\xc2\\x9b\\xff\\xe2' list || fail "list: $(cat -v list)"
	if type -P python3 >/dev/null; then
		python3 -c 'import json, sys; [json.loads(l) for l in open("json", encoding="utf-8")]' || fail "no JSON: $(cat -v json)"
	fi
fi

cat >lines.jsonl <<'END'
{"bench": "rendezvous", "method": "kochab", "threads": 1000, "vps": 2, "median": 0}
{"bench": "rendezvous", "method": "rtsig", "threads": 1000, "vps": 2, "median": inf, "note": "<script>one</script>"}
{"bench": "rendezvous", "method": "poll", "threads": 3, "vps": 99999999999999999999, "median": nan}
{"bench": "rendezvous", "method": "rtsig", "threads": -5, "vps": 2, "median": 1e400}
{"bench": "rendezvous", "method": "rtsig", "threads": 100, "median": 1e-320, "note": "a \"q\" & <i>two</i>"}
{"bench": "rendezvous", "method": "condvar", "threads": 100}
{"bench": "rendezvous", "method": "sem", "threads": 100, "median": 1e17}
{"bench": "compress", "method": "kochab", "median": 5, "note": "x' onload=three <i>"}
{"bench": "compress", "method": "nptl", "median": 1e300}
END
(ulimit -f 20000; timeout 20 "$K" bench --page page.html lines.jsonl) || fail "the page: $?"
[ "$(wc -c <page.html)" -lt 100000 ] || fail "a page of $(wc -c <page.html) bytes"
grep -q "<script\|<i>" page.html && fail "a note is markup"
grep -q "a &#34;q&#34; &#38; &#60;i&#62;two" page.html || fail "a note is not there"
grep -qi "inf\b\|nan\b" page.html && fail "a figure that is none"
finish
