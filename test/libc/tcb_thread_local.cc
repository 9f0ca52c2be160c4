/* libc/tcb: C++ in a block of its own: thread_local objects are made at first use and destroyed at
 * the thread's end, once per thread. Exceptions in flight survive a change of kernel thread.
 * matrix: none */
#include "tcb_runner.h"

#include <atomic>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

static std::atomic<int> made, ended;

struct Object {
	std::string text = "a string that is too long to be kept inside the object";
	int number = 9;

	Object() { made++; }
	~Object()
	{
		ended++;
		CHECK(number == 10);
	}
};
static thread_local Object object;

static void use_object(void *)
{
	std::thread::id id = std::this_thread::get_id();

	CHECK_EQ(object.number, 9);
	object.number = 10;
	object.text += "!";
	runner_pause();
	CHECK_EQ(object.number, 10);
	CHECK(object.text.back() == '!');
	CHECK(id == std::this_thread::get_id());
}

struct Pauses {
	~Pauses() { runner_pause(); }
};

static int throw_from(int depth, int value)
{
	Pauses p;

	if (depth == 0)
		throw std::runtime_error(std::to_string(value));
	return throw_from(depth - 1, value) + 1;
}

static void catch_it(void *arg)
{
	int value = (int)(intptr_t)arg;

	for (int i = 0; i < 5; i++) {
		try {
			throw_from(6, value);
			CHECK(!"not thrown");
		} catch (std::exception &e) {
			runner_pause();
			CHECK_EQ(std::stoi(e.what()), value);
			try {
				runner_pause();
				throw;
			} catch (std::runtime_error &again) {
				CHECK_EQ(std::stoi(again.what()), value);
			}
		}
		CHECK_EQ(std::uncaught_exceptions(), 0);
	}
}

static struct runner runners[8];

static void make_all()
{
	for (unsigned i = 0; i < 8; i++)
		runner_make(&runners[i], i);
}

/* Every step runs on a kernel thread not used before. */
static void run_all(void (*fn)(void *))
{
	bool again = true;

	for (intptr_t i = 0; i < 8; i++)
		runner_start(&runners[i], fn, (void *)(i + 1));
	while (again) {
		again = false;
		std::thread step([&] {
			for (auto &r : runners)
				if (!r.done) {
					runner_resume(&r);
					again = true;
				}
		});
		step.join();
	}
}

static void test()
{
	make_all();
	for (int round = 1; round <= 3; round++) {
		run_all(use_object);
		CHECK_EQ(made.load(), 8 * round);
		CHECK_EQ(ended.load(), 8 * round);
		run_all(catch_it);
		CHECK_EQ(made.load(), 8 * round);
	}
	for (auto &r : runners)
		runner_free(&r);
}

int main()
{
	return runner_each_mode(test);
}
