/* kochab/kochab.hpp - the native interface for C++17 and later, header only: counterparts of
 * <thread>, <mutex>, <condition_variable>, <latch>, <barrier>, <semaphore>, <stop_token> and
 * <future> on lightweight threads; channels and select; groups of tasks; and, with C++20,
 * coroutines that await channels and events.
 *
 * Names and meanings are the standard library's unless a comment says otherwise; locks work with
 * std::unique_lock, std::scoped_lock and std::shared_lock. Errors are std::system_error with the
 * errno value in std::generic_category(); functions that take a std::error_code & report errors
 * there. "May suspend" is as in kochab/kochab.h.
 *
 * Threads have TLS of their own and 256 KiB of stack unless thread_options say otherwise.
 * Exceptions and thread_local need TLS of their own; where the machine does not support it a thread
 * is made without. */
#ifndef KOCHAB_KOCHAB_HPP
#define KOCHAB_KOCHAB_HPP

#include <kochab/channel.hpp>
#include <kochab/sync.hpp>
#include <kochab/task.hpp>
#include <kochab/thread.hpp>

#endif
