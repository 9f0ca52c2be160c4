#!/bin/bash
# posix/libwait: with the option libcalls=patch, a thread spins in a constructor under dlopen, with
# the loader's lock, until another thread of its virtual processor has done something: that thread
# runs, while further threads wait for that lock; and the constructor of a library that a second
# thread loads meanwhile has its turn.
# matrix: none
# body: thread
set -u
KOCHAB_BIN=${KOCHAB_BIN:-${BUILD:-build}/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
[ "$(uname -m)" = x86_64 ] || exit 77
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0

cat >"$T/lib.c" <<'END'
extern int asked, answered;
__attribute__((constructor)) static void spins(void)
{
	int mine = __atomic_add_fetch(&asked, 1, __ATOMIC_RELEASE);

	while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) < mine)
		;
}
END
cat >"$T/main.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(c) do { if (!(c)) { fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #c); _exit(1); } } while (0)

enum { ROUNDS = 10, LOADERS = 3 };

int asked, answered, stop;

static void *answers(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		__atomic_store_n(&answered, __atomic_load_n(&asked, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	return arg;
}

static void *loads(void *path)
{
	for (int i = 0; i < ROUNDS; i++) {
		void *m = dlopen(path, RTLD_NOW);

		CHECK(m);
		CHECK(dlclose(m) == 0);
	}
	return path;
}

int main(int argc, char **argv)
{
	pthread_t other, loader[LOADERS];

	CHECK(argc == LOADERS + 2);
	alarm(100);
	CHECK(pthread_create(&other, NULL, answers, NULL) == 0);
	for (int i = 0; i < LOADERS; i++)
		CHECK(pthread_create(&loader[i], NULL, loads, argv[i + 1]) == 0);
	loads(argv[LOADERS + 1]);
	for (int i = 0; i < LOADERS; i++)
		CHECK(pthread_join(loader[i], NULL) == 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	CHECK(pthread_join(other, NULL) == 0);
	CHECK(asked >= ROUNDS);
	return 0;
}
END

libraries=()
for i in 1 2 3 4; do
	$CC -O1 -shared -fPIC -o "$T/lib$i.so" "$T/lib.c" || exit 77
	libraries+=("$T/lib$i.so")
done
$CC -O1 -rdynamic -o "$T/main" "$T/main.c" -pthread -ldl || exit 77

"$T/main" "${libraries[@]}" || { echo "plain: exit $?"; failed=1; }
for sched in rotator lb2 steal; do
	for vps in 1 2; do
		env KOCHAB_LIBCALLS=patch "$KOCHAB_BIN" run --sched $sched --vps $vps --quantum 1ms -- "$T/main" "${libraries[@]}" ||
			{ echo "$sched, $vps virtual processors: exit $?"; failed=1; }
	done
done
exit $failed
