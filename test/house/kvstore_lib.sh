# test/house/kvstore_lib.sh - a server of example/kvstore that is started, watched and at last ended; sourced, not run.
# Who sources it stands in the project's folder, has BUILD, and a function `is_up` that says whether the server serves.
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

# needs PROGRAM...: or the test is skipped
needs() {
	local p
	for p; do
		[ -x "$p" ] || { echo "not built (make examples)"; exit 77; }
	done
}

# fail WORD...: and what the server has said
fail() {
	echo "$*"
	tail -n 12 "$T/server" | sed 's/^/     | /'
	failed=1
}

# start COMMAND...: and waits until it serves. What it says is in $T/server; its socket, if it has one, is $T/sock.
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
