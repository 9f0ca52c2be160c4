/* libc/redirect.c - contract in redirect.h.
 * The loader reads a module's symbols from a page of the file; the page becomes private to the
 * process by the first write. An entry holds an address relative to its module, in a full word, so
 * an entry can lead into another module. Bindings that the loader makes from the entry lead to us:
 * at once, at the first call, for dlsym, or for a library about to be constructed. Earlier bindings
 * were looked up in an order in which this module comes first.
 * Single-threaded: runs in a constructor. */
#include "libc/redirect.h"

#include "libc/names.h"
#include "os/sys.h"

#if defined(__GLIBC__)

#include <string.h>
#include <sys/mman.h>

enum { MOST = 4096, VERSIONS = 8, PAGE = 4096 };

/* Former contents of the entries. */
static struct moved {
	const ElfW(Sym) *entry;
	uintptr_t value;
} *moved;
static unsigned moved_n;

/* The symbols of ours, by their index in our table, that a module between us and libc defines. */
static uint64_t covered[MOST / 64];

struct module {
	uintptr_t base;
	const ElfW(Dyn) *dynamic;
};

struct walk {
	bool wrapped, failed;
	bool past_libc; /* modules behind libc cover nothing */
	struct module us; /* base 0: not reached yet */
	struct module at; /* the module that the walk has reached */
	const ElfW(Sym) *first; /* of our table */
};

static uintptr_t pointer_in(const struct module *m, ElfW(Sxword) tag)
{
	for (const ElfW(Dyn) *d = m->dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_ptr < m->base ? d->d_un.d_ptr + m->base : d->d_un.d_ptr;
	return 0;
}

static bool begins_with(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* Returns true for libc's modules: in older glibc, threads, clocks and the loader's functions are
 * in separate libraries. */
static bool is_libc_module(const struct module *m)
{
	static const char *const names[] = { "libc.so.", "libpthread.so.", "librt.so.", "libdl.so." };
	const char *text = (const char *)pointer_in(m, DT_STRTAB);

	for (const ElfW(Dyn) *d = m->dynamic; text && d->d_tag != DT_NULL; d++)
		for (size_t i = 0; d->d_tag == DT_SONAME && i < kbi_countof(names); i++)
			if (begins_with(text + d->d_un.d_val, names[i]))
				return true;
	return false;
}

/* ---- entries --------------------------------------------------------------------------------- */

static size_t index_of(const struct walk *w, const ElfW(Sym) *ours)
{
	return (size_t)(ours - w->first);
}

static void cover_symbol(const char *name, const ElfW(Sym) *ours, void *arg)
{
	const struct walk *w = arg;
	size_t i = index_of(w, ours);

	if (i < MOST && kbi_names_may_have(w->at.base, w->at.dynamic, name))
		covered[i / 64] |= UINT64_C(1) << i % 64;
}

static bool is_covered(const struct walk *w, const ElfW(Sym) *ours)
{
	size_t i = index_of(w, ours);

	return i >= MOST || covered[i / 64] >> i % 64 & 1;
}

/* Points libc's entry at our symbol. The entry takes our type: an entry that a function of libc
 * chose (IFUNC) becomes a plain function. */
static void redirect_entry(const struct walk *w, ElfW(Sym) *entry, const ElfW(Sym) *ours)
{
	if (moved_n == MOST)
		return;
	moved[moved_n++] = (struct moved){ entry, entry->st_value };
	entry->st_info = (unsigned char)ELF64_ST_INFO(ELF64_ST_BIND(entry->st_info),
		ELF64_ST_TYPE(ours->st_info));
	entry->st_value = w->us.base + ours->st_value - w->at.base;
}

static void redirect_symbol(const char *name, const ElfW(Sym) *ours, void *arg)
{
	const struct walk *w = arg;
	const ElfW(Sym) *found[VERSIONS];
	unsigned n = is_covered(w, ours) ? 0 :
		kbi_names_symbols(w->at.base, w->at.dynamic, name, found, VERSIONS);

	while (n-- > 0)
		redirect_entry(w, (ElfW(Sym) *)(uintptr_t)found[n], ours);
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Changes the protection of the pages that hold the module's symbols, up to its strings: the rights
 * of the file plus `more`. */
static bool protect_symbols(const struct dl_phdr_info *info, const struct module *m, int more)
{
	uintptr_t low = pointer_in(m, DT_SYMTAB), high = pointer_in(m, DT_STRTAB);

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		int as = (h->p_flags & PF_R ? PROT_READ : 0) | (h->p_flags & PF_W ? PROT_WRITE : 0) |
			 (h->p_flags & PF_X ? PROT_EXEC : 0);
		uintptr_t from = low & ~(uintptr_t)(PAGE - 1), end = m->base + h->p_vaddr + h->p_memsz;

		if (h->p_type != PT_LOAD || low - m->base - h->p_vaddr >= h->p_memsz)
			continue;
		if (high > low && high < end)
			end = high;
		return kbi_sys(SYS_mprotect, from, (end - from + PAGE - 1) & ~(uintptr_t)(PAGE - 1),
			as | more) == 0;
	}
	return false;
}

static void redirect_module(const struct dl_phdr_info *info, struct walk *w)
{
	if (!protect_symbols(info, &w->at, PROT_WRITE)) {
		w->failed = true;
		return;
	}
	kbi_names_each(w->us.base, w->us.dynamic, redirect_symbol, w);
	protect_symbols(info, &w->at, 0);
}

static int visit_redirect_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct walk *w = arg;

	(void)size;
	w->at = (struct module){ .base = info->dlpi_addr };
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			w->at.dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	if (!w->at.dynamic)
		return 0;
	if (w->at.dynamic == _DYNAMIC) {
		w->us = w->at;
		w->first = (const ElfW(Sym) *)pointer_in(&w->us, DT_SYMTAB);
	} else if (is_libc_module(&w->at)) {
		if (!w->us.base)
			return 1;
		w->past_libc = true;
		redirect_module(info, w);
	} else if (w->us.base && w->wrapped && !w->past_libc) {
		kbi_names_each(w->us.base, w->us.dynamic, cover_symbol, w);
	}
	return 0;
}

bool kbi_redirect(bool wrapped)
{
	struct walk w = { .wrapped = wrapped };
	long at = kbi_sys(SYS_mmap, 0, MOST * sizeof(*moved), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at < 0 && at > -4096)
		return false;
	moved = (struct moved *)at;
	dl_iterate_phdr(visit_redirect_module, &w);
	return !w.failed && moved_n;
}

static uintptr_t original_value(const ElfW(Sym) *entry)
{
	for (unsigned i = 0; i < moved_n; i++)
		if (moved[i].entry == entry)
			return moved[i].value;
	return entry->st_value;
}

#else

bool kbi_redirect(bool wrapped)
{
	(void)wrapped;
	return true;
}

static uintptr_t original_value(const ElfW(Sym) *entry)
{
	return entry->st_value;
}

#endif

unsigned kbi_redirect_originals(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name,
	struct kbi_redirect_place *p, unsigned most)
{
	enum { AT_ONCE = 8 };
	const ElfW(Sym) *found[AT_ONCE];
	unsigned n = kbi_names_symbols(base, dynamic, name, found, most < AT_ONCE ? most : AT_ONCE);

	for (unsigned i = 0; i < n; i++)
		p[i] = (struct kbi_redirect_place){ base + original_value(found[i]),
			found[i]->st_size };
	return n;
}
