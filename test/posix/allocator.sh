#!/bin/bash
# timeout: 600
# Another allocator, preloaded too: it reads its settings (getenv) and uses mutexes while the loader
# and our constructor run. A function that this libc lacks is no error of the program: dlerror
# returns nothing.
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
	/* and an error that the program has to see is not lost */
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

# An allocator that computes and makes system calls, called by the loader while it holds its locks:
# no thread may be switched away there.
cat >"$T/slow.c" <<'END'
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
void *__libc_malloc(size_t n);
void *malloc(size_t n)
{
	char some[8];

	for (volatile int i = 0; i < 20000; i++)
		;
	syscall(SYS_getrandom, some, sizeof some, 0);
	return __libc_malloc(n);
}
END
cat >"$T/opens.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
static void *work(void *arg)
{
	for (int i = 0; i < 10; i++) {
		void *m = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);

		if (!m)
			_exit(1);
		dlclose(m);
	}
	return arg;
}
int main(void)
{
	pthread_t t[40];

	for (int i = 0; i < 40; i++)
		if (pthread_create(&t[i], NULL, work, NULL))
			return 2;
	for (int i = 0; i < 40; i++)
		pthread_join(t[i], NULL);
	return 0;
}
END
"$CC" -O1 -shared -fPIC -o "$T/slow.so" "$T/slow.c" &&
	"$CC" -pthread -o "$T/opens" "$T/opens.c" -ldl || exit 1
for vps in 1 2 4; do
	LD_PRELOAD=$T/slow.so timeout -s QUIT -k 5 250 \
		"$KOCHAB_BIN" run --vps $vps --quantum 2000 -- "$T/opens" >"$T/out" 2>&1 && continue
	echo "a slow allocator, $vps virtual processors: exit $?"
	tail -n 5 "$T/out"
	failed=1
done

for lib in $(ldconfig -p 2>/dev/null |
	awk '/lib(jemalloc|tcmalloc|tcmalloc_minimal|mimalloc)\.so/ { print $NF }'); do
	for program in /bin/true "$BUILD/test/posix/unsafe_race" "$BUILD/test/posix/keys"; do
		[ -x "$program" ] || continue
		LD_PRELOAD=$lib timeout -s QUIT -k 5 250 \
			"$KOCHAB_BIN" run -- "$program" >"$T/out" 2>&1 && continue
		echo "$lib $program: exit $?"
		tail -n 5 "$T/out"
		failed=1
	done
done
exit $failed
