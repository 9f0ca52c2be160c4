/* os/fd.c - contract in fd.h. */
#include "os/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "os/gate.h"
#include "os/sys.h"

a32 kbi_fd_lowest = { KBI_FD_FROM };

void kbi_fd_note(int fd)
{
	uint32_t now = a_load_rlx(&kbi_fd_lowest);

	while ((uint32_t)fd < now && !a_cas_rlx(&kbi_fd_lowest, &now, (uint32_t)fd))
		;
}

/* ---- numbers for a moment -------------------------------------------------------------------- */

enum { PATIENCE_MS = 5000 };
static a32 brief;
/* The number of sections of each kind that the thread is in. Changed before the gate is entered and
 * after the gate is left, so that a handler never waits for the thread that it interrupts. */
static __thread uint32_t making __attribute__((tls_model("initial-exec")));
static __thread uint32_t placing __attribute__((tls_model("initial-exec")));

static bool enter_fd_gate(uint32_t group, uint32_t *mine, uint32_t others)
{
	if (others)
		return false;
	/* inside a section of this kind the gate is open to the thread, even if the other side waits */
	if (kbi_gate_enter(&brief, group, (*mine)++ ? KBI_GATE_FOR_EVER : PATIENCE_MS))
		return true;
	--*mine;
	return false;
}

bool kbi_fd_begin(void)
{
	return enter_fd_gate(KBI_GATE_MAKERS, &making, placing);
}

void kbi_fd_end(bool inside)
{
	if (!inside)
		return;
	kbi_gate_leave(&brief, KBI_GATE_MAKERS);
	making--;
}

bool kbi_fd_place(void)
{
	return enter_fd_gate(KBI_GATE_CLOSERS, &placing, making);
}

void kbi_fd_placed(bool inside)
{
	if (!inside)
		return;
	kbi_gate_leave(&brief, KBI_GATE_CLOSERS);
	placing--;
}

void kbi_fd_forked(void)
{
	a_store_rlx(&brief, 0);
	making = placing = 0;
}

/* ---- numbers for long ------------------------------------------------------------------------ */

void kbi_fd_make_room(void)
{
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_epoll_create1, EPOLL_CLOEXEC), high;

	if (fd < 0)
		return;
	high = kbi_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, KBI_FD_FROM);
	if (high >= 0)
		kbi_sys(SYS_close, high);
	kbi_sys(SYS_close, fd);
}

int kbi_fd_move(int fd)
{
	long high = kbi_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, KBI_FD_FROM);

	if (high < 0) {
		kbi_fd_note(fd);
		return fd;
	}
	kbi_sys(SYS_close, fd);
	return (int)high;
}

/* fd + 1, by place; places below n_kept have been used. Any thread, atomic. */
static a32 kept[KBI_FD_KEPT], n_kept;

bool kbi_fd_keep(int fd)
{
	for (uint32_t i = 0; i < KBI_FD_KEPT; i++) {
		uint32_t none = 0, n = a_load_rlx(&n_kept);

		/* pairs with this CAS in another thread */
		if (a_load_rlx(&kept[i]) || !a_cas_acqrel(&kept[i], &none, (uint32_t)fd + 1))
			continue;
		/* release: pairs with the acquire loads of n_kept below */
		while (n < i + 1 && !a_cas_acqrel(&n_kept, &n, i + 1))
			;
		kbi_fd_note(fd);
		return true;
	}
	return false;
}

void kbi_fd_let(int fd)
{
	uint32_t n = a_load_acq(&n_kept); /* acquire: pairs with the CAS in kbi_fd_keep */

	for (uint32_t i = 0; i < n; i++)
		if (a_load_rlx(&kept[i]) == (uint32_t)fd + 1)
			a_store_rlx(&kept[i], 0);
}

bool kbi_fd_is_kept(int fd)
{
	uint32_t n = a_load_acq(&n_kept); /* acquire: pairs with the CAS in kbi_fd_keep */

	for (uint32_t i = 0; i < n; i++)
		if (a_load_rlx(&kept[i]) == (uint32_t)fd + 1)
			return true;
	return false;
}

int kbi_fd_highest_kept(void)
{
	/* acquire: pairs with the CAS in kbi_fd_keep */
	uint32_t n = a_load_acq(&n_kept), most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = a_load_rlx(&kept[i]) > most ? a_load_rlx(&kept[i]) : most;
	return (int)most - 1;
}

bool kbi_fd_find(bool (*is)(const char *name, void *arg), void *arg)
{
	enum { LENGTH = 16, NAME = 19 }; /* offsets in a linux_dirent64 */
	KBI_FD_BRIEFLY();
	long folder = kbi_sys(SYS_openat, AT_FDCWD, "/proc/self/fd",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC), n;
	char buf[2048], name[64];
	bool found = false;

	if (folder < 0)
		return false;
	while (!found && (n = kbi_sys(SYS_getdents64, folder, buf, sizeof buf)) > 0)
		for (long at = 0; at < n && !found;) {
			uint16_t length;
			long bytes = kbi_sys(SYS_readlinkat, folder, buf + at + NAME, name, sizeof name - 1);

			memcpy(&length, buf + at + LENGTH, sizeof length);
			name[bytes > 0 ? bytes : 0] = 0;
			found = is(name, arg);
			at += length;
		}
	kbi_sys(SYS_close, folder);
	return found;
}
