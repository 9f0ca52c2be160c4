/* libc/real.c - the table of libc originals. Contract in real.h.
 * Single-threaded: runs in a constructor. */
#include "libc/real.h"

struct kbi_real kbi_real = {
#define REAL(name) .name = name,
#include "libc/real.def"
};

const char *kbi_real_find(kbi_real_look_up *look_up, const void *where)
{
	static const struct {
		const char *name;
		void **slot;
	} rows[] = {
#define REAL(name) { #name, (void **)&kbi_real.name },
#include "libc/real.def"
	};
	const char *missing = NULL;

	for (size_t i = 0; i < kbi_countof(rows); i++) {
		void *p = look_up(rows[i].name, where);

		if (p)
			*rows[i].slot = p;
		else if (!missing)
			missing = rows[i].name;
	}
	return missing;
}
