#!/bin/bash
# kochab run and the programs that the program starts: scripts, shells, spawned and exec'ed programs
# run on Kochab, too; with --children no only the first does. Programs that the loader does not serve
# run plainly.
. "$(dirname "$0")/lib.sh"
[ -e "$BUILD/libkochab-posix.so.0" ] || skip "no drop-in in this build"
[ -z "${SAN:-}" ] || skip "a sanitizer's library must come first in LD_PRELOAD"
cd "$T" || exit 1

# Prints which threads it has: twenty wait, and /proc shows as many tasks or not. --then PROGRAM...:
# exec'ed by a thread; --spawn, --system, --popen: started by a thread, and waited for.
cat >kind.c <<'END'
#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { THREADS = 20 };
extern char **environ;
static pthread_barrier_t met, seen;
static char **rest;
static void *wait_twice(void *arg)
{
	pthread_barrier_wait(&met);
	pthread_barrier_wait(&seen);
	return arg;
}
static void *start_next(void *how)
{
	char line[256];
	pid_t pid;
	int status = -1;
	if (strcmp(how, "--then") == 0)
		execv(rest[0], rest);
	if (strcmp(how, "--spawn") == 0 && posix_spawn(&pid, rest[0], NULL, NULL, rest, environ) == 0)
		waitpid(pid, &status, 0);
	if (strcmp(how, "--system") == 0)
		status = system(rest[0]);
	if (strcmp(how, "--popen") == 0) {
		FILE *f = popen(rest[0], "r");
		if (f && fgets(line, sizeof(line), f))
			fputs(line, stdout);
		status = f ? pclose(f) : -1;
	}
	return (void *)(long)status;
}
int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	void *result = NULL;
	DIR *d = opendir("/proc/self/task");
	int n = 0;
	pthread_barrier_init(&met, NULL, THREADS + 1);
	pthread_barrier_init(&seen, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, wait_twice, NULL))
			return 9;
	pthread_barrier_wait(&met);
	while (readdir(d))
		n++;
	puts(n < THREADS ? "light" : "kernel");
	fflush(stdout);
	pthread_barrier_wait(&seen);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	if (argc > 2) {
		rest = argv + 2;
		pthread_create(&t[0], NULL, start_next, argv[1]);
		pthread_join(t[0], &result);
	}
	return (int)(long)result;
}
END
compile() { "${CC:-gcc}" -O1 "$@" -pthread; }
compile -o kind kind.c || { echo "does not compile"; exit 1; }

# says EXPECTED COMMAND...: exactly these lines on standard output
says() {
	local want=$1 got
	shift
	got=$(timeout 60 "$@" 2>errors | tr '\n' ' ')
	[ "$got" = "$want " ] && return
	echo "said '$got', wanted '$want': $*"
	cat errors
	failures=$((failures + 1))
}
says kernel ./kind
says light "$K" run ./kind

# ---- served programs -----------------------------------------------------------------------------
printf '#!/bin/sh\n./kind\nsh -c "./kind; true"\nenv ./kind\n' >script && chmod 755 script
printf '#!%s --spawn ./kind\n' "$T/kind" >through && chmod 755 through
says "light light light" "$K" run ./script
says "kernel kernel kernel" "$K" run --children no ./script
says "light" "$K" run --children=no ./kind
for way in --then --spawn --system --popen; do
	says "light light" "$K" run --vps 2 ./kind $way ./kind
	says "light kernel" "$K" run --vps 2 --children no ./kind $way ./kind
done
says "kernel kernel" "$K" run env -i ./kind --then ./kind
says "light" "$K" run nohup nice ./kind
says "light" "$K" run sh -c 'exec ./kind'
says "light" "$K" run timeout 50 ./kind

# Options hold for later programs of the chain, and for a program that clears its environment before
# its first thread.
cat >clear.c <<'END'
#include <stdlib.h>
int real_main(int, char **);
int main(int argc, char **argv) { clearenv(); return real_main(argc, argv); }
END
compile -Dmain=real_main -c -o clear-kind.o kind.c && compile -o clear clear.c clear-kind.o
expect 0 "2 virtual processors" "$K" run --vps 2 --verbose sh -c './kind; true'
expect 0 "2 virtual processors" "$K" run --vps 2 --verbose ./clear

# ---- LD_PRELOAD --------------------------------------------------------------------------------------------
other=$T/libother.so
echo 'int other_library;' >other.c && compile -shared -fPIC -o "$other" other.c
# shellcheck disable=SC2016 # the shell that is run expands it
print='echo "<$LD_PRELOAD>" | sed "s|/.LIB/../../../..||g"' # only glibc knows what that is: the root
says "<$other>" env LD_PRELOAD="$other" "$K" run --children no sh -c "$print"
says "<$BUILD/libkochab-posix.so.0:$other>" env LD_PRELOAD="$other" "$K" run sh -c "$print"
says "<>" "$K" run --children no sh -c "$print"
# In a program that is run again, from here or from a different place, LD_PRELOAD names it once.
mkdir copy && cp "$BUILD/libkochab-posix.so.0" copy
says "<$T/copy/libkochab-posix.so.0:$other>" env LD_PRELOAD="$other" "$K" run env KOCHAB_LIB="$T/copy" "$K" run sh -c "$print"
says "light" "$K" run "$K" run ./kind
says "<$other:$other>" env LD_PRELOAD=" $other $other:" "$K" run --children no sh -c "$print"

# ---- programs that the loader does not serve run plainly --------------------------------------
if compile -static -o static kind.c 2>/dev/null; then
	says "kernel" "$K" run sh -c './static'
	says "kernel light" "$K" run ./static --spawn ./kind
	says "kernel kernel" "$K" run --children no ./static --spawn ./kind
	says "light kernel" "$K" run ./kind --spawn ./static
fi
if command -v musl-gcc >/dev/null && musl-gcc -o musl kind.c && [ "$(./musl)" = kernel ]; then
	says "kernel" "$K" run sh -c './musl'
	says "kernel light" "$K" run ./musl --spawn ./kind
	says "kernel light" "$K" run --malloc kochab ./musl --spawn ./kind
	says "kernel kernel" "$K" run --children no ./musl --spawn ./kind
	says "light kernel" "$K" run ./kind --spawn ./musl
	says "light kernel" "$K" run --malloc kochab ./kind --spawn ./musl
fi
if compile -m32 -o bits32 kind.c 2>/dev/null && ./bits32 >/dev/null 2>&1; then
	says "kernel" "$K" run sh -c './bits32'
	says "kernel" "$K" run ./bits32
fi
if [ "$(id -u)" = 0 ] && cp kind suid && chown nobody suid && chmod 4755 suid &&
	[ "$(findmnt -no OPTIONS -T . 2>/dev/null | grep -c nosuid)" = 0 ]; then
	says "kernel" "$K" run sh -c './suid'
fi

# ---- how it is linked --------------------------------------------------------------------------------------
for how in -no-pie -pie; do
	compile $how -o linked kind.c || continue
	says "light" "$K" run ./linked
	compile $how -o linked kind.c -L"$BUILD" -Wl,--no-as-needed -lkochab-posix -Wl,-rpath,"$BUILD" || failures=1
	says "light" ./linked
	says "light" "$K" run ./linked
	says "light" env KOCHAB_LIB="$T/copy" "$K" run ./linked
	says "light" "$K" run --children no ./linked
done
finish
