/* os/real.c - the table of libc originals. Contract in real.h.
 * Single-threaded: runs in a constructor. */
#include "os/real.h"

#include <dlfcn.h>

struct kbi_real kbi_real = {
#define REAL(name, version) .name = name,
#include "os/real.def"
};

struct row {
	const char *name, *version;
	void **slot;
};

static void *find_version(void *handle, const struct row *r)
{
#if defined(__GLIBC__)
	return r->version ? dlvsym(handle, r->name, r->version) : NULL;
#else
	(void)handle; /* no versions there */
	(void)r;
	return NULL;
#endif
}

static void *find(void *handle, const struct row *r)
{
	void *p = find_version(handle, r);

	return p ? p : dlsym(handle, r->name);
}

const char *kbi_real_find(void *handle)
{
	static const struct row rows[] = {
#define REAL(name, version) { #name, version, (void **)&kbi_real.name },
#include "os/real.def"
	};
	const char *missing = NULL;

	for (size_t i = 0; i < kbi_countof(rows); i++) {
		void *p = find(handle, &rows[i]);

		if (p)
			*rows[i].slot = p;
		else if (!missing)
			missing = rows[i].name;
	}
	return missing;
}
