/* mem/stack_code.c - may code run on stacks? Contract in stack_code.h. */
#include "mem/stack_code.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/option.h"
#include "os/everywhere.h"
#include "os/maps.h"
#include "os/sys.h"

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

bool kbi_stack_code_may_run(uintptr_t address)
{
	struct kbi_maps_line m;

	return kbi_maps_find(address, &m) == 0 && m.protection & PROT_EXEC;
}

bool kbi_stack_code_is_given(void)
{
	return &__libc_stack_end && __libc_stack_end && kbi_stack_code_may_run((uintptr_t)__libc_stack_end);
}

/* The guards stay as they are: one of a page that nothing may touch is left out, a marker of the kernel's is not lost. */
void kbi_stack_code_let_run(char *p, size_t each, uint32_t n)
{
	struct kbi_everywhere_call c = { .nr = SYS_mprotect, .arg = { (long)p + KBI_PAGE, (long)(each - KBI_PAGE),
								      PROT_READ | PROT_WRITE | PROT_EXEC },
					 .more = n - 1, .step = (long)each, .pointer = -1 };

	if (kbi_options.body == KBI_OPT_BODY_PROCESS) {
		kbi_everywhere(&c);
		return;
	}
	for (; n > 0; n--, p += each)
		kbi_sys(SYS_mprotect, p + KBI_PAGE, each - KBI_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
}
