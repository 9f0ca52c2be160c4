/* libc/loader.c - finds and reads the loader's locks. Contract in loader.h.
 * glibc's loader has mutexes of libc's kind in its own data: for dlopen, for its list of modules
 * and, since 2.35, for thread-local storage, side by side. No name leads to them. The middle mutex
 * is held while dl_iterate_phdr calls back: it is the only recursive mutex in that data which the
 * caller then holds. */
#include "libc/loader.h"

#if defined(__GLIBC__)

#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>

#include "libc/asked.h"
#include "libc/tcb_priv.h"

enum { LOCKS = 3 };

static const pthread_mutex_t *locks[LOCKS]; /* constant after learn */
static unsigned n_locks;

/* Returns the calling thread's number, as mutexes note their owner. */
static int own_thread_number(void)
{
	return *(int *)((uintptr_t)pthread_self() + (uintptr_t)kbi_tcb_layout.tid);
}

static bool is_recursive(const pthread_mutex_t *m)
{
	return m->__data.__kind == PTHREAD_MUTEX_RECURSIVE_NP;
}

static bool is_held(const pthread_mutex_t *m, int by)
{
	return a_load_rlx((const a32 *)(const void *)&m->__data.__owner) == (uint32_t)by;
}

/* Notes m, the mutex of the list, and its neighbours. */
static void note_loader_locks(const pthread_mutex_t *m)
{
	locks[n_locks++] = m;
	if (is_recursive(m - 1))
		locks[n_locks++] = m - 1;
	if (is_recursive(m + 1))
		locks[n_locks++] = m + 1;
}

static void search_data_for_locks(const char *at, size_t bytes)
{
	for (const char *end = at + bytes; at + 3 * sizeof(pthread_mutex_t) <= end;
		at += sizeof(void *)) {
		const pthread_mutex_t *m = (const pthread_mutex_t *)(const void *)at + 1;

		if (is_recursive(m) && is_held(m, own_thread_number()) && m->__data.__lock &&
			m->__data.__count == 1) {
			note_loader_locks(m);
			return;
		}
	}
}

static int search_loader_module(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (info->dlpi_addr == getauxval(AT_BASE) && p->p_type == PT_LOAD && p->p_flags & PF_W)
			search_data_for_locks((const char *)info->dlpi_addr + p->p_vaddr,
				p->p_memsz);
	}
	return n_locks > 0;
}

bool kbi_loader_learn(void)
{
	const char *what = "loader's locks";

	n_locks = 0;
	if (!kbi_tcb_layout.tid || !getauxval(AT_BASE))
		return true;
	dl_iterate_phdr(search_loader_module, NULL);
	if (n_locks)
		kbi_asked_found(what, "%u, side by side", n_locks);
	else
		kbi_asked_missed(what, "not found: threads are not preempted, as with --quantum 0");
	return n_locks;
}

bool kbi_loader_is_held(void)
{
	for (unsigned i = 0; i < n_locks; i++)
		if (is_held(locks[i], own_thread_number()))
			return true;
	return false;
}

#else

bool kbi_loader_learn(void)
{
	return true;
}

bool kbi_loader_is_held(void)
{
	return false;
}

#endif
