# test/house/kvstore_lib.sh - starts, watches and ends a server of example/kvstore; sourced, not run.
# The sourcing script is in the project's folder, sets BUILD, and defines a function `is_up` that
# returns whether the server serves.
# shellcheck shell=bash disable=SC2034
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
BUILD=${BUILD:-build}
[[ $BUILD = /* ]] || BUILD=$PWD/$BUILD
K=$BUILD/example/kvstore/kvstore
T=$(mktemp -d)
server=
failed=0
clean_up() {
	[ -z "$server" ] || kill -KILL "$server"
	rm -rf "$T"
}
trap clean_up EXIT

# needs PROGRAM...: skips the test if a program is missing
needs() {
	local p
	for p; do
		[ -x "$p" ] || { echo "not built (make examples)"; exit 77; }
	done
}

# fail WORD...: fails with the words and the server's output
fail() {
	echo "$*"
	tail -n 12 "$T/server" | sed 's/^/     | /'
	failed=1
}

# start COMMAND...: starts the server and waits until it serves. Its output is in $T/server; its socket,
# if any, is $T/sock.
start() {
	rm -f "$T/server" "$T/sock" # the last one's would say that this one is up
	"$@" >"$T/server" 2>&1 &
	server=$!
	for _ in {1..200}; do
		is_up && return
		sleep 0.02
	done
	fail "$*: does not serve"
}
