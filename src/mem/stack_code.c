/* mem/stack_code.c - may code run on stacks? Contract in stack_code.h. */
#include "mem/stack_code.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "os/maps.h"

/* The loader's: where main's stack began. Its page is one that the loader gives the right to. */
extern void *__libc_stack_end __attribute__((weak));

/* A module that says nothing asks for it, on machines where that was so once; it is not given elsewhere. */
static int asks(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (info->dlpi_phdr && (uintptr_t)info->dlpi_phdr - getauxval(AT_SYSINFO_EHDR) < 4096)
		return 0; /* the kernel's pages */
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_STACK)
			return (info->dlpi_phdr[i].p_flags & PF_X) != 0;
	return 1;
}

bool kbi_stack_code_is_asked(void)
{
	return dl_iterate_phdr(asks, NULL);
}

bool kbi_stack_code_is_given(void)
{
	struct kbi_maps_line m;

	return &__libc_stack_end && __libc_stack_end && kbi_maps_find((uintptr_t)__libc_stack_end, &m) == 0 &&
	       m.protection & PROT_EXEC;
}
