/* libc/names.c - looks names up in a module's GNU hash table. Contract in names.h. */
#include "libc/names.h"

#include <dlfcn.h>

struct names {
	const ElfW(Sym) *symbol;
	const char *text;
	const uint16_t *version; /* of each symbol; NULL: no versions */
	/* contents: number of buckets, first symbol, words of the filter, a shift, then filter,
	 * buckets, chains */
	const uint32_t *hash;
	bool has_old;         /* the module has a hash table of the older kind */
};

static const void *dynamic_pointer(uintptr_t base, const ElfW(Dyn) *d)
{
	/* A loader that may write the section has added the module's address. */
	uintptr_t p = d->d_un.d_ptr;

	return (const void *)(p < base ? p + base : p);
}

static struct names names_of(uintptr_t base, const ElfW(Dyn) *d)
{
	struct names n = { 0 };

	for (; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			n.symbol = dynamic_pointer(base, d);
		else if (d->d_tag == DT_STRTAB)
			n.text = dynamic_pointer(base, d);
		else if (d->d_tag == DT_GNU_HASH)
			n.hash = dynamic_pointer(base, d);
		else if (d->d_tag == DT_VERSYM)
			n.version = dynamic_pointer(base, d);
		else if (d->d_tag == DT_HASH)
			n.has_old = true;
	}
	return n;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* Compares without strcmp: a sanitizer's strcmp has no original yet while it looks its original up,
 * which may lead here. */
static bool is_name(const char *text, const char *name)
{
	while (*text && *text == *name)
		text++, name++;
	return *text == *name;
}

/* Returns false for most names that are not in the table, by a single look at the filter. */
static bool may_be_in(const struct names *n, uint32_t h)
{
	enum { BITS = sizeof(ElfW(Addr)) * 8 };
	ElfW(Addr) word = ((const ElfW(Addr) *)(n->hash + 4))[h / BITS % n->hash[2]];

	return word >> h % BITS & word >> (h >> n->hash[3]) % BITS & 1;
}

static const uint32_t *hash_buckets(const struct names *n)
{
	return (const uint32_t *)((const ElfW(Addr) *)(n->hash + 4) + n->hash[2]);
}

static unsigned find_symbols(const struct names *n, const char *name, const ElfW(Sym) **found,
	unsigned most)
{
	const uint32_t *bucket, *chain;
	uint32_t h = hash_of(name);
	unsigned count = 0;

	if (!n->symbol || !n->text || !n->hash || !may_be_in(n, h))
		return 0;
	bucket = hash_buckets(n);
	chain = bucket + n->hash[0];
	for (uint32_t i = bucket[h % n->hash[0]]; i >= n->hash[1] && count < most; i++) {
		const ElfW(Sym) *s = n->symbol + i;
		uint32_t word = chain[i - n->hash[1]];

		if ((word | 1) == (h | 1) && s->st_shndx != SHN_UNDEF &&
			is_name(n->text + s->st_name, name))
			found[count++] = s;
		if (word & 1)
			break; /* the last of the bucket */
	}
	return count;
}

unsigned kbi_names_symbols(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name,
	const ElfW(Sym) **found, unsigned most)
{
	struct names n = names_of(base, dynamic);

	return find_symbols(&n, name, found, most);
}

/* Returns the symbol that a look-up without a version finds, or NULL. */
static const ElfW(Sym) *current_symbol(const struct names *n, const char *name)
{
	enum { MOST = 8, OLD = 0x8000 /* found only by a look-up of this version */ };
	const ElfW(Sym) *s[MOST];
	unsigned count = find_symbols(n, name, s, MOST);

	for (unsigned i = 0; i < count; i++)
		if (!(n->version && n->version[s[i] - n->symbol] & OLD))
			return s[i];
	return NULL;
}

void *kbi_names_function(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name)
{
	struct names n = names_of(base, dynamic);
	const ElfW(Sym) *s = current_symbol(&n, name);

	return s && ELF64_ST_TYPE(s->st_info) == STT_FUNC ? (void *)(base + s->st_value) : NULL;
}

void kbi_names_each(uintptr_t base, const ElfW(Dyn) *dynamic,
	void (*each)(const char *name, const ElfW(Sym) *s, void *arg), void *arg)
{
	struct names n = names_of(base, dynamic);
	const uint32_t *bucket, *chain;

	if (!n.symbol || !n.text || !n.hash)
		return;
	bucket = hash_buckets(&n);
	chain = bucket + n.hash[0];
	for (uint32_t b = 0; b < n.hash[0]; b++)
		for (uint32_t i = bucket[b]; i >= n.hash[1]; i++) {
			if (n.symbol[i].st_shndx != SHN_UNDEF)
				each(n.text + n.symbol[i].st_name, n.symbol + i, arg);
			if (chain[i - n.hash[1]] & 1)
				break;
		}
}

bool kbi_names_may_have(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name)
{
	struct names n = names_of(base, dynamic);

	return n.hash ? current_symbol(&n, name) != NULL : n.has_old;
}

static const ElfW(Dyn) *dynamic_of(const struct dl_phdr_info *info)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static int may_have_name(struct dl_phdr_info *info, size_t size, void *name)
{
	const ElfW(Dyn) *dynamic = dynamic_of(info);

	(void)size;
	return dynamic && kbi_names_may_have(info->dlpi_addr, dynamic, name);
}

struct search {
	const char *name;
	const void *found;
};

static int find_definition(struct dl_phdr_info *info, size_t size, void *arg)
{
	const ElfW(Dyn) *dynamic = dynamic_of(info);
	struct search *s = arg;

	(void)size;
	if (dynamic)
		s->found = kbi_names_function(info->dlpi_addr, dynamic, s->name);
	return s->found != NULL;
}

const void *kbi_names_definition(const char *name)
{
	struct search s = { .name = name };

	dl_iterate_phdr(find_definition, &s);
	return s.found;
}

void *kbi_names_look_up(const char *name)
{
	return dl_iterate_phdr(may_have_name, (void *)(uintptr_t)name) ?
		dlsym(RTLD_DEFAULT, name) : NULL;
}
