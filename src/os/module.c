/* os/module.c - finds the module of an address and reads its code for futex system calls. Contract in module.h. */
#include "os/module.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "os/sys.h"

enum {
	NEAR = 48,		 /* from the call's number to the call, bytes */
	READ_AT_MOST = 4 << 20, /* of a module's code; who waits so is small */
};

struct search {
	uintptr_t at;
	struct kbi_module *module;
	bool found;
};

/* ---- code ----------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static const uint8_t number[] = { 0xb8, 0xca, 0, 0, 0 }, call[] = { 0x0f, 0x05 }; /* mov $202,%eax; syscall */
#elif defined(__aarch64__)
static const uint8_t number[] = { 0x48, 0x0c, 0x80, 0xd2 }, call[] = { 0x01, 0, 0, 0xd4 }; /* mov x8,#98; svc #0 */
#elif defined(__riscv) && __riscv_xlen == 64
static const uint8_t number[] = { 0x93, 0x08, 0x20, 0x06 }, call[] = { 0x73, 0, 0, 0 }; /* li a7,98; ecall */
#else
static const uint8_t number[1] = { 0 }, call[1] = { 0 };
#define UNKNOWN_MACHINE 1
#endif

static bool calls_futex(const uint8_t *code, size_t n)
{
#ifdef UNKNOWN_MACHINE
	(void)number, (void)call, (void)code, (void)n;
	return false;
#else
	const uint8_t *end = code + n, *p = code;

	while ((p = memmem(p, (size_t)(end - p), number, sizeof(number)))) {
		size_t left = (size_t)(end - p);

		if (memmem(p, left < NEAR ? left : NEAR, call, sizeof(call)))
			return true;
		p += sizeof(number);
	}
	return false;
#endif
}

/* ---- headers -------------------------------------------------------------------------------------------- */

/* name: with the 0 at its end. */
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

		if (h->p_type == PT_NOTE && has_note((const uint8_t *)(info->dlpi_addr + h->p_vaddr), h->p_memsz, name))
			return true;
	}
	return false;
}

/* Go's runtime is far too large to be read, and leaves a note in every program. */
static bool waits_in_kernel(const struct dl_phdr_info *info)
{
	size_t left = READ_AT_MOST;

	if (is_noted(info, "Kochab")) /* libkochab.a has been linked into it (os/sys): the futex calls are ours there */
		return false;
	if (is_noted(info, "Go"))
		return true;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		const uint8_t *p = (const uint8_t *)(info->dlpi_addr + h->p_vaddr);

		if (h->p_type != PT_LOAD || (h->p_flags & (PF_R | PF_X)) != (PF_R | PF_X))
			continue;
		if (calls_futex(p, h->p_filesz < left ? h->p_filesz : left))
			return true;
		left -= h->p_filesz < left ? h->p_filesz : left;
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

/* The loader has no name for the program. */
static void find_name(const char *path, struct kbi_module *m)
{
	const char *slash = strrchr(path, '/');
	size_t n;

	path = slash ? slash + 1 : path;
	n = strlen(path);
	if (n >= sizeof(m->name))
		path += n - sizeof(m->name) + 1;
	snprintf(m->name, sizeof(m->name), "%s", *path ? path : program_invocation_short_name);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	find_bounds(info, s->module);
	if (s->at < s->module->low || s->at >= s->module->high)
		return 0;
	find_name(info->dlpi_name, s->module);
	s->module->waits_in_kernel = waits_in_kernel(info);
	s->found = true;
	return 1;
}

bool kbi_module_look(uintptr_t at, struct kbi_module *m)
{
	struct search s = { .at = at, .module = m };

	dl_iterate_phdr(look_at, &s);
	return s.found;
}
