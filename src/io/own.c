/* io/own.c - private copies of descriptors. Contract in own.h.
 * Callers: see own.h. Runs on any kernel thread, also inside np brackets. Waits in a futex.
 *
 * A slot's `users` says whether its number is ours. The kernel gives a copy its number before
 * `users` is written; a thread that closes all numbers in a loop would close the copy in
 * between. So makers of copies and closers of numbers from KBI_FD_FROM on exclude each other
 * (os/gate). Both are short. Below KBI_FD_FROM no such care is needed until a copy had to be
 * made there, for want of numbers. */
#include "io/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>

#include "core/wait.h"
#include "io/engine.h"
#include "os/fd.h"
#include "os/gate.h"
#include "os/memory.h"
#include "os/sys.h"

enum {
	/* flag of users: the last user closes the copy; the low bits are the number of this ending */
	ENDING = 1 << 30,
	PAUSE_NS = 1000000,
};

static a32 gate;
static a32 highest; /* highest number of a copy so far */
static a32 endings; /* number of copies that were closed */

/* Returns whether fd is the runtime's, for as long as it exists: it may lie
 * among the program's numbers. */
static bool is_runtimes(int fd)
{
	return fd >= 0 && (fd == kbi_memory_descriptor() || kbi_engine_owns(fd) || kbi_fd_is_kept(fd));
}

void kbi_own_stop_copies(void)
{
	kbi_gate_enter(&gate, KBI_GATE_CLOSERS, KBI_GATE_FOR_EVER);
}

void kbi_own_let_copies(void)
{
	kbi_gate_leave(&gate, KBI_GATE_CLOSERS);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void raise_highest(a32 *word, uint32_t to)
{
	uint32_t now = a_load_rlx(word);

	while (now < to && !a_cas_rlx(word, &now, to))
		;
}

/* Copies where numbers are few: to a number above fd, so that the lowest free number is the number
 * that the program expects; or to any number. A thread that closes numbers must know of the copy
 * before it exists. */
static long copy_low(int fd)
{
	long n = -EMFILE;

	kbi_fd_note(0);
	for (int from = fd + 1; n == -EMFILE && from >= 0; from = from ? 0 : -1)
		n = kbi_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
	return n;
}

static long copy_descriptor(int fd)
{
	long n = kbi_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, KBI_FD_FROM);
	struct kbi_slot *s;

	if (kbi_unlikely(n == -EMFILE || n == -EINVAL))
		n = copy_low(fd);
	if (n < 0)
		return n;
	s = kbi_slot_make((int)n);
	if (!s) {
		kbi_sys(SYS_close, n);
		return -ENOMEM;
	}
	raise_highest(&highest, (uint32_t)n);
	/* release: pairs with the acquire in kbi_own_is and kbi_own_next */
	a_store_rel(&s->users, 1);
	return n;
}

int kbi_own_copy(int fd)
{
	long n;

	kbi_gate_enter(&gate, KBI_GATE_MAKERS, KBI_GATE_FOR_EVER);
	n = copy_descriptor(fd);
	kbi_gate_leave(&gate, KBI_GATE_MAKERS);
	return (int)n;
}

void kbi_own_share(int own)
{
	a_add_rlx(&kbi_slot_find(own)->users, 1);
}

/* Removes the engine's knowledge of the number, which is of no use to the number's next file. */
static void forget_number(struct kbi_slot *s, int own)
{
	struct kbi_task *self = kbi_self_raw();

	if (self)
		kbi_np_enter(self);
	kbi_slot_lock(s);
	if (a_load_rlx(&s->known) & KBI_SLOT_STAYS)
		kbi_engine_disarm(s, own);
	a_store_rlx(&s->known, 0);
	kbi_slot_unlock(s);
	if (self)
		kbi_np_leave(self);
}

void kbi_own_drop(int own)
{
	struct kbi_slot *s = kbi_slot_find(own);
	uint32_t n = a_load_rlx(&s->users), ending = ENDING | (a_add_rlx(&endings, 1) & (ENDING - 1));

	/* acquire and release: pairs with itself, in the user before */
	while (!a_cas_acqrel(&s->users, &n, n == 1 ? ending : n - 1))
		;
	if (n != 1)
		return;
	forget_number(s, own);
	kbi_sys(SYS_close, own);
	/* release: pairs with the acquire in kbi_own_is. Since the close the number may belong to the
	 * next copy already, which has set users, or is about to */
	if (a_cas_acqrel(&s->users, &ending, 0))
		kbi_sys_futex_wake(&s->users, INT_MAX);
}

/* A copy that is about to be closed may be the program's next number already: the function waits
 * for the close. */
bool kbi_own_is(int fd)
{
	struct kbi_slot *s = kbi_slot_find(fd);
	struct timespec pause = { 0, PAUSE_NS };
	uint32_t n;

	if (kbi_unlikely(is_runtimes(fd)))
		return true;
	if (!s)
		return false;
	/* acquire: pairs with the release in kbi_own_drop and copy_descriptor */
	while (kbi_unlikely((n = a_load_acq(&s->users)) & ENDING))
		kbi_sys_futex_wait(&s->users, n, &pause);
	return n > 0;
}

static int highest_of_runtimes(void)
{
	int engines = kbi_engine_highest(), memorys = kbi_memory_descriptor(),
		most = kbi_fd_highest_kept();

	most = engines > most ? engines : most;
	return memorys > most ? memorys : most;
}

int kbi_own_next(int from)
{
	int most = (int)a_load_rlx(&highest), runtimes = highest_of_runtimes();

	most = most > runtimes ? most : runtimes;
	for (int fd = from < 0 ? 0 : from; fd <= most; fd++) {
		struct kbi_slot *s = kbi_slot_find(fd);

		/* acquire: pairs with the release in copy_descriptor */
		if ((s && a_load_acq(&s->users)) || is_runtimes(fd))
			return fd;
	}
	return INT_MAX;
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* Closes all copies: no thread is in a call in the child. */
static void close_copies_in_child(void)
{
	a_store_rlx(&gate, 0);
	kbi_fd_forked();
	for (int fd = kbi_own_next(0); fd != INT_MAX; fd = kbi_own_next(fd + 1)) {
		if (is_runtimes(fd))
			continue;
		a_store_rlx(&kbi_slot_find(fd)->users, 0);
		kbi_sys(SYS_close, fd);
	}
}

__attribute__((constructor)) static void on_fork(void)
{
	pthread_atfork(NULL, NULL, close_copies_in_child);
}
