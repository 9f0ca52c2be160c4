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
	"count of threads" "table of names" "end of main's stack" "attributes' flags"; do
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
have=0
for module in "$libc" "$loader" $threads_lib; do
	have=$((have + $(objdump -d --no-show-raw-insn "$module" | grep -cE '[[:space:]]syscall')))
done
grep -q "libcalls=patch .* of $have system calls replaced" "$T/doctor" || { fail "there are $have system calls"; grep patch "$T/doctor"; }

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
all_work="mutex works, condition works, rwlock works, barrier works, semaphore works"
# strange LINE OUTPUT OPTION...: with that copy the program says that, in order; LINE: Kochab's message, or nothing
strange() {
	local line=$1 output=$2 code
	shift 2
	LD_LIBRARY_PATH=$T/libc timeout 100 "$K" run --vps 2 "$@" -- "$T/p" >"$T/out" 2>"$T/err" </dev/null
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
#include <stddef.h>
#include <stdint.h>
#if defined(MARK)
const uint32_t _thread_db_pthread_cancelhandling[3] = { 32, 1, 16 };
#elif defined(KEYS)
const uintptr_t __pthread_keys[1024][2];
#elif defined(COUNT)
const uint32_t __nptl_nthreads = 0;
#elif defined(TLS)
void _dl_get_tls_static_info(size_t *size, size_t *align) { *size = 1 << 20; *align = 64; }
#endif
END_C
# lies THING LINE OUTPUT
lies() {
	"${CC:-gcc}" -shared -fPIC -D"$1" "$T/false.c" -o "$T/false.so" || exit 1
	LD_PRELOAD=$T/false.so strange "$2" "$3"
}
rm -f "$copy"
if [ -z "$threads_lib" ]; then
	lies MARK "cancellation mark: not found: pthread_cancel is refused, ENOSYS" \
		$'ended 200, child 7\ncancel Function not implemented\n'"$all_work"
	lies KEYS "libc's own keys: not as expected" "$works$all_work"
	lies COUNT "count of threads: not as expected" "$works$all_work"
	lies TLS "control blocks: the layout of static TLS is not known: libc makes each" "$works$all_work"
fi
finish
