/* mem/heap_door.c - finds libkochab-malloc.so and calls it. Contract in heap_door.h. */
#include "mem/heap_door.h"

#include <stdio.h>

#include <kochab/heap.h>

#include "arch/arch.h"
#include "base/option.h"
#include "libc/context.h"
#include "libc/names.h"
#include "os/memory.h"
#include "os/sys.h"

ptrdiff_t kbi_door_offset;

static const struct kbi_door *door;
#if KBI_HAVE_TP
static __thread void *nobodys_slot __attribute__((tls_model("initial-exec")));
#endif

void kbi_door_find(void)
{
	const struct kbi_door *(*find)(void), *d;

	find = (const struct kbi_door *(*)(void))(uintptr_t)kbi_names_look_up("kb_heap_door");
	d = find ? find() : NULL;

	if (d && d->version == KBI_DOOR_VERSION)
		door = d;
#if KBI_HAVE_TP
	kbi_door_offset = (char *)(door ? door->slot : &nobodys_slot) - (char *)kbi_tp_get();
#endif
	if (door)
		kbi_context_add(door->ehdr);
	else if (kbi_options.malloc == KBI_OPT_MALLOC_KOCHAB)
		kbi_sys_message("malloc is not Kochab's: libkochab-malloc.so is not preloaded");
}

void *kbi_door_here(void)
{
	return door ? door->here() : NULL;
}

void kbi_door_stays(void)
{
	if (door)
		door->stays();
}

void kbi_door_ends(void)
{
	if (door)
		door->ends();
}

const char *kbi_door_join(void)
{
	struct kbi_memory_region r;

	if (!door || !door->region(&r) || !kbi_memory_add(&r))
		return NULL;
	return "libkochab-malloc.so has reserved more addresses than a file may have bytes "
	       "(limit of file size)";
}

void kbi_door_shared(bool is)
{
	if (door)
		door->shared(is, &kbi_sys_from);
}

void kbi_door_held(bool is)
{
	if (door)
		door->held(is);
}

void kbi_door_renumber(int was, int now)
{
	if (door)
		door->renumber((uint32_t)was, (uint32_t)now);
}

void kbi_door_explain(uintptr_t at)
{
	if (door)
		door->explain(at);
}

void kbi_door_forget(void *tp)
{
	kbi_door_write(tp, door ? door->none : NULL);
}

size_t kb_heap_stats_json(char *buf, size_t size)
{
	return door ? door->stats_json(buf, size) : (size_t)snprintf(buf, size, "{}\n");
}
