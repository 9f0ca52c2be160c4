#!/bin/bash
# The questions about libc's inside: `kochab doctor` lists them, and of this libc it is found. Then copies of libc in which it is not
# as expected: a line says so, and the program does the same in the nearest way that is left.
# timeout: 300
. "$(dirname "$0")/lib.sh"
[ -e "$BUILD/libkochab-posix.so.0" ] || skip "no drop-in in this build"
[ -z "${SAN:-}" ] || skip "a sanitizer's library must come first in LD_PRELOAD"
[ "$(uname -m)" = x86_64 ] || skip "x86-64: elsewhere blocks are made by libc"
for tool in readelf objdump ldd "${CC:-gcc}"; do
	command -v "$tool" >/dev/null || skip "no $tool"
done

fail() { echo "$*"; failures=$((failures + 1)); }

# ---- this libc ----
# Before 2.34 threads are in a library of their own, which does not show all of its inside.
threads_lib=$(ldd "$K" | sed -n 's/.*=> *\(.*libpthread\.so\.0\) .*/\1/p')
[ -n "$threads_lib" ] && ! readelf -W --dyn-syms "$threads_lib" | grep -q ' pthread_create@' && threads_lib=
hidden=()
[ -z "$threads_lib" ] || hidden=("libc's own keys" "count of threads")
"$K" doctor >"$T/doctor" 2>&1 || fail "doctor fails"
sed -n '/libc.s inside/,$p' "$T/doctor" >"$T/list"
for what in "libc's mutexes" "shared conditions" "shared rwlocks" "shared barriers" "shared semaphores" "cancellation mark" \
	"robust mutexes' list" "signals of libc's" "thread's number" "keys in use" "static TLS" "libc's own keys" \
	"thread_local's end" "control blocks" "stream's lock" "loader's locks" "cancellation points" "system calls" \
	"count of threads" "table of names" "end of main's stack" "attributes' flags" "attributes' extension"; do
	if [[ " ${hidden[*]} " = *" $what "* ]]; then
		grep -q "^-   $what *not shown" "$T/list" || fail "not as hidden: $what"
	else
		grep -q "^+   $what " "$T/list" || fail "not found: $what"
	fi
done
[ "$(grep -c '^-' "$T/list")" = ${#hidden[@]} ] || { fail "more was not found"; grep '^-' "$T/list"; }

# Every call that the code has was seen, by another reader of code.
libc=$(ldd "$K" | sed -n 's/.*=> *\(.*libc\.so\.6\) .*/\1/p')
loader=$(ldd "$K" | sed -n 's|^[[:space:]]*\(/[^ ]*ld-linux[^ ]*\) .*|\1|p')
timers_lib=$(ldd "$K" | sed -n 's/.*=> *\(.*librt\.so\.1\) .*/\1/p') # before 2.34; the program below does not ask for it
calls() { # MODULE...
	local module
	for module; do objdump -d --no-show-raw-insn "$module"; done | grep -cE '[[:space:]]syscall'
}
have=$(calls "$libc" "$loader" $threads_lib)
all=$(calls "$libc" "$loader" $threads_lib $timers_lib)
grep -q "libcalls=patch .* of $all system calls replaced" "$T/doctor" || { fail "there are $all system calls"; grep patch "$T/doctor"; }

# ---- a program ----
cat >"$T/p.cc" <<'END_P'
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <semaphore.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <sys/wait.h>
static std::atomic<int> ended;
struct local { int n = 0; ~local() { ended += n; } };
static thread_local local mine;
static void *sleeper(void *) { for (;;) sleep(100); }
static const char *said(int e) { return e ? e == ENOTSUP ? "refused" : strerror(e) : "works"; }
int main()
{
	std::vector<std::thread> threads;
	for (int round = 0; round < 20; round++, threads.clear()) {
		for (int i = 0; i < 10; i++)
			threads.emplace_back([] { mine.n = 1; std::this_thread::yield(); });
		for (auto &t : threads)
			t.join();
	}
	pid_t child = fork();
	if (child == 0) {
		std::thread([] { mine.n = 1; }).join();
		_exit(ended == 201 ? 7 : 1);
	}
	int status = 0;
	waitpid(child, &status, 0);
	printf("ended %d, child %d\n", ended.load(), WEXITSTATUS(status));
	pthread_t t;
	pthread_create(&t, nullptr, sleeper, nullptr);
	int e = pthread_cancel(t);
	printf("cancel %s\n", e ? strerror(e) : "works");
	if (!e)
		pthread_join(t, nullptr);
	pthread_mutexattr_t ma; pthread_mutexattr_init(&ma); pthread_mutexattr_setpshared(&ma, 1);
	pthread_condattr_t ca; pthread_condattr_init(&ca); pthread_condattr_setpshared(&ca, 1);
	pthread_rwlockattr_t ra; pthread_rwlockattr_init(&ra); pthread_rwlockattr_setpshared(&ra, 1);
	pthread_barrierattr_t ba; pthread_barrierattr_init(&ba); pthread_barrierattr_setpshared(&ba, 1);
	pthread_mutex_t m; pthread_cond_t c; pthread_rwlock_t r; pthread_barrier_t b; sem_t s;
	printf("mutex %s", said(pthread_mutex_init(&m, &ma)));
	printf(", condition %s", said(pthread_cond_init(&c, &ca)));
	printf(", rwlock %s", said(pthread_rwlock_init(&r, &ra)));
	printf(", barrier %s", said(pthread_barrier_init(&b, &ba, 1)));
	printf(", semaphore %s\n", said(sem_init(&s, 1, 0) ? errno : 0));
}
END_P
"${CXX:-g++}" -O1 -pthread "$T/p.cc" -o "$T/p" || exit 1

# The consequences of the other answers, a line each.
cat >"$T/q.c" <<'END_Q'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile int stop;
static void *loads(void *count)
{
	for (int i = 0; i < 50; i++) {
		void *module = dlopen("libm.so.6", RTLD_NOW);
		*(int *)count += module && dlsym(module, "cosh") && !dlclose(module);
	}
	return NULL;
}
static void *computes(void *steps) { do ++*(volatile unsigned long *)steps; while (!stop && *(unsigned long *)steps < 100000000); return steps; }
static void *locks(void *m) { return pthread_mutex_lock(m) ? m : NULL; }
static void *starts(void *unused) { system("sleep 0.3"); for (;;) pause(); return unused; }
static void *crashes(void *unused) { puts("a thread crashes"); raise(SIGSEGV); *(volatile int *)8 = 1; return unused; }
static void *writes(void *unused) { fprintf(stderr, "%s", ""); puts("another writes"); return unused; }
static const char *said(int e) { return e ? strerror(e) : "works"; }
int main(int argc, char **argv)
{
	pthread_t t[4], busy;
	int counts[4] = { 0 };
	unsigned long steps = 0;
	pthread_attr_t a;
	pthread_mutexattr_t ma;
	pthread_mutex_t m;
	void *result = NULL;
	pthread_create(&busy, NULL, computes, &steps);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, loads, &counts[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	stop = 1;
	pthread_join(busy, &result);
	printf("loaded %d, computed %d\n", counts[0] + counts[1] + counts[2] + counts[3], result == &steps && steps);
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setrobust(&ma, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&m, &ma);
	pthread_create(&t[0], NULL, locks, &m);
	pthread_join(t[0], NULL);
	printf("robust mutex: %s\n", said(pthread_mutex_trylock(&m)));
	pthread_attr_init(&a);
	printf("scope %s", said(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM)));
	printf(", created %s\n", said(pthread_create(&t[0], &a, loads, &counts[0])));
	pthread_join(t[0], NULL);
	pthread_create(&t[0], NULL, starts, NULL);
	usleep(20000);
	pthread_cancel(t[0]);
	pthread_join(t[0], &result);
	printf("cancelled %d\n", result == PTHREAD_CANCELED);
	if (argc > 1 && !strcmp(argv[1], "crash")) {
		pthread_create(&t[0], NULL, crashes, NULL);
		printf("joined: %s\n", said(pthread_join(t[0], NULL)));
		pthread_create(&t[0], NULL, writes, NULL);
		pthread_join(t[0], NULL);
	}
	return 0;
}
END_Q
"${CC:-gcc}" -O1 -pthread "$T/q.c" -o "$T/q" -ldl || exit 1

# ---- copies of libc ----
mkdir -p "$T/libc"
copy=$T/libc/libc.so.6
# place NAME: its code's offset in the file; an offset for each version
place() {
	local at from offset
	for at in $(readelf -W --dyn-syms "$libc" | sed -n "s/^ *[0-9]*: \([0-9a-f]*\) .* $1@.*/\1/p"); do
		read -r offset from < <(readelf -lW "$libc" | sed -n 's/^ *LOAD *\(0x[^ ]*\) \(0x[^ ]*\) .* R E .*/\1 \2/p')
		echo $((0x$at - from + offset))
	done
}
fresh() { cp "$libc" "$copy"; }
rename() { # NAME OTHER: as long
	LC_ALL=C sed -i "s/$1/$2/g" "$copy"
}
# returns_0 NAME: the function does nothing. xor %eax,%eax; ret
returns_0() {
	local at
	for at in $(place "$1"); do
		printf '\x31\xc0\xc3' | dd of="$copy" bs=1 seek="$at" conv=notrunc status=none
	done
}
# unreadable NUMBER: push $n; pop %rax; xchg %ax,%ax for mov $n,%eax before a call. False: there is none such.
unreadable() {
	cp "$copy" "$copy.was"
	LC_ALL=C sed -i "s/\xb8\x$1\x00\x00\x00\x0f\x05/\x6a\x$1\x58\x66\x90\x0f\x05/g" "$copy"
	! cmp -s "$copy" "$copy.was"
}
program=("$T/p")
all_work="mutex works, condition works, rwlock works, barrier works, semaphore works"
# strange LINE OUTPUT OPTION...: with that copy the program says that, in order; LINE: Kochab's message, or nothing
strange() {
	local line=$1 output=$2 code
	shift 2
	LD_LIBRARY_PATH=$T/libc timeout 100 "$K" run --vps 2 "$@" -- "${program[@]}" >"$T/out" 2>"$T/err" </dev/null
	code=$?
	if [ $code = 0 ] && [ "$(cat "$T/out")" = "$output" ] && if [ "$line" ]; then
			grep -q "^kochab: glibc [0-9.]*: $line" "$T/err"; else ! grep -q . "$T/err"; fi; then
		return
	fi
	fail "exit $code; wanted '$line' with $*"
	sed 's/^/  > /' "$T/out" "$T/err"
}
works=$'ended 200, child 7\ncancel works\n'

fresh
strange "" "$works$all_work"
strange "" "$works$all_work" --body process

if [ -z "$threads_lib" ]; then # else they are in two modules
	fresh && rename __call_tls_dtors __call_tls_dtorz
	strange "control blocks: .*(__call_tls_dtors): threads are kernel threads" "$works$all_work"

	fresh && for name in pthread_mutex_init pthread_cond_init pthread_rwlock_init pthread_barrier_init sem_init; do returns_0 $name; done
	strange "libc's mutexes: not as expected" \
		"${works}mutex refused, condition refused, rwlock refused, barrier refused, semaphore refused"
	[ "$(grep -c 'refused' "$T/err")" = 5 ] || fail "not a line for each kind"
fi

if fresh && unreadable 43; then # shmdt
	strange "system calls: 1 of $have were not understood .* a call of unknown number, at .*libc.so.6+0x" "$works$all_work" \
		--body process --libcalls patch
	LD_LIBRARY_PATH=$T/libc "$K" doctor >"$T/doctor" 2>&1
	grep -q '^-     passed over  *a call of unknown number, at .*libc.so.6+0x' "$T/doctor" || fail "doctor does not say it"
fi

# ---- false data ----
cat >"$T/false.c" <<'END_C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(MARK)
const uint32_t _thread_db_pthread_cancelhandling[3] = { 32, 1, 16 };
#elif defined(KEYS)
const uintptr_t __pthread_keys[1024][2];
#elif defined(COUNT)
const uint32_t __nptl_nthreads = 0;
#elif defined(TLS)
void _dl_get_tls_static_info(size_t *size, size_t *align) { *size = 1 << 20; *align = 64; }
#elif defined(LIST) /* the modules are told when no lock is held any more */
static struct dl_phdr_info seen[256];
static int keep(struct dl_phdr_info *info, size_t size, void *n)
{
	if (*(int *)n < 256)
		seen[(*(int *)n)++] = *info;
	return size == 0;
}
int dl_iterate_phdr(int (*fn)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *), n = 0, r = 0;
	*(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	real(keep, &n);
	for (int i = 0; i < n && !r; i++)
		r = fn(&seen[i], sizeof seen[i], arg);
	return r;
}
#elif defined(STREAM) /* the holder is another, when it is asked first */
int ftrylockfile(FILE *f)
{
	static int times;
	int (*real)(FILE *), e;
	*(void **)&real = dlsym(RTLD_NEXT, "ftrylockfile");
	if (!(e = real(f)) && f == stderr && !times++)
		*(void **)((char *)f->_lock + 8) = (void *)1;
	return e;
}
#elif defined(ROBUST) /* main has a list of its own */
static struct { void *next; long distance; void *pending; } head = { &head, 0, NULL };
__attribute__((constructor)) static void lie(void) { syscall(SYS_set_robust_list, &head, sizeof head); }
#elif defined(STACK_END)
static char page[8192];
void *__libc_stack_end = page + 4096;
#elif defined(RSEQ) /* the kernel takes nothing back */
__attribute__((constructor)) static void lie(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rseq, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof f / sizeof *f, f };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#elif defined(ATTR) /* the flags are elsewhere */
int pthread_attr_setdetachstate(pthread_attr_t *a, int state) { ((int *)a)[13] = state; return 0; }
int pthread_attr_getdetachstate(const pthread_attr_t *a, int *state) { *state = ((const int *)a)[13]; return 0; }
#elif defined(MORE) /* processors are kept elsewhere */
static cpu_set_t kept;
static const pthread_attr_t *whose;
int pthread_attr_setaffinity_np(pthread_attr_t *a, size_t n, const cpu_set_t *set)
{
	whose = a;
	memcpy(&kept, set, n < sizeof kept ? n : sizeof kept);
	return 0;
}
int pthread_attr_getaffinity_np(const pthread_attr_t *a, size_t n, cpu_set_t *set)
{
	memset(set, 0xff, n);
	if (a == whose)
		memcpy(set, &kept, n < sizeof kept ? n : sizeof kept);
	return a == whose && n < 8 ? 22 : 0;
}
#endif
END_C
# lies THING LINE OUTPUT OPTION...
lies() {
	local thing=$1
	shift
	"${CC:-gcc}" -shared -fPIC -D"$thing" "$T/false.c" -o "$T/false.so" -ldl || exit 1
	LD_PRELOAD=$T/false.so strange "$@"
}
rm -f "$copy"
if [ -z "$threads_lib" ]; then
	lies MARK "cancellation mark: not found: pthread_cancel is refused, ENOSYS" \
		$'ended 200, child 7\ncancel Function not implemented\n'"$all_work"
	lies KEYS "libc's own keys: not as expected" "$works$all_work"
	lies COUNT "count of threads: not as expected" "$works$all_work"
	lies TLS "control blocks: the layout of static TLS is not known: libc makes each" "$works$all_work"
fi
works=$works$all_work
lies LIST "loader's locks: not found: threads are not preempted" "$works"
lies STREAM "stream's lock: not as expected: a thread that is lost keeps what it had locked" "$works" --contain
lies STACK_END "end of main's stack: not as expected: main is not preempted" "$works"

program=("$T/q")
loaded=$'loaded 200, computed 1\n' robust=$'robust mutex: Owner died\n' scope=$'scope works, created works\n' cancelled='cancelled 1'
crashed=$'\na thread crashes\njoined: Owner died\nanother writes'
strange "" "$loaded$robust$scope$cancelled"
strange "" "$loaded$robust$scope$cancelled" --body process
for body in thread process; do
	lies LIST "loader's locks: not found: threads are not preempted" "$loaded$robust$scope$cancelled" --body $body
	lies ROBUST "robust mutexes' list: not in the control block: those that an ending thread holds stay locked" \
		"$loaded"$'robust mutex: Device or resource busy\n'"$scope$cancelled" --body $body
	lies ATTR "attributes' flags: not as expected: no scope can be asked for" \
		"$loaded$robust"$'scope Operation not supported, created works\n'"$cancelled" --body $body
	lies MORE "attributes' extension: not as expected: libc is asked for each thread" "$loaded$robust$scope$cancelled" --body $body
	lies STACK_END "end of main's stack: not as expected: main is not preempted" "$loaded$robust$scope$cancelled" --body $body
done
# From 2.35 on libc tells the kernel of a place in each block.
if readelf -W --dyn-syms "$loader" | grep -q ' __rseq_offset@'; then
	for body in thread process; do
		lies RSEQ "restartable sequences: the kernel does not take them back" "$loaded$robust$scope$cancelled" --body $body
		GLIBC_TUNABLES=glibc.pthread.rseq=0 lies RSEQ "" "$loaded$robust$scope$cancelled" --body $body
	done
fi
program=("$T/q" crash)
lies STREAM "stream's lock: not as expected: a thread that is lost keeps what it had locked" \
	"$loaded$robust$scope$cancelled$crashed" --contain

# From 2.41 on: another code for the same instruction, at the end of the function for calls that may be cancelled.
fresh
at=$(LC_ALL=C grep -obUaP '\x4c\x89\x5c\x24\x08\x0f\x05\xc3' "$copy" | sed -n '1s/:.*//p')
program=("$T/q")
if [ -n "$at" ]; then
	printf '\x64' | dd of="$copy" bs=1 seek=$((at + 3)) conv=notrunc status=none
	strange "cancellation points: their function was not found: a thread is cancelled when its call has ended" \
		"$loaded$robust$scope$cancelled" --body process
fi
finish
