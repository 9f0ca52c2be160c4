/* kochab/sync.hpp - mutexes, condition variables, semaphores, latches, barriers. A part of
 * kochab/kochab.hpp. */
#ifndef KOCHAB_SYNC_HPP
#define KOCHAB_SYNC_HPP

#include <kochab/thread.hpp>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <shared_mutex>

namespace kochab {

/* ---- locks ----------------------------------------------------------------------------------- */

namespace detail {

template <int Kind> class basic_mutex {
    public:
	using native_handle_type = kb_mutex_t *;
	constexpr basic_mutex() noexcept = default;
	basic_mutex(const basic_mutex &) = delete;
	basic_mutex &operator=(const basic_mutex &) = delete;
	/* May suspend. */
	void lock() { check(kb_mutex_lock(&m_), "kochab::mutex::lock"); }
	bool try_lock() noexcept { return kb_mutex_trylock(&m_) == 0; }
	template <class Rep, class Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &d)
	{
		return timed(deadline(d));
	}
	template <class Clock, class Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &t)
	{
		return timed(deadline(t));
	}
	void unlock() noexcept { kb_mutex_unlock(&m_); }
	native_handle_type native_handle() noexcept { return &m_; }

    private:
	bool timed(std::uint64_t until)
	{
		const int e = kb_mutex_timedlock(&m_, until);
		if (e && e != ETIMEDOUT)
			check(e, "kochab::mutex::try_lock_until");
		return e == 0;
	}
	kb_mutex_t m_ = { 0, 0, 0, 0, Kind, 0, nullptr, nullptr };
};

} // namespace detail

using mutex = detail::basic_mutex<KB_MUTEX_NORMAL>; /* timed, too */
using recursive_mutex = detail::basic_mutex<KB_MUTEX_RECURSIVE>;

/* Writers are not starved, so a thread must not take a second read lock. */
class shared_mutex {
    public:
	using native_handle_type = kb_rwlock_t *;
	constexpr shared_mutex() noexcept = default;
	shared_mutex(const shared_mutex &) = delete;
	shared_mutex &operator=(const shared_mutex &) = delete;
	void lock() { detail::check(kb_rwlock_wrlock(&l_), "kochab::shared_mutex::lock"); }
	bool try_lock() noexcept { return kb_rwlock_trywrlock(&l_) == 0; }
	void unlock() noexcept { kb_rwlock_unlock(&l_); }
	void lock_shared()
	{
		detail::check(kb_rwlock_rdlock(&l_), "kochab::shared_mutex::lock_shared");
	}
	bool try_lock_shared() noexcept { return kb_rwlock_tryrdlock(&l_) == 0; }
	void unlock_shared() noexcept { kb_rwlock_unlock(&l_); }
	template <class Time> bool try_lock_for(const Time &d)
	{
		return kb_rwlock_timedwrlock(&l_, detail::deadline(d)) == 0;
	}
	template <class Time> bool try_lock_until(const Time &t) { return try_lock_for(t); }
	template <class Time> bool try_lock_shared_for(const Time &d)
	{
		return kb_rwlock_timedrdlock(&l_, detail::deadline(d)) == 0;
	}
	template <class Time> bool try_lock_shared_until(const Time &t)
	{
		return try_lock_shared_for(t);
	}
	native_handle_type native_handle() noexcept { return &l_; }

    private:
	kb_rwlock_t l_ = KB_RWLOCK_INIT;
};

/* Works with std::unique_lock of mutex or recursive_mutex. */
class condition_variable {
    public:
	using native_handle_type = kb_cond_t *;
	constexpr condition_variable() noexcept = default;
	condition_variable(const condition_variable &) = delete;
	condition_variable &operator=(const condition_variable &) = delete;
	void notify_one() noexcept { kb_cond_signal(&c_); }
	void notify_all() noexcept { kb_cond_broadcast(&c_); }
	template <class M> void wait(std::unique_lock<M> &l)
	{
		detail::check(kb_cond_wait(&c_, l.mutex()->native_handle()),
			      "kochab::condition_variable::wait");
	}
	template <class M, class P> void wait(std::unique_lock<M> &l, P p)
	{
		while (!p())
			wait(l);
	}
	/* Returns p(); false: a stop was requested meanwhile. */
	template <class M, class P> bool wait(std::unique_lock<M> &l, const stop_token &token, P p)
	{
		/* the callback locks the mutex: its destructor must not run while the mutex is held */
		struct guard {
			std::unique_lock<M> &l;
			bool locks;
			~guard()
			{
				if (l.owns_lock() != locks)
					locks ? l.lock() : l.unlock();
			}
		};
		auto wake = [this, m = l.mutex()] {
			/* a thread that has checked the token holds the mutex until it sleeps */
			std::lock_guard<M> hold(*m);
			notify_all();
		};
		guard after{ l, true };
		l.unlock();
		stop_callback<decltype(wake)> callback(token, wake);
		guard before{ l, false };
		l.lock();
		bool met;
		while (!(met = p()) && !token.stop_requested())
			wait(l);
		return met;
	}
	template <class M, class Time> std::cv_status wait_until(std::unique_lock<M> &l, const Time &t)
	{
		return wait_deadline(l, detail::deadline(t));
	}
	template <class M, class Time, class P>
	bool wait_until(std::unique_lock<M> &l, const Time &t, P p)
	{
		while (!p())
			if (wait_until(l, t) == std::cv_status::timeout)
				return p();
		return true;
	}
	template <class M, class Rep, class Period>
	std::cv_status wait_for(std::unique_lock<M> &l, const std::chrono::duration<Rep, Period> &d)
	{
		return wait_deadline(l, detail::deadline(d));
	}
	template <class M, class Rep, class Period, class P>
	bool wait_for(std::unique_lock<M> &l, const std::chrono::duration<Rep, Period> &d, P p)
	{
		const std::uint64_t until = detail::deadline(d);
		while (!p())
			if (wait_deadline(l, until) == std::cv_status::timeout)
				return p();
		return true;
	}
	native_handle_type native_handle() noexcept { return &c_; }

    private:
	template <class M> std::cv_status wait_deadline(std::unique_lock<M> &l, std::uint64_t until)
	{
		const int e = kb_cond_timedwait(&c_, l.mutex()->native_handle(), until);
		if (e && e != ETIMEDOUT)
			detail::check(e, "kochab::condition_variable::wait_until");
		return e ? std::cv_status::timeout : std::cv_status::no_timeout;
	}
	kb_cond_t c_ = KB_COND_INIT;
};

/* Max bounds the initial value only: release() counts beyond it, up to KB_SEM_VALUE_MAX. */
template <std::ptrdiff_t Max = KB_SEM_VALUE_MAX> class counting_semaphore {
	static_assert(Max >= 0 && Max <= KB_SEM_VALUE_MAX, "as many as kb_sem_t holds");

    public:
	explicit counting_semaphore(std::ptrdiff_t n)
	{
		const int e = n < 0 || n > Max ? EINVAL : kb_sem_init(&s_, static_cast<std::uint32_t>(n));
		detail::check(e, "kochab::counting_semaphore");
	}
	counting_semaphore(const counting_semaphore &) = delete;
	counting_semaphore &operator=(const counting_semaphore &) = delete;
	static constexpr std::ptrdiff_t max() noexcept { return Max; }
	/* EOVERFLOW; never suspends. */
	void release(std::ptrdiff_t n = 1)
	{
		for (; n > 0; n--)
			detail::check(kb_sem_post(&s_), "kochab::counting_semaphore::release");
	}
	void acquire() { detail::check(kb_sem_wait(&s_), "kochab::counting_semaphore::acquire"); }
	bool try_acquire() noexcept { return kb_sem_trywait(&s_) == 0; }
	template <class Time> bool try_acquire_for(const Time &d)
	{
		return kb_sem_timedwait(&s_, detail::deadline(d)) == 0;
	}
	template <class Time> bool try_acquire_until(const Time &t) { return try_acquire_for(t); }
	kb_sem_t *native_handle() noexcept { return &s_; }

    private:
	kb_sem_t s_ = KB_SEM_INIT(0);
};
using binary_semaphore = counting_semaphore<1>;

class latch {
    public:
	explicit latch(std::ptrdiff_t n) noexcept : left_(n) {}
	latch(const latch &) = delete;
	latch &operator=(const latch &) = delete;
	void count_down(std::ptrdiff_t n = 1)
	{
		std::lock_guard<mutex> hold(m_);
		if ((left_ -= n) == 0)
			zero_.notify_all();
	}
	bool try_wait() const
	{
		std::lock_guard<mutex> hold(m_);
		return left_ == 0;
	}
	void wait() const
	{
		std::unique_lock<mutex> hold(m_);
		zero_.wait(hold, [this] { return left_ == 0; });
	}
	void arrive_and_wait(std::ptrdiff_t n = 1)
	{
		count_down(n);
		wait();
	}

    private:
	mutable mutex m_;
	mutable condition_variable zero_;
	std::ptrdiff_t left_;
};

/* The last thread to arrive calls the completion. */
template <class Completion = void (*)()> class barrier {
    public:
	using arrival_token = std::uint64_t;
	explicit barrier(std::ptrdiff_t n, Completion f = [] {})
		: need_(n), left_(n), f_(std::move(f))
	{
	}
	barrier(const barrier &) = delete;
	barrier &operator=(const barrier &) = delete;
	arrival_token arrive(std::ptrdiff_t n = 1)
	{
		std::lock_guard<mutex> hold(m_);
		return arrived(n);
	}
	void wait(arrival_token phase)
	{
		std::unique_lock<mutex> hold(m_);
		next_.wait(hold, [&] { return phase_ != phase; });
	}
	void arrive_and_wait() { wait(arrive()); }
	void arrive_and_drop()
	{
		std::lock_guard<mutex> hold(m_);
		need_--;
		arrived(1);
	}

    private:
	arrival_token arrived(std::ptrdiff_t n)
	{
		const arrival_token phase = phase_;
		if ((left_ -= n) == 0) {
			f_();
			left_ = need_;
			phase_++;
			next_.notify_all();
		}
		return phase;
	}
	mutex m_;
	condition_variable next_;
	std::ptrdiff_t need_, left_;
	std::uint64_t phase_ = 0;
	Completion f_;
};

} // namespace kochab

#endif
