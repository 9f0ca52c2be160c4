/* posix/aside.c - contract in aside.h. Such a wait costs as much as a kernel thread's, as long as
 * the returning thread finds that no other thread runs on its virtual processor (core/handoff).
 * Kernel threads are bounded (option spares), and some are kept for calls that block otherwise. */
#include "posix/aside.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/option.h"
#include "core/handoff.h"
#include "core/worker_pool.h"
#include "libc/endable.h"
#include "os/sys.h"
#include "posix/posix.h"

/* Making a process takes about 10 ms, during which all threads of the virtual processor wait for
 * it. */
enum { MOST_PROCESSES = 64 };

static uint32_t max_aside_waits(void)
{
	uint32_t some = kbi_options.spares - kbi_options.spares / 4;

	return kbi_sys_from.processes && some > MOST_PROCESSES ? MOST_PROCESSES : some;
}

bool kbi_aside_begin(void)
{
	if (kbi_standin_may_be_lost() || !kbi_call_may_wait() || kbi_worker_pool_is_scarce() ||
		kbi_handoff_away() >= max_aside_waits())
		return false;
	kbi_handoff_begin(KBI_HANDOFF_SURELY);
	return true;
}

void kbi_aside_end(const bool *begun)
{
	if (!*begun)
		return;
	kbi_handoff_end();
	kbi_signal_resumed();
}

static int sleep_aside(const uint32_t *word, uint32_t seen, uint64_t until)
{
	struct timespec t = kbi_sys_timespec(until);
	long a[6] = { (long)word, FUTEX_WAIT_BITSET, (long)seen, until == KBI_FOREVER ? 0 : (long)&t, 0,
		      (long)FUTEX_BITSET_MATCH_ANY };

	return (int)-kbi_endable_call(SYS_futex, a);
}

int kbi_aside_word(const uint32_t *word, uint32_t seen, uint64_t until)
{
	bool begun KBI_ASIDE = kbi_aside_begin();

	return begun ? sleep_aside(word, seen, until) : -1;
}
