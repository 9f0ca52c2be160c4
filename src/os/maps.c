/* os/maps.c - reads /proc/self/maps. Contract in maps.h.
 * A line: from-to rwxp offset device inode name. */
#include "os/fd.h"
#include "os/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "os/sys.h"

#define USER_END ((uintptr_t)1 << 47)

int kbi_maps_read(char *text, size_t size)
{
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC), n = 0, r;

	if (fd < 0)
		return (int)-fd;
	while ((r = kbi_sys(SYS_read, fd, text + n, size - (size_t)n - 1)) > 0)
		n += r;
	kbi_sys(SYS_close, fd);
	text[n] = 0;
	return r < 0 ? (int)-r : n + 1 < (long)size ? 0 : E2BIG;
}

static const char *parse_maps_number(const char *p, unsigned base, uint64_t *v)
{
	*v = 0;
	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			*v = *v * base + (uint64_t)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			*v = *v * base + (uint64_t)(*p - 'a' + 10);
		else
			return p;
	}
}

static const char *skip_word(const char *p)
{
	while (*p && *p != ' ' && *p != '\n')
		p++;
	while (*p == ' ')
		p++;
	return p;
}

static bool is_named(const char *p, const char *end, const char *name)
{
	for (; *name; p++, name++)
		if (p >= end || *p != *name)
			return false;
	return p == end;
}

const char *kbi_maps_next(const char *text, struct kbi_maps_line *m)
{
	const char *p, *flags, *end;
	uint64_t from, to;

	if (!*text)
		return NULL;
	p = parse_maps_number(text, 16, &from);
	p = parse_maps_number(p + 1, 16, &to);
	m->from = from;
	m->to = to;
	flags = p + 1;
	m->protection = (uint8_t)((flags[0] == 'r') * PROT_READ | (flags[1] == 'w') * PROT_WRITE |
				  (flags[2] == 'x') * PROT_EXEC);
	m->shared = flags[3] == 's';
	p = skip_word(flags);
	parse_maps_number(p, 16, &m->offset);
	p = skip_word(skip_word(p));
	parse_maps_number(p, 10, &m->inode);
	p = skip_word(p);
	for (end = p; *end && *end != '\n'; end++)
		;
	m->stack = is_named(p, end, "[stack]");
	m->kernels = from >= USER_END || (*p == '[' && p[1] == 'v');
	return *end ? end + 1 : end;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Passes each line of the file, cut to `size` bytes, to look until look returns true. Returns 0;
 * ENOENT: look never did; or an errno value. */
static int search_lines(int fd, char *line, size_t size, bool (*look)(const char *line, void *arg),
	void *arg)
{
	char text[4096];
	size_t fill = 0;
	long n;

	while ((n = kbi_sys(SYS_read, fd, text, sizeof text)) > 0)
		for (long i = 0; i < n; i++) {
			if (text[i] != '\n') {
				if (fill < size - 1)
					line[fill++] = text[i];
				continue;
			}
			line[fill] = 0;
			fill = 0;
			if (look(line, arg))
				return 0;
		}
	return n < 0 ? (int)-n : ENOENT;
}

/* ---- with flags ------------------------------------------------------------------------------ */

struct each {
	struct kbi_maps_line m;
	char name[64];
	bool any;
	void (*fn)(const struct kbi_maps_line *m, const char *name, const char *flags, void *arg);
	void *arg;
};

/* Reads the first line of a mapping. The name of a mapping follows five words. */
static void read_head(struct each *e, const char *line)
{
	const char *p = line;
	size_t n = 0;

	for (unsigned i = 0; i < 5; i++)
		p = skip_word(p);
	for (; *p && n < sizeof e->name - 1; p++)
		e->name[n++] = *p;
	e->name[n] = 0;
	kbi_maps_next(line, &e->m);
	e->any = true;
}

static bool on_smaps_line(const char *line, void *each)
{
	struct each *e = each;
	static const char flags[] = "VmFlags:";
	unsigned i = 0;

	if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
		read_head(e, line);
		return false;
	}
	while (flags[i] && line[i] == flags[i])
		i++;
	if (!flags[i] && e->any)
		e->fn(&e->m, e->name, line + i, e->arg);
	return false;
}

/* Long lines are cut; only names are that long. */
int kbi_maps_each(
	void (*fn)(const struct kbi_maps_line *m, const char *name, const char *flags, void *arg),
	void *arg)
{
	struct each e = { .fn = fn, .arg = arg };
	char line[256];
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return (int)-fd;
	r = search_lines((int)fd, line, sizeof line, on_smaps_line, &e);
	kbi_sys(SYS_close, fd);
	return r == ENOENT ? 0 : r;
}

/* ---- one mapping ----------------------------------------------------------------------------- */

/* The kernel's query, from Linux 6.11 on; the fields in the order of the kernel's header. */
struct query {
	uint64_t size, how, at;
	uint64_t from, to, flags, page, offset, inode;
	uint32_t device[2], name_size, build_id_size;
	uint64_t name, build_id;
};
_Static_assert(sizeof(struct query) == 104, "the kernel's procmap_query");
#define QUERY _IOWR('f', 17, struct query)
enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8 };

static int query_mapping(int fd, uintptr_t at, struct kbi_maps_line *m)
{
	struct query q = { .size = sizeof q, .at = at };
	long r = kbi_sys(SYS_ioctl, fd, QUERY, &q);

	if (r == 0)
		*m = (struct kbi_maps_line){
			.from = q.from,
			.to = q.to,
			.offset = q.offset,
			.inode = q.inode,
			.protection = (uint8_t)((q.flags & READABLE ? PROT_READ : 0) |
				(q.flags & WRITABLE ? PROT_WRITE : 0) |
				(q.flags & EXECUTABLE ? PROT_EXEC : 0)),
			.shared = q.flags & SHARED,
		};
	return (int)-r;
}

struct sought {
	uintptr_t at;
	struct kbi_maps_line *m;
};

static bool is_sought(const char *line, void *arg)
{
	const struct sought *s = arg;

	kbi_maps_next(line, s->m);
	return s->at >= s->m->from && s->at < s->m->to;
}

/* Searches the list. Reads only the beginning of each line, which has everything except the
 * name. */
static int search_mapping(int fd, uintptr_t at, struct kbi_maps_line *m)
{
	struct sought s = { at, m };
	char line[128];

	return search_lines(fd, line, sizeof line, is_sought, &s);
}

int kbi_maps_find(uintptr_t at, struct kbi_maps_line *m)
{
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int e;

	if (fd < 0)
		return (int)-fd;
	e = query_mapping((int)fd, at, m);
	if (e && e != ENOENT)
		e = search_mapping((int)fd, at, m);
	kbi_sys(SYS_close, fd);
	return e;
}

bool kbi_maps_may_read(void)
{
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		kbi_sys(SYS_close, fd);
	return fd >= 0;
}
