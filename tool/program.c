/* tool/program.c - may this file run with the drop-in? The loader ignores LD_PRELOAD without a
 * message for static, privileged and foreign-machine programs, and musl's loader ends its programs.
 * Each such program is detected here and named, and runs without the drop-in. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tool.h"

#if __SIZEOF_POINTER__ == 8
typedef Elf64_Ehdr Header;
typedef Elf64_Phdr Segment;
enum { OUR_CLASS = ELFCLASS64, OUR_BITS = 64 };
#else
typedef Elf32_Ehdr Header;
typedef Elf32_Phdr Segment;
enum { OUR_CLASS = ELFCLASS32, OUR_BITS = 32 };
#endif

enum { SCRIPT_DEPTH = 4, HEAD = 512 };

static int refuse_program(const char *file, const char *why)
{
	tool_say("%s: %s", file, why);
	return TOOL_CANNOT_RUN;
}

static int say_runs_plainly(const char *file, const char *why)
{
	tool_say("%s: %s: it runs without Kochab", file, why);
	return TOOL_PLAINLY;
}

/* Handles loaders of another kind, which print that they ignore our library, or do worse. */
static int say_runs_alone(const char *file, const char *why)
{
	say_runs_plainly(file, why);
	return TOOL_ALONE;
}

bool tool_self(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);
	char path[PATH_MAX];
	unsigned long name;

	if (n > 0) {
		buf[n] = '\0';
		return true;
	}
	name = getauxval(AT_EXECFN); /* the path that execve was given */
	return name != 0 && realpath((const char *)name, path) != NULL &&
		snprintf(buf, size, "%s", path) < (int)size;
}

static ssize_t read_head(const char *file, off_t at, void *buf, size_t size)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = pread(fd, buf, size, at);
	close(fd);
	return n;
}

/* Writes the interpreter of an ELF file (the loader) to buf. Returns false if it has none. Bad
 * offsets read as none. */
static bool read_interpreter(const char *file, const Header *h, char *buf, size_t size)
{
	for (unsigned i = 0; i < h->e_phnum; i++) {
		Segment s;
		ssize_t n;

		if (read_head(file, (off_t)(h->e_phoff + (size_t)i * h->e_phentsize), &s,
			sizeof(s)) != sizeof(s))
			return false;
		if (s.p_type != PT_INTERP)
			continue;
		n = read_head(file, (off_t)s.p_offset, buf, size - 1 < s.p_filesz ? size - 1 : s.p_filesz);
		buf[n > 0 ? n : 0] = '\0';
		return n > 0;
	}
	return false;
}

static bool is_musl(const char *loader)
{
	return strstr(loader, "ld-musl") != NULL;
}

static int check_elf(const char *file, const Header *h)
{
	char loader[PATH_MAX], our_loader[PATH_MAX], self[PATH_MAX];
	Header us;

	char why[100];

	if (h->e_ident[EI_CLASS] != OUR_CLASS) {
		snprintf(why, sizeof(why), "a %d-bit program, and this Kochab is for %d bits",
			96 - OUR_BITS, OUR_BITS);
		return say_runs_alone(file, why);
	}
	if (!tool_self(self, sizeof(self)) || read_head(self, 0, &us, sizeof(us)) != sizeof(us))
		return 0; /* nothing to compare with: the kernel decides */
	if (h->e_ident[EI_DATA] != us.e_ident[EI_DATA] || h->e_machine != us.e_machine) {
		snprintf(why, sizeof(why), "built for another machine (ELF machine %u, this one is %u)",
			h->e_machine, us.e_machine);
		return say_runs_alone(file, why);
	}
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return refuse_program(file, "not a program (an object or core file)");
	if (!read_interpreter(file, h, loader, sizeof(loader)))
		return say_runs_plainly(file,
			"statically linked, no library can be loaded into it");
	if (read_interpreter(self, &us, our_loader, sizeof(our_loader)) &&
	    is_musl(loader) != is_musl(our_loader))
		return say_runs_plainly(file, is_musl(loader) ?
			"linked with musl, and the drop-in is for glibc" :
			"linked with another libc than this Kochab");
	return 0;
}

static int check_file(const char *file, int depth);

/* Checks a script. head is "#! interpreter [argument]\n..." */
static int check_script(const char *file, char *head, int depth)
{
	char *interpreter_path = head + 2 + strspn(head + 2, " \t");
	struct stat st;

	interpreter_path[strcspn(interpreter_path, " \t\n")] = '\0';
	if (*interpreter_path == '\0')
		return refuse_program(file, "a script whose #! line names no interpreter");
	if (depth >= SCRIPT_DEPTH)
		return refuse_program(file, "scripts that interpret scripts: too many levels");
	if (stat(interpreter_path, &st) != 0) {
		tool_say("%s: its interpreter %s: %s", file, interpreter_path, strerror(errno));
		return TOOL_CANNOT_RUN;
	}
	return check_file(interpreter_path, depth + 1);
}

/* Checks for a program that runs with rights which its caller lacks: the loader ignores LD_PRELOAD
 * then. */
static int check_rights(const char *file, const struct stat *st)
{
	if (st->st_mode & S_ISUID && st->st_uid != getuid())
		return say_runs_plainly(file,
			"has the setuid bit, the loader ignores LD_PRELOAD for it");
	if (st->st_mode & S_ISGID && st->st_gid != getgid())
		return say_runs_plainly(file,
			"has the setgid bit, the loader ignores LD_PRELOAD for it");
	if (getuid() != 0 && getxattr(file, "security.capability", NULL, 0) > 0)
		return say_runs_plainly(file,
			"has file capabilities, the loader ignores LD_PRELOAD for it");
	return 0;
}

static int check_file(const char *file, int depth)
{
	union {
		char text[HEAD + 1];
		Header elf;
	} head = { { 0 } };
	struct stat st;
	ssize_t n;
	int code;

	if (stat(file, &st) != 0)
		return refuse_program(file, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return refuse_program(file, "is a directory");
	if (!S_ISREG(st.st_mode) || access(file, X_OK) != 0)
		return refuse_program(file, "not an executable file");
	n = read_head(file, 0, head.text, HEAD);
	if (n < 0)
		/* execute-only: the kernel decides */
		return errno == EACCES ? 0 : refuse_program(file, strerror(errno));
	if (n >= 2 && memcmp(head.text, "#!", 2) == 0)
		return check_script(file, head.text, depth);
	code = check_rights(file, &st);
	if (code != 0)
		return code;
	if ((size_t)n >= sizeof(head.elf) && memcmp(head.text, ELFMAG, SELFMAG) == 0)
		return check_elf(file, &head.elf);
	return refuse_program(file, "neither an ELF program nor a script with a #! line");
}

int tool_check_program(const char *program)
{
	int code = check_file(program, 0);

	if (code == 0 && !TOOL_HAS_DROP_IN)
		return say_runs_alone(program,
			"the drop-in is for glibc, and this Kochab is built with another libc");
	return code == TOOL_PLAINLY && !TOOL_HAS_DROP_IN ? TOOL_ALONE : code;
}

/* Searches PATH for a name without slashes. Returns false if there is none; denied: the last file
 * of that name that may not be executed, or "". */
static bool search_path(const char *name, char *buf, size_t size, char denied[PATH_MAX])
{
	const char *path = getenv("PATH"), *end;
	struct stat st;
	int n;

	denied[0] = '\0';
	for (path = path != NULL ? path : "/bin:/usr/bin"; *name != '\0'; path = end + 1) {
		end = path + strcspn(path, ":");
		n = snprintf(buf, size, "%.*s%s%s", (int)(end - path), path, end > path ? "/" : "./", name);
		/* a path that does not fit does not exist: its beginning may be another file's */
		if (n < (int)size && stat(buf, &st) == 0 && S_ISREG(st.st_mode)) {
			if (access(buf, X_OK) == 0)
				return true;
			snprintf(denied, PATH_MAX, "%s", buf);
		}
		if (*end == '\0')
			break;
	}
	return false;
}

bool tool_is_in_path(const char *name)
{
	char found[PATH_MAX], denied[PATH_MAX];

	return strchr(name, '/') == NULL && search_path(name, found, sizeof(found), denied);
}

int tool_look_up(const char *name, char *buf, size_t size)
{
	char denied[PATH_MAX];
	struct stat st;

	if (strchr(name, '/') != NULL) {
		if (stat(name, &st) != 0) {
			tool_say("%s: %s", name, strerror(errno));
			return errno == ENOENT || errno == ENOTDIR ? TOOL_NOT_FOUND : TOOL_CANNOT_RUN;
		}
		return snprintf(buf, size, "%s", name) < (int)size ? 0 :
			refuse_program(name, "path too long");
	}
	if (search_path(name, buf, size, denied))
		return 0;
	if (denied[0] != '\0')
		return refuse_program(denied, "not an executable file");
	tool_say("%s: not found in PATH", *name != '\0' ? name : "''");
	return TOOL_NOT_FOUND;
}
