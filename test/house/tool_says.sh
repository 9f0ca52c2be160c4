#!/bin/bash
# What --verbose and --stats print: no line ends in a blank, and the number of threads is that of the threads, not of the
# descriptors that were made ready for them.
. "$(dirname "$0")/lib.sh"
[ -z "${SAN:-}" ] || skip "not with sanitizers: it runs programs on the drop-in, or many threads"

env KOCHAB_VPS=1 KOCHAB_VERBOSE=1 KOCHAB_STATS=1 "$BUILD/example/hello" >"$T/out" 2>"$T/err" || { echo "hello fails"; failures=1; }
grep -nE '[[:blank:]]$' "$T/err" && { echo "blanks at the end of a line"; failures=1; }
grep -q '^kochab: 1 virtual processors, scheduler rotator, own TLS: ' "$T/err" || { echo "says nothing of what was chosen"; failures=1; }
# main and ten thousand
grep -q '^kochab: at most 10001 threads at once' "$T/err" || { echo "counts them wrong"; failures=1; }
[ $failures = 0 ] || cat "$T/err"
finish
