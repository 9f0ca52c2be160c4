#!/bin/bash
# timeout: 600
# Code that looks a function up in libc finds the function that the whole program uses: a library that
# RTLD_DEEPBIND puts before all libraries, now or at its first calls, its constructor and its thread at
# once; a handle of libc's; RTLD_NEXT in a library that comes last; dlvsym. They share mutexes, condition
# variables, threads and memory with the program. A library's own definitions stay its own. A library
# that wraps a function of libc's is called, and its original is libc's.
set -u
BUILD=${BUILD:-build}
KOCHAB_BIN=${KOCHAB_BIN:-$BUILD/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0

cat >"$T/deep.c" <<'END'
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern pthread_mutex_t shared;
extern pthread_cond_t turned;
extern int turn;

/* the program has one of this name, too */
const char *whose(void) { return "the library's"; }
const char *deep_whose(void) { return whose(); }

static pthread_t first;
static sem_t up;

static void *early(void *arg)
{
	pthread_mutex_lock(&shared);
	turn++;
	pthread_cond_broadcast(&turned);
	pthread_mutex_unlock(&shared);
	sem_post(&up);
	return arg;
}

__attribute__((constructor)) static void begin(void)
{
	sem_init(&up, 0, 0);
	if (pthread_create(&first, NULL, early, strdup("early")))
		abort();
	while (sem_wait(&up))
		;
}

void *deep_first(void)
{
	void *r = NULL;

	pthread_join(first, &r);
	return r;
}

void deep_turn(int me, int of)
{
	pthread_mutex_lock(&shared);
	while (turn % of != me)
		pthread_cond_wait(&turned, &shared);
	turn++;
	pthread_cond_broadcast(&turned);
	pthread_mutex_unlock(&shared);
}

char *deep_copy(const char *s) { return strdup(s); }
void deep_free(void *p) { free(p); }
void *deep_more(void *p, size_t n) { return realloc(p, n); }
size_t deep_bytes(void *p) { return malloc_usable_size(p); }
int deep_make(pthread_t *t, void *(*f)(void *), void *arg) { return pthread_create(t, NULL, f, arg); }
void *deep_next(const char *name) { return dlsym(RTLD_NEXT, name); }
END
cat >"$T/main.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define CHECK(c) do { if (!(c)) { fprintf(stderr, "%d: not true: %s\n", __LINE__, #c); exit(1); } } while (0)
#define FIND(name) CHECK((name = (__typeof__(name))(unsigned long)dlsym(deep, "deep_" #name)))

enum { OF = 6, TURNS = 60 };

pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
int turn;
const char *whose(void) { return "the program's"; }

static const char *(*whose_of)(void);
static void *(*first)(void), (*turn_of)(int, int), *(*more)(void *, size_t), *(*next)(const char *);
static char *(*copy)(const char *);
static size_t (*bytes)(void *);
static void (*let_go)(void *);
static int (*make)(pthread_t *, void *(*)(void *), void *);
static int (*lock)(pthread_mutex_t *), (*unlock)(pthread_mutex_t *), (*wait_old)(pthread_cond_t *, pthread_mutex_t *);

static void own_turn(int me)
{
	lock(&shared);
	while (turn % OF != me)
		wait_old(&turned, &shared);
	turn++;
	pthread_cond_broadcast(&turned);
	unlock(&shared);
}

static void *player(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < TURNS; i++)
		if (me & 1)
			turn_of(me, OF);
		else
			own_turn(me);
	return arg;
}

static void share_memory(void)
{
	char *a = copy("some text that is the library's"), *b = strdup("some that is not"), *c = malloc(100);

	CHECK(bytes(b) >= strlen(b) + 1);
	let_go(b);
	c = more(c, 100000);
	CHECK(c);
	free(c);
	free(a);
}

/* Before 2.34 thread functions are in a library of their own; it needs libc, so a handle of it finds all. */
static const char *libcs(void)
{
	return strverscmp(gnu_get_libc_version(), "2.34") < 0 ? LIBPTHREAD_SO : LIBC_SO;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "pthread_mutex_lock", "pthread_create", "sem_wait", "usleep", "fgets", "read", "malloc",
		"free" };
	pthread_t t[OF];
	void *deep, *libc = dlopen(libcs(), RTLD_NOW), *r, *older = NULL;
	const char *const versions[] = { "GLIBC_2.3.2", "GLIBC_2.17", "GLIBC_2.27", "GLIBC_2.34", "GLIBC_2.36" };

	CHECK(argc == 3 && libc);
	deep = dlopen(argv[1], (*argv[2] == 'n' ? RTLD_NOW : RTLD_LAZY) | RTLD_DEEPBIND);
	if (!deep)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(deep && turn == 1);
	CHECK((whose_of = (const char *(*)(void))(unsigned long)dlsym(deep, "deep_whose")) && !strcmp(whose_of(), "the library's"));
	CHECK((turn_of = (void (*)(int, int))(unsigned long)dlsym(deep, "deep_turn")));
	FIND(first);
	FIND(copy);
	FIND(more);
	FIND(bytes);
	FIND(make);
	FIND(next);
	CHECK((let_go = (void (*)(void *))(unsigned long)dlsym(deep, "deep_free")));
	r = first();
	CHECK(!strcmp(r, "early"));
	free(r);
	share_memory();
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *everybodys = dlsym(RTLD_DEFAULT, names[i]);

		CHECK(dlsym(libc, names[i]) == everybodys);
		CHECK(next(names[i]) == everybodys);
	}
	for (unsigned i = 0; i < sizeof(versions) / sizeof(*versions) && !older; i++)
		older = dlvsym(libc, "pthread_cond_wait", versions[i]);
	CHECK((wait_old = (int (*)(pthread_cond_t *, pthread_mutex_t *))(unsigned long)older));
	CHECK((lock = (int (*)(pthread_mutex_t *))(unsigned long)dlsym(libc, "pthread_mutex_lock")));
	CHECK((unlock = (int (*)(pthread_mutex_t *))(unsigned long)dlsym(libc, "pthread_mutex_unlock")));
	turn = 0;
	for (long i = 0; i < OF; i++)
		CHECK((i & 2 ? make(&t[i], player, (void *)i) : pthread_create(&t[i], NULL, player, (void *)i)) == 0);
	for (long i = 0; i < OF; i++)
		CHECK(pthread_join(t[i], &r) == 0 && r == (void *)i);
	CHECK(turn == OF * TURNS);
	puts("all right");
	return 0;
}
END
cat >"$T/wrapper.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static int calls;
int wrapped(void) { return calls; }
int fsync(int fd)
{
	int (*real)(int) = (int (*)(int))(unsigned long)dlsym(RTLD_NEXT, "fsync");

	if (calls++ > 1000)
		abort();
	return real(fd);
}
END
cat >"$T/wraps.c" <<'END'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int wrapped(void);
static void *say(void *arg) { fsync(1); puts("all right"); return arg; }
int main(void)
{
	pthread_t t;
	void *r;
	int before = wrapped();

	return pthread_create(&t, NULL, say, &t) || pthread_join(t, &r) || r != &t || wrapped() != before + 1;
}
END
"$CC" -O1 -fPIC -shared -pthread -D_GNU_SOURCE -o "$T/libdeep.so" "$T/deep.c" -ldl || exit 1
"$CC" -O1 -fPIC -shared -pthread -D_GNU_SOURCE -Wl,-z,now -Wl,-Bsymbolic -o "$T/libnow.so" "$T/deep.c" -ldl || exit 1
"$CC" -O1 -pthread -rdynamic -o "$T/main" "$T/main.c" -ldl || exit 1
"$CC" -O1 -fPIC -shared -o "$T/libwrapper.so" "$T/wrapper.c" -ldl || exit 1
"$CC" -O1 -pthread -o "$T/wraps" "$T/wraps.c" -L"$T" -lwrapper -Wl,-rpath,"$T" || exit 1

one() { # COMMAND...
	timeout -s QUIT -k 5 120 "$@" >"$T/out" 2>&1 && grep -q 'all right' "$T/out" && return
	echo "$*: exit $?"
	tail -n 20 "$T/out"
	failed=1
}
all() { # COMMAND...
	one "$@" "$T/main" "$T/libdeep.so" lazy
	one "$@" "$T/main" "$T/libdeep.so" now
	one "$@" "$T/main" "$T/libnow.so" lazy
	one "$@" "$T/wraps"
}
all
all "$KOCHAB_BIN" run --
[ -n "${SAN:-}" ] || all "$KOCHAB_BIN" run --vps 1 --malloc kochab --
[ -n "${SAN:-}" ] || all "$KOCHAB_BIN" run --malloc kochab --body process --vps 2 --
all "$KOCHAB_BIN" run --vps 4 --sched steal --
[ -n "${SAN:-}" ] || one env LD_PRELOAD="$(realpath "$BUILD")/libkochab-malloc.so.0" "$T/main" "$T/libdeep.so" now
LD_BIND_NOW=1 one "$KOCHAB_BIN" run -- "$T/main" "$T/libdeep.so" lazy
exit $failed
