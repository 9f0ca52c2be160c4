/* kochab/channel.hpp - channels and select. A part of kochab/kochab.hpp. */
#ifndef KOCHAB_CHANNEL_HPP
#define KOCHAB_CHANNEL_HPP

#include <kochab/thread.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace kochab {

/* ---- channels -------------------------------------------------------------------------------- */

/* A channel for many senders and receivers, first come, first served; capacity 0: sender and
 * receiver meet. Trivially copyable elements of at most 64 bytes are copied; larger values are
 * moved to the heap and back. */
template <class T> class channel {
	static constexpr bool by_value = sizeof(T) <= 64 && std::is_trivially_copyable_v<T> &&
					 std::is_default_constructible_v<T>;
	using slot = std::conditional_t<by_value, T, T *>;

    public:
	using value_type = T;
	explicit channel(std::size_t capacity = 0)
	{
		detail::check(kb_chan_create(&c_, sizeof(slot), capacity), "kochab::channel");
	}
	channel(const channel &) = delete;
	channel &operator=(const channel &) = delete;
	~channel()
	{
		close();
		while (try_receive())
			;
		kb_chan_destroy(c_);
	}
	/* False: the channel is closed, and v is lost. May suspend. */
	bool send(T v)
	{
		return sent(pack(std::move(v)), [this](slot &s) { return kb_chan_send(c_, &s); });
	}
	/* False: full or closed. */
	bool try_send(T v)
	{
		return sent(pack(std::move(v)), [this](slot &s) { return kb_chan_trysend(c_, &s); });
	}
	template <class Time> bool send_until(T v, const Time &t)
	{
		return sent(pack(std::move(v)),
			    [&](slot &s) { return kb_chan_timedsend(c_, &s, detail::deadline(t)); });
	}
	/* No value: closed and empty. May suspend. */
	std::optional<T> receive()
	{
		return received([this](slot &s) { return kb_chan_recv(c_, &s); });
	}
	/* No value: empty. */
	std::optional<T> try_receive()
	{
		return received([this](slot &s) { return kb_chan_tryrecv(c_, &s); });
	}
	/* No value: the time has come, or closed and empty. May suspend. */
	template <class Time> std::optional<T> receive_until(const Time &t)
	{
		return received([&](slot &s) { return kb_chan_timedrecv(c_, &s, detail::deadline(t)); });
	}
	/* From now on sends fail; receivers get the elements that are left. */
	void close() noexcept { kb_chan_close(c_); }
	std::size_t size() const noexcept { return kb_chan_length(c_); }
	kb_chan_t *native_handle() noexcept { return c_; }

	/* for (T &v : channel) runs until the channel is closed and empty. */
	class iterator {
	    public:
		T &operator*() { return *v_; }
		iterator &operator++()
		{
			v_ = c_->receive();
			return *this;
		}
		bool operator!=(const iterator &) const { return v_.has_value(); }

	    private:
		friend channel;
		explicit iterator(channel *c) : c_(c), v_(c ? c->receive() : std::nullopt) {}
		channel *c_;
		std::optional<T> v_;
	};
	iterator begin() { return iterator(this); }
	iterator end() { return iterator(nullptr); }

    private:
	friend class select;
	static slot pack(T &&v)
	{
		if constexpr (by_value)
			return v;
		else
			return new T(std::move(v));
	}
	static std::optional<T> unpack(slot s)
	{
		if constexpr (by_value)
			return s;
		else {
			std::unique_ptr<T> p(s);
			return std::optional<T>(std::move(*p));
		}
	}
	static void drop([[maybe_unused]] slot s)
	{
		if constexpr (!by_value)
			delete s;
	}
	template <class F> static bool sent(slot s, F f)
	{
		const int e = f(s);
		if (e)
			drop(s);
		return e == 0;
	}
	template <class F> static std::optional<T> received(F f)
	{
		slot s{};
		return f(s) ? std::nullopt : unpack(s);
	}
	kb_chan_t *c_ = nullptr;
};

/* Waits for any of several cases: select().receive(c, v).send(d, w).wait() returns the index of the
 * case that was performed, from 0. A closed channel is a ready case; v is then empty. */
class select {
    public:
	template <class T> select &receive(channel<T> &c, std::optional<T> &v)
	{
		using slot = typename channel<T>::slot;
		auto s = std::make_shared<slot>();
		add(KB_SELECT_RECV, c.native_handle(), s.get(), [&v, s](bool chosen, int e) {
			if (chosen)
				v = e ? std::nullopt : channel<T>::unpack(*s);
		});
		return *this;
	}
	/* v is consumed in any case. */
	template <class T> select &send(channel<T> &c, typename channel<T>::value_type v)
	{
		auto s = std::make_shared<outgoing<T>>();
		s->slot = channel<T>::pack(std::move(v));
		s->full = true;
		add(KB_SELECT_SEND, c.native_handle(), &s->slot, [s](bool chosen, int e) {
			if (chosen && !e)
				s->full = false;
		});
		return *this;
	}
	/* May suspend. */
	std::size_t wait() { return *run(KB_FOREVER); }
	/* No value: the time has come. */
	template <class Time> std::optional<std::size_t> wait_until(const Time &t)
	{
		return run(detail::deadline(t));
	}
	std::optional<std::size_t> try_now() { return run(0); }

    private:
	/* Drops an element that was not sent, also if wait was never called. */
	template <class T> struct outgoing {
		typename channel<T>::slot slot{};
		bool full = false;
		~outgoing()
		{
			if (full)
				channel<T>::drop(slot);
		}
	};
	template <class F> void add(kb_select_op op, kb_chan_t *c, void *element, F f)
	{
		cases_.push_back({ op, 0, c, nullptr, element });
		ends_.push_back(std::move(f));
	}
	std::optional<std::size_t> run(std::uint64_t until)
	{
		std::size_t chosen = cases_.size();
		const int e = kb_select(cases_.data(), cases_.size(), until, &chosen);
		if (e)
			chosen = cases_.size();
		for (std::size_t i = 0; i < cases_.size(); i++)
			ends_[i](i == chosen, cases_[i].error);
		cases_.clear();
		ends_.clear();
		if (e == ETIMEDOUT)
			return std::nullopt;
		detail::check(e, "kochab::select");
		return chosen;
	}
	std::vector<kb_select_case_t> cases_;
	std::vector<std::function<void(bool, int)>> ends_;
};

} // namespace kochab

#endif
