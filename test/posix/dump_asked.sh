#!/bin/bash
# core/dump: the list of threads. From the first thread on SIGQUIT prints it, if SIGQUIT's action is
# the default, and the program still sees the default; if SIGQUIT was ignored at the start it stays
# ignored, also in programs that this program executes. `kochab dump` prints the list in both cases,
# and disturbs neither a program without a thread nor a program that does not run on Kochab. A child
# of fork ends by SIGQUIT, as on libc.
set -u
KOCHAB_BIN=${KOCHAB_BIN:-${BUILD:-build}/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0
bad() { echo "$*"; failed=1; }

cat >"$T/prog.c" <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int is(void (*action)(int))
{
	struct sigaction a;

	sigaction(SIGQUIT, NULL, &a);
	return a.sa_handler == action;
}

static void *waits(void *arg)
{
	pause();
	return arg;
}

/* Its output shows that it has come so far. */
int main(int argc, char **argv)
{
	int ignored = is(SIG_IGN), status, made = argc > 1 && strcmp(argv[1], "none");
	void (*expected)(int) = ignored ? SIG_IGN : SIG_DFL;
	pthread_t t;

	if (!ignored && !is(SIG_DFL))
		return 2;
	if (made && pthread_create(&t, NULL, waits, NULL) == 0)
		pthread_setname_np(t, "hamlet");
	if (!is(expected))
		return 3;
	if (made && !ignored) {
		pid_t pid = fork();

		if (pid == 0) {
			raise(SIGQUIT);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGQUIT)
			return 4;
	}
	if (made && ignored && system("test $(( $(sed -n 's/^SigIgn:.*\\(.\\)$/0x\\1/p' /proc/self/status) & 4 )) = 4"))
		return 5;
	puts("ready");
	fflush(stdout);
	if (sleep(60)) /* nothing of the runtime's own ends a call */
		return 6;
	return 7;
}
END
"$CC" -w -pthread -o "$T/prog" "$T/prog.c" || exit 77

# start ACTION ARGUMENTS...: $pid runs it
start() {
	local action=$1
	shift
	: >"$T/out"
	if [ "$action" = ignored ]; then
		(trap '' QUIT; exec "$KOCHAB_BIN" run "$@") >"$T/out" 2>"$T/err" &
	else
		# a shell's background jobs ignore SIGQUIT for good
		python3 -c 'import os, signal, sys
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$KOCHAB_BIN" run "$@" >"$T/out" 2>"$T/err" &
	fi
	pid=$!
	for _ in $(seq 300); do
		grep -q ready "$T/out" && return
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	wait $pid
	bad "$action $*: ended with $?: $(tail -3 "$T/err")"
}
listed() {
	for _ in $(seq 100); do
		grep -q '"hamlet" waiting' "$T/err" && grep -q '^kochab:   thread #0' "$T/err" && return 0
		sleep 0.1
	done
	return 1
}
lives() { sleep 0.3; [ -d /proc/$pid ] && ! grep -q '^State:.Z' /proc/$pid/status; }
end() { kill -KILL $pid 2>/dev/null; wait $pid 2>/dev/null; }

bodies=thread
"$KOCHAB_BIN" doctor | grep -q '^+ process bodies' && bodies="thread process"
for body in $bodies; do
	for options in "--vps 2" "--vps 1 --sched steal --quantum 0"; do
		start ignored --body "$body" $options "$T/prog" threads
		kill -QUIT $pid
		lives || bad "$body $options: an ignored SIGQUIT ends it"
		grep -q hamlet "$T/err" && bad "$body $options: an ignored SIGQUIT is heard"
		"$KOCHAB_BIN" dump $pid || bad "$body $options: kochab dump fails"
		listed || bad "$body $options: kochab dump prints no list where SIGQUIT is ignored"
		lives || bad "$body $options: kochab dump ends it"
		grep -v '^kochab: ' "$T/err" && bad "$body $options: lines without the words by which messages are found"
		end
		command -v python3 >/dev/null || continue
		start default --body "$body" $options "$T/prog" threads
		kill -QUIT $pid
		listed || bad "$body $options: SIGQUIT prints no list"
		lives || bad "$body $options: SIGQUIT ends it"
		end
	done
done

start ignored "$T/prog" none
"$KOCHAB_BIN" dump $pid 2>"$T/said" && bad "there is no list of no threads"
grep -q 'made no thread yet' "$T/said" || bad "said $(cat "$T/said")"
lives || bad "kochab dump ends a program without threads"
end
sleep 60 &
pid=$!
"$KOCHAB_BIN" dump $pid 2>"$T/said" && bad "sleep has no list"
grep -q 'does not run on Kochab' "$T/said" || bad "said $(cat "$T/said")"
lives || bad "kochab dump ends a program without Kochab"
end
"$KOCHAB_BIN" dump 2>/dev/null
[ $? = 2 ] || bad "kochab dump without a number"
"$KOCHAB_BIN" dump 12x 2>/dev/null
[ $? = 2 ] || bad "kochab dump 12x"
exit $failed
