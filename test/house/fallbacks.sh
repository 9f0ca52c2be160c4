#!/bin/bash
# Every fall-back can be forced by an option, and programs do the same with it: an unmodified compressor,
# Python's threads, C++ threads. The default ways are in test/posix/.
. "$(dirname "$0")/lib.sh"
[ -e "$BUILD/libkochab-posix.so.0" ] || skip "no drop-in in this build"
[ -z "${SAN:-}" ] || skip "a sanitizer's library must come first in LD_PRELOAD"
find /usr/include -name '*.h' -type f 2>/dev/null | sort | head -n 4000 | xargs cat 2>/dev/null |
	head -c 4M >"$T/data"
[ -s "$T/data" ] || head -c 4M /dev/urandom >"$T/data"
ran=0

ways=("--sched rotator-paper" "--sched lb2 --lb2-lock semop" "--sched lb2 --lb2-lock spin" "--sched steal"
	"--tls donor" "--fsgsbase=0" "--segments no" "--segments yes --fsgsbase=0" "--guard mprotect" "--guard none" "--pollers 1" "--spin-us 0" "--tick-ms 0"
	"--tick-signal winch"
	"--capacity 1 --sched rotator-paper")

if command -v pigz >/dev/null; then
	for how in "${ways[@]}"; do
		# shellcheck disable=SC2086
		timeout -s QUIT -k 2 120 "$K" run --vps 2 $how -- pigz -c -p 32 <"$T/data" >"$T/packed" 2>"$T/err"
		code=$?
		if [ $code != 0 ] || ! gzip -dc <"$T/packed" 2>>"$T/err" | cmp -s - "$T/data"; then
			echo "kochab run --vps 2 $how -- pigz: exit $code, or the bytes differ"
			head -n 12 "$T/err"
			failures=$((failures + 1))
		fi
		ran=$((ran + 1))
	done
fi

cat >"$T/threads.py" <<'END'
import queue, threading
n, lock, q = [0], threading.Lock(), queue.Queue()
def work(i):
    for _ in range(100):
        with lock:
            n[0] += 1
    q.put(i)
threads = [threading.Thread(target=work, args=(i,)) for i in range(64)]
for t in threads: t.start()
got = sorted(q.get(timeout=20) for _ in threads)
for t in threads: t.join()
print(n[0], got == list(range(64)))
END
if command -v python3 >/dev/null; then
	for how in "${ways[@]}"; do
		# shellcheck disable=SC2086
		expect 0 "6400 True" "$K" run --vps 2 $how -- python3 "$T/threads.py"
		ran=$((ran + 1))
	done
	# what is refused has kernel threads, and a line
	expect 0 "threads are kernel threads here: virtual processors cannot be processes" \
		bash -c "ulimit -f 1000000; exec $K run --body process -- python3 $T/threads.py"
	ran=$((ran + 1))
fi

cat >"$T/threads.cc" <<'END'
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>
int main()
{
	std::mutex m;
	std::condition_variable c;
	int ready = 0;
	bool go = false;
	std::vector<std::future<long>> parts;
	for (long i = 0; i < 100; i++)
		parts.push_back(std::async(std::launch::async, [&, i] {
			std::unique_lock<std::mutex> l(m);
			if (++ready == 100)
				c.notify_all();
			c.wait(l, [&] { return go; });
			std::vector<long> v(100, i);
			return std::accumulate(v.begin(), v.end(), 0L);
		}));
	{
		std::unique_lock<std::mutex> l(m);
		c.wait(l, [&] { return ready == 100; });
		go = true;
		c.notify_all();
	}
	long sum = 0;
	for (auto &p : parts)
		sum += p.get();
	std::printf("sum %ld\n", sum);
	return 0;
}
END
if ${CXX:-g++} -O1 -pthread "$T/threads.cc" -o "$T/threads"; then
	for how in "${ways[@]}"; do
		# shellcheck disable=SC2086
		expect 0 "sum 495000" "$K" run --vps 2 $how -- "$T/threads"
		ran=$((ran + 1))
	done
fi
[ $ran -gt 0 ] || skip "none of the programs is there"
finish
