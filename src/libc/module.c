/* libc/module.c - finds the module of an address and reads its code for system calls. Contract in
 * module.h. */
#include "libc/module.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "os/lock.h"
#include "os/sys.h"

enum {
	NEAR = 48,		 /* most bytes between the load of the number and the call */
	READ_AT_MOST = 4 << 20, /* of a module's code; libraries that wait by futex are small */
};

struct search {
	uintptr_t at;
	struct kbi_module *module;
	bool found;
};

/* ---- code ------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
/* mov $202,%eax; mov $425,%eax; syscall */
static const uint8_t futex[] = { 0xb8, 0xca, 0, 0, 0 }, ring[] = { 0xb8, 0xa9, 1, 0, 0 },
	call[] = { 0x0f, 0x05 };
#elif defined(__aarch64__)
/* mov x8,#98; mov x8,#425; svc #0 */
static const uint8_t futex[] = { 0x48, 0x0c, 0x80, 0xd2 }, ring[] = { 0x28, 0x35, 0x80, 0xd2 };
static const uint8_t call[] = { 0x01, 0, 0, 0xd4 };
#elif defined(__riscv) && __riscv_xlen == 64
/* li a7,98; li a7,425; ecall */
static const uint8_t futex[] = { 0x93, 0x08, 0x20, 0x06 }, ring[] = { 0x93, 0x08, 0x90, 0x1a };
static const uint8_t call[] = { 0x73, 0, 0, 0 };
#else
static const uint8_t futex[1] = { 0 }, ring[1] = { 0 }, call[1] = { 0 };
#define UNKNOWN_MACHINE 1
#endif

/* Returns true if the code makes the call. number: the instruction that loads the number of the
 * call. */
static bool contains_call(const uint8_t *code, size_t n, const uint8_t number[], size_t length)
{
#ifdef UNKNOWN_MACHINE
	(void)number, (void)length, (void)call, (void)code, (void)n;
	return false;
#else
	const uint8_t *end = code + n, *p = code;

	while ((p = memmem(p, (size_t)(end - p), number, length))) {
		size_t left = (size_t)(end - p);

		if (memmem(p, left < NEAR ? left : NEAR, call, sizeof(call)))
			return true;
		p += length;
	}
	return false;
#endif
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Returns true if there is a note of that name. The terminating 0 is part of the name. */
static bool has_note(const uint8_t *notes, size_t size, const char *name)
{
	const size_t length = strlen(name) + 1;
	const ElfW(Nhdr) * h;

	for (size_t at = 0; at + sizeof(*h) <= size;) {
		h = (const void *)(notes + at);
		at += sizeof(*h);
		if (h->n_namesz >= length && at + length <= size && memcmp(notes + at, name, length) == 0)
			return true;
		at += ((h->n_namesz + 3) & ~3u) + ((h->n_descsz + 3) & ~3u);
	}
	return false;
}

static bool is_noted(const struct dl_phdr_info *info, const char *name)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_NOTE && has_note((const uint8_t *)(info->dlpi_addr + h->p_vaddr),
			h->p_memsz, name))
			return true;
	}
	return false;
}

/* Returns true if the module waits in the kernel by itself. Go's runtime is too large to be read,
 * but every Go program contains a note. */
static bool waits_in_kernel(const struct dl_phdr_info *info)
{
	size_t left = READ_AT_MOST, size;

	/* libkochab.a is linked into it (os/sys): the futex calls are ours */
	if (is_noted(info, "Kochab"))
		return false;
	if (is_noted(info, "Go"))
		return true;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		const uint8_t *p = (const uint8_t *)(info->dlpi_addr + h->p_vaddr);

		if (h->p_type != PT_LOAD || (h->p_flags & (PF_R | PF_X)) != (PF_R | PF_X))
			continue;
		size = h->p_filesz < left ? h->p_filesz : left;
		if (contains_call(p, size, futex, sizeof(futex)) ||
			contains_call(p, size, ring, sizeof(ring)))
			return true;
		left -= size;
	}
	return false;
}

static void find_bounds(const struct dl_phdr_info *info, struct kbi_module *m)
{
	m->low = UINTPTR_MAX;
	m->high = 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t low = info->dlpi_addr + h->p_vaddr;

		if (h->p_type != PT_LOAD)
			continue;
		m->low = low < m->low ? low : m->low;
		m->high = low + h->p_memsz > m->high ? low + h->p_memsz : m->high;
	}
}

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Copies the name. The loader has no name for the program itself. */
static void copy_module_name(const char *path, struct kbi_module *m)
{
	size_t n;

	path = file_of(path);
	n = strlen(path);
	if (n >= sizeof(m->name))
		path += n - sizeof(m->name) + 1;
	snprintf(m->name, sizeof(m->name), "%s", *path ? path : program_invocation_short_name);
}

static int match_module_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	find_bounds(info, s->module);
	if (s->at < s->module->low || s->at >= s->module->high)
		return 0;
	copy_module_name(info->dlpi_name, s->module);
	s->module->waits_in_kernel = waits_in_kernel(info);
	s->found = true;
	return 1;
}

bool kbi_module_look(uintptr_t at, struct kbi_module *m)
{
	struct search s = { .at = at, .module = m };

	dl_iterate_phdr(match_module_at, &s);
	return s.found;
}

struct named {
	const char *beginning;
	uintptr_t at, low;
};

static int match_module_name(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct named *n = arg;
	struct kbi_module m;

	(void)size;
	if (strncmp(file_of(info->dlpi_name), n->beginning, strlen(n->beginning)) != 0)
		return 0;
	find_bounds(info, &m);
	if (n->at && (n->at < m.low || n->at >= m.high))
		return 0;
	n->low = m.low;
	return 1;
}

uintptr_t kbi_module_named(const char *beginning, uintptr_t at)
{
	struct named n = { beginning, at, 0 };

	dl_iterate_phdr(match_module_name, &n);
	return n.low;
}

/* ---- imports --------------------------------------------------------------------------------- */

/* Relocations, for the names that the loader has looked up for the module, or will at the first
 * call. */
struct relocations {
	const ElfW(Rela) * at;
	size_t size;
};

struct linkage {
	const ElfW(Sym) * symbol;
	const char *names;
	struct relocations data, calls;
};

struct import {
	const char *name;
	bool found;
	unsigned long long adds, subs; /* counts of modules at the time of the search */
};

/* Returns an address of the dynamic section: some loaders have stored the absolute address, others
 * the offset. */
static const void *dynamic_address(const struct dl_phdr_info *info, ElfW(Addr) at)
{
	return (const void *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);
}

static void read_linkage(const struct dl_phdr_info *info, const ElfW(Dyn) * d, struct linkage *l)
{
	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB: l->symbol = dynamic_address(info, d->d_un.d_ptr); break;
		case DT_STRTAB: l->names = dynamic_address(info, d->d_un.d_ptr); break;
		case DT_RELA: l->data.at = dynamic_address(info, d->d_un.d_ptr); break;
		case DT_RELASZ: l->data.size = d->d_un.d_val; break;
		case DT_JMPREL: l->calls.at = dynamic_address(info, d->d_un.d_ptr); break;
		case DT_PLTRELSZ: l->calls.size = d->d_un.d_val; break;
		default: break;
		}
	}
}

static bool has_relocation_of(const struct linkage *l, struct relocations r, const char *name)
{
	for (size_t i = 0; r.at && i < r.size / sizeof(*r.at); i++) {
		size_t n = sizeof(ElfW(Addr)) == 8 ? (size_t)((uint64_t)r.at[i].r_info >> 32)
			: r.at[i].r_info >> 8;

		if (n && l->symbol[n].st_shndx == SHN_UNDEF &&
			strcmp(l->names + l->symbol[n].st_name, name) == 0)
			return true;
	}
	return false;
}

static int look_for_import(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct import *import = arg;

	(void)size;
	import->adds = info->dlpi_adds;
	import->subs = info->dlpi_subs;
	for (unsigned i = 0; i < info->dlpi_phnum && !import->found; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		struct linkage l = { 0 };

		if (h->p_type != PT_DYNAMIC)
			continue;
		read_linkage(info, (const void *)(info->dlpi_addr + h->p_vaddr), &l);
		import->found = l.symbol && l.names &&
			(has_relocation_of(&l, l.calls, import->name) ||
			 has_relocation_of(&l, l.data, import->name));
	}
	return import->found;
}

static int note_module_counts(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct import *now = arg;

	(void)size;
	now->adds = info->dlpi_adds;
	now->subs = info->dlpi_subs;
	return 1;
}

static struct import last; /* under lock */
static a32 lock;

void kbi_module_after_fork(void)
{
	if (!a_load_rlx(&lock))
		return;
	last = (struct import){ 0 };
	kbi_lock_leave(&lock);
}

bool kbi_module_imports(const char *name)
{
	struct import now = { .name = name };
	bool found;

	dl_iterate_phdr(note_module_counts, &now);
	kbi_lock_take(&lock);
	if (!last.name || last.adds != now.adds || last.subs != now.subs) {
		kbi_lock_leave(&lock);
		/* the loader's lock is not taken under ours */
		dl_iterate_phdr(look_for_import, &now);
		kbi_lock_take(&lock);
		last = now;
	}
	found = last.found;
	kbi_lock_leave(&lock);
	return found;
}

/* ---- modules linked with Kochab -------------------------------------------------------------- */

static bool begins_with(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static const char *strings_of(const struct dl_phdr_info *info, const ElfW(Dyn) * d)
{
	struct linkage l = { 0 };

	read_linkage(info, d, &l);
	return l.names;
}

static const char *soname_of_module(const struct dl_phdr_info *info, const ElfW(Dyn) * d)
{
	const char *names = strings_of(info, d);

	for (; names && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_SONAME)
			return file_of(names + d->d_un.d_val);
	return "";
}

/* Reads the dynamic section of a module. Returns true if the module needs Kochab. *ours: the module
 * is a library of Kochab. */
static bool needs_kochab(const struct dl_phdr_info *info, const ElfW(Dyn) * d, bool *ours)
{
	const char *names = strings_of(info, d);
	bool needs = false;

	for (; names && d->d_tag != DT_NULL; d++) {
		const char *file = d->d_tag == DT_SONAME || d->d_tag == DT_NEEDED
			? file_of(names + d->d_un.d_val) : "";

		if (d->d_tag == DT_SONAME)
			*ours |= begins_with(file, "libkochab");
		else
			needs |= begins_with(file, "libkochab.so") ||
				begins_with(file, "libkochab-posix.so");
	}
	return needs;
}

static int is_linked_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	bool needs = false, ours = false;

	(void)size, (void)arg;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_DYNAMIC)
			needs |= needs_kochab(info, (const void *)(info->dlpi_addr + h->p_vaddr),
				&ours);
	}
	return !ours && (needs || is_noted(info, "Kochab"));
}

bool kbi_module_is_linked(void)
{
	return dl_iterate_phdr(is_linked_module, NULL) != 0;
}

/* Visits modules in the order of name look-up; stops at the drop-in or at libc. */
static int is_dropin(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct kbi_module m;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		const char *name = h->p_type == PT_DYNAMIC
			? soname_of_module(info, (const void *)(info->dlpi_addr + h->p_vaddr)) : "";

		if (begins_with(name, "libc.so"))
			return 1;
		if (!begins_with(name, "libkochab-posix.so"))
			continue;
		find_bounds(info, &m);
		*(bool *)arg = (uintptr_t)is_dropin - m.low >= m.high - m.low;
		return 1;
	}
	return 0;
}

bool kbi_module_is_beside_dropin(void)
{
	bool beside = false;

	dl_iterate_phdr(is_dropin, &beside);
	return beside;
}
