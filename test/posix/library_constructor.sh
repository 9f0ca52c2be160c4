#!/bin/bash
# The constructor of a library that the loader starts before the drop-in makes keys, once-flags and
# threads and waits for them; then main does so. Likewise the constructor of a library that main
# loads by dlopen: the loader's lock is held when the runtime starts. Also with processes as virtual
# processors.
set -eu
KOCHAB_BIN=${KOCHAB_BIN:-${BUILD:-build}/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT

cat >"$T/early.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n, ended;
static void end(void *v) { (void)v; pthread_mutex_lock(&m); ended++; pthread_mutex_unlock(&m); }
static void make(void) { if (pthread_key_create(&key, end)) abort(); }
static void *body(void *arg)
{
	pthread_once(&once, make);
	pthread_setspecific(key, arg);
	pthread_mutex_lock(&m);
	n++;
	pthread_mutex_unlock(&m);
	return arg;
}
void crowd(int to)
{
	pthread_t t[10];
	void *r;
	for (int i = 0; i < 10; i++)
		if (pthread_create(&t[i], NULL, body, &n)) abort();
	for (int i = 0; i < 10; i++)
		if (pthread_join(t[i], &r) || r != &n) abort();
	if (n != to || ended != to) abort();
}
__attribute__((constructor)) static void early(void) { crowd(10); }
END
echo 'void crowd(int); int main(void) { crowd(20); return 0; }' >"$T/main.c"
"$CC" -shared -fPIC -pthread -o "$T/libearly.so" "$T/early.c"
"$CC" -o "$T/main" "$T/main.c" -L"$T" -learly -Wl,-rpath,"$T" -pthread
cat >"$T/load.c" <<'END'
#include <dlfcn.h>
int main(int argc, char **argv)
{
	void *l = dlopen(argv[argc - 1], RTLD_NOW);
	void (*crowd)(int) = l ? (void (*)(int))dlsym(l, "crowd") : 0;
	if (!crowd) return 1;
	crowd(20);
	return 0;
}
END
"$CC" -o "$T/load" "$T/load.c" -ldl

each() { # COMMAND...
	timeout 30 "$@" "$T/main"
	timeout 30 "$@" "$T/load" "$T/libearly.so"
}
each env
for vps in 1 2 4; do each timeout -s QUIT 100 "$KOCHAB_BIN" run --vps $vps --; done
if "$KOCHAB_BIN" doctor | grep -q '^+ process bodies'; then
	for vps in 1 2; do each timeout -s QUIT 100 "$KOCHAB_BIN" run --body process --vps $vps --; done
fi
