#!/bin/bash
# example/kvstore, on kernel threads, under `kochab run` and linked with the drop-in. The server answers
# a script byte by byte as in test/programs/kvstore/answers, which are Redis' own answers (compared here
# where redis-server, 7 or later, is installed); answers many connections at once; and ends on SIGTERM
# without losing an answer.
. "$(dirname "$0")/kvstore_lib.sh"
TALK=$BUILD/test/programs/kvstore/talk
LOAD=$BUILD/bench/servers/load
SCRIPT=test/programs/kvstore/script
ANSWERS=test/programs/kvstore/answers
needs "$K" "$TALK" "$LOAD"

is_up() { [ -S "$T/sock" ]; }

# stop NAME: ends the server by SIGTERM; only exit status 0 is right
stop() {
	local code
	kill -TERM "$server" 2>/dev/null
	wait "$server"
	code=$?
	server=
	[ $code = 0 ] || fail "$1: exit $code on SIGTERM"
}

answers() { # NAME [-1]
	"$TALK" ${2+"$2"} "$T/sock" <$SCRIPT >"$T/said" 2>"$T/errors" || fail "$1: $(<"$T/errors")"
	cmp -s "$T/said" $ANSWERS || { fail "$1: other answers (<) than wanted (>)"; diff "$T/said" $ANSWERS | head -n 10; }
}

# Requests that have arrived are answered although the server ends: 2000 INCRs are sent at once, the
# server is told to end, and then their answers are read.
last_answers() { # NAME
	{
		printf '&PING\n?\n'
		printf '>0 %s\n' "$(for _ in {1..500}; do printf 'INCR n\\r\\n'; done)"
		printf 'ms 100\n&SHUTDOWN\nms 100\n'
		for _ in {1..500}; do echo '?'; done
	} >"$T/last"
	"$TALK" "$T/sock" <"$T/last" | grep -c '^< :' >"$T/count"
	[ "$(<"$T/count")" = 500 ] || fail "$1: $(<"$T/count") of 500 answers when it ends"
	wait "$server" || fail "$1: exit $? on SHUTDOWN"
	server=
}

everything() { # NAME COMMAND...
	local name=$1
	shift
	start "$@" --port 0 --unixsocket "$T/sock"
	answers "$name"
	"$TALK" "$T/sock" <<<FLUSHALL >"$T/said"
	answers "$name" -1
	"$LOAD" -c 200 -s 0.3 -d 100 redis "$T/sock" >"$T/out" 2>&1 || fail "$name: $(<"$T/out")"
	"$LOAD" -c 20 -P 20 -s 0.2 -d 30000 -w 50 -k 200 redis "$T/sock" >"$T/out" 2>&1 || fail "$name: $(<"$T/out")"
	stop "$name"
	start "$@" --port 0 --unixsocket "$T/sock"
	last_answers "$name"
}

# A client that sends without end and reads no answers is cut off before it has filled the memory; the
# remaining clients are served.
lets_lie() { # NAME COMMAND...
	local name=$1 port=$((20000 + RANDOM % 12000)) peak
	shift
	start "$@" --port $port --unixsocket "$T/sock"
	printf 'SET k %s\n' "$(printf 'x%.0s' {1..1000})" | "$TALK" "$T/sock" >"$T/said"
	exec 3<>/dev/tcp/127.0.0.1/$port || { fail "$name: no connection"; return; }
	if (trap '' PIPE; yes $'GET k\r' 2>/dev/null | timeout 60 head -c 200000000 >&3) 2>/dev/null; then
		fail "$name: a client that reads nothing has sent 200 MB"
	fi
	exec 3>&-
	peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$server/status")
	[ "$peak" -lt 300000 ] || fail "$name: it took $peak KiB"
	"$TALK" "$T/sock" <<<'INFO stats' >"$T/said"
	grep -q 'client_query_buffer_limit_disconnections:1' "$T/said" || fail "$name: not cut off: $(<"$T/said")"
	stop "$name"
}

# A single request may ask for a value so many times that the answer would take all memory. The client
# is cut off.
asks_much() { # NAME COMMAND...
	local name=$1 port=$((20000 + RANDOM % 12000)) peak
	shift
	start "$@" --port $port --unixsocket "$T/sock" --client-memory 64
	exec 3<>/dev/tcp/127.0.0.1/$port || { fail "$name: no connection"; return; }
	{
		printf '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n'
		head -c 1000000 /dev/zero
		printf '\r\n*401\r\n$4\r\nMGET\r\n'
		yes $'$1\r\nk\r' | head -n 800
	} >&3
	[ "$(timeout 30 head -c 500000000 <&3 2>/dev/null | wc -c)" -lt 1000 ] || fail "$name: 400 MB were got ready"
	exec 3>&-
	peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$server/status")
	[ "$peak" -lt 200000 ] || fail "$name: it took $peak KiB"
	"$TALK" "$T/sock" <<<'INFO stats' >"$T/said"
	grep -q 'client_query_buffer_limit_disconnections:1' "$T/said" || fail "$name: not cut off: $(<"$T/said")"
	stop "$name"
}

# Older versions word some errors differently.
if command -v redis-server >/dev/null && redis-server --version | grep -q 'v=\([7-9]\|[1-9][0-9]\)\.'; then
	start redis-server --port 0 --unixsocket "$T/sock" --save '' --appendonly no
	answers redis-server
	stop redis-server
fi
everything "kernel threads" "$K"
lets_lie "kernel threads, a client that reads nothing" "$K"
asks_much "kernel threads, an answer of 400 MB" "$K"
[ -n "${SAN:-}" ] || lets_lie "run, a client that reads nothing" "$BUILD/kochab" run -- "$K"
[ -n "${SAN:-}" ] || { # a sanitizer's runtime and the drop-in do not go together in every build
	everything "run, 1 VP" "$BUILD/kochab" run --vps 1 -- "$K"
	everything "run, 2 VPs" "$BUILD/kochab" run --vps 2 -- "$K"
	[ ! -x "$K-posix" ] || everything "linked" "$K-posix"
}

# refused requests
refuses() { # WHAT ARGS...
	local want=$1
	shift
	timeout 10 "$K" "$@" >"$T/out" 2>&1
	case $? in 1|2) ;; *) fail "kvstore $*: exit $?" ;; esac
	grep -q -- "$want" "$T/out" || fail "kvstore $*: said: $(<"$T/out")"
}
refuses "0 to 65535" --port 70000
refuses "0 to 65535" --port 80x
refuses "1 to 1000000" --maxclients 0
refuses "1 to 1048576" --client-memory 0
refuses "not an option" 6379
refuses "nothing to listen on" --port 0
refuses "cannot listen on nosuch" --bind nosuch
refuses "try --help" --nosuch
refuses "File exists\|in use" --port 0 --unixsocket "$SCRIPT"
"$K" --help | grep -q maxclients || fail "kvstore --help: says nothing"
start "$K" --port 0 --unixsocket "$T/sock" --maxclients 1
refuses "in use" --port 0 --unixsocket "$T/sock"
echo '@1 >! ' | cat <(printf 'PING\n') - | "$TALK" "$T/sock" | grep -q 'max number of clients' || fail "maxclients: not kept"
stop maxclients
exit $failed
