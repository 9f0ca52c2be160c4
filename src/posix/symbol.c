/* posix/symbol.c - dlvsym. The linker gives a program our functions whatever version of glibc's it asks for,
 * and so does dlsym; dlvsym alone would pass us over, for we define no versions, and the program would mix
 * libc's condition variables with our mutexes. Sanitizers' wrappers look libc's functions up so. Runs on the
 * caller; calls the loader; never switches. */
#include "posix/posix.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* libc's dlvsym looks at its return address to know who asks: it must be called in our place, not by us. */
#if defined(__clang__)
#define TAIL_CALLS
#define TAIL_CALL __attribute__((musttail))
#else
#define TAIL_CALLS __attribute__((optimize("optimize-sibling-calls")))
#define TAIL_CALL
#endif

/* ---- our own table of names: dlopen of ourselves, for a handle, could run constructors before their time
 * -------- */

struct names {
	const ElfW(Sym) * symbol;
	const char *text;
	const uint32_t *hash; /* the GNU table: number of buckets, first symbol, words of the filter, a shift,
				 these */
};

static const void *place(const struct link_map *us, const ElfW(Dyn) * d)
{
	uintptr_t p = d->d_un.d_ptr; /* where the loader may write there it has added where we lie */

	return (const void *)(p < us->l_addr ? p + us->l_addr : p);
}

static struct names names_of(const struct link_map *us)
{
	struct names n = { 0 };

	for (const ElfW(Dyn) *d = us->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			n.symbol = place(us, d);
		else if (d->d_tag == DT_STRTAB)
			n.text = place(us, d);
		else if (d->d_tag == DT_GNU_HASH)
			n.hash = place(us, d);
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

/* The function of that name that we define, or NULL. */
static void *own(const char *name)
{
	const struct link_map *us = kbi_place_object((const void *)own);
	struct names n = us ? names_of(us) : (struct names){ 0 };
	const uint32_t *bucket, *chain;
	uint32_t h = hash_of(name);

	if (!n.symbol || !n.text || !n.hash)
		return NULL;
	bucket = (const uint32_t *)((const ElfW(Addr) *)(n.hash + 4) + n.hash[2]);
	chain = bucket + n.hash[0];
	for (uint32_t i = bucket[h % n.hash[0]]; i >= n.hash[1]; i++) {
		const ElfW(Sym) *found = n.symbol + i;
		uint32_t word = chain[i - n.hash[1]];

		if ((word | 1) == (h | 1) && found->st_shndx != SHN_UNDEF &&
			strcmp(n.text + found->st_name, name) == 0)
			return (void *)(us->l_addr + found->st_value);
		if (word & 1)
			break; /* the bucket's last */
	}
	return NULL;
}

static void *linkers_answer(void *handle, const char *name, const char *version, const void *caller)
{
	void *ours;

	if (!name || !version || strncmp(version, "GLIBC_", 6) != 0)
		return NULL;
	if (handle != RTLD_DEFAULT && (handle != RTLD_NEXT || !kbi_place_before_us(caller)))
		return NULL;
	ours = own(name);
	return ours && (handle == RTLD_NEXT || dlsym(RTLD_DEFAULT, name) == ours) ? ours : NULL;
}

KBI_POSIX_API TAIL_CALLS void *dlvsym(
	void *restrict handle, const char *restrict name, const char *restrict version)
{
	void *ours = linkers_answer(handle, name, version, __builtin_return_address(0));

	if (ours)
		return ours;
	TAIL_CALL return kbi_libc()->dlvsym(handle, name, version);
}
