#!/bin/bash
# kochab ps: the threads of a second process and the objects they wait for, read from outside, also where
# the process is stopped, is a core file, or is made up. kochab stack: their backtraces. kochab top: a
# look at all.
# timeout: 300
. "$(dirname "$0")/lib.sh"
[ -z "${SAN:-}" ] || skip "not with sanitizers: it runs programs on the drop-in"
[ -e "$BUILD/libkochab-posix.so.0" ] || skip "no drop-in in this build"
CC=${CC:-cc}
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$T"' EXIT
fail() {
	echo "$*"
	sed 's/^/  > /' "$T/seen" | cat -v | head -n 40
	failures=$((failures + 1))
}

cat >"$T/sorts.c" <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int ends[2];
/* Its first words are like those of a channel without room, if that is how it is looked at. */
static struct parker { long zero[5]; pthread_cond_t cond; pthread_mutex_t inner; } parker = { .cond = PTHREAD_COND_INITIALIZER };

static void *ended(void *a) { return a; }
static void *locks(void *m) { pthread_mutex_lock(m); return m; }
static void *waits(void *a) { pthread_mutex_lock(&inner); pthread_cond_wait(&cond, &inner); return a; }
static void *parks(void *a) { struct parker *p = a; pthread_mutex_lock(&p->inner); pthread_cond_wait(&p->cond, &p->inner); return p; }
static void *reads(void *a) { pthread_rwlock_rdlock(&rwlock); return a; }
static void *takes(void *a) { sem_wait(&sem); return a; }
static void *meets(void *a) { pthread_barrier_wait(&barrier); return a; }
static void *sleeps(void *a) { sleep(1000); return a; }
static void *asks(void *a) { char b; if (read(ends[0], &b, 1)) b = 0; return a; }
static void *computes(void *a) { for (volatile long i = 0;; i++) { } return a; }

static void *until(void *a)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += 1000;
	pthread_mutex_lock(&inner);
	pthread_cond_clockwait(&cond, &inner, CLOCK_MONOTONIC, &t);
	return a;
}

static pthread_t make(const char *name, void *(*fn)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg) || pthread_setname_np(t, name))
		_exit(1);
	return t;
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attr;
	pthread_t last;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &attr);
	if (pipe(ends))
		return 1;
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&barrier, NULL, 3);
	pthread_mutex_lock(&plain);
	pthread_mutex_lock(&recursive);
	pthread_rwlock_wrlock(&rwlock);
	make("ended", ended, NULL);
	make("locks1", locks, &plain);
	make("locks2", locks, &plain);
	make("recursive", locks, &recursive);
	make("waits", waits, NULL);
	make("parks", parks, &parker);
	make("until", until, NULL);
	make("re\033[2Jads", reads, NULL);
	make("takes1", takes, NULL);
	make("takes2", takes, NULL);
	make("meets1", meets, NULL);
	make("meets2", meets, NULL);
	make("asks", asks, NULL);
	last = make("sleeps", sleeps, NULL);
	if (argc > 1 && strcmp(argv[1], "fork") == 0 && fork() == 0)
		for (;;)
			pause();
	make("computes", computes, NULL);
	usleep(300000);
	printf("plain=%p recursive=%p cond=%p rwlock=%p sem=%p barrier=%p pipe=%d\n", (void *)&plain, (void *)&recursive,
	       (void *)&cond, (void *)&rwlock, (void *)&sem, (void *)&barrier, ends[0]);
	fflush(stdout);
	pthread_join(last, NULL);
	return 0;
}
END
$CC -g -O1 -o "$T/sorts" "$T/sorts.c" -pthread || exit 1

begin() { # COMMAND...: in the background, until it has written a line
	local i
	rm -f "$T/said"
	"$@" >"$T/said" 2>"$T/err" &
	pid=$!
	for ((i = 0; i < 200; i++)); do
		[ -s "$T/said" ] && return
		sleep 0.05
	done
	cat "$T/err"
	echo "does not begin: $*"
	exit 1
}
over() {
	kill -KILL "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	pid=
}
has() { grep -qE -e "$1" "$T/seen" || fail "no line matches: $1"; }

rows() { # the threads of sorts, as ps shows them
	local plain recursive cond rwlock sem barrier pipe
	eval "$(<"$T/said")"
	has "^ +0 +[0-9]+ +waiting +[01] +main +end of #[0-9]+"
	has " ended +ended"
	has " waiting +[01] +locks1 +mutex $plain, held by #0$"
	has " waiting +[01] +locks2 +mutex $plain, held by #0$"
	has " waiting +[01] +recursive +mutex $recursive, held by #0$"
	has " waiting +[01] +waits +condition $cond$"
	has " waiting +[01] +parks +condition 0x"
	has " waiting +[01] +until +condition $cond, wakes in 99[0-9]\.[0-9] s$"
	has " waiting +[01] +re\\\\x1b\[2Jads +rwlock $rwlock, held by #0$"
	has " waiting +[01] +takes1 +semaphore $sem$"
	has " waiting +[01] +takes2 +semaphore $sem$"
	has " waiting +[01] +meets[12] +barrier $barrier, 2 of 3 there$"
	has " waiting +[01] +asks +reading descriptor $pipe$"
	has " waiting +[01] +sleeps +time, wakes in 99[0-9]\.[0-9] s$"
	has " computes "
}

# ---- descriptors, with and without a deadline ----
cat >"$T/polls.c" <<'END'
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

enum { MANY = 40, LONG = 999 };
static int ends[2], epoll;

static int ms(void *timed) { return timed ? 1000 * LONG : -1; }
static void *epolls(void *a) { struct epoll_event e; epoll_wait(epoll, &e, 1, ms(a)); return a; }
static void *one(void *a) { struct pollfd p = { ends[0], POLLIN, 0 }; poll(&p, 1, ms(a)); return a; }
static void *two(void *a) { struct pollfd p[3] = { { ends[0], POLLIN, 0 }, { -1, POLLIN, 0 }, { epoll, POLLIN, 0 } }; poll(p, 3, ms(a)); return a; }

static void *many(void *a)
{
	struct pollfd p[MANY];

	for (int i = 0; i < MANY; i++)
		p[i] = (struct pollfd){ ends[0], POLLIN, 0 };
	poll(p, MANY, ms(a));
	return a;
}

static void *selects(void *a)
{
	struct timeval t = { LONG, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	select(ends[0] + 1, &set, NULL, NULL, a ? &t : NULL);
	return a;
}

static void make(const char *name, void *(*fn)(void *), void *timed)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, timed) || pthread_setname_np(t, name))
		_exit(1);
}

int main(void)
{
	struct epoll_event e = { EPOLLIN, { 0 } };

	epoll = epoll_create1(0);
	if (pipe(ends) || epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &e))
		return 1;
	for (int timed = 0; timed < 2; timed++) {
		void *a = timed ? ends : NULL;

		make(timed ? "epolls-timed" : "epolls", epolls, a);
		make(timed ? "one-timed" : "one", one, a);
		make(timed ? "two-timed" : "two", two, a);
		make(timed ? "many-timed" : "many", many, a);
		make(timed ? "selects-timed" : "selects", selects, a);
	}
	usleep(300000);
	printf("pipe=%d epoll=%d\n", ends[0], epoll);
	fflush(stdout);
	epoll_wait(epoll, &e, 1, 1000 * LONG);
	return 0;
}
END
$CC -g -O1 -o "$T/polls" "$T/polls.c" -pthread || exit 1
polls() {
	local until=', wakes in 99[0-9]\.[0-9] s' pipe epoll
	eval "$(<"$T/said")"
	"$K" ps "$pid" >"$T/seen" 2>&1 || fail "ps: $?"
	has " waiting +[01] +main +epoll descriptor $epoll$until$"
	has " waiting +[01] +epolls +epoll descriptor $epoll$"
	has " waiting +[01] +epolls-timed +epoll descriptor $epoll$until$"
	has " waiting +[01] +one +reading descriptor $pipe$"
	has " waiting +[01] +one-timed +reading descriptor $pipe$until$"
	has " waiting +[01] +two +poll of 2 descriptors, first $pipe$"
	has " waiting +[01] +two-timed +poll of 2 descriptors, first $pipe$until$"
	has " waiting +[01] +many +poll of 40 descriptors, first $pipe$"
	has " waiting +[01] +many-timed +poll of 40 descriptors, first $pipe$until$"
	has " waiting +[01] +selects +reading descriptor $pipe$"
	has " waiting +[01] +selects-timed +reading descriptor $pipe$until$"
}

# ---- wrong usage is reported ----
expect 2 "no such argument" "$K" ps --frobnicate
expect 2 "no such argument" "$K" ps 1 2
expect 1 "no such process" "$K" ps 999999999
expect 1 "it does not run on Kochab" "$K" ps $$
expect 1 "neither the number of a process nor a core file" "$K" ps "$0"
expect 1 "No such file" "$K" ps "$T/none"
expect 2 "is the file with the number empty" "$K" ps ""
expect 2 "usage: kochab stack" "$K" stack
expect 2 "no index of a thread" "$K" stack 1 x
expect 1 "it does not run on Kochab" "$K" stack $$
expect 1 "it does not run on Kochab" "$K" top --once $$
expect 2 "-d 0: bad value" "$K" top -d 0 $$

# ---- a program of a different user ----
if [ "$(id -u)" = 0 ] && setpriv --bounding-set=-sys_ptrace true 2>/dev/null; then
	chmod 755 "$T"
	mkdir "$T/all" && cp "$K" "$BUILD/libkochab-posix.so.0" "$T/all" # that user may not see the build
	begin setpriv --reuid 65534 --regid 65534 --clear-groups "$T/all/kochab" run --vps 1 -- "$T/sorts"
	"$K" ps "$pid" >"$T/seen" 2>&1 || fail "ps of another user's program: $?"
	expect 1 "root has no CAP_SYS_PTRACE here" setpriv --bounding-set=-sys_ptrace "$K" ps "$pid"
	expect 1 "of its user or root" setpriv --reuid 65533 --regid 65533 --clear-groups "$T/all/kochab" ps "$pid"
	over
fi

# ---- a program with both kinds of virtual processors, running and stopped ----
no_elfutils=
bodies=thread
"$K" doctor | grep -q '^+ process bodies' && bodies="thread process"
for body in $bodies; do
	begin "$K" run --vps 2 --body $body -- "$T/polls"
	polls
	over
	begin "$K" run --vps 2 --body $body -- "$T/sorts"
	"$K" ps "$pid" >"$T/seen" 2>&1 || fail "ps: $?"
	grep -q "rights of ptrace" "$T/seen" && skip "this machine does not let programs read others' memory"
	rows
	has ": 16 threads, 2 virtual processors \\((kernel threads|processes)\\), rotator, up 0:00:0"
	has " running +[01] +computes +on kernel thread [0-9]+$"
	LC_ALL=C grep -q $'\033' "$T/seen" && fail "control characters"
	"$K" ps >"$T/seen" 2>&1 || fail "ps: $?"
	has "^ *$pid +16 +2 +(kernel thread|process) +rotator +0:00:0"
	[ "$(grep -c "sorts" "$T/seen")" = 1 ] || fail "one program has more rows"
	"$K" top --once -d 0.3 "$pid" >"$T/seen" 2>&1 || fail "top: $?"
	has '^16 threads: '
	has '^ +[01] +[0-9]+  busy +[0-9]+ +[0-9]+  #[0-9]+ computes$'
	has '^ +2  semaphore 0x'
	has '^ +1  mutex 0x[0-9a-f]+, held by #0$'
	kill -STOP "$pid"
	"$K" ps "$pid" >"$T/seen" 2>&1 || fail "ps of a stopped one: $?"
	rows
	"$K" stack "$pid" >"$T/seen" 2>&1
	if grep -q elfutils "$T/seen"; then
		no_elfutils=1
	elif [ "$(uname -m)" = x86_64 ]; then
		has '^2 threads: #[0-9]+ "takes2", #[0-9]+ "takes1", waiting$'
		has '^ +[0-9]+  takes\+0x[0-9a-f]+ \(sorts\) .*sorts\.c:[0-9]+$'
		has '^ +[0-9]+  main\+0x'
		has '^Thread #[0-9]+ "ended", ended$'
		has '^ +[0-9]+  computes\+0x[0-9a-f]+ \(sorts\)'
		LC_ALL=C grep -q $'\033' "$T/seen" && fail "control characters"
		mkfifo "$T/pipe"
		exec 8<>"$T/pipe" 9>"$T/pipe" 8<&- # nobody reads it
		rm "$T/pipe"
		env --default-signal=PIPE "$K" stack "$pid" >&9 2>"$T/seen"
		[ $? = 141 ] || fail "stack at a closed pipe: $?"
		[ ! -s "$T/seen" ] || fail "says something of a closed pipe"
		exec 9>&-
		"$K" stack --all "$pid" 0 >"$T/seen" 2>&1 || fail "stack of one: $?"
		has '^Thread #0 "main", waiting$'
		[ "$(grep -c '^Thread' "$T/seen")" = 1 ] || fail "not one"
		"$K" stack "$pid" 5000 >"$T/seen" 2>&1 && fail "a thread that there is not"
		has 'no thread #5000'
	fi
	kill -CONT "$pid"
	if command -v python3 >/dev/null; then
		"$K" ps --json "$pid" >"$T/seen" && "$K" ps --json >"$T/list" && python3 - "$T/seen" "$T/list" "$pid" "$(<"$T/said")" <<-'END' || fail "JSON"
			import json, sys
			rows = [json.loads(line) for line in open(sys.argv[1])]
			assert len(rows) == 16, rows
			by = {r["name"]: r for r in rows}
			assert by["recursive"]["waits_for"] == "mutex" and by["recursive"]["owner"] == 0, rows
			assert by["asks"]["object"] == int(sys.argv[4].split("pipe=")[1]) and by["sleeps"]["wakes_s"] > 900, rows
			assert by["re\\x1b[2Jads"]["state"] == "waiting", rows
			programs = [json.loads(line) for line in open(sys.argv[2])]
			assert [p["threads"] for p in programs if p["pid"] == int(sys.argv[3])] == [16], programs
		END
	fi
	if [ $body = thread ] && [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
		cp "$K" "$T/kochab" && chmod 755 "$T" "$T/kochab"
		setpriv --reuid 65534 --clear-groups "$T/kochab" ps "$pid" >"$T/seen" 2>&1 && fail "another user may look"
		has "rights of ptrace"
	fi
	over
done
[ -z "$no_elfutils" ] || echo "without elfutils: stack is not tested"

# ---- names of C++, where its library is ----
cat >"$T/names.cc" <<'END'
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace deep {
template <class T> struct sleeper {
	__attribute__((noinline)) static void sleeps(std::vector<T> v)
	{
		std::this_thread::sleep_for(std::chrono::seconds(1000 + v.size()));
		puts("over");
	}
};
}

int main()
{
	std::thread t(deep::sleeper<int>::sleeps, std::vector<int>(3));

	std::this_thread::sleep_for(std::chrono::milliseconds(300));
	puts("ready");
	fflush(stdout);
	t.join();
}
END
if [ -z "$no_elfutils" ] && [ "$(uname -m)" = x86_64 ] && ${CXX:-c++} -g -O1 -o "$T/names" "$T/names.cc" -pthread 2>/dev/null; then
	begin "$K" run --vps 1 -- "$T/names"
	"$K" stack "$pid" >"$T/seen" 2>&1 || fail "stack of a program in C++: $?"
	has '^ +[0-9]+  deep::sleeper<int>::sleeps\(std::vector<int, std::allocator<int> >\)\+0x[0-9a-f]+ \(names\)'
	over
fi

# ---- a core file, where the kernel writes one here; (gdb's generate-core-file ends at a stack's guard) ----
if [ "$(cat /proc/sys/kernel/core_pattern)" = core ] && (ulimit -c unlimited) 2>/dev/null; then
	begin bash -c 'cd "$1" && ulimit -c unlimited && exec "$2" run --vps 2 -- ./sorts' bash "$T" "$K"
	kill -ABRT "$pid"
	wait "$pid"
	pid=
	core=$(echo "$T"/core*)
	if [ -s "$core" ]; then
		"$K" ps "$core" >"$T/seen" 2>&1 || fail "ps of a core file: $?"
		has ' \(a core file\): 16 threads, 2 virtual processors \(kernel threads\), rotator$'
		sed -i 's/wakes in [-0-9.]* s$/wakes in 999.0 s/' "$T/seen"
		rows
		"$K" stack "$core" >"$T/seen" 2>&1
		[ -n "$no_elfutils" ] || [ "$(uname -m)" != x86_64 ] || has '^ +[0-9]+  takes\+0x[0-9a-f]+ \(sorts\)'
	fi
fi

# ---- not so simple ----
begin "$K" run --vps 2 -- "$T/sorts" fork
for c in $(grep -l "^PPid:.$pid\$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3); do
	"$K" ps "$c" >"$T/seen" 2>&1 && fail "the child of a fork"
	has "forked from a program on Kochab"
	kill -KILL "$c"
	forked=1
done
[ -n "${forked:-}" ] || fail "no child of a fork"
over

cat >"$T/native.c" <<'END'
#include <fcntl.h>
#include <kochab/kochab.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static kb_chan_t *empty, *full;
static kb_event_t event;
static kb_mutex_t mutex;
static int file;

static void *receives(void *a) { int x; kb_chan_recv(empty, &x); return a; }
static void *sends(void *a) { int x = 1; kb_chan_send(full, &x); kb_chan_send(full, &x); return a; }
static void *listens(void *a) { uint64_t v; kb_event_init(&event, NULL); kb_event_wait(&event, &v); return a; }
static void *locks(void *a) { kb_mutex_lock(&mutex); return a; }

static void *blocks(void *a)
{
	kb_blocking_begin();
	flock(file, LOCK_EX);
	kb_blocking_end();
	return a;
}

static void make(const char *name, void *(*fn)(void *))
{
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	kb_attr_setname(&a, name);
	if (kb_thread_create(&t, &a, fn, NULL))
		_exit(1);
}

int main(int argc, char **argv)
{
	int mine = open(argv[argc - 1], O_CREAT | O_RDWR, 0600);

	file = open(argv[argc - 1], O_RDWR);
	if (flock(mine, LOCK_EX) || kb_chan_create(&empty, sizeof(int), 2) || kb_chan_create(&full, sizeof(int), 1))
		return 1;
	kb_mutex_init(&mutex, KB_MUTEX_NORMAL);
	make("receives", receives);
	kb_mutex_lock(&mutex);
	make("sends", sends);
	make("listens", listens);
	make("locks", locks);
	make("blocks", blocks);
	kb_sleep(300000000);
	printf("empty=%p full=%p event=%p mutex=%p\n", (void *)empty, (void *)full, (void *)&event, (void *)&mutex);
	fflush(stdout);
	kb_sleep(600000000000);
	return 0;
}
END
$CC -g -O1 -I"$TOP/include" -o "$T/native" "$T/native.c" "$BUILD/libkochab.a" -pthread -ldl || exit 1
begin env KOCHAB_VPS=2 "$T/native" "$T/locked"
"$K" ps "$pid" >"$T/seen" 2>&1 || fail "ps of a native program: $?"
eval "$(<"$T/said")"
has " waiting +[01] +main +time, wakes in [56]"
has " waiting +[01] +receives +channel ${empty:?}$"
has " waiting +[01] +sends +room in channel ${full:?}$"
has " waiting +[01] +listens +event ${event:?}$"
has " waiting +[01] +locks +mutex ${mutex:?}, held by #0$"
[ "$(uname -m)" != x86_64 ] || has " blocked +blocks +system call flock, on kernel thread [0-9]+$"
over

mkdir "$T/other"
sed 's/Kochab1\x00/Kochab2\x00/' "$BUILD/libkochab-posix.so.0" >"$T/other/libkochab-posix.so.0"
begin env KOCHAB_LIB="$T/other" "$K" run --vps 2 -- "$T/sorts"
"$K" ps "$pid" >"$T/seen" 2>&1 && fail "another build"
has "it runs another build of Kochab"
"$K" ps >"$T/seen" 2>&1 || fail "ps: $?"
has "^ *$pid .*another build of Kochab"
over

# ---- a program that lies: whatever is there, the command ends soon, by itself, and tells it harmlessly ----
cat >"$T/liar.c" <<'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/outside.h"
#include <kochab/kochab.h>
#include "sync/waitq.h"

enum { THREADS = 300 };

static kb_sem_t never;

static void *waits(void *arg) { kb_sem_wait(&never); return arg; }

static void disturb(uint64_t *x, void *at, size_t size, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		*x = *x * 6364136223846793005u + 1442695040888963407u;
		((volatile unsigned char *)at)[(*x >> 20) % size] = (unsigned char)(*x >> 56);
	}
}

static void *stack_of(const struct kb_thread *t)
{
	return kbi_state_kind(a_load_rlx(&t->task.state)) == KBI_TASK_WAITING ? t->task.ctx.sp : NULL;
}

int main(int argc, char **argv)
{
	const char *how = argv[argc - 1];
	uint64_t x = strtoull(how, NULL, 10);
	struct kbi_wnode *first, *last;
	kb_thread_t thread;
	struct kb_thread *t;

	for (int i = 0; i < THREADS; i++)
		if (kb_thread_create(&thread, NULL, waits, NULL))
			return 1;
	for (int i = 0; i < 1000; i++)
		kb_yield();
	t = kbi_descriptor_table.at;
	first = never.head;
	last = never.tail;
	if (strcmp(how, "ring") == 0) {
		first->prev = last;
		last->next = first;
	} else if (strcmp(how, "used") == 0) {
		a_store_rlx(&kbi_descriptor_table.used, UINT32_MAX);
	} else if (strcmp(how, "vps") == 0) {
		kbi_vp_n = UINT32_MAX;
	} else if (strcmp(how, "nowhere") == 0) {
		kbi_descriptor_table.at = (void *)4096;
	} else {
		for (int i = 0; i < THREADS; i++)
			if (i % 3 == 0 && stack_of(&t[i]))
				disturb(&x, stack_of(&t[i]), 192, 20);
		disturb(&x, t, THREADS * sizeof(*t), 3000);
		disturb(&x, &kbi_options, sizeof(kbi_options), x % 40);
		if (x % 4 == 0)
			a_store_rlx(&kbi_vps[0]->tid, (uint32_t)kbi_sys(SYS_getppid)); /* not its own */
	}
	kbi_sys(SYS_write, 1, "ready\n", 6);
	kbi_sys(SYS_kill, kbi_sys(SYS_getpid), SIGSTOP);
	kbi_sys(SYS_exit_group, 0);
	return 0;
}
END
machine=$(uname -m)
[ -d "$TOP/src/arch/$machine" ] || machine=generic
$CC -O1 -std=gnu17 -D_GNU_SOURCE= -w -I"$TOP/src" -I"$TOP/include" -I"$TOP/src/arch/$machine" -o "$T/liar" "$T/liar.c" \
	"$BUILD/libkochab.a" -pthread -ldl || exit 1
export KOCHAB_VPS=1 KOCHAB_TICK_MS=0
for how in ring used vps nowhere $(seq 1 "${LIARS:-20}"); do
	begin "$T/liar" "$how"
	for ((i = 0; i < 100; i++)); do
		grep -q '^State:.T' "/proc/$pid/status" && break
		sleep 0.02
	done
	for command in "ps" "ps --json" "top --once -d 0.1" "stack"; do
		read -ra words <<<"$command"
		timeout 60 "$K" "${words[@]}" "$pid" >"$T/seen" 2>&1 </dev/null
		code=$?
		[ $code -le 1 ] || fail "$command of a liar ($how): exit $code"
		grep -q 'the unwinder ended by signal' "$T/seen" && fail "$command of a liar ($how)"
		LC_ALL=C grep -q $'[\001-\010\013-\037\177]' "$T/seen" && fail "$command of a liar ($how): control characters"
	done
	timeout 60 "$K" ps >"$T/seen" 2>&1 || fail "ps beside a liar ($how): $?"
	over
done
finish
