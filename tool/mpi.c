/* tool/mpi.c - reads the libraries that a program is linked with: Kochab, an MPI; finds the layer
 * over MPI for it, if any, and the number of virtual processors of a rank.
 * A layer, libkochab-mpi-NAME.so.0, lies beside the drop-in and is linked with the library of an
 * MPI; it is for programs that are linked with the same, directly or through another library. The
 * loader is asked for the rest. */
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/option.h"
#include "tool.h"

enum { NAMES = 128, NAME = 128 };

/* Names of libraries. */
struct names {
	int n;
	char name[NAMES][NAME];
};

static void add_name(struct names *l, const char *name, size_t n)
{
	if (l->n < NAMES && n < NAME)
		snprintf(l->name[l->n++], NAME, "%.*s", (int)n, name);
}

static bool has_name(const struct names *l, const char *name)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->name[i], name) == 0)
			return true;
	return false;
}

/* ---- the libraries of a file ----------------------------------------------------------------- */

struct image {
	const char *at;
	size_t size;
};

static const void *part_of_image(const struct image *f, size_t at, size_t n)
{
	return at <= f->size && n <= f->size - at ? f->at + at : NULL;
}

/* Returns where in the file an address of the program lies; the file's size if nowhere. */
static size_t offset_of(const struct image *f, const ElfW(Phdr) *p, unsigned n, size_t address)
{
	for (unsigned i = 0; i < n; i++)
		if (p[i].p_type == PT_LOAD && address >= p[i].p_vaddr &&
			address - p[i].p_vaddr < p[i].p_filesz)
			return p[i].p_offset + (address - p[i].p_vaddr);
	return f->size;
}

static void read_names(const struct image *f, const ElfW(Phdr) *p, unsigned n,
	const ElfW(Phdr) *dynamic, struct names *l)
{
	size_t count = dynamic->p_filesz / sizeof(ElfW(Dyn)), strings = f->size;
	const ElfW(Dyn) *d = part_of_image(f, dynamic->p_offset, count * sizeof(*d));

	if (d == NULL)
		return;
	for (size_t i = 0; i < count; i++)
		if (d[i].d_tag == DT_STRTAB)
			strings = offset_of(f, p, n, d[i].d_un.d_ptr);
	for (size_t i = 0; i < count && strings < f->size; i++) {
		size_t at = strings + d[i].d_un.d_val;

		if (d[i].d_tag == DT_NEEDED && at >= strings && at < f->size)
			add_name(l, f->at + at, strnlen(f->at + at, f->size - at));
	}
}

static void read_image(const struct image *f, struct names *l)
{
	const ElfW(Ehdr) *h = part_of_image(f, 0, sizeof(*h));
	const ElfW(Phdr) *p;

	if (h == NULL || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_phentsize != sizeof(*p))
		return;
	p = part_of_image(f, h->e_phoff, (size_t)h->e_phnum * sizeof(*p));
	for (unsigned i = 0; p != NULL && i < h->e_phnum; i++)
		if (p[i].p_type == PT_DYNAMIC)
			read_names(f, p, h->e_phnum, &p[i], l);
}

static bool defines_in(const struct image *f, const ElfW(Shdr) *s, const ElfW(Shdr) *names,
	const char *name)
{
	size_t n = s->sh_size / sizeof(ElfW(Sym));
	const ElfW(Sym) *symbols = part_of_image(f, s->sh_offset, n * sizeof(*symbols));
	const char *strings = part_of_image(f, names->sh_offset, names->sh_size);

	if (symbols == NULL || strings == NULL)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t at = symbols[i].st_name;

		if (symbols[i].st_shndx != SHN_UNDEF && at < names->sh_size &&
			names->sh_size - at > strlen(name) && strcmp(strings + at, name) == 0)
			return true;
	}
	return false;
}

/* Returns whether the file has a function of that name, as far as its symbols tell: a stripped file
 * has none. */
static bool defines_function(const struct image *f, const char *name)
{
	const ElfW(Ehdr) *h = part_of_image(f, 0, sizeof(*h));
	const ElfW(Shdr) *s;

	if (h == NULL || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_shentsize != sizeof(*s))
		return false;
	s = part_of_image(f, h->e_shoff, (size_t)h->e_shnum * sizeof(*s));
	for (unsigned i = 0; s != NULL && i < h->e_shnum; i++)
		if (s[i].sh_type == SHT_SYMTAB && s[i].sh_link < h->e_shnum &&
			defines_in(f, &s[i], &s[s[i].sh_link], name))
			return true;
	return false;
}

/* Maps the file; an empty image if it cannot be read. */
static struct image map_file(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct image f = { NULL, 0 };
	struct stat st;

	if (fd < 0)
		return f;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (at != MAP_FAILED)
			f = (struct image){ at, (size_t)st.st_size };
	}
	close(fd);
	return f;
}

static void unmap_file(const struct image *f)
{
	if (f->size > 0)
		munmap((void *)(uintptr_t)f->at, f->size);
}

/* Lists the libraries that the file itself names. */
static void list_direct_libraries(const char *file, struct names *l)
{
	struct image f = map_file(file);

	read_image(&f, l);
	unmap_file(&f);
}

/* Returns whether the library is linked with no MPI: most programs need no more, and the loader is
 * not asked. */
static bool is_common(const char *name)
{
	static const char *const common[] = { "libc.so.", "libm.so.", "libpthread.so.", "libdl.so.",
		"librt.so.", "libutil.so.",
					      "ld-linux", "libgcc_s.so.", "libstdc++.so.", "libz.so.", "libtinfo.so.",
					      "libselinux.so.", "libgomp.so.", "libcrypt.so." };

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (strncmp(name, common[i], strlen(common[i])) == 0)
			return true;
	return false;
}

static bool needs_others(const struct names *l)
{
	for (int i = 0; i < l->n; i++)
		if (!is_common(l->name[i]))
			return true;
	return false;
}

/* Reads lines of the loader: "\tlibmpi.so.40 => /usr/lib/... (0x...)". */
static void read_trace(FILE *from, struct names *l)
{
	char line[PATH_MAX + NAME];

	while (fgets(line, sizeof(line), from) != NULL) {
		const char *name = line + strspn(line, " \t");

		if (strstr(name, "=>") != NULL)
			add_name(l, name, strcspn(name, " \n"));
	}
}

/* Lists all libraries that the loader would load. */
static void list_loaded_libraries(const char *program, struct names *l)
{
	int ends[2], status;
	FILE *from;
	pid_t child;

	if (pipe(ends) != 0)
		return;
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	from = fdopen(ends[0], "r");
	if (from != NULL) {
		read_trace(from, l);
		fclose(from);
	}
	if (child > 0)
		waitpid(child, &status, 0);
}

/* ---- a program of Kochab's ------------------------------------------------------------------- */

static bool has_kochab_library(const struct names *l)
{
	for (int i = 0; i < l->n; i++)
		if (strncmp(l->name[i], "libkochab", 9) == 0)
			return true;
	return false;
}

bool tool_is_linked(const char *program)
{
	static struct names l;
	struct image f = map_file(program);
	bool ours = defines_function(&f, "kbi_boot");

	read_image(&f, &l);
	unmap_file(&f);
	if (!ours && !has_kochab_library(&l) && needs_others(&l))
		list_loaded_libraries(program, &l);
	return ours || has_kochab_library(&l);
}

/* ---- the layer ------------------------------------------------------------------------------- */

/* Finds the layers, libkochab-mpi-*.so.0, that are linked with a library in l. Writes the first
 * path to buf and returns their number. */
static int find_matching_layers(const char *drop_in, const struct names *l, char *buf, size_t size)
{
	const char *slash = strrchr(drop_in, '/');
	char pattern[PATH_MAX];
	glob_t found;
	int n = 0;

	snprintf(pattern, sizeof(pattern), "%.*s/libkochab-mpi-*.so.0",
		slash != NULL ? (int)(slash - drop_in) : 1, slash != NULL ? drop_in : ".");
	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		static struct names its;

		its.n = 0;
		list_direct_libraries(found.gl_pathv[i], &its);
		for (int k = 0; k < its.n; k++) {
			if (is_common(its.name[k]) || !has_name(l, its.name[k]))
				continue;
			if (n++ == 0)
				snprintf(buf, size, "%s", found.gl_pathv[i]);
			break;
		}
	}
	globfree(&found);
	return n;
}

/* Returns whether this is the first rank that a launcher of MPI's has started on this machine. It
 * prints for all ranks. */
static bool is_first_rank(void)
{
	const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

	if (rank == NULL)
		rank = getenv("MPI_LOCALRANKID");
	return rank != NULL && strcmp(rank, "0") == 0;
}

/* Prints why there is no layer for a program that has been started as a rank, if that is known. */
static void tell_no_layer(const char *program, const struct names *l)
{
	struct image f;

	for (int i = 0; i < l->n; i++) {
		if (strncmp(l->name[i], "libmpi", 6) != 0)
			continue;
		tool_say("%s: no layer is here for its MPI, %s: a thread that waits for MPI holds up its "
			"virtual processor", program, l->name[i]);
		return;
	}
	f = map_file(program);
	if (defines_function(&f, "MPI_Finalize"))
		tool_say("%s: statically linked with MPI: a thread that waits for MPI holds up its virtual "
			"processor", program);
	unmap_file(&f);
}

bool tool_find_mpi(const char *program, const char *drop_in, char *buf, size_t size)
{
	static struct names l;
	int n;

	if (kbi_options.mpi == KBI_OPT_MPI_NO)
		return false;
	list_direct_libraries(program, &l);
	n = find_matching_layers(drop_in, &l, buf, size);
	if (n == 0 && needs_others(&l)) {
		list_loaded_libraries(program, &l);
		n = find_matching_layers(drop_in, &l, buf, size);
	}
	if (n > 1)
		tool_say("%s: linked with more than one MPI: its calls go to them as they are", program);
	if (n == 0 && is_first_rank())
		tell_no_layer(program, &l);
	return n == 1;
}

/* ---- virtual processors of a rank ------------------------------------------------------------ */

static long local_ranks(void)
{
	const char *n = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

	if (n == NULL)
		n = getenv("MPI_LOCALNRANKS");
	return n != NULL ? atol(n) : 0;
}

bool tool_share_processors(void)
{
	long ranks = local_ranks(), all = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t may;
	char text[24];

	if (kbi_options.vps != 0 || ranks < 2 || sched_getaffinity(0, sizeof(may), &may) != 0 ||
		CPU_COUNT(&may) < all)
		return true;
	snprintf(text, sizeof(text), "%ld", all / ranks > 0 ? all / ranks : 1);
	return setenv("KOCHAB_VPS", text, 1) == 0;
}
