// core/run: a light thread that is suspended while it handles a C++ exception is reported: its
// exceptions get mixed up with the exceptions of other light threads of its virtual processor. Not
// reported: threads with TLS of their own, and a thread whose handler is left first.
#include <kochab/kochab.h>

#include <cerrno>
#include <stdexcept>
#include <string>

#include "core/child.h"

enum { THREADS = 8, ROUNDS = 2000 };

static bool within;

static void *throws(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		try {
			throw std::runtime_error(std::to_string(i));
		} catch (const std::exception &e) {
			if (within)
				kb_yield();
		}
		for (int k = 0; k < i % 4; k++) // not in step with the looks
			kb_yield();
	}
	return arg;
}

static void run(enum kb_tls tls)
{
	kb_thread_t t[THREADS];
	kb_attr_t attr;

	kb_attr_init(&attr);
	CHECK_EQ(kb_attr_settls(&attr, tls), 0);
	for (auto &id : t) {
		int e = kb_thread_create(&id, &attr, throws, nullptr);

		if (e == ENOTSUP) // no such threads here
			_exit(0);
		CHECK_EQ(e, 0);
	}
	for (auto &id : t)
		CHECK_EQ(kb_thread_join(id, nullptr), 0);
}

static void light_within(void *)
{
	within = true;
	run(KB_TLS_LIGHT);
	_exit(0);
}

static void light_without(void *)
{
	run(KB_TLS_LIGHT);
	_exit(0);
}

static void own_within(void *)
{
	within = true;
	run(KB_TLS_OWN);
	_exit(0);
}

int main()
{
	static struct child c[3];
	void (*const fn[])(void *) = { light_without, own_within, light_within };

	for (int i = 0; i < 3; i++) {
		child_start(&c[i], fn[i], nullptr);
		child_end(&c[i], 60000);
		CHECK_EQ(strstr(c[i].text, "handles a C++ exception") != nullptr, i == 2);
	}
	child_exited(&c[0], 0);
	child_exited(&c[1], 0);
	return 0;
}
