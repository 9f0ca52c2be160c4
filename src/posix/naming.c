/* posix/naming.c - contract in naming.h. Each file is mapped here and begins with zeros: a name is what is not zero, and
 * is made so again when it is taken. The program cannot shorten the file under the mapping. A list under a lock that no
 * handler interrupts. */
#include "posix/naming.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "os/sys.h"
#include "posix/signal_priv.h"

enum { BYTES = 4096 };

struct writer {
	struct writer *next;
	struct kbi_signal_to whom;
	char *text;
};

static a32 lock;
static struct writer *all; /* under the lock */

static bool is_for(const struct writer *w, const struct kbi_signal_to *to)
{
	return w->whom.t == to->t && w->whom.number == to->number;
}

static int open_file(char **text)
{
	int fd = (int)kbi_sys(SYS_memfd_create, "comm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	long at;

	if (fd < 0)
		return fd;
	kbi_sys(SYS_ftruncate, fd, BYTES);
	kbi_sys(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK);
	at = kbi_sys(SYS_mmap, NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at < 0 && at > -BYTES) {
		kbi_sys(SYS_close, fd);
		return (int)at;
	}
	*text = (char *)at;
	return fd;
}

int kbi_naming_file(struct kb_thread *t)
{
	struct writer *w = calloc(1, sizeof(*w));
	uint64_t old;
	int fd;

	if (!w)
		return -ENOMEM;
	fd = open_file(&w->text);
	if (fd < 0) {
		free(w);
		return fd;
	}
	w->whom = kbi_signal_to(t);
	a_store_rlx(&kbi_posix_helped, 1);
	old = kbi_signal_enter(&lock);
	w->next = all;
	all = w;
	kbi_signal_leave(&lock, old);
	return fd;
}

/* The kernel takes as much as there is room for, up to the end of the line. */
static void take(struct kb_thread *t, char *text)
{
	size_t at = 0, n;

	while (at < BYTES && !text[at])
		at++;
	if (at == BYTES)
		return;
	n = strnlen(text + at, BYTES - at);
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
		if (is_for(w, &to))
			take(t, w->text);
	kbi_signal_leave(&lock, old);
}

void kbi_naming_thread_ends(void)
{
	struct kbi_signal_to to = kbi_signal_to(kbi_thread_of(kbi_self_raw()));
	struct writer **at, *w;
	uint64_t old;

	if (kbi_likely(!a_load_rlx(&kbi_posix_helped)) || kbi_posix_forked)
		return;
	old = kbi_signal_enter(&lock);
	for (at = &all; (w = *at);) {
		if (!is_for(w, &to)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		kbi_sys(SYS_munmap, w->text, BYTES);
		free(w);
	}
	kbi_signal_leave(&lock, old);
}
