/* libc/names: a module's own table gives the loader's answer for a name looked up without a
 * version. Libc keeps some names under old versions only, which the loader does not find.
 * matrix: none */
#define _GNU_SOURCE
#include "test.h"

#ifndef __GLIBC__
int main(void)
{
	SKIP("names have no versions in this libc");
}
#else

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "libc/names.h"

struct seen {
	void *handle;
	const struct link_map *module;
	unsigned names, functions, hidden;
};

/* Returns true if the loader finds the name in this module. */
static void *loaders(const struct seen *s, const char *name)
{
	struct link_map *where;
	void *p = dlsym(s->handle, name);
	Dl_info info;

	dlerror();
	return p && dladdr1(p, &info, (void **)&where, RTLD_DL_LINKMAP) && where == s->module ?
		p : NULL;
}

static void compare(const char *name, const ElfW(Sym) *symbol, void *arg)
{
	struct seen *s = arg;
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	const void *ours;
	void *p;

	if (type != STT_FUNC || symbol->st_value == 0)
		return;
	p = loaders(s, name);
	ours = kbi_names_function(s->module->l_addr, s->module->l_ld, name);
	if (ours && ours != p)
		printf("%s: %p, and the loader has %p\n", name, ours, p);
	CHECK(!ours || ours == p);
	if (!p && kbi_names_may_have(s->module->l_addr, s->module->l_ld, name))
		printf("%s: the loader does not find it\n", name);
	CHECK(p || !kbi_names_may_have(s->module->l_addr, s->module->l_ld, name));
	s->names++;
	s->functions += ours != NULL;
	s->hidden += !p;
}

/* Number of functions found there. */
static unsigned a_module(const char *file)
{
	struct seen s = { .handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD) };

	if (!s.handle)
		return 0;
	CHECK_EQ(dlinfo(s.handle, RTLD_DI_LINKMAP, &s.module), 0);
	kbi_names_each(s.module->l_addr, s.module->l_ld, compare, &s);
	printf("%s: %u functions, %u found, %u only under old versions\n", file, s.names, s.functions,
		s.hidden);
	dlclose(s.handle);
	return s.functions;
}

int main(void)
{
	/* before glibc 2.34 many names are there, too, under old versions only */
	dlopen("libpthread.so.0", RTLD_LAZY);
	CHECK(a_module("libc.so.6") > 0);
	a_module("libpthread.so.0");
	CHECK(kbi_names_definition("kb_no_such_function") == NULL);
	CHECK(kbi_names_definition("gnu_get_libc_version") ==
		dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
	return 0;
}
#endif
