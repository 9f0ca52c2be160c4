#!/bin/bash
# Another allocator, preloaded too: it asks for its settings (getenv) and uses mutexes while the loader and our constructor
# are at work. And what this libc lacks is no error of the program's: dlerror says nothing.
set -u
BUILD=${BUILD:-build}
KOCHAB_BIN=${KOCHAB_BIN:-$BUILD/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0

cat >"$T/quiet.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	const char *e = dlerror();

	if (e)
		puts(e);
	/* and what the program has to hear is not lost */
	if (e || dlopen("/nowhere/at-all.so", RTLD_NOW))
		return 1;
	printf("%s\n", getenv("HOME") ? "at home" : "not at home");
	if (fflush(NULL))
		return 2;
	e = dlerror();
	if (!e)
		puts("dlerror has forgotten");
	return e ? 0 : 3;
}
END
"$CC" -pthread -o "$T/quiet" "$T/quiet.c" -ldl || exit 1
"$T/quiet" >"$T/out" && "$KOCHAB_BIN" run -- "$T/quiet" >"$T/out" || { cat "$T/out"; failed=1; }

for lib in $(ldconfig -p 2>/dev/null | awk '/lib(jemalloc|tcmalloc|tcmalloc_minimal|mimalloc)\.so/ { print $NF }'); do
	for program in /bin/true "$BUILD/test/posix/unsafe_race" "$BUILD/test/posix/keys"; do
		[ -x "$program" ] || continue
		LD_PRELOAD=$lib timeout -s QUIT -k 5 30 "$KOCHAB_BIN" run -- "$program" >"$T/out" 2>&1 && continue
		echo "$lib $program: exit $?"
		tail -n 5 "$T/out"
		failed=1
	done
done
exit $failed
