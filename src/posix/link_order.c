/* posix/link_order.c - where an object lies in the order in which the dynamic linker looks names
 * up.
 * Callers: posix/libc, posix/uring_owner, posix/preload_order, posix/preload, posix/symbol. Runs on
 * the calling thread. Calls the loader, which takes its own lock. Never switches. */
#include "posix/posix.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

struct link_map *kbi_link_order_object(const void *address)
{
	struct link_map *map = NULL;
	Dl_info info;

	return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

bool kbi_link_order_before_us(const void *address)
{
	const struct link_map *map = kbi_link_order_object(address);
	const struct link_map *us = kbi_link_order_object((const void *)kbi_link_order_before_us);

	if (!map || map == us)
		return false;
	while (map && map != us)
		map = map->l_next;
	return map != NULL;
}

bool kbi_link_order_behind_libc(void)
{
	return kbi_link_order_before_us((const void *)gnu_get_libc_version);
}
