/* posix/libc.c - libc's originals behind the names that we define. All are looked up at once in our
 * constructor, or before it if another library's constructor needs one first; looking one up at its first
 * use could meet a thread that holds the loader's lock. Runs on the loading thread. Calls the loader. Never
 * switches. */
#include "posix/posix.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "os/asked.h"
#include "os/names.h"
#include "os/real.h"
#include "os/sys.h"

struct kbi_libc kbi_libc_table;
a32 kbi_libc_ready;
bool kbi_posix_started;

static const struct kbi_libc_row rows[] = {
#define OURS(name, ...)
#define PASS(name, ...)
#define BOTH(name, ...) { #name, (void **)&kbi_libc_table.name },
#include "posix/names.def"
};

struct scope {
	void *handle;
	const struct link_map *first; /* of the modules that it stands for, and perhaps of more */
};

/* Behind us; where libc comes first the linker's own order leads to it. */
static struct scope where(void)
{
	const struct link_map *m = kbi_place_object((const void *)where);

	if (kbi_likely(!kbi_place_behind_libc()))
		return (struct scope){ RTLD_NEXT, m->l_next };
	while (m->l_prev)
		m = m->l_prev;
	return (struct scope){ RTLD_DEFAULT, m };
}

/* The kernel's module is in the loader's list, and no look-up searches it. */
static bool is_kernels(const struct link_map *m)
{
	return m->l_addr != 0 && m->l_addr == getauxval(AT_SYSINFO_EHDR);
}

/* By the modules' own tables, for the loader may call functions that we define and have no original of yet (before glibc
 * 2.34 dlsym itself calls pthread_once and pthread_key_create). It is asked for functions that code must choose, and never
 * for a name that no module has: it would write the error into memory of malloc, the program's, which may not be able to
 * serve anybody before its own constructors. */
static void *find(const struct scope *in, const char *name, bool asks_loader)
{
	const struct link_map *m = in->first;
	void *found;

	while (m && (is_kernels(m) || !kbi_names_may_have(m->l_addr, m->l_ld, name)))
		m = m->l_next;
	found = m ? kbi_names_function(m->l_addr, m->l_ld, name) : NULL;
	if (found || !m || !asks_loader)
		return found;
	found = dlsym(in->handle, name);
	if (!found)
		dlerror(); /* a lack of this libc's is no error of the program's */
	return found;
}

void *kbi_libc_original(const char *name, void **slot)
{
	struct scope in = where();

	*slot = find(&in, name, true);
	return *slot;
}

/* Before glibc 2.34 dlsym asks malloc for memory, an allocator of the program's perhaps (jemalloc), which may call
 * functions that are looked up here: the modules' tables come first. */
void kbi_libc_look_up(const struct kbi_libc_row *row, size_t n, a32 *ready)
{
	struct scope in = where();

	for (size_t i = 0; i < n; i++)
		*row[i].slot = find(&in, row[i].name, false);
	for (size_t i = 0; i < n; i++)
		if (!*row[i].slot)
			*row[i].slot = find(&in, row[i].name, true);
	/* release: partner is the acquire of whoever reads the table */
	a_store_rel(ready, 1);
}

static void *behind_us(const char *name, const void *scope)
{
	return find(scope, name, true);
}

void kbi_libc_resolve(void)
{
	static a32 busy;
	const char *missing;
	struct scope in;

	/* the look-up itself may come here, through an interposed malloc */
	if (a_xchg_rlx(&busy, 1))
		return;
	kbi_libc_look_up(rows, kbi_countof(rows), &kbi_libc_ready);
	in = where();
	missing = kbi_real_find(behind_us, &in);
	if (missing) {
		kbi_asked_missed("functions", "there is no %s: the program cannot be run", missing);
		kbi_sys(SYS_exit_group, KBI_POSIX_CANNOT_RUN);
	}
}
