# test/house/lib.sh - helpers of the command's tests; sourced, not run.
# KOCHAB_BIN is the command, BUILD the build directory. Each check says what it saw when it fails.
# shellcheck shell=bash disable=SC2034
set -u
K=${KOCHAB_BIN:?set KOCHAB_BIN}
BUILD=${BUILD:?set BUILD}
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
T=$(mktemp -d "${TMPDIR:-/tmp}/kochab-test.XXXXXX")
trap 'rm -rf "$T"' EXIT
failures=0

# expect EXIT TEXT COMMAND...: the command must exit so and print TEXT (standard output or error).
expect() {
	local want=$1 text=$2 code
	shift 2
	timeout 60 "$@" >"$T/out" 2>&1 </dev/null
	code=$?
	if [ $code != "$want" ]; then
		echo "exit $code, wanted $want: $*"
	elif [ -n "$text" ] && ! grep -qF -e "$text" "$T/out"; then
		echo "did not say '$text': $*"
	elif [ "$want" -ge 126 ] && ! grep -q '^kochab: ' "$T/out"; then
		echo "no message of kochab's own: $*"
	else
		return 0
	fi
	sed 's/^/  > /' "$T/out"
	failures=$((failures + 1))
}

skip() {
	echo "$*"
	exit 77
}

finish() {
	[ $failures = 0 ] || exit 1
	exit 0
}
