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

static const ElfW(Ehdr) *added; /* or NULL */

void kbi_context_add(const void *ehdr)
{
	added = ehdr;
}

const void *kbi_context_added(void)
{
	return added;
}

static bool is_in(const ElfW(Ehdr) *e, uintptr_t at)
{
	uintptr_t base = (uintptr_t)e;
	const ElfW(Phdr) *p = (const void *)(base + e->e_phoff);

	/* a shared library's addresses count from its beginning, a program's may not */
	if (e->e_type != ET_DYN)
		base = 0;
	for (int i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && at - (base + p[i].p_vaddr) < p[i].p_memsz)
			return true;
	return false;
}

bool kbi_context_is_ours(uintptr_t at)
{
	return is_in(&__ehdr_start, at) || (added && is_in(added, at));
}
