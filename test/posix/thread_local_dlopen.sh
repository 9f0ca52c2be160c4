#!/bin/bash
# __thread and thread_local in the executable, in a library it is linked with, and in a library that it
# loads by dlopen, used by threads made before and after the dlopen. Some threads end before dlclose and
# some after it, and then destroy the objects that the library made for them. When the library is loaded
# again its variables are new, also in threads that take over the memory of ended threads.
set -u
KOCHAB_BIN=${KOCHAB_BIN:-${BUILD:-build}/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CXX=${CXX:-c++}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0

cat >"$T/lib.h" <<'END'
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#define CHECK(c) do { if (!(c)) { fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #c); _Exit(1); } } while (0)

struct counters { int made, gone; };

struct Counted {
	std::string text = "long enough not to lie inside the string itself";
	counters *of = nullptr;
	~Counted()
	{
		CHECK(text.size() > 40);
		if (of)
			__atomic_add_fetch(&of->gone, 1, __ATOMIC_SEQ_CST);
	}
};

/* what one module has, and what a thread does with it */
#define MODULE(name) \
	static __thread int initial = 5; \
	static __thread char zeroes[3000]; \
	static thread_local int plain = 7; \
	static thread_local Counted counted; \
	extern "C" __attribute__((visibility("default"))) void name(int me, counters *c) \
	{ \
		CHECK(initial == 5 && plain == 7 && zeroes[0] == 0 && zeroes[2999] == 0 && !counted.of); \
		__atomic_add_fetch(&c->made, 1, __ATOMIC_SEQ_CST); \
		counted.of = c; \
		initial = plain = me; \
		zeroes[2999] = (char)me; \
		counted.text += std::to_string(me); \
		int *at = &plain; \
		for (int i = 0; i < 20; i++) { \
			sched_yield(); \
			CHECK(at == &plain && initial == me && plain == me && zeroes[2999] == (char)me && zeroes[0] == 0); \
			CHECK(counted.text.find(std::to_string(me)) != std::string::npos); \
		} \
	}
END
printf '#include "lib.h"\nMODULE(linked)\n' >"$T/linked.cc"
printf '#include "lib.h"\nMODULE(loaded)\n' >"$T/loaded.cc"
cat >"$T/main.cc" <<'END'
#include "lib.h"
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

enum { THREADS = 24 };

MODULE(own)
extern "C" void linked(int, counters *);
static void (*loaded)(int, counters *);
static counters of_own, of_linked, of_loaded;
static sem_t begin, used, end;

static void *body(void *arg)
{
	int me = (int)(long)arg;

	sem_wait(&begin);
	own(me, &of_own);
	linked(me, &of_linked);
	loaded(me, &of_loaded);
	sem_post(&used);
	if (me % 2) /* the others end after dlclose */
		return nullptr;
	sem_wait(&end);
	return nullptr;
}

static void round_of(int n)
{
	pthread_t t[THREADS];
	void *lib;
	int i;

	for (i = 0; i < THREADS / 2; i++)
		CHECK(pthread_create(&t[i], nullptr, body, (void *)(long)(100 + i)) == 0);
	sched_yield();
	CHECK(!dlopen("libloaded.so", RTLD_NOW | RTLD_NOLOAD));
	lib = dlopen("libloaded.so", RTLD_NOW);
	CHECK(lib);
	loaded = (void (*)(int, counters *))dlsym(lib, "loaded");
	CHECK(loaded);
	for (; i < THREADS; i++)
		CHECK(pthread_create(&t[i], nullptr, body, (void *)(long)(100 + i)) == 0);
	for (i = 0; i < THREADS; i++)
		sem_post(&begin);
	for (i = 0; i < THREADS; i++)
		sem_wait(&used);
	for (i = 1; i < THREADS; i += 2)
		CHECK(pthread_join(t[i], nullptr) == 0);
	CHECK(of_loaded.made == n * THREADS && of_loaded.gone == n * THREADS - THREADS / 2);
	CHECK(dlclose(lib) == 0);
	for (i = 0; i < THREADS / 2; i++)
		sem_post(&end);
	for (i = 0; i < THREADS; i += 2)
		CHECK(pthread_join(t[i], nullptr) == 0);
	CHECK(of_own.made == n * THREADS && of_own.gone == n * THREADS);
	CHECK(of_linked.made == n * THREADS && of_linked.gone == n * THREADS);
	CHECK(of_loaded.made == n * THREADS && of_loaded.gone == n * THREADS);
	/* the loader looks again when the next handle is closed: nobody needs the library now */
	lib = dlopen("libloaded.so", RTLD_NOW);
	CHECK(lib && dlclose(lib) == 0);
}

int main()
{
	sem_init(&begin, 0, 0);
	sem_init(&used, 0, 0);
	sem_init(&end, 0, 0);
	for (int n = 1; n <= 4; n++)
		round_of(n);
	return 0;
}
END
# unique symbols would keep the library loaded for ever
unique=(-fno-gnu-unique)
"$CXX" "${unique[@]}" -E -x c++ /dev/null >"$T/out" 2>&1 || unique=()
"$CXX" -std=c++17 -O1 -g -fPIC -shared "${unique[@]}" -pthread -I"$T" -o "$T/liblinked.so" "$T/linked.cc" || exit 1
"$CXX" -std=c++17 -O1 -g -fPIC -shared "${unique[@]}" -pthread -I"$T" -o "$T/libloaded.so" "$T/loaded.cc" || exit 1
"$CXX" -std=c++17 -O1 -g -I"$T" -o "$T/main" "$T/main.cc" -L"$T" -llinked -Wl,-rpath,"$T" -pthread -ldl || exit 1

one() { # WHAT COMMAND...
	local what=$1
	shift
	LD_LIBRARY_PATH=$T timeout -s QUIT -k 5 120 "$@" >"$T/out" 2>&1 && return
	echo "$what: exit $?"
	tail -n 20 "$T/out"
	failed=1
}
one plain "$T/main"
for sched in rotator lb2 steal; do
	for vps in 1 2 4; do
		one "$sched/$vps" "$KOCHAB_BIN" run --sched $sched --vps $vps -- "$T/main"
	done
done
exit $failed
