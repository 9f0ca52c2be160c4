/* bench/shim/shim.h - what the C and C++ shims share. A shim is one program per rival runtime:
 *     shim QUESTION THREADS VPS SECONDS
 * It asks its runtime the same questions as bench/QUESTION.c and prints the same JSON line. Exit status 77:
 * the runtime cannot answer that one. Messages and results are checked as in the original. */
#ifndef KOCHAB_BENCH_SHIM_H
#define KOCHAB_BENCH_SHIM_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

static const uint64_t STOP = UINT64_C(1) << 63;
static unsigned threads, vps;
static double seconds;

static inline double now()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void report(const char *metric, double s)
{
	printf("{\"metric\": \"%s\", \"unit\": \"ns\", \"value\": %.9g}\n", metric, s * 1e9);
	fflush(stdout);
}

static inline void check(bool right, const char *what)
{
	if (!right) {
		fprintf(stderr, "shim: wrong %s\n", what);
		_Exit(1);
	}
}

/* once(n) -> seconds, with growing n until it takes long enough: seconds per n. */
template <class Once> static double scale(Once once)
{
	once(1); // warms up
	for (uint64_t n = 1;; n *= 4) {
		double took = once(n);
		if (took >= 0.4 * seconds)
			return took / (double)n;
	}
}

/* A lap of the ring is over: the rounds of the next one; 0: enough, and reported. */
struct ring_clock {
	uint64_t rounds;
	double start;

	__attribute__((noinline)) uint64_t lap()
	{
		double took = now() - start;
		if (took >= 0.4 * seconds && rounds > 1) {
			report("one-way", took / ((double)rounds * threads));
			return 0;
		}
		rounds *= 4;
		start = now();
		return rounds;
	}
};

/* Seat i of the ring: send(next seat, message), receive(own seat). All run the same loop; seat 0 leads and reports. */
template <class Send, class Receive> static void ring_seat(unsigned i, Send send, Receive receive)
{
	unsigned next = (i + 1) % threads;
	uint64_t want = i, left = UINT64_MAX, got;
	ring_clock clock = { 1, now() };
	if (i == 0) {
		want = threads;
		left = 1;
		send(next, 1);
	}
	for (;; want += threads) {
		got = receive(i);
		if (got & STOP)
			break;
		check(got == want, "message");
		if (--left == 0 && (left = clock.lap()) == 0)
			break;
		send(next, got + 1);
	}
	if (next)
		send(next, STOP);
}

static inline unsigned fib_plain(unsigned n)
{
	return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2);
}

/* fib(n) creates F(n+1) - 1 threads; the smallest n with at least `threads` of them. */
static inline unsigned fib_argument()
{
	unsigned n = 2;
	while (fib_plain(n + 1) - 1 < threads)
		n++;
	return n;
}

template <class Fib> static void fork_join(Fib fib)
{
	unsigned n = fib_argument(), right = fib_plain(n);
	double s = scale([&](uint64_t rounds) {
		double start = now();
		for (; rounds; rounds--)
			check(fib(n) == right, "fib");
		return now() - start;
	});
	report("thread", s / (fib_plain(n + 1) - 1));
}

static inline const char *arguments(int argc, char **argv)
{
	if (argc != 5)
		exit(2);
	threads = (unsigned)atoi(argv[2]);
	vps = (unsigned)atoi(argv[3]);
	seconds = atof(argv[4]);
	return argv[1];
}

#endif
