/* posix/spin.c - pthread_spin_lock, on libc's trylock: the word stays libc's, so other processes
 * may share it. A lightweight thread that finds it locked for long yields: the owner may wait for
 * this virtual processor.
 * Callers: programs. May switch. */
#include "posix/posix.h"

#include "arch/arch.h"
#include "os/sys.h"

enum { SPINS = 200 };

KBI_POSIX_API int pthread_spin_lock(pthread_spinlock_t *lock)
{
	for (unsigned n = 1;; n++) {
		int e = pthread_spin_trylock(lock);

		if (e != EBUSY)
			return e;
		if (n % SPINS == 0)
			sched_yield();
		else
			kbi_cpu_relax();
	}
}
