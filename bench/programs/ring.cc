// ring THREADS SECONDS: a number goes around a ring of threads, each with a queue under a mutex and a condition variable.
// Each adds 1. Prints the hops and the nanoseconds that they took.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

using std::chrono::steady_clock;

class Queue {
public:
	void put(long number)
	{
		{
			std::lock_guard<std::mutex> hold(lock);
			numbers.push_back(number);
		}
		filled.notify_one();
	}

	long get()
	{
		std::unique_lock<std::mutex> hold(lock);

		filled.wait(hold, [this] { return !numbers.empty(); });
		long number = numbers.front();
		numbers.pop_front();
		return number;
	}

private:
	std::mutex lock;
	std::condition_variable filled;
	std::deque<long> numbers;
};

int main(int, char **argv)
{
	size_t n = std::strtoul(argv[1], nullptr, 10);
	std::vector<Queue> queue(n);
	std::vector<long> count(n);
	std::vector<std::thread> thread;
	auto began = steady_clock::now();
	std::chrono::duration<double> length(std::atof(argv[2]));
	auto end = began + std::chrono::duration_cast<steady_clock::duration>(length);
	long hops = 0;

	for (size_t i = 0; i < n; i++)
		thread.emplace_back([&, i] {
			Queue &following = queue[(i + 1) % n];
			long number, seen = 0;

			for (; (number = queue[i].get()) >= 0; seen++)
				following.put(i == 0 && steady_clock::now() > end ? -1 : number + 1);
			following.put(number);
			count[i] = seen;
		});
	began = steady_clock::now();
	queue[0].put(0);
	for (auto &t : thread)
		t.join();
	auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now() - began);
	for (size_t i = 0; i < n; i++) {
		hops += count[i];
		if (i && count[i] != count[0] - 1) {
			std::fprintf(stderr, "thread %zu has seen %ld numbers, thread 0 %ld\n", i, count[i], count[0]);
			return 1;
		}
	}
	std::printf("%ld %lld\n", hops, (long long)took.count());
}
