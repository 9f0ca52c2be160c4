#!/bin/bash
# mem/stack_code: code on threads' stacks. A program linked with -z execstack may run it on each of them: made by default,
# small, without a guard, used again, with all signals blocked. In a program without, a library that asks for it, loaded
# while threads wait, gives it to those threads, to stacks that have been used before and to new ones, where this libc lets
# it; also where the program handles SIGSEGV. The stacks' guards stay.
set -u
KOCHAB_BIN=${KOCHAB_BIN:-${BUILD:-build}/kochab}
[ -x "$KOCHAB_BIN" ] || { echo "no $KOCHAB_BIN"; exit 77; }
CC=${CC:-cc}
T=$(mktemp -d) && trap 'rm -rf "$T"' EXIT
failed=0

cat >"$T/prog.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define CHECK(c) do { if (!(c)) { fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #c); _Exit(1); } } while (0)
#if defined(__x86_64__)
static const unsigned char text[] = { 0xb8, 0x2a, 0, 0, 0, 0xc3 };
#elif defined(__aarch64__)
static const unsigned char text[] = { 0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6 };
#else
#define NO_TEXT
static const unsigned char text[1];
#endif
enum { THREADS = 6, ROUNDS = 3 };
static pthread_barrier_t loaded, reached;
static sigjmp_buf back;
static volatile sig_atomic_t faults;
static char alternate[65536];

static void run_on_stack(void)
{
	unsigned char here[sizeof text];

	memcpy(here, text, sizeof text);
	__builtin___clear_cache((char *)here, (char *)here + sizeof here);
	CHECK(((int (*)(void))(void *)here)() == 42);
}

static void *runs(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	if (arg)
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		run_on_stack();
		usleep(200);
	}
	return arg;
}

static void *ends(void *arg) { return arg; }

static void *waits(void *arg)
{
	pthread_barrier_wait(&reached);
	pthread_barrier_wait(&loaded);
	run_on_stack();
	return arg;
}

static void crowd(void *(*fn)(void *), void *arg, const pthread_attr_t *a)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], a, fn, arg));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void fault(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
	faults++;
	siglongjmp(back, 1);
}

static int deep(volatile char *above)
{
	volatile char room[4096];

	room[0] = above ? *above : 0;
	return deep(room) + room[0];
}

/* To the end of it, on an alternate stack. */
static void *overflows(void *arg)
{
	stack_t s = { .ss_sp = alternate, .ss_size = sizeof alternate };

	CHECK(!sigaltstack(&s, NULL));
	if (!sigsetjmp(back, 1))
		deep(NULL);
	return arg;
}

static void handle(void)
{
	struct sigaction sa = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	CHECK(!sigaction(SIGSEGV, &sa, NULL));
}

static void check_guard(void)
{
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	handle();
	pthread_t t;
	for (int i = 1; i <= 2; i++) {
		CHECK(!pthread_create(&t, &small, overflows, NULL));
		pthread_join(t, NULL);
		CHECK(faults == i);
	}
}

static void linked(void)
{
	pthread_attr_t small, bare;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_attr_init(&bare);
	pthread_attr_setguardsize(&bare, 0);
	run_on_stack();
	for (int i = 0; i < ROUNDS; i++) {
		crowd(runs, NULL, NULL);
		crowd(runs, alternate, NULL);
		crowd(runs, NULL, &small);
		crowd(runs, NULL, &bare);
	}
}

static void loads(const char *library)
{
	pthread_t t[THREADS];
	void *lib;

	crowd(ends, NULL, NULL);
	pthread_barrier_init(&reached, NULL, THREADS + 1);
	pthread_barrier_init(&loaded, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, waits, NULL));
	pthread_barrier_wait(&reached);
	lib = dlopen(library, RTLD_NOW);
	if (!lib) {
		printf("not here: %s\n", dlerror());
		_Exit(77);
	}
	pthread_barrier_wait(&loaded);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	linked();
}

int main(int n, char **arg)
{
#ifdef NO_TEXT
	return 77;
#endif
	if (n > 2)
		handle();
	if (n > 1)
		loads(arg[1]);
	else
		linked();
	check_guard();
	return 0;
}
END
echo 'int answer(void) { return 42; }' >"$T/lib.c"
$CC -O1 -D_GNU_SOURCE -pthread -z execstack "$T/prog.c" -o "$T/linked" -ldl &&
	$CC -O1 -D_GNU_SOURCE -pthread "$T/prog.c" -o "$T/loads" -ldl &&
	$CC -shared -fPIC -z execstack "$T/lib.c" -o "$T/lib.so" || exit 1

try()
{
	local way=$1

	shift
	timeout 20 $way "$@"
	case $? in
	0) ;;
	77) [ "$1" = "$T/loads" ] || failed=1 ;;
	*) echo "${way:-as it is}: $*"; failed=1 ;;
	esac
}

for way in "" "$KOCHAB_BIN run --" "$KOCHAB_BIN run --vps 1 --" "$KOCHAB_BIN run --vps 4 --sched steal --" \
	"$KOCHAB_BIN run --body process --vps 2 --" "$KOCHAB_BIN run --guard mprotect --"; do
	try "$way" "$T/linked"
	try "$way" "$T/loads" "$T/lib.so"
	try "$way" "$T/loads" "$T/lib.so" handles
done
exit $failed
