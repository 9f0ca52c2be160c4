/* os/context.c - the interrupted instruction. Contract in context.h. */
#include "os/context.h"

#include <link.h>
#include <ucontext.h>

/* The linker's: the ELF header in front of this module. */
extern const ElfW(Ehdr) __ehdr_start KBI_HIDDEN;

uintptr_t kbi_context_at(const void *context)
{
	const ucontext_t *uc = context;

#if defined(__x86_64__)
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)uc->uc_mcontext.pc;
#elif defined(__riscv)
	return (uintptr_t)uc->uc_mcontext.__gregs[REG_PC];
#else
	(void)uc;
	return 0;
#endif
}

bool kbi_context_is_ours(uintptr_t at)
{
	uintptr_t base = (uintptr_t)&__ehdr_start;
	const ElfW(Phdr) *p = (const void *)(base + __ehdr_start.e_phoff);

	/* a shared library's addresses count from its beginning, a program's may not */
	if (__ehdr_start.e_type != ET_DYN)
		base = 0;
	for (int i = 0; i < __ehdr_start.e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && at - (base + p[i].p_vaddr) < p[i].p_memsz)
			return true;
	return false;
}
