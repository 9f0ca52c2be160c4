/* os/maps.c - reads /proc/self/maps. Contract in maps.h. A line: from-to rwxp offset device inode name. */
#include "os/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "os/sys.h"

#define USER_END ((uintptr_t)1 << 47)

int kbi_maps_read(char *text, size_t size)
{
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC), n = 0, r;

	if (fd < 0)
		return (int)-fd;
	while ((r = kbi_sys(SYS_read, fd, text + n, size - (size_t)n - 1)) > 0)
		n += r;
	kbi_sys(SYS_close, fd);
	text[n] = 0;
	return r < 0 ? (int)-r : n + 1 < (long)size ? 0 : E2BIG;
}

static const char *number(const char *p, unsigned base, uint64_t *v)
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
	p = number(text, 16, &from);
	p = number(p + 1, 16, &to);
	m->from = from;
	m->to = to;
	flags = p + 1;
	m->protection = (uint8_t)((flags[0] == 'r') * PROT_READ | (flags[1] == 'w') * PROT_WRITE |
				  (flags[2] == 'x') * PROT_EXEC);
	m->shared = flags[3] == 's';
	p = skip_word(flags);
	number(p, 16, &m->offset);
	p = skip_word(skip_word(p));
	number(p, 10, &m->inode);
	p = skip_word(p);
	for (end = p; *end && *end != '\n'; end++)
		;
	m->stack = is_named(p, end, "[stack]");
	m->kernels = from >= USER_END || (*p == '[' && p[1] == 'v');
	return *end ? end + 1 : end;
}
