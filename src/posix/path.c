/* posix/path.c - libc's functions that take a path, which may be a file in /proc of a lightweight
 * thread (posix/proc). libc's function is called first: if it succeeds, or fails with an error
 * other than ENOENT, its result stands; an invalid pointer fails there. So the path is readable
 * afterwards. Callers: programs. Never switches. */
#include "posix/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/newer.h"
#include "os/sys.h"
#include "posix/bind.h"
#include "posix/proc.h"

/* ---- libc's originals --------------------------------------------------------------------- */

static struct {
#define PATH(result, name, parameters, ...) result (*name) parameters;
#include "posix/path.def"
	ssize_t (*readlink)(const char *path, char *to, size_t room);
	ssize_t (*readlinkat)(int dir, const char *path, char *to, size_t room);
} table;

#define REAL(name) \
	((__typeof__(table.name))(kbi_likely(table.name) ? (void *)table.name : \
				  kbi_libc_original(#name, (void **)&table.name)))

static const struct kbi_libc_row rows[] = {
#define PATH(result, name, parameters, ...) { #name, (void **)&table.name },
#include "posix/path.def"
	{ "readlink", (void **)&table.readlink },
	{ "readlinkat", (void **)&table.readlinkat },
};

static a32 ready;

void kbi_path_resolve(void)
{
	if (!a_load_acq(&ready)) /* pairs with the release in kbi_libc_look_up */
		kbi_libc_look_up(rows, kbi_countof(rows), &ready);
}

/* ---- paths of lightweight threads --------------------------------------------------------- */

static KBI_NOINLINE bool lookup_thread_path(int dir, const char *path, enum kbi_proc_how how,
	struct kbi_proc_path *p)
{
	return kbi_vp_n && !kbi_posix_forked && kbi_proc_other(dir, path, how, p);
}

/* True for a file of /proc/thread-self: the kernel finds a virtual processor's. */
static KBI_NOINLINE bool is_thread_self_path(const char *path)
{
	return strncmp(path, "/proc/thread-self/", sizeof("/proc/thread-self/") - 1) == 0;
}

/* True if the path is a lightweight thread's. e: the kernel's error; 0: it was found. */
static inline bool is_thread_path(int e, int dir, const char *path, enum kbi_proc_how how,
	struct kbi_proc_path *p)
{
	if (kbi_likely(e ? e != ENOENT : !path || path[0] != '/' || path[1] != 'p' ||
		!is_thread_self_path(path)))
		return false;
	return lookup_thread_path(dir, path, how, p);
}

static enum kbi_proc_how how_of(const char *mode)
{
	return *mode == 'r' && !strchr(mode, '+') ? KBI_PROC_READ : KBI_PROC_WRITTEN;
}

/* Returns the mode for a copy that is written: it exists already and cannot be truncated. */
static const char *copy_open_mode(const char *mode, const struct kbi_proc_path *p)
{
	return p->fd >= 0 && *mode != 'r' ? "r+" : mode;
}

static void free_own_path(char *r, const char *to)
{
	if (r != to)
		free(r);
}

#define FOUND(r) _Generic((r), int : (long)(intptr_t)(r) >= 0, default : (intptr_t)(r) != 0)

/* libc's headers redirect and inline some of these names, so the definitions have names of their
 * own in C. */
#define PATH(result, name, parameters, arguments, dir, how, undo, before...) \
	KBI_POSIX_API result kbi_path_##name parameters __asm__(#name); \
	result kbi_path_##name parameters \
	{ \
		result r = (kbi_posix_let_turn_end(), REAL(name) arguments); \
		struct kbi_proc_path p; \
\
		if (kbi_likely(!is_thread_path(FOUND(r) ? 0 : errno, dir, path, how, &p))) \
			return r; \
		if (FOUND(r)) \
			undo; \
		path = p.text; \
		before; \
		r = REAL(name) arguments; \
		kbi_proc_done(&p); \
		return r; \
	}
#include "posix/path.def"

/* ---- stat --------------------------------------------------------------------------------- */

/* libc's structure is the kernel's, under both of its names, also before version 2.33. */
static int stat_at(int dir, const char *path, void *s, int flags)
{
	struct kbi_proc_path p;
	long r;

	kbi_posix_let_turn_end();
	r = kbi_sys(SYS_newfstatat, dir, path, s, flags);
	if (kbi_unlikely(is_thread_path((int)-r, dir, path, KBI_PROC_NAMED, &p)))
		r = kbi_sys(SYS_newfstatat, dir, p.text, s, flags);
	return kbi_posix_answer(r);
}

#define STAT(name, parameters, dir, flags) \
	int kbi_path_##name parameters __asm__(#name); \
	KBI_POSIX_API int kbi_path_##name parameters \
	{ \
		return stat_at(dir, path, s, flags); \
	}
#define OLD(name, parameters, dir, flags) \
	int kbi_path_##name parameters __asm__(#name); \
	KBI_POSIX_API int kbi_path_##name parameters \
	{ \
		(void)version; \
		return stat_at(dir, path, s, flags); \
	}
STAT(stat, (const char *path, void *s), AT_FDCWD, 0)
STAT(stat64, (const char *path, void *s), AT_FDCWD, 0)
STAT(lstat, (const char *path, void *s), AT_FDCWD, AT_SYMLINK_NOFOLLOW)
STAT(lstat64, (const char *path, void *s), AT_FDCWD, AT_SYMLINK_NOFOLLOW)
STAT(fstatat, (int dir, const char *path, void *s, int how), dir, how)
STAT(fstatat64, (int dir, const char *path, void *s, int how), dir, how)
OLD(__xstat, (int version, const char *path, void *s), AT_FDCWD, 0)
OLD(__xstat64, (int version, const char *path, void *s), AT_FDCWD, 0)
OLD(__lxstat, (int version, const char *path, void *s), AT_FDCWD, AT_SYMLINK_NOFOLLOW)
OLD(__lxstat64, (int version, const char *path, void *s), AT_FDCWD, AT_SYMLINK_NOFOLLOW)
OLD(__fxstatat, (int version, int dir, const char *path, void *s, int how), dir, how)
OLD(__fxstatat64, (int version, int dir, const char *path, void *s, int how), dir, how)

/* ---- links -------------------------------------------------------------------------------- */

/* Corrects the result for the link /proc/thread-self. */
static ssize_t correct_link_result(ssize_t r, const char *path, char *to, size_t room)
{
	long n = r > 0 && path[0] == '/' && path[1] == 'p' ? kbi_proc_link(path, to, room) : -1;

	return n < 0 ? r : n;
}

ssize_t kbi_path_readlink(const char *path, char *to, size_t room) __asm__("readlink");
ssize_t kbi_path_readlinkat(int dir, const char *path, char *to, size_t room) __asm__("readlinkat");

KBI_POSIX_API ssize_t kbi_path_readlink(const char *path, char *to, size_t room)
{
	ssize_t r = (kbi_posix_let_turn_end(), REAL(readlink)(path, to, room));
	struct kbi_proc_path p;

	if (kbi_likely(!is_thread_path(r < 0 ? errno : 0, AT_FDCWD, path, KBI_PROC_NAMED, &p)))
		return correct_link_result(r, path, to, room);
	return REAL(readlink)(p.text, to, room);
}

KBI_POSIX_API ssize_t kbi_path_readlinkat(int dir, const char *path, char *to, size_t room)
{
	ssize_t r = (kbi_posix_let_turn_end(), REAL(readlinkat)(dir, path, to, room));
	struct kbi_proc_path p;

	if (kbi_likely(!is_thread_path(r < 0 ? errno : 0, dir, path, KBI_PROC_NAMED, &p)))
		return correct_link_result(r, path, to, room);
	return REAL(readlinkat)(dir, p.text, to, room);
}

/* ---- by number ---------------------------------------------------------------------------- */

/* Returns the index of the path argument, and *dir: the directory. -1: the call has no path. */
static int path_argument_index(long n, const long *a, int *dir)
{
	*dir = AT_FDCWD;
	switch (n) {
#ifdef SYS_open
	case SYS_open:
	case SYS_access:
	case SYS_stat:
	case SYS_lstat:
	case SYS_readlink:
#endif
	case SYS_chdir:
		return 0;
	case SYS_openat:
	case SYS_openat2:
	case SYS_faccessat:
	case SYS_faccessat2:
#ifdef SYS_newfstatat
	case SYS_newfstatat:
#endif
	case SYS_statx:
	case SYS_readlinkat:
		*dir = (int)a[0];
		return 1;
	default:
		return -1;
	}
}

static bool is_open_call(long n, const long *a, int *how)
{
#ifdef SYS_open
	if (n == SYS_open) {
		*how = (int)a[1];
		return true;
	}
#endif
	*how = n == SYS_openat ? (int)a[2] : O_RDONLY;
	return n == SYS_openat;
}

bool kbi_path_by_number(long n, const long *a, long *r)
{
	int dir, how, at = path_argument_index(n, a, &dir), fd;
	struct kbi_proc_path p;
	long b[6];

	if (kbi_likely(at < 0) || !kbi_vp_n || kbi_posix_forked ||
		!kbi_bind_is_readable((const void *)a[at]))
		return false;
	if (is_open_call(n, a, &how)) {
		if (!kbi_proc_opens(dir, (const char *)a[at], how, &fd))
			return false;
		*r = fd < 0 ? -errno : fd;
		return true;
	}
	if (!kbi_proc_other(dir, (const char *)a[at], KBI_PROC_NAMED, &p))
		return false;
	memcpy(b, a, sizeof(b));
	b[at] = (long)p.text;
	*r = kbi_sys(n, b[0], b[1], b[2], b[3], b[4], b[5]);
	return true;
}
