/* sched/sched.c - memory of the schedulers, allocated before any thread runs.
 * Callers: the schedulers, at start-up and shutdown only. Calls os/sys. */
#include "sched/sched_priv.h"

#include "os/sys.h"

void *kbi_sched_alloc(size_t size)
{
	char *p = kbi_sys_map(size + KBI_CACHE_LINE);

	if (!p)
		return NULL;
	*(size_t *)p = size;
	return p + KBI_CACHE_LINE;
}

void kbi_sched_free(void *p)
{
	char *start = p;

	if (!start)
		return;
	start -= KBI_CACHE_LINE;
	kbi_sys_unmap(start, *(size_t *)start + KBI_CACHE_LINE);
}
