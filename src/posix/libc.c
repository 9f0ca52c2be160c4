/* posix/libc.c - libc's originals of the functions that we define ourselves. All originals are
 * looked up at once in our constructor, or earlier if another library's constructor needs one
 * first. A look-up at the first use could meet a thread that holds the loader's lock.
 * Callers: kbi_libc() and the tables of posix/call, clock, uring_owner, listing, path, stdio,
 * unsafe. Runs on the loading thread. Calls the loader. Never switches. */
#include "posix/posix.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "libc/asked.h"
#include "libc/names.h"
#include "libc/real.h"
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
	/* the first module that the handle covers; the list from here may contain more modules */
	const struct link_map *first;
};

/* Returns the modules behind us in the look-up order. If libc comes before us, the default order
 * leads to libc. */
static struct scope find_scope(void)
{
	const struct link_map *m = kbi_link_order_object((const void *)find_scope);

	if (kbi_likely(!kbi_link_order_behind_libc()))
		return (struct scope){ RTLD_NEXT, m->l_next };
	while (m->l_prev)
		m = m->l_prev;
	return (struct scope){ RTLD_DEFAULT, m };
}

/* Tests for the kernel's module (vDSO): it is in the loader's list, but no look-up searches it. */
static bool is_vdso_module(const struct link_map *m)
{
	return m->l_addr != 0 && m->l_addr == getauxval(AT_SYSINFO_EHDR);
}

/* Returns the function `name` of the modules `in`, or NULL. Reads the modules' own symbol tables
 * first: the loader may call functions that we define and whose originals are not known yet (before
 * glibc 2.34 dlsym itself calls pthread_once and pthread_key_create). The loader is asked only for
 * functions that code must choose (ifuncs), and never for a name that no module has: it would write
 * the error message into memory of malloc. That malloc may be the program's and unable to serve
 * requests before its own constructors have run. */
static void *find_in_scope(const struct scope *in, const char *name, bool asks_loader)
{
	const struct link_map *m = in->first;
	void *found;

	while (m && (is_vdso_module(m) || !kbi_names_may_have(m->l_addr, m->l_ld, name)))
		m = m->l_next;
	found = m ? kbi_names_function(m->l_addr, m->l_ld, name) : NULL;
	if (found || !m || !asks_loader)
		return found;
	found = dlsym(in->handle, name);
	if (!found)
		dlerror(); /* a function that this libc lacks is not an error of the program */
	return found;
}

void *kbi_libc_original(const char *name, void **slot)
{
	struct scope in = find_scope();

	*slot = find_in_scope(&in, name, true);
	return *slot;
}

/* Fills the table `row` of n entries, then sets *ready. Before glibc 2.34 dlsym asks malloc for
 * memory. That malloc may be an allocator of the program (jemalloc), which may call functions that
 * are looked up here; so the modules' tables are read first. */
void kbi_libc_look_up(const struct kbi_libc_row *row, size_t n, a32 *ready)
{
	struct scope in = find_scope();

	for (size_t i = 0; i < n; i++)
		*row[i].slot = find_in_scope(&in, row[i].name, false);
	for (size_t i = 0; i < n; i++)
		if (!*row[i].slot)
			*row[i].slot = find_in_scope(&in, row[i].name, true);
	/* release: partner is the acquire of each reader of the table */
	a_store_rel(ready, 1);
}

static void *find_behind_us(const char *name, const void *scope)
{
	return find_in_scope(scope, name, true);
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
	in = find_scope();
	missing = kbi_real_find(find_behind_us, &in);
	if (missing) {
		kbi_asked_missed("functions", "there is no %s: the program cannot be run", missing);
		kbi_sys(SYS_exit_group, KBI_POSIX_CANNOT_RUN);
	}
}
