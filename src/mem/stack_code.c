/* mem/stack_code.c - decides whether code may run on stacks. Contract in stack_code.h. */
#include "mem/stack_code.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/option.h"
#include "libc/broadcast.h"
#include "os/maps.h"
#include "os/sys.h"

/* The loader's variable: an address in main's stack at the start. When the loader makes stacks
 * executable, it changes this page. */
extern void *__libc_stack_end __attribute__((weak));

/* dl_iterate_phdr callback: returns whether a module asks for an executable stack. A module without
 * PT_GNU_STACK asks for it: such machines had executable stacks by default. On all other machines
 * the loader does not grant the request. */
static int asks_for_exec_stack(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (info->dlpi_phdr && (uintptr_t)info->dlpi_phdr - getauxval(AT_SYSINFO_EHDR) < 4096)
		return 0; /* the kernel's pages (vDSO) */
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_STACK)
			return (info->dlpi_phdr[i].p_flags & PF_X) != 0;
	return 1;
}

bool kbi_stack_code_is_asked(void)
{
	return dl_iterate_phdr(asks_for_exec_stack, NULL);
}

bool kbi_stack_code_may_run(uintptr_t address)
{
	struct kbi_maps_line m;

	return kbi_maps_find(address, &m) == 0 && m.protection & PROT_EXEC;
}

bool kbi_stack_code_is_given(void)
{
	return &__libc_stack_end && __libc_stack_end &&
	       kbi_stack_code_may_run((uintptr_t)__libc_stack_end);
}

/* Leaves out the guard pages: a guard made by mprotect must keep its protection; a guard marker of
 * the kernel's would not be lost. */
void kbi_stack_code_let_run(char *p, size_t each, uint32_t n)
{
	struct kbi_broadcast_call c = { .nr = SYS_mprotect,
					 .arg = { (long)p + KBI_PAGE, (long)(each - KBI_PAGE),
						  PROT_READ | PROT_WRITE | PROT_EXEC },
					 .more = n - 1, .step = (long)each, .pointer = -1 };

	if (kbi_options.body == KBI_OPT_BODY_PROCESS) {
		kbi_broadcast(&c);
		return;
	}
	for (; n > 0; n--, p += each)
		kbi_sys(SYS_mprotect, p + KBI_PAGE, each - KBI_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
}
