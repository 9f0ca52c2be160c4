/* kochab/kochab.hpp - the native interface for C++17 and later, header only: counterparts of <thread>, <mutex>, <condition_variable>,
 * <latch>, <barrier>, <semaphore>, <stop_token> and <future> have, on lightweight threads; channels and select; groups
 * of tasks; with coroutines on (C++20) awaiting channels and events.
 * Names and meanings are the standard library's unless a comment says otherwise; locks work with
 * std::unique_lock, std::scoped_lock and std::shared_lock. Errors are std::system_error with the errno value in
 * std::generic_category(); functions that take a std::error_code & report there. "May suspend" is as in kochab/kochab.h.
 * Threads have TLS of their own and 256 KiB of stack unless thread_options say otherwise: exceptions and thread_local
 * need the first. Where the machine has no such TLS a thread is made without. */
#ifndef KOCHAB_KOCHAB_HPP
#define KOCHAB_KOCHAB_HPP

#include <kochab/channel.hpp>
#include <kochab/sync.hpp>
#include <kochab/task.hpp>
#include <kochab/thread.hpp>

#endif
