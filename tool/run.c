/* tool/run.c - `kochab run`: turns options into KOCHAB_* variables, puts the drop-in library in
 * front of LD_PRELOAD and executes the program. Reasons for which the preload would silently not
 * happen are reported by tool/program.c first; such a program runs without, and its children are
 * served (unless --children no). */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/option.h"
#include "os/cpu.h"
#include "tool.h"

#define DROP_IN "libkochab-posix.so.0"
#define ALLOCATOR "libkochab-malloc.so.0"

static void print_usage_row(const struct kbi_option *o)
{
	bool measured = (o->type == KBI_OPTION_TIME || o->type == KBI_OPTION_SIZE) && o->def != 0;
	char name[32], text[64], allowed[128];

	snprintf(name, sizeof(name), "%s", o->name);
	for (char *c = name; *c != '\0'; c++)
		*c = *c == '_' ? '-' : *c;
	printf("  --%s%s\n        %s\n        %s%s; default %s%s%s\n", name,
	       o->type == KBI_OPTION_BOOL ? "[=0|1]" : " VALUE", o->help,
	       kbi_option_allowed(o, allowed, sizeof(allowed)),
	       o->type == KBI_OPTION_TIME ? ", or with a unit: ns, us, ms, s" :
	       o->type == KBI_OPTION_SIZE ? ", or with K, M, G" : "",
	       kbi_option_show(o, o->def, text, sizeof(text)), measured ? " " : "",
	       measured ? o->unit : "");
}

static void print_run_usage(void)
{
	unsigned hidden = 0;

	printf("usage: kochab run [OPTION]... [--] PROGRAM [ARGUMENT]...\n\n"
	       "Runs an unmodified, dynamically linked program; its threads become lightweight "
	       "threads.\n"
	       "Each option is also an environment variable; see 'kochab options'.\n");
	for (unsigned tier = 0; tier < KBI_TIER_LABORATORY; tier++) {
		printf("\n%s:\n\n", tool_tier_heading(tier));
		for (const struct kbi_option *o = kbi_option_table; o->name != NULL; o++) {
			if (o->tier == tier)
				print_usage_row(o);
		}
	}
	for (const struct kbi_option *o = kbi_option_table; o->name != NULL; o++)
		hidden += o->tier == KBI_TIER_LABORATORY;
	printf("\n%u more options are for the laboratory: 'kochab options --all' shows them; "
		"the variable\n"
		"KOCHAB_TICK_MS, for example, is the option tick-ms.\n", hidden);
	printf("\nOne that the library cannot be loaded into (static, setuid, 32-bit, linked with "
	"musl) runs\nwithout it, and that is said.\n"
	"Exit: the program's; 127 it was not found, 126 it cannot be run, 2 wrong usage.\n");
}

/* Returns whether a word after a flag is the flag's value: a flag's value stands behind '=', but a
 * word that is a value, and no program, is treated as the value. */
static bool is_value_of_flag(const struct kbi_option *o, const char *word)
{
	uint64_t value;

	return word != NULL && kbi_option_parse(o, word, &value) == 0 && !tool_is_in_path(word);
}

bool tool_take_option(const char *command, int argc, char **argv, int *i)
{
	const char *name = argv[*i] + 2, *value = strchr(name, '=');
	size_t n = value != NULL ? (size_t)(value++ - name) : strlen(name);
	const struct kbi_option *o = kbi_option_find(name, n);
	char allowed[128];
	uint64_t parsed;

	if (o == NULL) {
		tool_say("%s: --%.*s: no such option; see 'kochab %s --help' and 'kochab options --all'",
			command, (int)n, name, command);
		return false;
	}
	if (value == NULL && o->type == KBI_OPTION_BOOL) {
		if (is_value_of_flag(o, argv[*i + 1])) {
			tool_say("%s: --%s %s: the value of a flag stands behind '=': write --%s=%s", command,
				name, argv[*i + 1], name, argv[*i + 1]);
			return false;
		}
		value = "1";
	} else if (value == NULL) {
		if (*i + 1 >= argc) {
			tool_say("%s: --%s needs a value: %s", command, name,
				kbi_option_allowed(o, allowed, sizeof(allowed)));
			return false;
		}
		value = argv[++*i];
	}
	if (kbi_option_parse(o, value, &parsed) != 0) {
		tool_say("%s: --%.*s %s: bad value, allowed: %s", command, (int)n, name, value,
			 kbi_option_allowed(o, allowed, sizeof(allowed)));
		return false;
	}
	return setenv(o->env, value, 1) == 0;
}

/* Checks the processors of the option bind. Returns false after printing which does not exist. */
static bool has_processors(const char *command)
{
	const char *list = kbi_options.bind;
	struct kbi_cpus all;
	unsigned first, last;

	if (list == NULL || !kbi_cpulist_is_valid(list))
		return true;
	kbi_cpus_read(0, &all);
	while (kbi_cpulist_next(&list, &first, &last))
		for (unsigned cpu = first; cpu <= last; cpu++)
			if (!kbi_cpus_has(&all, cpu)) {
				tool_say("%s: --bind %s: processor %u is none of the %u that the program may use",
					command, kbi_options.bind, cpu, kbi_cpu_affinity());
				return false;
			}
	return true;
}

/* Warns of a very short quantum without a unit: most likely it was meant as milliseconds. */
static void warn_of_short(const char *command)
{
	enum { SHORT = 100 };
	const char *value = getenv("KOCHAB_QUANTUM");

	if (value != NULL && kbi_options.quantum > 0 && kbi_options.quantum < SHORT &&
	    value[strspn(value, "0123456789")] == '\0')
		tool_say("%s: --quantum %s is so many us; a unit may follow, such as %sms or %sus", command,
			value, value, value);
}

bool tool_check_options(const char *command)
{
	warn_of_short(command);
	return has_processors(command);
}

/* Writes directory + "/" + DROP_IN to buf. Returns true if it is a readable file. */
static bool try_directory(const char *directory, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%s/%s", directory, DROP_IN);

	return n > 0 && (size_t)n < size && access(buf, R_OK) == 0;
}

static bool find_near_command(char *buf, size_t size)
{
	char self[PATH_MAX], near[PATH_MAX + 16];

	if (!tool_self(self, sizeof(self)))
		return false;
	*strrchr(self, '/') = '\0';
	if (try_directory(self, buf, size))
		return true;
	snprintf(near, sizeof(near), "%s/../lib", self);
	return try_directory(near, buf, size) && realpath(buf, near) != NULL &&
	       snprintf(buf, size, "%s", near) < (int)size;
}

bool tool_find_drop_in(char *buf, size_t size)
{
	const char *given = getenv("KOCHAB_LIB");

	if (given != NULL) {
		if (try_directory(given, buf, size))
			return true;
		if (realpath(given, buf) != NULL && access(buf, R_OK) == 0 && strstr(buf, ".so") != NULL)
			return true;
		tool_say("KOCHAB_LIB=%s: neither a library nor a directory with %s", given, DROP_IN);
		return false;
	}
	if (find_near_command(buf, size) || try_directory(KOCHAB_LIBDIR, buf, size))
		return true;
	tool_say("%s: not found beside the command, in ../lib or in %s; set KOCHAB_LIB", DROP_IN,
		KOCHAB_LIBDIR);
	return false;
}

/* Writes old without another library of that name to buf: with two copies, each would have half of
 * the threads. */
static void copy_without_library(const char *ours, const char *old, char *buf)
{
	char *to = buf;

	while (*old != '\0') {
		size_t n = strcspn(old, " :");
		const char *name = old + n;

		while (name > old && name[-1] != '/')
			name--;
		if (n > 0 && strncmp(name, ours, strlen(ours)) != 0) {
			if (to > buf)
				*to++ = ':';
			to = mempcpy(to, old, n);
		}
		old += n + (old[n] != '\0');
	}
	*to = '\0';
}

void tool_drop_preload(void)
{
	const char *old = getenv("LD_PRELOAD");
	char *others = old != NULL ? malloc(strlen(old) + 1) : NULL;

	if (others == NULL)
		return;
	copy_without_library(DROP_IN, old, others);
	if (*others != '\0')
		setenv("LD_PRELOAD", others, 1);
	else
		unsetenv("LD_PRELOAD");
	free(others);
}

/* Finds the allocator, which lies beside the drop-in. */
static bool find_allocator(const char *drop_in, char *buf, size_t size)
{
	const char *slash = strrchr(drop_in, '/');
	int n = snprintf(buf, size, "%.*s%s", slash != NULL ? (int)(slash - drop_in) + 1 : 0,
		drop_in, ALLOCATOR);

	if (n > 0 && (size_t)n < size && access(buf, R_OK) == 0)
		return true;
	tool_say("run: --malloc kochab: %s is not beside %s", ALLOCATOR, drop_in);
	return false;
}

/* Writes a path that only glibc finds. A program of another libc in a chain must not be given our
 * library: musl's loader would end it. glibc's loader replaces $LIB by the folder of the machine's
 * libraries, which lies at most four below the root; for any other loader there is no such file,
 * and it goes on without. Returns false if this libc does not do so, has no such folder, or does
 * not find our own library that way. */
static bool write_glibc_only_path(const char *library, char *buf, size_t size)
{
	static const char way[] = "/$LIB/../../../..";
	char libc[PATH_MAX], path[PATH_MAX + sizeof(way)];
	Dl_info info;

	if (*library != '/' || !dladdr((const void *)(uintptr_t)getenv, &info) ||
		realpath(info.dli_fname, libc) == NULL)
		return false;
	snprintf(path, sizeof(path), "%s%s", way, libc);
	return dlopen(path, RTLD_LAZY | RTLD_NOLOAD) != NULL &&
		snprintf(buf, size, "%s%s", way, library) < (int)size;
}

/* Puts a library in front of the preloaded libraries, or behind them. */
static bool set_preload(const char *library, bool behind)
{
	const char *old = getenv("LD_PRELOAD"), *first, *second;
	char *rest, *joined = NULL, guarded[PATH_MAX];
	bool ok;

	if (write_glibc_only_path(library, guarded, sizeof(guarded)))
		library = guarded;
	if (strpbrk(library, " :") != NULL) {
		tool_say("%s: a path with a space or colon cannot stand in LD_PRELOAD", library);
		return false;
	}
	if (old == NULL || (rest = malloc(strlen(old) + 1)) == NULL)
		return setenv("LD_PRELOAD", library, 1) == 0;
	copy_without_library(strrchr(library, '/') + 1, old, rest);
	first = behind ? rest : library;
	second = behind ? library : rest;
	if (asprintf(&joined, "%s%s%s", first, *rest != '\0' ? ":" : "", second) < 0)
		joined = NULL;
	ok = joined != NULL && setenv("LD_PRELOAD", joined, 1) == 0;
	free(joined);
	free(rest);
	return ok;
}

/* Preloads AddressSanitizer's runtime: it ends programs where it is not the first library, before
 * the drop-in can put it there. */
static bool set_sanitizer(void)
{
	const char *old = getenv("ASAN_OPTIONS");
	char *joined = NULL;
	bool ok;

	if (old != NULL && strstr(old, "verify_asan_link_order") != NULL)
		return true;
	if (asprintf(&joined, "verify_asan_link_order=0%s%s", old != NULL ? ":" : "",
		old != NULL ? old : "") < 0)
		return false;
	ok = setenv("ASAN_OPTIONS", joined, 1) == 0;
	free(joined);
	return ok;
}

/* Preloads the layer over MPI, if the program is linked with MPI. It stands behind the libraries
 * that are preloaded already: a tool between the program and MPI calls MPI by its second names,
 * which the layer has, too. */
static bool set_mpi(const char *program, const char *drop_in)
{
	char layer[PATH_MAX];

	return !tool_find_mpi(program, drop_in, layer, sizeof(layer)) ||
		(set_preload(layer, true) && tool_share_processors());
}

/* Sets OpenMP's waiting: its threads spin for milliseconds before they wait, because a kernel takes
 * long to wake them. Our threads are woken by a switch, and the processor has other threads to run.
 * The user's own setting is kept. */
static bool set_waiting(void)
{
	if (!kbi_options.own_futex || getenv("OMP_WAIT_POLICY") != NULL)
		return true;
	return setenv("GOMP_SPINCOUNT", "0", 0) == 0 && setenv("KMP_BLOCKTIME", "0", 0) == 0;
}

/* Sets the libraries that the program, or its children, will find. musl's loader ends a program for
 * a library that it cannot load, so a plain program must have a path that glibc alone finds.
 * Returns false after printing the reason. */
static bool set_libraries(const char *program, bool plain)
{
	char library[PATH_MAX], allocator[PATH_MAX], guarded[PATH_MAX];

	if (!tool_find_drop_in(library, sizeof(library)))
		return false;
	if (plain && (kbi_options.children == KBI_OPT_CHILDREN_NO ||
		!write_glibc_only_path(library, guarded, sizeof(guarded))))
		return true;
	if (kbi_options.malloc == KBI_OPT_MALLOC_KOCHAB &&
	    (!find_allocator(library, allocator, sizeof(allocator)) || !set_preload(allocator, false)))
		return false;
	return (plain || set_mpi(program, library)) && set_preload(library, false) && set_sanitizer() &&
		set_waiting();
}

int tool_run(int argc, char **argv)
{
	char program[PATH_MAX];
	int i, code;

	for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_run_usage();
			return TOOL_OK;
		}
		if (strncmp(argv[i], "--", 2) != 0) {
			tool_say("run: %s: no such option; 'kochab run --help' lists them", argv[i]);
			return TOOL_USAGE;
		}
		if (!tool_take_option("run", argc, argv, &i))
			return TOOL_USAGE;
	}
	if (i >= argc) {
		tool_say("run: which program? usage: kochab run [OPTION]... [--] PROGRAM [ARGUMENT]...");
		return TOOL_USAGE;
	}
	if (kbi_option_load() != 0 || !tool_check_options("run"))
		return TOOL_USAGE;
	code = tool_look_up(argv[i], program, sizeof(program));
	if (code == 0)
		code = tool_check_program(program);
	if (code != 0 && code != TOOL_PLAINLY && code != TOOL_ALONE)
		return code;
	if (code != TOOL_ALONE && !set_libraries(program, code == TOOL_PLAINLY))
		return TOOL_CANNOT_RUN;
	execv(program, argv + i);
	code = errno == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_RUN;
	tool_say("%s: %s", program, strerror(errno));
	return code;
}
