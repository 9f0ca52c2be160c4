/* bench/shim/shim.h - shared by the C and C++ shims. A shim is a program per rival runtime:
 *     shim QUESTION THREADS VPS SECONDS
 * It asks its runtime the question of bench/QUESTION.c and prints that bench's JSON line. Exit status
 * 77: the runtime cannot answer the question. Messages and results are checked as in the original. */
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

/* Ends a lap of the ring. Returns the rounds of the next lap, or 0 if the measurement is finished
 * and reported. */
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

/* Seat i of the ring: send(next seat, message), receive(own seat). All run the same loop; seat 0
 * leads and reports. */
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

/* The questions, asked of a runtime R whose threads are made and joined singly. R has
 *     type entry                       the result type of a thread's function
 *     type thread                      stays where it is from create to join
 *     create(thread &, entry (*)(void *), void *), join(thread &), yield()
 *     type lock with take(), leave();
 *     type box with send(uint64_t), receive(): at most a single message is under way */
template <class R> struct questions {
	struct seat {
		typename R::thread thread;
		const void *body;
		unsigned index;
	};

	template <class Body> static typename R::entry enter(void *arg)
	{
		seat *s = static_cast<seat *>(arg);
		(*static_cast<const Body *>(s->body))(s->index);
		return typename R::entry();
	}

	/* All threads run body(index): seconds from the first create to the last join. */
	template <class Body> static double crew(const Body &body)
	{
		static seat *const seats = new seat[threads];
		double start = now();
		for (unsigned i = 0; i < threads; i++) {
			seats[i].body = &body;
			seats[i].index = i;
			R::create(seats[i].thread, enter<Body>, &seats[i]);
		}
		for (unsigned i = 0; i < threads; i++)
			R::join(seats[i].thread);
		return now() - start;
	}

	/* Each thread calls step() n times. Returns the seconds of one call. */
	template <class Step> static double steps(Step step)
	{
		return scale([&](uint64_t n) {
			return crew([&, n](unsigned) {
				for (uint64_t k = n; k; k--)
					step();
			});
		}) / threads;
	}

	static void ring()
	{
		typename R::box *box = new typename R::box[threads];
		crew([box](unsigned i) {
			ring_seat(i, [box](unsigned to, uint64_t m) { box[to].send(m); },
				  [box](unsigned me) { return box[me].receive(); });
		});
	}

	static void mutex()
	{
		static typename R::lock lock;
		static uint64_t count, right;
		report("lock+unlock", scale([](uint64_t n) {
			double took = crew([n](unsigned) {
				for (uint64_t k = n; k; k--) {
					lock.take();
					count++;
					lock.leave();
				}
			});
			check(count == (right += n * threads), "count");
			return took;
		}) / threads);
	}

	struct call {
		unsigned n, result;
	};

	static typename R::entry fib_enter(void *arg)
	{
		call *c = static_cast<call *>(arg);
		c->result = fib(c->n);
		return typename R::entry();
	}

	static unsigned fib(unsigned n)
	{
		if (n < 2)
			return n;
		typename R::thread thread;
		call a = { n - 1, 0 };
		R::create(thread, fib_enter, &a);
		unsigned b = fib(n - 2);
		R::join(thread);
		return a.result + b;
	}

	static int ask(const char *q)
	{
		if (!strcmp(q, "rendezvous"))
			ring();
		else if (!strcmp(q, "yield"))
			report("yield", steps([] { R::yield(); }));
		else if (!strcmp(q, "spawn"))
			report("create+join", scale([](uint64_t n) {
				double took = 0;
				for (; n; n--)
					took += crew([](unsigned) {});
				return took;
			}) / threads);
		else if (!strcmp(q, "forkjoin"))
			fork_join(fib);
		else if (!strcmp(q, "mutex"))
			mutex();
		else
			return 77;
		return 0;
	}
};

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
