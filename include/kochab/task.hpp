/* kochab/task.hpp - futures, groups of tasks, parallel loops; and, with C++20, coroutines that
 * await channels and events. A part of kochab/kochab.hpp. */
#ifndef KOCHAB_TASK_HPP
#define KOCHAB_TASK_HPP

#include <kochab/channel.hpp>
#include <kochab/sync.hpp>
#include <kochab/task.h>

#include <exception>
#include <future>
#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

namespace kochab {

/* ---- futures: std::future_error and its codes ------------------------------------------------ */

template <class T> class promise;

namespace detail {

template <class T> struct shared_value {
	using stored = std::conditional_t<std::is_void_v<T>, char, T>;
	kb_future_t ready = KB_FUTURE_INIT;
	std::atomic<bool> claimed{ false };
	std::optional<stored> value;
	std::exception_ptr error;

	template <class F> void set(F f)
	{
		if (claimed.exchange(true))
			throw std::future_error(std::future_errc::promise_already_satisfied);
		try {
			f();
		} catch (...) {
			claimed = false;
			throw;
		}
		kb_future_set(&ready, nullptr);
	}
	/* Stores the result of f, or its exception. */
	template <class F> void compute(F &f) noexcept
	{
		try {
			if constexpr (std::is_void_v<T>) {
				f();
				value.emplace();
			} else {
				value.emplace(f());
			}
		} catch (...) {
			error = std::current_exception();
		}
	}
};

} // namespace detail

template <class T> class future {
    public:
	future() noexcept = default;
	future(future &&) noexcept = default;
	future &operator=(future &&) noexcept = default;
	bool valid() const noexcept { return static_cast<bool>(s_); }
	/* May suspend; the future of async may run the function itself. */
	void wait() const { kb_future_get(&state().ready, nullptr); }
	template <class Time> std::future_status wait_until(const Time &t) const
	{
		return kb_future_timedget(&state().ready, nullptr, detail::deadline(t)) ?
			       std::future_status::timeout :
			       std::future_status::ready;
	}
	template <class Time> std::future_status wait_for(const Time &d) const { return wait_until(d); }
	T get()
	{
		wait();
		auto s = std::move(s_);
		if (s->error)
			std::rethrow_exception(s->error);
		if constexpr (!std::is_void_v<T>)
			return std::move(*s->value);
	}

    private:
	template <class U> friend class promise;
	template <class F> friend auto async(F f) -> future<std::invoke_result_t<F>>;
	detail::shared_value<T> &state() const
	{
		if (!s_)
			throw std::future_error(std::future_errc::no_state);
		return *s_;
	}
	std::shared_ptr<detail::shared_value<T>> s_;
};

template <class T> class promise {
    public:
	promise() : s_(std::make_shared<detail::shared_value<T>>()) {}
	promise(promise &&) noexcept = default;
	promise &operator=(promise &&o) noexcept
	{
		promise old(std::move(o)); /* its destructor treats the old state as that of any promise */
		std::swap(s_, old.s_);
		std::swap(taken_, old.taken_);
		return *this;
	}
	~promise()
	{
		if (s_ && !s_->claimed)
			set_exception(std::make_exception_ptr(
				std::future_error(std::future_errc::broken_promise)));
	}
	future<T> get_future()
	{
		state();
		if (taken_)
			throw std::future_error(std::future_errc::future_already_retrieved);
		taken_ = true;
		future<T> f;
		f.s_ = s_;
		return f;
	}
	/* Never suspend. */
	template <class... V> void set_value(V &&...v)
	{
		state().set([&] { s_->value.emplace(std::forward<V>(v)...); });
	}
	void set_exception(std::exception_ptr e)
	{
		state().set([&] { s_->error = std::move(e); });
	}

    private:
	detail::shared_value<T> &state() const
	{
		if (!s_)
			throw std::future_error(std::future_errc::no_state);
		return *s_;
	}
	std::shared_ptr<detail::shared_value<T>> s_;
	bool taken_ = false;
};

namespace detail {

/* The task holds no reference to it: the destructor of the last reference waits for the task's
 * end. */
template <class T, class F> struct async_value : shared_value<T> {
	F f;
	explicit async_value(F &&g) : f(std::move(g)) { this->claimed = true; }
	~async_value()
	{
		if (started)
			kb_future_get(&this->ready, nullptr);
	}
	void start()
	{
		check(kb_future_run(&this->ready, run, this), "kochab::async");
		started = true;
	}

    private:
	static void *run(void *self)
	{
		auto *v = static_cast<async_value *>(self);
		v->compute(v->f);
		return nullptr;
	}
	bool started = false;
};

} // namespace detail

/* Runs f() as a task (kochab/task.h). As with std::async, the destructor of the last future waits
 * for the task's end. */
template <class F> auto async(F f) -> future<std::invoke_result_t<F>>
{
	using T = std::invoke_result_t<F>;
	auto v = std::make_shared<detail::async_value<T, F>>(std::move(f));
	v->start();
	future<T> result;
	result.s_ = v;
	return result;
}

/* ---- groups of tasks ------------------------------------------------------------------------- */

namespace detail {

/* Keeps the first exception of several tasks. */
class failure {
    public:
	bool happened() const noexcept { return happened_.load(std::memory_order_relaxed); }
	/* Must be called in an exception handler. */
	void note() noexcept
	{
		if (!happened_.exchange(true))
			error_ = std::current_exception();
	}
	/* Called when all tasks that might call note have ended and their effects are visible. */
	void rethrow()
	{
		if (happened_.exchange(false))
			std::rethrow_exception(std::exchange(error_, nullptr));
	}

    private:
	std::atomic<bool> happened_{ false };
	std::exception_ptr error_;
};

} // namespace detail

/* A group of tasks that belongs to the thread which has made it; only this thread waits for it. The
 * first exception of a task stops the group, and wait() throws it. Each task is an allocation;
 * kb_group_run needs none. */
class task_group {
    public:
	task_group() { detail::check(kb_group_init(&g_), "kochab::task_group"); }
	task_group(const task_group &) = delete;
	task_group &operator=(const task_group &) = delete;
	/* Waits; may suspend. */
	~task_group() { kb_group_wait(&g_); }
	/* May be called by any thread and by tasks. Never suspends. */
	template <class F> void run(F f)
	{
		auto t = std::make_unique<task<F>>(task<F>{ this, std::move(f) });
		detail::check(kb_group_run(&g_, call<F>, t.get()), "kochab::task_group::run");
		t.release();
	}
	/* May suspend. Returns false if the group was cancelled. Afterwards the group is as new. */
	bool wait()
	{
		detail::check(kb_group_wait(&g_), "kochab::task_group::wait");
		const bool cancelled = cancelled_.exchange(false);
		failure_.rethrow();
		return !cancelled;
	}
	/* Tasks that have not begun will not run. */
	void cancel() noexcept { cancelled_ = true; }
	bool is_cancelled() const noexcept
	{
		return cancelled_.load(std::memory_order_relaxed) || failure_.happened();
	}

    private:
	template <class F> struct task {
		task_group *group;
		F f;
	};
	template <class F> static int call(void *arg)
	{
		std::unique_ptr<task<F>> t(static_cast<task<F> *>(arg));
		if (t->group->is_cancelled())
			return 0;
		try {
			t->f();
		} catch (...) {
			t->group->failure_.note();
		}
		return 0;
	}
	kb_group_t g_;
	std::atomic<bool> cancelled_{ false };
	detail::failure failure_;
};

/* Calls f(from, to) for pieces of begin .. end - 1 of at most `grain` indices (0: as many pieces as
 * the processors need). Throws the first exception; pieces that have not begun by then are left
 * out. May suspend. */
template <class F> void parallel_for(std::size_t begin, std::size_t end, std::size_t grain, F f)
{
	struct loop {
		F &f;
		detail::failure failure;
	} l{ f, {} };
	const auto piece = [](std::size_t from, std::size_t to, void *arg) {
		auto *self = static_cast<loop *>(arg);
		try {
			self->f(from, to);
			return 0;
		} catch (...) {
			self->failure.note();
			return ECANCELED;
		}
	};
	const int e = kb_parallel_for(begin, end, grain, piece, &l);
	l.failure.rethrow();
	detail::check(e, "kochab::parallel_for");
}

/* Reduces begin .. end - 1: add(from, to, part) adds a piece to part, which began as `neutral`;
 * join(left, right) adds the right neighbour to the left. The order is kept; with a grain that is
 * not 0 the result is the same on any number of processors, to the last bit. May suspend. */
template <class T, class Add, class Join>
T parallel_reduce(std::size_t begin, std::size_t end, std::size_t grain, T neutral, Add add,
		  Join join)
{
	static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= KB_REDUCE_MAX,
		      "parts are copied byte by byte");
	struct loop {
		Add &add;
		Join &join;
		detail::failure failure;
	} l{ add, join, {} };
	const auto piece = [](std::size_t from, std::size_t to, void *part, void *arg) {
		auto *self = static_cast<loop *>(arg);
		try {
			self->add(from, to, *static_cast<T *>(part));
			return 0;
		} catch (...) {
			self->failure.note();
			return ECANCELED;
		}
	};
	const auto both = [](void *left, const void *right, void *arg) {
		auto *self = static_cast<loop *>(arg);
		try {
			self->join(*static_cast<T *>(left), *static_cast<const T *>(right));
		} catch (...) {
			self->failure.note();
		}
	};
	const int e = kb_reduce(begin, end, grain, &neutral, sizeof neutral, piece, both, &l);
	l.failure.rethrow();
	detail::check(e, "kochab::parallel_reduce");
	return neutral;
}

/* ---- coroutines ------------------------------------------------------------------------------ */

#if defined(__cpp_impl_coroutine)

namespace detail {

/* The end of a coroutine, and the coroutine that awaits this end. The acquire load in come and the
 * acquire-release exchanges in await and come_now pair with each other: the awaiting coroutine sees
 * the result. */
class coroutine_end {
    public:
	bool come() const noexcept { return next_.load(std::memory_order_acquire) == this; }
	/* Returns false if the end has come. */
	bool await(std::coroutine_handle<> h) noexcept
	{
		void *none = nullptr;
		return next_.compare_exchange_strong(none, h.address(), std::memory_order_acq_rel);
	}
	std::coroutine_handle<> come_now() noexcept
	{
		void *h = next_.exchange(this, std::memory_order_acq_rel);
		return h ? std::coroutine_handle<>::from_address(h) : std::noop_coroutine();
	}

    private:
	/* the end has come if it is `this`; else the address of the awaiting coroutine */
	std::atomic<void *> next_{ nullptr };
};

/* Frees the coroutine and continues the awaiting coroutine. */
struct final_awaiter {
	std::shared_ptr<coroutine_end> end;
	bool await_ready() const noexcept { return false; }
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) noexcept
	{
		const auto e = std::move(end); /* the awaiter itself lies in the frame */
		h.destroy();
		return e->come_now();
	}
	void await_resume() const noexcept {}
};

} // namespace detail

/* The return type of a function that awaits. The function begins at once; get() waits for its end,
 * and so does co_await, once, in a coroutine. */
template <class T = void> class coroutine {
	struct common {
		promise<T> result;
		std::shared_ptr<detail::coroutine_end> end = std::make_shared<detail::coroutine_end>();
		coroutine get_return_object() { return coroutine(result.get_future(), end); }
		std::suspend_never initial_suspend() noexcept { return {}; }
		detail::final_awaiter final_suspend() noexcept { return { std::move(end) }; }
		void unhandled_exception() { result.set_exception(std::current_exception()); }
	};
	struct with_value : common {
		template <class V = T> void return_value(V &&v)
		{
			this->result.set_value(std::forward<V>(v));
		}
	};
	struct without : common {
		void return_void() { this->result.set_value(); }
	};

    public:
	using promise_type = std::conditional_t<std::is_void_v<T>, without, with_value>;
	T get() { return f_.get(); }
	future<T> &result() noexcept { return f_; }
	bool await_ready() const noexcept { return end_->come(); }
	bool await_suspend(std::coroutine_handle<> h) noexcept { return end_->await(h); }
	T await_resume() { return f_.get(); }

    private:
	coroutine(future<T> f, std::shared_ptr<detail::coroutine_end> end)
		: f_(std::move(f)), end_(std::move(end))
	{
	}
	future<T> f_;
	std::shared_ptr<detail::coroutine_end> end_;
};

namespace detail {

/* If ready(result) is false, a new lightweight thread runs wait(result) and then continues the
 * coroutine in itself. The awaiting thread goes on. */
template <class Ready, class Wait, class Result> struct awaiter {
	Ready ready;
	Wait wait;
	Result result;

	bool await_ready() { return ready(result); }
	void await_suspend(std::coroutine_handle<> h)
	{
		kb_thread_t t;
		create(&t, thread_options(), true, [this, h]() noexcept {
			wait(result);
			h.resume();
		});
	}
	Result await_resume() { return std::move(result); }
};

template <class Result, class Ready, class Wait> auto await(Ready ready, Wait wait)
{
	return awaiter<Ready, Wait, Result>{ std::move(ready), std::move(wait), Result() };
}

} // namespace detail

/* co_await returns std::optional<T>; no value: closed and empty. */
template <class T> auto async_receive(channel<T> &c)
{
	using result = std::optional<T>;
	return detail::await<result>([&c](result &r) { return (r = c.try_receive()).has_value(); },
				     [&c](result &r) { r = c.receive(); });
}

/* co_await returns false if the channel is closed. */
template <class T> auto async_send(channel<T> &c, T v)
{
	return detail::await<bool>([](bool &) { return false; },
				   [&c, v = std::move(v)](bool &r) mutable { r = c.send(std::move(v)); });
}

/* co_await returns at or after the time. */
template <class Rep, class Period> auto async_sleep_for(const std::chrono::duration<Rep, Period> &d)
{
	return detail::await<bool>([](bool &) { return false; },
				   [until = detail::deadline(d)](bool &) { kb_sleep_until(until); });
}

/* Any number of coroutines await the event. set() continues all of them, each in a lightweight
 * thread of its own; a later co_await returns at once. */
class async_event {
    public:
	void set()
	{
		{
			std::lock_guard<mutex> hold(m_);
			set_ = true;
		}
		c_.notify_all();
	}
	bool is_set()
	{
		std::lock_guard<mutex> hold(m_);
		return set_;
	}
	void wait()
	{
		std::unique_lock<mutex> hold(m_);
		c_.wait(hold, [this] { return set_; });
	}
	auto operator co_await()
	{
		return detail::await<bool>([this](bool &r) { return r = is_set(); },
					   [this](bool &r) {
						   wait();
						   r = true;
					   });
	}

    private:
	mutex m_;
	condition_variable c_;
	bool set_ = false;
};

#endif

} // namespace kochab

#endif
