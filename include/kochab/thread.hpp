/* kochab/thread.hpp - threads with stop tokens, errors and deadlines. A part of kochab/kochab.hpp,
 * which states the conventions. */
#ifndef KOCHAB_THREAD_HPP
#define KOCHAB_THREAD_HPP

#include <kochab/kochab.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

namespace kochab {

namespace detail {

inline void check(int e, const char *what)
{
	if (e)
		throw std::system_error(e, std::generic_category(), what);
}

inline std::uint64_t after(std::chrono::nanoseconds d)
{
	if (d == std::chrono::nanoseconds::max())
		return KB_FOREVER;
	return kb_now() + (d.count() > 0 ? static_cast<std::uint64_t>(d.count()) : 0);
}

constexpr double ages = 3e9; /* seconds; a longer time counts as for ever */

/* Rounds up, so that no wait returns early; a negative time becomes 0. The seconds in a double are
 * compared first, because the exact count of a coarse unit's minimum and maximum does not fit. */
template <class Rep, class Period>
std::chrono::nanoseconds nanoseconds(const std::chrono::duration<Rep, Period> &d)
{
	const double s = std::chrono::duration<double>(d).count();
	if (s >= ages)
		return std::chrono::nanoseconds::max();
	if (!(s > 0))
		return std::chrono::nanoseconds::zero();
	return std::chrono::ceil<std::chrono::nanoseconds>(d);
}

template <class Rep, class Period>
std::uint64_t deadline(const std::chrono::duration<Rep, Period> &d)
{
	return after(nanoseconds(d));
}

/* Returns the time left until t; 0: t has passed. */
template <class Clock, class Duration>
std::chrono::nanoseconds left(const std::chrono::time_point<Clock, Duration> &t)
{
	using seconds = std::chrono::duration<double>;
	const auto now = Clock::now();
	const double s = seconds(t.time_since_epoch()).count() -
			 seconds(now.time_since_epoch()).count();
	if (s >= ages)
		return std::chrono::nanoseconds::max();
	return s < -ages ? std::chrono::nanoseconds::zero() : nanoseconds(t - now);
}

/* Converts a time of any clock, which is read once: setting that clock later does not change the
 * length of the wait. */
template <class Clock, class Duration>
std::uint64_t deadline(const std::chrono::time_point<Clock, Duration> &t)
{
	return after(left(t));
}

} // namespace detail

/* ---- stop tokens: std::stop_token's for C++17 ------------------------------------------------ */

namespace detail {

struct stop_state {
	struct entry {
		entry *next = nullptr, *prev = nullptr;
		void (*call)(entry *) = nullptr;
		bool linked = false;
	};
	kb_mutex_t lock = KB_MUTEX_INIT;
	std::atomic<bool> stopped{ false };
	entry *first = nullptr;
	entry *running = nullptr; /* its call runs now, in the thread `by` */
	kb_thread_t by = nullptr;
	std::thread::id kernel_by; /* foreign threads have no kb_thread_t */
	kb_cond_t done = KB_COND_INIT;

	bool request()
	{
		kb_mutex_lock(&lock);
		if (stopped.exchange(true)) {
			kb_mutex_unlock(&lock);
			return false;
		}
		by = kb_thread_self();
		kernel_by = std::this_thread::get_id();
		while (first) {
			running = first;
			unlink(first);
			entry *e = running;
			kb_mutex_unlock(&lock);
			e->call(e); /* the entry may destroy itself */
			kb_mutex_lock(&lock);
			running = nullptr;
			kb_cond_broadcast(&done);
		}
		kb_mutex_unlock(&lock);
		return true;
	}
	/* Returns false if a stop was requested already: the entry was not linked. */
	bool link(entry *e)
	{
		kb_mutex_lock(&lock);
		const bool late = stopped;
		if (!late) {
			e->next = first;
			if (first)
				first->prev = e;
			first = e;
			e->linked = true;
		}
		kb_mutex_unlock(&lock);
		return !late;
	}
	/* At return the entry's call is over and will not begin, unless the caller is inside that
	 * call. */
	void remove(entry *e)
	{
		kb_mutex_lock(&lock);
		if (e->linked)
			unlink(e);
		else
			while (running == e && !by_caller())
				kb_cond_wait(&done, &lock);
		kb_mutex_unlock(&lock);
	}

    private:
	/* A foreign caller may have become a lightweight thread meanwhile: main, in the callback. */
	bool by_caller() const
	{
		return by ? by == kb_thread_self() : kernel_by == std::this_thread::get_id();
	}
	void unlink(entry *e)
	{
		(e->prev ? e->prev->next : first) = e->next;
		if (e->next)
			e->next->prev = e->prev;
		e->next = e->prev = nullptr;
		e->linked = false;
	}
};

} // namespace detail

class stop_token {
    public:
	stop_token() noexcept = default;
	bool stop_requested() const noexcept { return state_ && state_->stopped; }
	bool stop_possible() const noexcept { return static_cast<bool>(state_); }

    private:
	friend class stop_source;
	template <class F> friend class stop_callback;
	explicit stop_token(std::shared_ptr<detail::stop_state> s) noexcept : state_(std::move(s)) {}
	std::shared_ptr<detail::stop_state> state_;
};

class stop_source {
    public:
	stop_source() : state_(std::make_shared<detail::stop_state>()) {}
	stop_token get_token() const noexcept { return stop_token(state_); }
	bool stop_requested() const noexcept { return state_ && state_->stopped; }
	/* Runs the callbacks on this thread. Returns true for the first request. */
	bool request_stop() const { return state_ && state_->request(); }

    private:
	friend class thread;
	explicit stop_source(std::nullptr_t) noexcept {}
	std::shared_ptr<detail::stop_state> state_;
};

/* Calls f() when a stop is requested, in the requesting thread; at once if a stop has been
 * requested. The destructor waits for a call that is under way in another thread: it may suspend.
 * An exception that leaves f ends the program. */
template <class F> class stop_callback : private detail::stop_state::entry {
    public:
	template <class G>
	stop_callback(const stop_token &t, G &&f) : state_(t.state_), f_(std::forward<G>(f))
	{
		call = [](entry *e) noexcept { static_cast<stop_callback *>(e)->f_(); };
		if (state_ && !state_->link(this)) {
			state_.reset();
			call(this);
		}
	}
	~stop_callback()
	{
		if (state_)
			state_->remove(this);
	}
	stop_callback(const stop_callback &) = delete;
	stop_callback &operator=(const stop_callback &) = delete;

    private:
	std::shared_ptr<detail::stop_state> state_;
	F f_;
};
template <class F> stop_callback(stop_token, F) -> stop_callback<F>;

/* ---- threads --------------------------------------------------------------------------------- */

struct thread_options {
	std::size_t stack_size = 256 * 1024;
	bool own_tls = true;
	bool kernel_thread = false; /* KB_SCOPE_SYSTEM */
	int vp = -1;                /* bound to this virtual processor */
	const char *name = nullptr; /* at most 15 bytes */
};

namespace detail {

inline void create(kb_thread_t *t, const thread_options &o, bool detached, void *(*fn)(void *),
		   void *arg)
{
	kb_attr_t a;
	check(kb_attr_init(&a), "kb_attr_init");
	check(kb_attr_setstacksize(&a, o.stack_size), "kb_attr_setstacksize");
	check(kb_attr_setscope(&a, o.kernel_thread ? KB_SCOPE_SYSTEM : KB_SCOPE_PROCESS),
	      "kb_attr_setscope");
	check(kb_attr_setdetached(&a, detached), "kb_attr_setdetached");
	check(kb_attr_setvp(&a, o.vp), "kb_attr_setvp");
	if (o.name)
		check(kb_attr_setname(&a, o.name), "kb_attr_setname");
	check(kb_attr_settls(&a, o.own_tls ? KB_TLS_OWN : KB_TLS_LIGHT), "kb_attr_settls");
	int e = kb_thread_create(t, &a, fn, arg);
	if (e == ENOTSUP && o.own_tls) {
		kb_attr_settls(&a, KB_TLS_LIGHT);
		e = kb_thread_create(t, &a, fn, arg);
	}
	check(e, "kb_thread_create");
}

/* Runs f, which is on the heap, and deletes it. */
template <class F> void *entry(void *arg)
{
	std::unique_ptr<F> f(static_cast<F *>(arg));
	(*f)();
	return nullptr;
}

template <class F> void create(kb_thread_t *t, const thread_options &o, bool detached, F &&f)
{
	using call = std::decay_t<F>;
	auto c = std::make_unique<call>(std::forward<F>(f));
	create(t, o, detached, entry<call>, c.get());
	c.release();
}

} // namespace detail

/* As std::jthread: the destructor requests a stop and joins (it may suspend). f gets a stop_token
 * as its first argument if it takes one. An exception that leaves f ends the program, and so does a
 * thread that destroys its own thread object. */
class thread {
    public:
	class id {
	    public:
		id() noexcept = default;
		friend bool operator==(id a, id b) noexcept { return a.t_ == b.t_; }
		friend bool operator!=(id a, id b) noexcept { return a.t_ != b.t_; }
		friend bool operator<(id a, id b) noexcept { return std::less<kb_thread_t>()(a.t_, b.t_); }
		kb_thread_t native() const noexcept { return t_; }

	    private:
		friend class thread;
		friend id this_id() noexcept;
		explicit id(kb_thread_t t) noexcept : t_(t) {}
		kb_thread_t t_ = nullptr;
	};
	using native_handle_type = kb_thread_t;

	thread() noexcept : stop_(nullptr) {}
	template <class F, class... Args,
		  class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, thread> &&
					   !std::is_same_v<std::decay_t<F>, thread_options>>>
	explicit thread(F &&f, Args &&...args)
		: thread(thread_options(), std::forward<F>(f), std::forward<Args>(args)...)
	{
	}
	template <class F, class... Args> thread(const thread_options &o, F &&f, Args &&...args)
	{
		std::tuple<std::decay_t<F>, std::decay_t<Args>...> all(std::forward<F>(f),
								       std::forward<Args>(args)...);
		detail::create(&t_, o, false, [all = std::move(all),
					       token = stop_.get_token()]() mutable noexcept {
			std::apply(
				[&](auto &g, auto &...a) {
					if constexpr (takes_token<F, Args...>)
						std::invoke(std::move(g), std::move(token), std::move(a)...);
					else
						std::invoke(std::move(g), std::move(a)...);
				},
				all);
		});
	}
	thread(thread &&o) noexcept
		: t_(std::exchange(o.t_, nullptr)), stop_(std::exchange(o.stop_, stop_source(nullptr)))
	{
	}
	thread &operator=(thread &&o) noexcept
	{
		if (this != &o) {
			end();
			t_ = std::exchange(o.t_, nullptr);
			stop_ = std::exchange(o.stop_, stop_source(nullptr));
		}
		return *this;
	}
	~thread() { end(); }

	bool joinable() const noexcept { return t_ != nullptr; }
	/* May suspend. EINVAL: not joinable; EDEADLK: itself. */
	void join()
	{
		std::error_code e;
		join(e);
		if (e)
			throw std::system_error(e, "kochab::thread::join");
	}
	void join(std::error_code &e)
	{
		const int r = t_ ? kb_thread_join(t_, nullptr) : EINVAL;
		if (r == 0 || r == EOWNERDEAD) /* the thread has ended or crashed */
			t_ = nullptr;
		e.assign(r, std::generic_category());
	}
	void detach()
	{
		detail::check(t_ ? kb_thread_detach(std::exchange(t_, nullptr)) : EINVAL,
			      "kochab::thread::detach");
	}
	id get_id() const noexcept { return id(t_); }
	native_handle_type native_handle() const noexcept { return t_; }
	stop_source &get_stop_source() noexcept { return stop_; }
	stop_token get_stop_token() const noexcept { return stop_.get_token(); }
	bool request_stop() { return stop_.request_stop(); }
	/* The number of virtual processors. */
	static unsigned hardware_concurrency() noexcept { return kb_vp_count(); }

    private:
	template <class F, class... Args>
	static constexpr bool takes_token =
		std::is_invocable_v<std::decay_t<F>, stop_token, std::decay_t<Args>...>;
	void end()
	{
		if (t_) {
			request_stop();
			std::error_code e;
			join(e);
			if (e && e.value() != EOWNERDEAD)
				throw std::system_error(e, "kochab::thread: end");
		}
	}
	kb_thread_t t_ = nullptr;
	stop_source stop_;
};

inline thread::id this_id() noexcept { return thread::id(kb_thread_self()); }

namespace this_thread {
inline thread::id get_id() noexcept { return this_id(); }
inline void yield() noexcept { kb_yield(); }
template <class Rep, class Period> void sleep_for(const std::chrono::duration<Rep, Period> &d)
{
	kb_sleep_until(detail::deadline(d));
}
template <class Clock, class Duration>
void sleep_until(const std::chrono::time_point<Clock, Duration> &t)
{
	for (std::chrono::nanoseconds d; (d = detail::left(t)).count() > 0;)
		kb_sleep_until(detail::after(d));
}
} // namespace this_thread

} // namespace kochab

#endif
