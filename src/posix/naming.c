/* posix/naming.c - contract in naming.h. Each file is mapped here and begins with zeros: the
 * non-zero bytes are a name, and taking the name makes them zero again. The seal prevents the
 * program from shortening the file under the mapping. libc's functions map it, since where virtual
 * processors are processes they map it in each of these processes (libc/emulate_map).
 * The files are in a list under a lock that no handler interrupts. */
#include "posix/naming.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "os/sys.h"
#include "posix/bind.h"
#include "posix/signal_priv.h"

enum { BYTES = 4096 /* room for a name; nobody reads the second half */, FILE_BYTES = 2 * BYTES };

struct writer {
	struct writer *next;
	struct kbi_signal_to whom;
	char *text;
};

static a32 lock;
static struct writer *all; /* under the lock */

static bool is_writer_for(const struct writer *w, const struct kbi_signal_to *to)
{
	return w->whom.t == to->t && w->whom.number == to->number;
}

static int open_name_file(char **text)
{
	int fd = (int)kbi_sys(SYS_memfd_create, "comm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *at;
	int e;

	if (fd < 0)
		return fd;
	kbi_sys(SYS_ftruncate, fd, FILE_BYTES);
	kbi_sys(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK);
	at = kbi_libc()->mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		e = errno;
		kbi_sys(SYS_close, fd);
		return -e;
	}
	*text = at;
	return fd;
}

/* Takes the files of a thread, or (NULL) of all ended threads, out of the list and returns them. */
static struct writer *take_writers(const struct kbi_signal_to *to)
{
	struct writer **at = &all, *w, *taken = NULL;
	uint64_t old = kbi_signal_enter(&lock);

	while ((w = *at)) {
		if (to ? !is_writer_for(w, to) : kbi_bind_has(w->whom)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = taken;
		taken = w;
	}
	kbi_signal_leave(&lock, old);
	return taken;
}

/* Ends the files in this list. Called without the lock: every process has to remove the mapping,
 * and no handler runs where the lock is held. */
static void end_writers(struct writer *w)
{
	while (w) {
		struct writer *next = w->next;

		munmap(w->text, FILE_BYTES);
		free(w);
		w = next;
	}
}

/* A file may come too late to end with its thread if the thread ends at this moment; the next call
 * ends it. */
int kbi_naming_file(struct kbi_signal_to whom)
{
	struct writer *w = calloc(1, sizeof(*w));
	uint64_t old;
	int fd;

	if (!w)
		return -ENOMEM;
	end_writers(take_writers(NULL));
	fd = open_name_file(&w->text);
	if (fd < 0) {
		free(w);
		return fd;
	}
	w->whom = whom;
	a_store_rlx(&kbi_posix_helped, 1);
	old = kbi_signal_enter(&lock);
	w->next = all;
	all = w;
	kbi_signal_leave(&lock, old);
	return fd;
}

/* Waits for writes that have begun. The kernel holds the file's lock while it writes a program's
 * text and while it removes a part of the file; this removes a part that holds nothing. Text whose
 * write began before is visible afterwards. */
static void await_writes(char *text)
{
	kbi_sys(SYS_madvise, text + BYTES, BYTES, MADV_REMOVE);
}

/* Returns where the name begins; *n: its length, or 0. */
static size_t find_written_name(const char *text, size_t *n)
{
	size_t at = 0;

	while (at < BYTES && !text[at])
		at++;
	*n = strnlen(text + at, BYTES - at);
	return at;
}

/* Takes a name. A name that is equal before and after the wait is whole. Like the kernel, keeps as
 * many bytes as fit, up to the end of the line. */
static void take_written_name(struct kb_thread *t, char *text)
{
	size_t n, at = find_written_name(text, &n), before, n_before;

	if (!n)
		return;
	do {
		before = at;
		n_before = n;
		await_writes(text);
		at = find_written_name(text, &n);
	} while (at != before || n != n_before);
	memset(t->name, 0, sizeof(t->name));
	memcpy(t->name, text + at, n < sizeof(t->name) - 1 ? n : sizeof(t->name) - 1);
	t->name[strcspn(t->name, "\n")] = 0;
	t->named = true;
	memset(text + at, 0, n);
}

void kbi_naming_take(struct kb_thread *t)
{
	struct kbi_signal_to to = kbi_signal_to(t);
	uint64_t old;

	if (kbi_likely(!a_load_rlx(&kbi_posix_helped)) || kbi_posix_forked)
		return;
	old = kbi_signal_enter(&lock);
	for (struct writer *w = all; w; w = w->next)
		if (is_writer_for(w, &to))
			take_written_name(t, w->text);
	kbi_signal_leave(&lock, old);
}

void kbi_naming_thread_ends(void)
{
	struct kbi_signal_to to = kbi_signal_to(kbi_thread_of(kbi_self_raw()));

	if (kbi_likely(!a_load_rlx(&kbi_posix_helped)) || kbi_posix_forked)
		return;
	end_writers(take_writers(&to));
}
