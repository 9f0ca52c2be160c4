#!/bin/bash
# kochab run becomes the program: arguments, exit status, environment, scripts, options before it.
. "$(dirname "$0")/lib.sh"
[ -e "$BUILD/libkochab-posix.so.0" ] || skip "no drop-in in this build"
[ -z "${SAN:-}" ] || skip "a sanitizer's library must come first in LD_PRELOAD"
cd "$T" || exit 1

expect 0 "a b|c||d" "$K" run sh -c 'IFS="|"; echo "$*"' 0 'a b' c '' d
expect 7 "" "$K" run sh -c 'exit 7'
expect 0 "--vps" "$K" run --vps 1 echo --vps
expect 0 "--vps" "$K" run -- echo --vps
expect 0 "vps=3 sched=lb2 stack=128K stats=" "$K" run --vps=3 --sched lb2 --stack-size 128K \
	sh -c 'echo "vps=$KOCHAB_VPS sched=$KOCHAB_SCHED stack=$KOCHAB_STACK_SIZE stats=$KOCHAB_STATS"'
expect 0 "spin=0 dump=0" "$K" run --spin-us 0 --dump-on-quit=no sh -c 'echo "spin=$KOCHAB_SPIN_US dump=0"'
# an option overrides the variable
expect 0 "vps=2" env KOCHAB_VPS=1 "$K" run --vps 2 sh -c 'echo "vps=$KOCHAB_VPS"'

# the library is in front, what was there stays
expect 0 "libkochab-posix.so.0:/lib/nothing-there.so" env LD_PRELOAD=/lib/nothing-there.so "$K" run sh -c 'echo "$LD_PRELOAD"'
expect 0 "$BUILD/libkochab-posix.so.0" "$K" run cat /proc/self/maps
cp "$BUILD/libkochab-posix.so.0" . && mkdir 'with space' && cp libkochab-posix.so.0 'with space'
expect 0 "$T/libkochab-posix.so.0" env KOCHAB_LIB="$T" "$K" run cat /proc/self/maps
expect 0 "$T/libkochab-posix.so.0" env KOCHAB_LIB="$T/libkochab-posix.so.0" "$K" run cat /proc/self/maps
expect 126 "a path with a space" env KOCHAB_LIB="$T/with space" "$K" run true

printf '#!/bin/sh\necho script "$1"\n' >script && chmod 755 script
expect 0 "script one" "$K" run ./script one
mkdir bin && cp script bin/on-path
expect 0 "script two" env PATH="$T/bin:$PATH" "$K" run on-path two
# names that only look like options of ours
cp script ./--vps
expect 0 "script three" "$K" run -- ./--vps three

# a bad value reaches a program's start only without the command; the library says so itself
expect 2 "KOCHAB_VPS=none: bad value" env KOCHAB_VPS=none "$K" run true

# a variable that a script exports is told by its user, not by each program of the script
cat >exports <<'END'
#!/bin/sh
export KOCHAB_FRITZ=1
for i in 1 2 3 4 5; do ls >/dev/null; sleep 0; done
[ $# = 0 ] || exec "$@"
END
chmod 755 exports
lines() { grep -c "KOCHAB_FRITZ: no such option" "$1"; }
expect 0 "" "$K" run ./exports
"$K" run ./exports 2>quiet
[ "$(lines quiet)" = 0 ] || { echo "told by programs without threads: $(lines quiet) times"; failures=$((failures + 1)); }
"$K" run ./exports "$BUILD/test/posix/std_threads" >told 2>&1
[ "$(lines told)" = 1 ] || { echo "told $(lines told) times by a program with threads"; failures=$((failures + 1)); }
finish
