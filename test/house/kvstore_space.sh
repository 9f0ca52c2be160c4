#!/bin/bash
# example/kvstore serves clients over a named space: it answers as over a socket, large answers too; clients that are killed
# in the middle of requests leave nobody stuck and no connection behind; nor does a server that is killed.
. "$(dirname "$0")/kvstore_lib.sh"
[ -z "${SAN:-}" ] || { echo "not with sanitizers: it runs programs on the drop-in, or many threads"; exit 77; }
ASK=$BUILD/example/kvstore/ask/ask
needs "$K-posix" "$ASK"
NAME=kvtest.$$
trap 'clean_up; "$KOCHAB_BIN" space remove --force $NAME 2>/dev/null' EXIT

is_up() { grep -qs ready "$T/server"; }

serve() { start "$K-posix" --port 0 --space $NAME; }

# wants ANSWER WORD...: the answer without its line ends
wants() {
	local want=$1 said
	shift
	said=$(timeout 20 "$ASK" $NAME "$@" 2>&1 | tr -d '\r' | tr '\n' ' ')
	[ "$said" = "$want " ] || fail "$*: '$said' instead of '$want'"
}

# lonely: within 10 s nobody but the asking client is connected
lonely() {
	local n
	for _ in {1..100}; do
		n=$(timeout 20 "$ASK" $NAME CLIENT LIST 2>&1 | grep -c '^id=')
		[ "$n" = 1 ] && return
		sleep 0.1
	done
	fail "$n clients are connected after $1"
}

"$K" --port 0 --space $NAME 2>"$T/server"
[ $? = 2 ] && grep -q 'not linked with Kochab' "$T/server" || fail "kvstore without Kochab does not refuse --space"
timeout 10 "$ASK" $NAME PING 2>"$T/server" && fail "it asks where nobody is"
grep -q 'No such file' "$T/server" || fail "and does not say so"

serve
wants '+PONG' PING
wants '+OK' SET a hello
wants '$5 hello' GET a
wants '$-1' GET b
wants ':3' RPUSH l 1 2 3
wants '*2 $1 1 $1 2' LRANGE l 0 1
wants "-ERR unknown command 'FROB', with args beginning with: 'x' " FROB x
timeout 60 "$ASK" $NAME -n 3000 SET big "$(head -c 60000 /dev/zero | tr '\0' x)" | grep -q 'median' || fail "large requests"
[ "$(timeout 60 "$ASK" $NAME -n 3000 GET big | head -c 60010 | tr -d '\r\n' | tr -dc x | wc -c)" = 60000 ] || fail "large answers"
"$K-posix" --port 0 --space $NAME >"$T/second" 2>&1
[ $? = 1 ] && grep -q 'File exists' "$T/second" || fail "a second server for one space: $(<"$T/second")"

for i in {1..30}; do
	case $((i % 4)) in
	0) set -- -n 100000000 GET a ;;
	1) set -- -n 100000000 GET big ;;
	2) set -- -n 100000000 INCR n ;;
	3) set -- BLPOP nothing 0 ;;
	esac
	timeout 60 "$ASK" $NAME "$@" >/dev/null 2>&1 &
	victim=$!
	sleep 0.0$((RANDOM % 90 + 10))
	ps -o pid= --ppid "$victim" | xargs -r kill -KILL 2>/dev/null
	wait $victim 2>/dev/null
	[ $((i % 5)) = 0 ] && wants '$5 hello' GET a
done
lonely "30 that were killed"

"$ASK" $NAME -n 100000000 GET a >/dev/null 2>"$T/left" &
asks=$!
sleep 0.2
kill -KILL $server
wait $server 2>/dev/null
for _ in {1..100}; do
	kill -0 $asks 2>/dev/null || break
	sleep 0.1
done
kill -KILL $asks 2>/dev/null && fail "a client waits for a server that was killed"
wait $asks 2>/dev/null
grep -q 'the server has left' "$T/left" || fail "and says: $(<"$T/left")"
serve
wants '$-1' GET a
kill -TERM $server
wait $server || fail "exit $? on SIGTERM"
server=
"$KOCHAB_BIN" space inspect $NAME >/dev/null 2>&1 && fail "the space is left behind"
exit $failed
