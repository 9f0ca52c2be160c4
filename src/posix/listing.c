/* posix/listing.c - the list of the program's threads, /proc/self/task: it shows the numbers that
 * gettid gives, and the kernel threads that the program has made, but none of the runtime's. A
 * directory stream of such a list is noted when it is opened; reading any further directory costs a
 * look at a single word.
 * Callers: programs. A lock that no handler interrupts, for the notes. Never switches. */
#include "posix/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "core/worker.h"
#include "os/sys.h"
#include "posix/bind.h"
#include "posix/signal_priv.h"

enum { PROC_MAGIC = 0x9fa0, DOTS = 2 };

struct note {
	struct note *next;
	DIR *dir;
	long at;              /* the next entry: two dots, then descriptors, then the kernel's list */
	struct dirent entry;
};

static struct {
	DIR *(*opendir)(const char *);
	DIR *(*fdopendir)(int);
	struct dirent *(*readdir)(DIR *);
	int (*closedir)(DIR *);
	void (*rewinddir)(DIR *);
	long (*telldir)(DIR *);
	void (*seekdir)(DIR *, long);
	int (*scandir)(const char *, struct dirent ***, int (*)(const struct dirent *),
		       int (*)(const struct dirent **, const struct dirent **));
} table;

#define REAL(name) \
	((__typeof__(table.name))(kbi_likely(table.name) ? (void *)table.name : \
				  kbi_libc_original(#name, (void **)&table.name)))
#define ROW(name) { #name, (void **)&table.name }

static const struct kbi_libc_row rows[] =
	{ ROW(opendir), ROW(fdopendir), ROW(readdir), ROW(closedir),
					    ROW(rewinddir), ROW(telldir), ROW(seekdir), ROW(scandir) };

static a32 ready, lock, n_notes;
static struct note *notes; /* under the lock */

void kbi_listing_resolve(void)
{
	if (!a_load_acq(&ready)) /* pairs with the release in kbi_libc_look_up */
		kbi_libc_look_up(rows, kbi_countof(rows), &ready);
}

/* ---- notes -------------------------------------------------------------------------------- */

static struct note *find_noted_stream(DIR *dir)
{
	struct note *n;
	uint64_t old;

	if (kbi_likely(!a_load_rlx(&n_notes)))
		return NULL;
	old = kbi_signal_enter(&lock);
	for (n = notes; n && n->dir != dir;)
		n = n->next;
	kbi_signal_leave(&lock, old);
	return n;
}

static DIR *note_stream(DIR *dir)
{
	struct note *n = dir ? calloc(1, sizeof(*n)) : NULL;
	uint64_t old;

	if (!n)
		return dir;
	n->dir = dir;
	old = kbi_signal_enter(&lock);
	n->next = notes;
	notes = n;
	a_add_rlx(&n_notes, 1);
	kbi_signal_leave(&lock, old);
	return dir;
}

static void forget_stream(DIR *dir)
{
	struct note **at, *n;
	uint64_t old;

	if (kbi_likely(!a_load_rlx(&n_notes)))
		return;
	old = kbi_signal_enter(&lock);
	for (at = &notes; (n = *at) && n->dir != dir;)
		at = &n->next;
	if (n) {
		*at = n->next;
		a_sub_rlx(&n_notes, 1);
	}
	kbi_signal_leave(&lock, old);
	free(n);
}

/* ---- entries ------------------------------------------------------------------------------ */

static struct dirent *fill_task_entry(struct note *n, const char *name)
{
	n->entry.d_ino = (ino_t)n->at;
	n->entry.d_off = n->at;
	n->entry.d_reclen = sizeof(n->entry);
	n->entry.d_type = DT_DIR;
	snprintf(n->entry.d_name, sizeof(n->entry.d_name), "%s", name);
	return &n->entry;
}

/* True if the program has made the kernel thread, by libc, or if its maker is unknown. */
static bool is_programs_thread(const char *name)
{
	int tid = atoi(name);

	return tid > 0 && tid != getpid() && !kbi_worker_of_tid(tid) && !kbi_signal_is_dispatcher(tid);
}

static struct dirent *next_kernel_entry(struct note *n)
{
	struct dirent *e;

	while (kbi_posix_made_kernel && (e = REAL(readdir)(n->dir)))
		if (is_programs_thread(e->d_name))
			return e;
	return NULL;
}

static struct dirent *next_task_entry(struct note *n)
{
	static const char *const dots[DOTS] = { ".", ".." };
	char name[16];

	if (n->at < DOTS) {
		n->at++;
		return fill_task_entry(n, dots[n->at - 1]);
	}
	while (n->at - DOTS < (long)kbi_descriptor_limit()) {
		const struct kb_thread *t = kbi_descriptor_at((uint32_t)(n->at++ - DOTS));

		if (!t || !kbi_bind_lives(t))
			continue;
		snprintf(name, sizeof(name), "%u", a_load_rlx(&t->number));
		return fill_task_entry(n, name);
	}
	return next_kernel_entry(n);
}

/* ---- by their names ----------------------------------------------------------------------- */

KBI_POSIX_API DIR *opendir(const char *path)
{
	DIR *dir = REAL(opendir)(path);
	struct kbi_proc_path p;

	if (kbi_likely(dir && !(path[0] == '/' && path[1] == 'p')) || !kbi_vp_n || kbi_posix_forked)
		return dir;
	if (!dir && errno == ENOENT && kbi_proc_other(AT_FDCWD, path, KBI_PROC_NAMED, &p))
		return REAL(opendir)(p.text);
	return dir && kbi_proc_is_list(AT_FDCWD, path) ? note_stream(dir) : dir;
}

KBI_POSIX_API DIR *fdopendir(int fd)
{
	DIR *dir = REAL(fdopendir)(fd);
	char link[32], path[64];
	struct statfs fs;
	long n;

	if (!dir || !kbi_vp_n || kbi_posix_forked || kbi_sys(SYS_fstatfs, fd, &fs) != 0 ||
		fs.f_type != PROC_MAGIC)
		return dir;
	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	n = kbi_sys(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	return kbi_proc_is_list(AT_FDCWD, path) ? note_stream(dir) : dir;
}

KBI_POSIX_API struct dirent *readdir(DIR *dir)
{
	struct note *n = find_noted_stream(dir);

	return kbi_unlikely(n != NULL) ? next_task_entry(n) : REAL(readdir)(dir);
}

KBI_POSIX_API int closedir(DIR *dir)
{
	forget_stream(dir);
	return REAL(closedir)(dir);
}

KBI_POSIX_API void rewinddir(DIR *dir)
{
	struct note *n = find_noted_stream(dir);

	if (n)
		n->at = 0;
	REAL(rewinddir)(dir);
}

KBI_POSIX_API long telldir(DIR *dir)
{
	const struct note *n = find_noted_stream(dir);

	return n ? n->at : REAL(telldir)(dir);
}

KBI_POSIX_API void seekdir(DIR *dir, long at)
{
	struct note *n = find_noted_stream(dir);

	if (n)
		n->at = at;
	else
		REAL(seekdir)(dir, at);
}

/* ---- the whole list at once --------------------------------------------------------------- */

static void free_task_entries(struct dirent **e, size_t n)
{
	while (n)
		free(e[--n]);
	free(e);
}

/* Reads all entries; -1: there is no memory. */
static int collect_task_entries(DIR *dir, struct dirent ***to, int (*wants)(const struct dirent *))
{
	struct dirent **all = malloc(sizeof(*all)), **more, *e;
	size_t n = 0;

	while (all && (e = readdir(dir))) {
		if (wants && !wants(e))
			continue;
		more = realloc(all, (n + 1) * sizeof(*all));
		if (more)
			all = more;
		all[n] = more ? malloc(sizeof(*e)) : NULL;
		if (!more || !all[n]) {
			free_task_entries(all, n);
			return -1;
		}
		memcpy(all[n++], e, e->d_reclen < sizeof(*e) ? e->d_reclen : sizeof(*e));
	}
	*to = all;
	return all ? (int)n : -1;
}

KBI_POSIX_API int scandir(const char *path, struct dirent ***to,
	int (*wants)(const struct dirent *),
	int (*order)(const struct dirent **, const struct dirent **))
{
	DIR *dir;
	int n;

	if (path[0] != '/' || path[1] != 'p' || !kbi_proc_is_list(AT_FDCWD, path))
		return REAL(scandir)(path, to, wants, order);
	dir = opendir(path);
	if (!dir)
		return -1;
	n = collect_task_entries(dir, to, wants);
	closedir(dir);
	if (n > 0 && order)
		qsort(*to, (size_t)n, sizeof(**to), (int (*)(const void *, const void *))(uintptr_t)order);
	return n;
}

/* Aliases, where both kinds of entries are equal. */
KBI_POSIX_ALIAS(readdir64, readdir);
KBI_POSIX_ALIAS(scandir64, scandir);
